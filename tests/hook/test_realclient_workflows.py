"""Workflows of real clients: an agent fails, a client is killed, and a client resumes its workflow.

See ``test_realclient``, whose harness this uses; the hooks are those that ``hooks install`` writes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from tests.hook.test_lives import DONE, FAILED, NOT_ENDED
from tests.hook.test_realclient import client

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hook.test_lives import End
    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = pytest.mark.realclient

ALPHA, BETA = "Report of alpha: 42.", "Report of beta."
LOST: End = ("investigating", "lost", 0)


def workflow_and_agents(client: Client) -> tuple[Any, list[Any]]:
    """The session of the workflow and the sessions of its two agents, in the order of its script.

    Checks that there are no other sessions, that the workflow is the parent, and that the inbox is empty.
    """
    records = list(client.host.records().values())
    [workflow] = [record for record in records if record["agent_name"] == "workflow"]
    agents = [record for record in records if record is not workflow]
    assert [record["parent_id"] for record in agents] == [workflow["agent_id"]] * 2
    assert ("parent_id" in workflow, workflow["purpose"]) == (False, "two agents")
    assert client.host.waiting() == []
    return workflow, sorted(agents, key=lambda record: "Report of alpha" not in str(record["runs"]))


def end_of(record: Any) -> End:
    return record["phase"], record["runs"][-1].get("end", ""), record["error_count"]


def messages(record: Any) -> list[str | None]:
    return [run.get("last_message") for run in record["runs"]]


def test_only_the_session_of_a_failed_workflow_agent_counts_its_error(client: Client) -> None:
    client.live("workflow", installed=True)

    workflow, [alpha, bad] = workflow_and_agents(client)
    assert [end_of(record) for record in (workflow, alpha, bad)] == [DONE, DONE, FAILED]
    assert (alpha["purpose"], bad["purpose"]) == ("alpha", "bad")
    assert [messages(record) for record in (workflow, alpha, bad)] == [[f'["{ALPHA}",null]'], [ALPHA], [None]]
    assert bad["last_error"]["message"] == "API Error: 400 scripted 400"
    assert workflow["runs"][0]["detail"] == "[bad] failed: API Error: 400 scripted 400"
    assert {record["runs"][0]["workflow"]["run_id"] for record in (alpha, bad)} == {
        workflow["runs"][0]["workflow"]["run_id"]
    }


def test_a_workflow_killed_with_its_client_is_lost_but_its_finished_agent_is_not(client: Client) -> None:
    client.live("workflow-sigkill", installed=True)

    workflow, [alpha, beta] = workflow_and_agents(client)
    assert [end_of(record) for record in (workflow, alpha, beta)] == [NOT_ENDED, DONE, NOT_ENDED]

    reconciled = gaia_sessions.Sessions(str(client.host.root)).reconcile()

    closed = {entry["agent_id"]: (entry["verdict"], entry["closed"]) for entry in reconciled["verdicts"]}
    assert closed == dict.fromkeys((workflow["agent_id"], beta["agent_id"]), ("lost", True))
    workflow, [alpha, beta] = workflow_and_agents(client)
    assert [end_of(record) for record in (workflow, alpha, beta)] == [LOST, DONE, LOST]
    decisions = [gaia_sessions.explain_resume(id_, root=str(client.host.root)) for id_ in client.host.records()]
    resumable = {decision["agent_id"] for decision in decisions if decision["should_resume"]}
    assert resumable == {workflow["agent_id"], beta["agent_id"]}


def restarted(client: Client) -> Path:
    """The harness's scenario of a killed client that resumes its workflow, with shorter delays."""
    name = "workflow-resumed"
    known = json.loads((client.harness / "scenarios.json").read_text(encoding="utf-8"))[name]
    subs = {**known["subs"], "beta": [{"text": BETA, "delay": 4}]}
    file = client.host.folder / "restarted.json"
    file.write_text(json.dumps({name: {**known, "subs": subs, "sigint_when": {**known["sigint_when"], "after": 2}}}))
    return file


def test_a_workflow_that_a_restarted_client_resumes_stays_in_the_same_sessions(client: Client) -> None:
    client.live("workflow-resumed", restarted(client), installed=True)

    workflow, [alpha, beta] = workflow_and_agents(client)
    assert [end_of(record) for record in (workflow, alpha, beta)] == [DONE, DONE, DONE]
    assert [[run["end"] for run in record["runs"]] for record in (workflow, alpha, beta)] == [
        ["lost", "stopped"],
        ["stopped"],
        ["lost", "stopped"],
    ]
    assert [messages(record) for record in (alpha, beta)] == [[ALPHA], [None, BETA]]
    [first, second] = beta["runs"]
    assert (first["workflow"], first["host_agent_id"] != second["host_agent_id"]) == (second["workflow"], True)
    assert (len(client.requests("sub:alpha")), len(client.requests("sub:beta"))) == (1, 2), "done work stays done"
