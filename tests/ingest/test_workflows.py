"""Workflows of Claude Code and their agents: how they are joined, resumed, ended and arranged as a tree.

``tests/hook/test_lives.py`` replays captures of whole workflows. Here are the cases that no capture has.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api.sessions import Sessions
from gaia_sessions.config import Config
from gaia_sessions.ingest import Terms
from gaia_sessions.ingest.deferred import apply_deferred
from gaia_sessions.ingest.dispatch import handle_event
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.updates import with_phase
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from tests.ingest.conftest import own_folder
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.host_events import Event
    from tests.hook.conftest import Host

NOW = utc_now()
LATER = timedelta(hours=5)  # longer than the limit for an idle session
RUN = {"run_id": "wf_1"}


def alpha(agent: str = "a1", **changed: Any) -> dict[str, Any]:
    keys = {"agent_name": "workflow-subagent", "purpose": "alpha", "workflow": {**RUN, "key": "k-alpha"}}
    return {"kind": "start", "host_agent_id": agent, **keys, **changed}


DELEGATION = {"kind": "delegate", "tool_use_id": "t1", "agent_name": "workflow", "purpose": "general"}
LAUNCH = {
    "kind": "start",
    "launch": True,
    "host_agent_id": "w1",
    "tool_use_id": "t1",
    "background": True,
    "agent_name": "workflow",
    "purpose": "two agents",
    "workflow": RUN,
}
AGAIN = {**DELEGATION, "tool_use_id": "t2", "workflow": RUN}
RELAUNCH = {**LAUNCH, "host_agent_id": "w2", "tool_use_id": "t2"}


class Project:
    """The sessions of one project, and the events of one conversation."""

    def __init__(self, root: Path) -> None:
        self.store = FileStore(str(root))

    def tell(self, *events: dict[str, Any], after: timedelta = timedelta(0), **settings: object) -> list[str]:
        at = NOW + after
        base = {"at": format_time(at), "host": "claude-code", "host_session_id": "h1"}
        return [
            handle_event(self.store, self._event(base, event), Terms(at, Config(settings), 2.0)).word
            for event in events
        ]

    def _event(self, base: dict[str, Any], event: dict[str, Any]) -> Event:
        return {**base, **event}  # type: ignore[typeddict-item]

    def sessions(self) -> dict[str, Any]:
        """The newest session of each purpose."""
        records = [self.store.read(agent_id) for agent_id in self.store.ids()]
        return {record["purpose"]: record for record in sorted(records, key=lambda record: record["created_at"])}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "sessions")


def above(record: Any) -> Any:
    return record.get("parent_id")


@table("launch_first", [True, False])
@own_folder
def test_an_agent_is_below_its_workflow_in_either_order_of_their_reports(tmp_path: Path, *, launch_first: bool) -> None:
    project = Project(tmp_path / "sessions")
    project.tell(DELEGATION, *([LAUNCH, alpha()] if launch_first else [alpha(), LAUNCH]))

    workflow, agent = project.sessions()["two agents"], project.sessions()["alpha"]

    assert above(workflow) is None
    assert above(agent) == workflow["agent_id"]
    assert (workflow["agent_name"], workflow["phase"], agent["phase"]) == ("workflow", "investigating", "investigating")
    assert agent["runs"][0]["workflow"] == {"run_id": "wf_1", "key": "k-alpha"}
    assert agent["runs"][0]["parent_host_agent_id"] == workflow["runs"][0]["host_agent_id"] == "w1"


def test_an_agent_of_a_resumed_workflow_gets_a_new_run_even_after_hours(project: Project) -> None:
    project.tell(DELEGATION, LAUNCH, alpha())

    words = project.tell(AGAIN, alpha("a2"), RELAUNCH, after=LATER)

    sessions = project.sessions()
    assert words == ["claimed", "started", "started"]
    assert set(sessions) == {"two agents", "alpha"}
    assert len(project.store.ids()) == 2
    assert [run.get("end") for run in sessions["alpha"]["runs"]] == ["lost", None]
    assert [run["host_agent_id"] for run in sessions["alpha"]["runs"]] == ["a1", "a2"]
    assert [run["host_agent_id"] for run in sessions["two agents"]["runs"]] == ["w1", "w2"]
    assert [sessions[name]["phase"] for name in sessions] == ["investigating", "investigating"]
    assert sessions["alpha"]["runs"][1]["parent_host_agent_id"] == "w2"


@table(("settings", "phase", "by"), [({}, "executing", ["workflow"]), ({"approvals": "explicit"}, "approval", [])])
@own_folder
def test_resuming_a_workflow_approves_its_waiting_agent_unless_approvals_are_explicit(
    tmp_path: Path, settings: dict[str, object], phase: str, by: list[str]
) -> None:
    project = Project(tmp_path / "sessions")
    project.tell(DELEGATION, LAUNCH, alpha())
    agent_id = project.sessions()["alpha"]["agent_id"]
    project.store.change(agent_id, lambda record: with_phase(record, "approval", NOW))

    project.tell(AGAIN, alpha("a2"), RELAUNCH, after=LATER, **settings)

    record = project.sessions()["alpha"]
    assert (record["phase"], [given["by"] for given in record.get("answers", [])]) == (phase, by)


def test_a_resumed_workflow_continues_ended_sessions_in_new_sessions(project: Project) -> None:
    project.tell(DELEGATION, LAUNCH, alpha(), {"kind": "stop", "host_agent_id": "a1", "has_message": True})
    project.tell({"kind": "notification", "host_agent_id": "w1", "tool_use_id": "t1", "outcome": "completed"})
    before = project.sessions()

    words = project.tell(AGAIN, RELAUNCH, alpha("a2"), after=LATER)

    after = project.sessions()
    assert words == ["continued", "started", "continued"]
    assert [record["phase"] for record in before.values()] == ["completed", "completed"]
    assert {name: after[name]["continues"] for name in after} == {
        name: before[name]["agent_id"] for name in ("two agents", "alpha")
    }
    assert above(after["alpha"]) == after["two agents"]["agent_id"]


def test_a_continued_agent_has_no_tools_if_the_record_of_its_workflow_is_unreadable(project: Project) -> None:
    project.tell(DELEGATION, LAUNCH, alpha(), {"kind": "stop", "host_agent_id": "a1", "has_message": True})
    project.tell({"kind": "notification", "host_agent_id": "w1", "tool_use_id": "t1", "outcome": "completed"})
    workflow, agent = (project.sessions()[name]["agent_id"] for name in ("two agents", "alpha"))
    project.tell(AGAIN, RELAUNCH, after=LATER)
    before = {*project.store.ids()}
    Path(project.store.root, workflow, "state.json").write_text("{", encoding="utf-8")

    words = project.tell(alpha("a2"), after=LATER)

    [new] = {*project.store.ids()} - before
    record = project.store.read(new)
    assert (words, record["continues"], record["allowed_tools"]) == (["continued"], agent, [])


def test_a_resumed_workflow_that_is_reported_twice_is_resumed_once(project: Project) -> None:
    project.tell(DELEGATION, LAUNCH)

    assert project.tell(AGAIN, AGAIN, RELAUNCH, RELAUNCH) == ["claimed", "known", "started", "known"]
    assert [run["run"] for run in project.sessions()["two agents"]["runs"]] == [1, 2]


@table(
    "killed",
    [
        {"kind": "fail", "host_agent_id": "w1", "interrupted": True, "error": "stopped by the main agent"},
        {"kind": "notification", "host_agent_id": "w1", "tool_use_id": "t1", "outcome": "abandoned"},
    ],
)
@own_folder
def test_a_killed_workflow_ends_its_open_agents_and_leaves_the_ended_ones(
    tmp_path: Path, killed: dict[str, Any]
) -> None:
    project = Project(tmp_path / "sessions")
    beta = alpha("b1", purpose="beta", workflow={**RUN, "key": "k-beta"})
    project.tell(DELEGATION, LAUNCH, alpha(), beta, {"kind": "stop", "host_agent_id": "b1", "has_message": True})

    project.tell(killed)

    ends = {name: (record["phase"], record["runs"][-1]["end"]) for name, record in project.sessions().items()}
    assert ends == {
        "two agents": ("abandoned", "killed"),
        "alpha": ("abandoned", "killed"),
        "beta": ("completed", "stopped"),
    }
    assert project.sessions()["alpha"]["runs"][0]["detail"] == "stopped with its workflow"


def test_a_workflow_that_the_user_stopped_is_resumed_with_its_agents(project: Project) -> None:
    project.tell(DELEGATION, LAUNCH, alpha())
    why = {"outcome": "abandoned", "interruption": "stopped_by_user"}

    project.tell({"kind": "notification", "host_agent_id": "w1", "tool_use_id": "t1", **why})

    stopped = {name: (record["phase"], record["runs"][-1]["end"]) for name, record in project.sessions().items()}
    assert stopped == dict.fromkeys(("two agents", "alpha"), ("investigating", "killed"))
    assert project.sessions()["alpha"]["runs"][-1]["interruption"] == "stopped_by_user"

    assert project.tell(AGAIN, RELAUNCH, alpha("a2")) == ["claimed", "started", "started"]
    assert [run["host_agent_id"] for run in project.sessions()["alpha"]["runs"]] == ["a1", "a2"]


def test_a_main_stop_ends_neither_a_running_workflow_nor_its_agents(project: Project) -> None:
    project.tell(DELEGATION, LAUNCH, alpha())

    project.tell({"kind": "main_stop", "running": ["w1"]})

    assert [record["runs"][0].get("end") for record in project.sessions().values()] == [None, None]


def test_an_agent_is_below_the_agent_that_started_it(project: Project) -> None:
    outer = {"kind": "delegate", "tool_use_id": "t1", "agent_name": "Explore", "purpose": "outer"}
    inner = {**outer, "tool_use_id": "t2", "purpose": "inner", "parent_host_agent_id": "a1"}
    innermost = {**outer, "tool_use_id": "t3", "purpose": "innermost", "parent_host_agent_id": "a2"}
    project.tell(outer, {"kind": "start", "tool_use_id": "t1", "host_agent_id": "a1"})
    project.tell(inner, {"kind": "start", "tool_use_id": "t2", "host_agent_id": "a2"}, innermost)

    sessions = project.sessions()
    ids = {name: record["agent_id"] for name, record in sessions.items()}
    assert {name: above(record) for name, record in sessions.items()} == {
        "outer": None,
        "inner": ids["outer"],
        "innermost": ids["inner"],
    }


def test_a_late_start_of_the_parent_puts_the_child_below_it(project: Project) -> None:
    outer = {"kind": "delegate", "tool_use_id": "t1", "agent_name": "Explore", "purpose": "outer"}
    project.tell(outer, {**outer, "tool_use_id": "t2", "purpose": "inner", "parent_host_agent_id": "a1"})
    assert "parent_id" not in project.sessions()["inner"]

    project.tell({"kind": "start", "tool_use_id": "t1", "host_agent_id": "a1"})

    assert above(project.sessions()["inner"]) == project.sessions()["outer"]["agent_id"]


def test_an_agent_missing_in_the_journal_at_its_start_is_recorded_at_its_stop(project: Project) -> None:
    # A client on a busy machine did this once when it resumed a workflow.
    project.tell(DELEGATION, LAUNCH)
    early = {"kind": "start", "host_agent_id": "a1", "agent_name": "workflow-subagent", "key_file": "/nowhere/a1.json"}
    assert project.tell({**early, "key_name": "toolUseId"}) == ["deferred"]

    stop = {**alpha(), "kind": "stop", "has_message": True}
    assert project.tell(stop, after=timedelta(seconds=4)) == ["finalized"]
    apply_deferred(project.store, NOW, Config({}))

    workflow, agent = project.sessions()["two agents"], project.sessions()["alpha"]
    assert (above(agent), agent["phase"], len(agent["runs"])) == (workflow["agent_id"], "completed", 1)
    assert project.store.waiting() == []


def journal(*entries: dict[str, Any]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


@table(
    ("last", "end"),
    [
        ({"type": "result", "key": "k-alpha", "agentId": "a1", "result": {"answer": 42}}, ("completed", "stopped", 0)),
        ({"type": "failed", "key": "k-alpha", "agentId": "a1"}, ("investigating", "failed", 1)),
        ({"type": "result", "key": "k-alpha", "agentId": "another"}, ("investigating", None, 0)),
    ],
)
@own_folder
def test_reconcile_finds_the_end_of_an_agent_in_the_journal_of_its_workflow(
    tmp_path: Path, talks: Path, last: dict[str, Any], end: tuple[str, str | None, int]
) -> None:
    # An agent that answers with a tool stops without a message.
    project = Project(tmp_path / "sessions")
    folder = talks / tmp_path.name / "subagents" / "workflows" / "wf_1"
    folder.mkdir(parents=True)
    started = {"type": "started", "key": "k-alpha", "agentId": "a1"}
    (folder / "journal.jsonl").write_text(journal({"type": "launched"}, started, last), encoding="utf-8")
    project.tell(DELEGATION, LAUNCH, alpha(transcript_path=str(folder / "agent-a1.jsonl")))
    project.tell({"kind": "stop", "host_agent_id": "a1", "has_message": False})

    report = Sessions(project.store.root).reconcile()

    record = project.sessions()["alpha"]
    run = record["runs"][-1]
    assert (record["phase"], run.get("end") if "ended_at" in run else None, record["error_count"]) == end
    verdicts = {verdict["agent_id"]: verdict["closed"] for verdict in report["verdicts"]}
    assert verdicts[record["agent_id"]] == (end[1] is not None)


def test_a_malformed_workflow_journal_creates_no_session(host: Host) -> None:
    folder = host.agents / "workflows"
    (folder / "wf_1").mkdir(parents=True)
    (folder / "wf_2").write_text("no folder", encoding="utf-8")
    (folder / "wf_3").symlink_to("/")
    for content in (b"", b"\0\xff a1 \n", b'{"agentId": "a1"}\n', b'{"type": "started", "agentId": "a1", "key": 7}\n'):
        (folder / "wf_1" / "journal.jsonl").write_bytes(content)
        ran = host.run("every_event", host.starting(agent_type="workflow-subagent"))
        assert (ran.code, ran.err) == (0, b"")
        assert host.records() == {}


def test_a_main_stop_ends_no_agent_that_its_resumed_workflow_has_not_restarted(
    project: Project,
) -> None:
    # A client on a busy machine did this: a main stop does not wait for the starts of the agents.
    beta = alpha("b1", purpose="beta", workflow={**RUN, "key": "k-beta"})
    project.tell(DELEGATION, LAUNCH, alpha(), beta)

    project.tell(AGAIN, RELAUNCH, {"kind": "main_stop", "running": ["w2"]}, alpha("a2"), after=LATER)

    sessions = project.sessions()
    assert [run.get("end") for run in sessions["alpha"]["runs"]] == ["lost", None]
    assert [run.get("end") for run in sessions["beta"]["runs"]] == [None]


def test_a_permission_request_does_not_change_the_transcript_path_of_a_workflow_agent(
    project: Project, tmp_path: Path
) -> None:
    written = tmp_path / "c" / "subagents" / "workflows" / "wf_1" / "agent-a1.jsonl"
    written.parent.mkdir(parents=True)
    written.write_text("{}\n", encoding="utf-8")
    guessed = str(
        tmp_path / "c" / "subagents" / "agent-a1.jsonl"
    )  # a request does not say that its agent belongs to a workflow
    request = {"kind": "permission", "host_agent_id": "a1", "tool_name": "Bash", "transcript_path": guessed}
    project.tell(DELEGATION, LAUNCH, alpha(transcript_path=str(written)), request)

    [run] = project.sessions()["alpha"]["runs"]
    assert (run["waiting"]["for"], run["transcript_path"]) == ("Bash", str(written))
