"""Hooks that are installed later record an agent whose delegation and start they missed."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from tests.hook.conftest import own_host
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hook.conftest import Host

    News = Callable[[Host], dict[str, Any]]

AGENT = {"agent_id": "a1", "agent_type": "Explore"}


def hear(host: Host, payload: dict[str, Any]) -> None:
    """Sends ``payload`` to the hook."""
    ran = host.run("every_event", payload)
    assert (ran.code, ran.err) == (0, b"")


def tool(host: Host, event: str, **keys: object) -> dict[str, Any]:
    used = {"tool_name": "Read", "tool_input": {"file_path": "/x"}, "tool_use_id": "toolu_r"}
    return host.event_payload(event, **{**AGENT, **used, **keys})


NEWS: dict[str, News] = {
    "its own delegation": lambda host: host.delegation("toolu_2", **AGENT),
    "the launch of what it delegated": lambda host: {**host.launching("toolu_2", "b1"), **AGENT},
    "a request for permission": lambda host: tool(host, "PermissionRequest"),
    "its stop": lambda host: host.ending(),
    "its failure": lambda host: host.dying(),
}
AT_WORK = [name for name in NEWS if name not in ("its stop", "its failure")]


def of_agent(host: Host, agent: str) -> Any:
    """The only record with ``agent``."""
    found = [record for record in host.records().values() if record["runs"][-1].get("host_agent_id") == agent]
    [record] = found
    return record


@table("name", AT_WORK)
@own_host
def test_an_agent_is_recorded_at_its_first_event(host: Host, name: str) -> None:
    host.knows("a1", "toolu_1")

    hear(host, NEWS[name](host))

    [run] = of_agent(host, "a1")["runs"]
    assert (of_agent(host, "a1")["phase"], of_agent(host, "a1")["agent_name"]) == ("investigating", "Explore")
    assert (run["tool_use_id"], "started_at" in run, "ended_at" in run) == ("toolu_1", False, False)
    assert run["transcript_path"] == str(host.agents / "agent-a1.jsonl")
    assert ("waiting" in run) is (name == "a request for permission")
    host.stop()
    assert of_agent(host, "a1")["phase"] == "completed"


@table("first", AT_WORK)
@own_host
def test_an_agent_recorded_late_is_above_the_agents_that_it_starts(host: Host, first: str) -> None:
    host.knows("a1", "toolu_1")
    hear(host, NEWS[first](host))

    hear(host, NEWS["its own delegation"](host))
    host.knows("b1", "toolu_2")
    hear(host, host.starting("b1"))

    parent, child = of_agent(host, "a1"), of_agent(host, "b1")
    assert (child["parent_id"], child["runs"][0]["parent_host_agent_id"]) == (parent["agent_id"], "a1")
    assert len(host.records()) == 2
    host.stop("b1")
    host.stop("a1")
    assert {record["phase"] for record in host.records().values()} == {"completed"}


def test_an_agent_recorded_late_is_resumable_after_its_client_was_killed(host: Host) -> None:
    host.knows("a1", "toolu_1")

    with host.client() as client:
        host.hear(NEWS["its own delegation"](host))
        client.kill()

    decision = gaia_sessions.explain_resume(of_agent(host, "a1")["agent_id"], root=str(host.root))
    assert (decision["should_resume"], decision["reason"]) == (True, "session_resumable")


def test_an_agent_launched_by_an_unrecorded_agent_is_below_it(host: Host) -> None:
    host.knows("a1", "toolu_1")
    host.knows("b1", "toolu_2")

    hear(host, NEWS["the launch of what it delegated"](host))

    assert of_agent(host, "b1")["parent_id"] == of_agent(host, "a1")["agent_id"]
    assert len(host.records()) == 2


SIDE: dict[str, dict[str, Any]] = {
    "without a type, as in a compaction": {"agent_type": ""},
    "without a note of its delegation": {"agent_id": "a9"},
    "with an ignored name": {"agent_type": "Statusline"},
    "with an ID that is a path": {"agent_id": "../a1"},
}


@table("changes", SIDE.values())
@table("name", AT_WORK)
@own_host
def test_an_agent_that_nobody_delegated_is_not_recorded(host: Host, name: str, changes: dict[str, Any]) -> None:
    host.knows("a1", "toolu_1")
    ignored = {"GAIA_SESSIONS_IGNORE_AGENTS": "Statusline"}
    payload = {**NEWS[name](host), **changes}

    for _ in range(2):
        host.run("every_event", payload, ignored)

    begun = {"its own delegation", "the launch of what it delegated"}
    agents = [record["runs"][0].get("host_agent_id") for record in host.records().values()]
    assert agents == ([] if name not in begun else [None] if name == "its own delegation" else agents)
    assert "a1" not in agents
    assert [event["kind"] for event in host.deferred()] == (
        ["start"] if name == "the launch of what it delegated" and not agents else []
    )


@table("reported", [True, False])
@table("name", AT_WORK)
@own_host
def test_events_in_any_order_around_the_start_create_no_second_session(
    host: Host, name: str, *, reported: bool
) -> None:
    steps = ("start", "news", "note")
    for number, order in enumerate(itertools.permutations(steps)):
        agent, key = f"a{number}", f"toolu_{number}"
        news = {**NEWS[name](host), "agent_id": agent, "tool_use_id": f"toolu_of_{number}"}
        if "tool_response" in news and "agentId" in news["tool_response"]:
            news["tool_response"]["agentId"] = f"b{number}"
        if reported:
            hear(host, host.delegation(key))
        for step in order:
            if step == "note":
                host.knows(agent, key)
            else:
                hear(host, news if step == "news" else host.starting(agent))
        hear(host, news)
        assert of_agent(host, agent)["phase"] == "investigating", order
        begun = [record for record in host.records().values() if "parent_host_agent_id" in record["runs"][0]]
        assert [record["parent_id"] for record in begun if record["runs"][0]["parent_host_agent_id"] == agent] == (
            [of_agent(host, agent)["agent_id"]] * bool(begun)
        )


@pytest.mark.parametrize("times", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_many_concurrent_events_of_one_agent_create_one_session(host: Host, times: int) -> None:
    host.knows("a1", "toolu_1")
    news = [NEWS["a request for permission"](host)] * 2 * times

    with ThreadPoolExecutor(len(news)) as pool:
        ran = list(pool.map(lambda one: host.start("every_event", one), news))
    assert {(one.code, one.err) for one in ran} == {(0, b"")}

    assert of_agent(host, "a1")["phase"] == "investigating"
    assert len(host.records()) == 1


def test_an_event_after_the_stop_of_the_agent_changes_nothing(host: Host) -> None:
    host.knows("a1", "toolu_1")
    host.stop()
    before = host.records()

    hear(host, NEWS["a request for permission"](host))

    assert host.records() == before


def test_an_agent_of_a_workflow_is_recorded_with_its_workflow(host: Host) -> None:
    folder: Path = host.agents / "workflows" / "wf_0a1b2c3d-4e5"
    folder.mkdir(parents=True)
    entry = {"type": "started", "key": "v2:abc", "agentId": "a1", "label": "alpha"}
    (folder / "journal.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")

    hear(host, NEWS["a request for permission"](host))

    record = host.record()
    assert (record["purpose"], record["runs"][0]["workflow"]) == ("alpha", {"run_id": folder.name, "key": "v2:abc"})
    assert ("started_at" in record["runs"][0], record["phase"]) == (False, "investigating")
