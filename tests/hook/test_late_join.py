"""The second hook of a start, which nobody waits for: it joins the start once the host has noted the delegation."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.hook.conftest import LONGEST, SCRIPTS

if TYPE_CHECKING:
    from tests.hook.conftest import Host


class Joining:
    """A call of the second hook, which the host started and does not wait for."""

    def __init__(self, host: Host, payload: object, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SCRIPTS / "every_event.py", *(arguments or ["--join"])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=host.project,
            env=host.environment(),
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(payload).encode())
        self.process.stdin.close()
        self.process.stdin = None

    def ends(self) -> None:
        """It ends by itself, without a word."""
        out, _ = self.process.communicate(timeout=LONGEST)
        assert (self.process.returncode, out) == (0, b"")

    def still_waits(self) -> bool:
        return self.process.poll() is None


def state(host: Host) -> dict[str, Any]:
    """What is known of the only session: its phase and its runs, without times."""
    record = host.record()
    runs = [{key: run.get(key) for key in ("host_agent_id", "tool_use_id", "end")} for run in record["runs"]]
    return {"phase": record["phase"], "runs": runs, "history": len(record["history"]), "waiting": len(host.waiting())}


RUN = {"host_agent_id": "a1", "tool_use_id": "toolu_1", "end": None}
AT_WORK = {"phase": "investigating", "runs": [RUN], "history": 1, "waiting": 0}


def test_the_start_is_joined_as_soon_as_the_host_has_noted_the_delegation(host: Host) -> None:
    host.hear(host.delegation())
    joining = Joining(host, host.starting())
    host.hear(host.starting())
    assert (host.record()["phase"], len(host.waiting())) == ("initializing", 1)

    host.knows("a1", "toolu_1")
    joining.ends()

    assert state(host) == AT_WORK
    line = host.log("hook")[-1]
    assert (line["event"], line["decision"], line["inbox"][0].split()[-1]) == ("SubagentStart", "known", "started")


def test_it_joins_as_well_when_the_note_was_there_before_it(host: Host) -> None:
    host.begin()

    Joining(host, host.starting(), "--track-tools", "--join").ends()

    assert state(host) == AT_WORK


def test_it_does_nothing_before_the_start_is_reported_and_the_report_loses_nothing(host: Host) -> None:
    host.hear(host.delegation())
    host.knows("a1", "toolu_1")
    Joining(host, host.starting(), "--host", "claude-code", "--join").ends()
    assert (host.record()["phase"], host.record()["runs"][0].get("host_agent_id")) == ("initializing", None)

    assert "gaia-sessions: approval" in host.hear(host.starting())["additionalContext"]

    assert state(host) == AT_WORK


def test_both_at_once_and_each_several_times_are_one_start(host: Host) -> None:
    host.hear(host.delegation())
    calls = [Joining(host, host.starting()) for _ in range(3)]
    host.hear(host.starting())
    host.hear(host.starting())
    host.knows("a1", "toolu_1")
    for call in calls:
        call.ends()
    Joining(host, host.starting()).ends()

    assert state(host) == AT_WORK


def test_one_that_is_late_wakes_no_agent_that_has_stopped(host: Host) -> None:
    host.begin()
    host.stop()
    before = host.record()

    Joining(host, host.starting()).ends()

    assert host.record() == before
    assert (state(host)["phase"], state(host)["waiting"]) == ("completed", 0)


def test_without_a_note_it_gives_up_in_silence_and_the_start_waits_on(host: Host) -> None:
    host.begin()
    (host.agents / "agent-a1.meta.json").unlink()

    Joining(host, host.starting()).ends()

    assert (host.record()["phase"], len(host.waiting())) == ("initializing", 1)
    assert host.log("hook")[-1]["decision"] == "no_key"


def test_it_waits_for_whoever_holds_the_session(host: Host) -> None:
    host.begin()
    [agent_id] = host.records()

    with host.held(agent_id):
        joining = Joining(host, host.starting())
        time.sleep(0.5)
        assert joining.still_waits()
    joining.ends()

    assert state(host) == AT_WORK


class Workflow:
    """A workflow whose journal names its agent ``a1`` when it is told to."""

    def __init__(self, host: Host) -> None:
        self.folder = host.agents / "workflows" / "wf_0a1b2c3d-4e5"
        self.folder.mkdir(parents=True)
        self.journal = self.folder / "journal.jsonl"
        self.journal.write_text(json.dumps({"type": "launched"}) + "\n", encoding="utf-8")

    def names_agent(self) -> None:
        entry = {"type": "started", "key": "v2:abc", "agentId": "a1", "label": "alpha"}
        with self.journal.open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(entry) + "\n")


@pytest.fixture
def workflow(host: Host) -> Workflow:
    return Workflow(host)


def agent_at_work(host: Host) -> tuple[Any, ...]:
    """The only session as that of the agent of the workflow at work, and what waits."""
    record = host.record()
    runs = [(run["host_agent_id"], run["workflow"]["key"], run.get("end")) for run in record["runs"]]
    return record["purpose"], record["phase"], runs, host.waiting()


AGENT_AT_WORK: tuple[Any, ...] = ("alpha", "investigating", [("a1", "v2:abc", None)], [])


def test_an_agent_of_a_workflow_that_was_joined_at_its_start_is_left_as_it_is(host: Host, workflow: Workflow) -> None:
    workflow.names_agent()
    host.hear(host.starting())
    before = host.record()

    Joining(host, host.starting()).ends()

    assert host.record() == before
    assert agent_at_work(host) == AGENT_AT_WORK


@pytest.mark.parametrize("calls", [1, 3])
def test_an_agent_that_the_journal_names_after_its_start_was_reported_is_joined_then(
    host: Host, workflow: Workflow, calls: int
) -> None:
    joining = [Joining(host, host.starting()) for _ in range(calls)]
    host.hear(host.starting())
    assert (host.records(), len(host.waiting())) == ({}, 1)

    workflow.names_agent()
    for call in joining:
        call.ends()

    assert agent_at_work(host) == AGENT_AT_WORK


def test_an_agent_that_the_journal_names_between_the_two_hooks_of_its_start_is_joined_by_the_second(
    host: Host, workflow: Workflow
) -> None:
    host.hear(host.starting())
    workflow.names_agent()

    Joining(host, host.starting()).ends()

    assert agent_at_work(host) == AGENT_AT_WORK


def test_the_second_hook_waits_for_the_report_of_the_first_if_the_journal_was_late(
    host: Host, workflow: Workflow
) -> None:
    workflow.names_agent()
    joining = Joining(host, host.starting())
    time.sleep(0.5)
    assert joining.still_waits()
    [named, launched] = reversed(workflow.journal.read_text(encoding="utf-8").splitlines())
    workflow.journal.write_text(launched + "\n", encoding="utf-8")

    host.hear(host.starting())
    workflow.journal.write_text(f"{launched}\n{named}\n", encoding="utf-8")
    joining.ends()

    assert agent_at_work(host) == AGENT_AT_WORK


def test_an_agent_of_a_workflow_that_has_stopped_by_then_is_not_woken(host: Host, workflow: Workflow) -> None:
    host.hear(host.starting())
    workflow.names_agent()
    host.stop(agent_transcript_path=str(workflow.folder / "agent-a1.jsonl"))
    before = host.record()

    Joining(host, host.starting()).ends()

    assert (host.record(), host.waiting()) == (before, [])
    assert before["phase"] == "completed"


@pytest.mark.parametrize("event", ["ending", "dying", "delegation"])
def test_beside_any_other_event_it_changes_nothing(host: Host, event: str) -> None:
    host.work()
    before = host.record()

    Joining(host, getattr(host, event)()).ends()

    assert (host.record(), host.log("hook")[-1]["decision"]) == (before, "not_ours")
