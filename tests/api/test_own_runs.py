"""Runs of commands on a real store: how they begin and end, what a commit writes, and what is refused."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.api import at, own_runs
from gaia_sessions.api.briefing import ENDED
from gaia_sessions.errors import (
    Cancelled,
    Conflict,
    CorruptSession,
    InvalidInput,
    RunGone,
    RunNotAllowed,
    SessionExists,
    SessionNotFound,
    TooDeep,
    TooLarge,
    TooManyChildren,
)
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.own_runs import (
    CANCELLED,
    CAUSES,
    EXITED,
    LEASE_LOST,
    NOT_STARTED,
    OUT_OF_TOKENS,
    SIGNALLED,
    TIMED_OUT,
    RunEnd,
)
from gaia_sessions.session.record import encode, new_record
from gaia_sessions.session.requests import Start
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system.processes import describe
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.api.own_runs import Begun
    from gaia_sessions.session.schema import HostProcess


@pytest.fixture
def sessions(root: str) -> Sessions:
    return Sessions(root)


@pytest.fixture
def wrapper() -> Iterator[subprocess.Popen[str]]:
    """A process that lives until it is killed."""
    with subprocess.Popen(["sleep", "600"], text=True) as process:
        yield process
        process.kill()


def process(pid: int) -> HostProcess:
    found = describe(pid)
    assert found is not None
    return found


def fields(pid: int | None = None, **changed: Any) -> Any:
    return {"wrapper": process(pid or os.getpid()), "timeout_secs": 600, "hard_timeout_secs": 630, **changed}


def begin(sessions: Sessions, agent_id: str | None = None, **wanted: Any) -> Begun:
    return at.write(sessions, own_runs.begin, Start(agent_id, **wanted), fields())


def end(sessions: Sessions, begun: Begun, message: str = "", code: int = 0, cause: str = EXITED) -> str:
    """Ends the run; returns the new phase."""
    record, _, _ = at.write(sessions, own_runs.end, begun.record["agent_id"], begun.run, RunEnd(cause, code, message))
    return record["phase"]


def kinds(sessions: Sessions, agent_id: str) -> list[tuple[Any, Any]]:
    entries: Any = sessions.events(agent_id)
    return [(entry["kind"], entry["revision"]) for entry in entries]


def rewrite(sessions: Sessions, record: Any) -> None:
    FileStore(sessions.root).change(record["agent_id"], lambda _: record)


def states(sessions: Sessions) -> dict[str, bytes]:
    """All files of sessions on the disk."""
    files = [path for path in Path(sessions.root).rglob("*") if path.is_file() and not path.parent.name.startswith(".")]
    return {str(path): path.read_bytes() for path in files}


def test_a_new_session_begins_with_its_run_in_one_commit(sessions: Sessions) -> None:
    begun = begin(sessions, agent_name="Explore", purpose="look", max_tokens=500)

    record = sessions.store.read(begun.record["agent_id"])
    assert record == begun.record
    assert (record["revision"], record["phase"], record["agent_name"]) == (1, "executing", "Explore")
    assert (record["purpose"], record["max_tokens"]) == ("look", 500)
    run = {"run": 1, **fields(), "started_at": record["last_updated"]}
    assert record.get("runs") == [{**run, "output_path": f"{sessions.root}/{record['agent_id']}/output-1.log"}]
    assert (begun.run, begun.earlier) == (record["runs"][0], None)
    assert kinds(sessions, record["agent_id"]) == [("SubAgentStarted", 1)]
    assert sessions.report(record["agent_id"])["status"] == "running"


def test_l2_ids_of_runs_are_unique_and_have_their_prefix(sessions: Sessions) -> None:
    agent_ids = {begin(sessions).record["agent_id"] for _ in range(20)}
    task_ids = {sessions.report(agent_id)["task_id"] or "" for agent_id in agent_ids}
    assert (len(agent_ids), len(task_ids)) == (20, 20)
    assert all(task_id.startswith("sub-") for task_id in task_ids)


def test_l11_exit_code_zero_is_a_success_with_the_output_as_its_result(sessions: Sessions) -> None:
    begun = begin(sessions)
    agent_id = begun.record["agent_id"]
    sessions.charge(agent_id, 7)

    assert end(sessions, begun, "looking\n42 quokkas\n") == "completed"

    report = sessions.report(agent_id)
    assert (report["status"], report["result"], report["tokens"]) == ("success", "looking\n42 quokkas\n", 7)
    assert (report["exit_code"], report["timeout_secs"], report["hard_timeout_secs"]) == (0, 600, 630)
    assert (report["error"], report["limit_reached"]) == (None, False)
    messages: Any = list(sessions.messages(agent_id))
    assert [(one["role"], one["content"]) for one in messages] == [("assistant", "looking\n42 quokkas\n")]
    assert sessions.store.read(agent_id)["revision"] == 3  # the run, the charge, the end
    assert kinds(sessions, agent_id) == [("SubAgentStarted", 1), ("SubAgentCompleted", 3)]


def test_a_silent_success_adds_no_message_and_reports_no_earlier_result(sessions: Sessions) -> None:
    first = begin(sessions)
    agent_id = first.record["agent_id"]
    end(sessions, first, "half\n[gaia-sessions: planning] more to do\n")

    end(sessions, begin(sessions, agent_id))

    report = sessions.report(agent_id)
    assert (report["status"], report["result"]) == ("success", None)
    assert len(list(sessions.messages(agent_id))) == 1


ENDS = [
    (EXITED, 3, "error", "exit code 3", "failed"),
    (EXITED, 137, "error", "killed by signal 9 (SIGKILL)", "failed"),
    (TIMED_OUT, 143, "timeout", "Sub-agent timed out after 600 seconds, and ended within the grace period", "failed"),
    (TIMED_OUT, 0, "timeout", "Sub-agent timed out after 600 seconds, and ended within the grace period", "failed"),
    (TIMED_OUT, 137, "timeout", "Sub-agent hard timed out after 630 seconds", "failed"),
    (SIGNALLED, 143, "error", "stopped by a signal", "planning"),
]


@table(("cause", "code", "status", "error", "phase"), ENDS)
def test_every_other_end_is_reported_with_the_partial_output(
    sessions: Sessions, cause: str, code: int, status: str, error: str, phase: str
) -> None:
    begun = begin(sessions)
    agent_id = begun.record["agent_id"]
    ended = RunEnd(cause, code, "half of it")
    foreseen, unread = (at.read(sessions, own_runs.report_as_ended, begun, ended, asks=one) for one in (True, False))

    assert end(sessions, begun, "half of it", code, cause) == phase

    report = sessions.report(agent_id)
    assert (report["status"], report["error"], report["exit_code"]) == (status, error, code)
    assert (report["result"], report["partial"]) == (None, "half of it")
    moments = {"state_since": None, "elapsed_secs": 0}
    assert {**foreseen, **moments} == {**unread, **moments} == {**report, **moments}


@table(
    ("cause", "status", "state"),
    [(EXITED, "success", "completed"), (CANCELLED, "cancelled", "cancelled"), (LEASE_LOST, "error", "interrupted")],
)
def test_the_report_on_an_end_that_cannot_be_stored_has_the_status_of_that_end_without_a_look(
    root: str, cause: str, status: str, state: str
) -> None:
    sessions = Sessions(f"{root}-{cause}")
    begun = begin(sessions)
    shutil.rmtree(sessions.root)

    report = at.read(sessions, own_runs.report_as_ended, begun, RunEnd(cause, 0, "half of it"), asks=False)

    assert (report["status"], report["state"], len(report["recent_messages"])) == (status, state, 1)


def test_a_command_that_used_all_tokens_is_reported_with_its_limit(sessions: Sessions) -> None:
    begun = begin(sessions, max_tokens=100)
    sessions.charge(begun.record["agent_id"], 100)

    assert end(sessions, begun, "half", 143, OUT_OF_TOKENS) == "failed"

    report = sessions.report(begun.record["agent_id"])
    assert (report["status"], report["limit_reached"]) == ("error", True)
    assert report["error"] == "Sub-agent used all of its 100 tokens"
    assert sessions.store.read(begun.record["agent_id"])["runs"][0]["detail"] == "max_tokens"


def test_a_command_that_asked_for_approval_is_approved_and_resumed(sessions: Sessions) -> None:
    first = begin(sessions)
    agent_id = first.record["agent_id"]
    assert end(sessions, first, "plan\n[gaia-sessions: approval] may I?") == "approval"
    assert sessions.report(agent_id)["status"] == "success"
    sessions.approve(agent_id, "only eu-1")
    waiting = sessions.store.read(agent_id)

    second = begin(sessions, agent_id)

    assert (second.earlier, second.reason) == (waiting, None)
    assert (second.record["phase"], second.run["run"]) == ("executing", 2)
    assert "approval" not in second.record
    assert end(sessions, second, "done") == "completed"


def test_a_command_that_reached_its_limit_gets_the_phase_of_its_marker(sessions: Sessions) -> None:
    begun = begin(sessions)
    agent_id = begun.record["agent_id"]
    assert end(sessions, begun, "so far\n[gaia-sessions: planning] the rest", 143, TIMED_OUT) == "planning"
    assert (sessions.report(agent_id)["status"], sessions.store.read(agent_id)["error_count"]) == ("timeout", 1)
    assert end(sessions, begin(sessions, agent_id), "done") == "completed"
    assert sessions.report(agent_id)["status"] == "success"


def test_a_command_can_begin_a_session_that_was_only_created(sessions: Sessions) -> None:
    agent_id = sessions.create("Explore", "look")
    begun = begin(sessions, agent_id)
    assert (begun.earlier, begun.record["phase"], begun.record["revision"]) == (None, "executing", 2)


def test_an_ended_session_is_continued_in_a_new_session(sessions: Sessions) -> None:
    first = begin(sessions, agent_name="Explore", purpose="look")
    end(sessions, first, "found", 3)
    ended = sessions.store.read(first.record["agent_id"])

    second = begin(sessions, continues=ended["agent_id"])

    assert (second.earlier, second.reason) == (ended, ENDED)
    assert (second.record["agent_name"], second.record["purpose"]) == ("Explore", "look")
    assert second.record.get("continues") == ended["agent_id"]
    assert second.run["run"] == 1
    other = begin(sessions, continues=ended["agent_id"], purpose="more").record
    assert (other["agent_name"], other["purpose"]) == ("Explore", "more")


@table("is_begun_again", [True, False])
def test_a_wrapper_ends_only_its_own_run(root: str, *, is_begun_again: bool) -> None:
    """The session was removed and created again, with or without a new run."""
    sessions = Sessions(f"{root}-{is_begun_again}")
    first = begin(sessions, new_id="agent-1")
    sessions.remove(["agent-1"], force=True)
    second = begin(sessions, new_id="agent-1") if is_begun_again else None
    if second is None:
        sessions.create(agent_id="agent-1")
    before = states(sessions)

    with pytest.raises(RunGone):
        end(sessions, first, "the first")
    foreseen = at.read(sessions, own_runs.report_as_ended, first, RunEnd(EXITED, 0, "the first"))

    assert (foreseen["status"], foreseen["result"]) == ("success", "the first")
    assert states(sessions) == before
    if second is not None:
        assert end(sessions, second, "the second") == "completed"
        messages: Any = sessions.messages("agent-1")
        assert [message["content"] for message in messages] == ["the second"]


def test_a_run_that_may_not_begin_is_refused_and_nothing_is_written(sessions: Sessions) -> None:
    at_work, done, resting = (begin(sessions) for _ in range(3))
    end(sessions, done)
    end(sessions, resting, "[gaia-sessions: planning] more")
    ids = [one.record["agent_id"] for one in (at_work, done, resting)]
    below = sessions.create(parent_id=ids[2], max_depth=1)
    Path(sessions.root, "corrupt").mkdir()
    Path(sessions.root, "corrupt", "state.json").write_text("{")
    before = states(sessions)

    refusals: list[tuple[type[Exception], dict[str, Any]]] = [
        (RunNotAllowed, {"agent_id": ids[0]}),
        (RunNotAllowed, {"agent_id": ids[1]}),
        (RunNotAllowed, {"continues": ids[0]}),
        (RunNotAllowed, {"continues": ids[2]}),
        (SessionNotFound, {"agent_id": "nobody"}),
        (SessionNotFound, {"continues": "nobody"}),
        (SessionNotFound, {"parent_id": "nobody"}),
        (CorruptSession, {"agent_id": "corrupt"}),
        (CorruptSession, {"continues": "corrupt"}),
        (CorruptSession, {"parent_id": "corrupt"}),
        (SessionExists, {"new_id": ids[0]}),
        (TooDeep, {"parent_id": below}),
        (InvalidInput, {"purpose": " "}),
        (InvalidInput, {"agent_name": ""}),
        (InvalidInput, {"max_tokens": 0}),
    ]
    for error, wanted in refusals:
        with pytest.raises(error):
            begin(sessions, **wanted)

    assert states(sessions) == before


@table("only", [False, True])
def test_no_run_begins_for_or_below_a_cancelled_session(sessions: Sessions, *, only: bool) -> None:
    top = sessions.create()
    ended, resting = (begin(sessions, parent_id=top) for _ in range(2))
    end(sessions, ended)
    end(sessions, resting, "[gaia-sessions: planning] more")
    new = sessions.create(parent_id=top)
    sessions.cancel(top, "enough", only=only)
    before = states(sessions)

    of_top: list[dict[str, Any]] = [{"agent_id": top}, {"parent_id": top}]
    of_those_below: list[dict[str, Any]] = [
        {"parent_id": new},
        {"agent_id": new},
        {"agent_id": resting.record["agent_id"]},
        {"continues": ended.record["agent_id"]},
    ]
    for wanted in of_top if only else of_top + of_those_below:
        with pytest.raises(Cancelled) as refused:
            begin(sessions, **wanted)
        assert (refused.value.exit_code, refused.value.reason) == (10, "enough")

    assert states(sessions) == before


def test_l19_a_sixth_child_is_refused_until_another_child_ends(sessions: Sessions) -> None:
    parent = sessions.create()
    resting = begin(sessions, parent_id=parent)
    end(sessions, resting, "[gaia-sessions: planning] more")
    five = [begin(sessions, parent_id=parent) for _ in range(5)]
    before = states(sessions)

    for wanted in ({"parent_id": parent}, {"agent_id": resting.record["agent_id"]}):
        with pytest.raises(TooManyChildren) as refused:
            begin(sessions, **wanted)
        assert refused.value.at_work == tuple(sorted(one.record["agent_id"] for one in five))
    with pytest.raises(RunNotAllowed, match="its agent is at work"):  # to wait for a free place would not help
        begin(sessions, five[0].record["agent_id"])
    assert states(sessions) == before

    end(sessions, five[0])
    assert begin(sessions, resting.record["agent_id"]).run["run"] == 2


def test_a_child_that_was_only_created_is_not_counted_against_itself(sessions: Sessions) -> None:
    parent = sessions.create()
    five = [sessions.create(parent_id=parent) for _ in range(5)]
    for agent_id in five:
        begin(sessions, agent_id)
    assert sessions.report(five[-1])["status"] == "running"


def test_l21_an_end_after_a_cancellation_or_an_outcome_does_not_change_it(sessions: Sessions) -> None:
    cancelled, stated = begin(sessions), begin(sessions)
    sessions.cancel(cancelled.record["agent_id"], "enough")
    sessions.finalize(stated.record["agent_id"], "completed", "all done")

    assert end(sessions, cancelled, "half", 143, CANCELLED) == "abandoned"
    assert end(sessions, stated, "tail", 3) == "completed"

    report = sessions.report(cancelled.record["agent_id"])
    assert (report["status"], report["error"], report["partial"]) == ("cancelled", "enough", "half")
    report = sessions.report(stated.record["agent_id"])
    assert (report["status"], report["result"], report["exit_code"]) == ("success", "all done", 3)


def test_a_repeated_end_adds_a_revision_but_no_message_and_no_event(sessions: Sessions) -> None:
    begun = begin(sessions)
    agent_id = begun.record["agent_id"]
    end(sessions, begun, "done")
    once = sessions.store.read(agent_id)

    end(sessions, begun, "done")

    assert sessions.store.read(agent_id) == {**once, "revision": once["revision"] + 1}
    assert len(list(sessions.messages(agent_id))) == 1
    assert kinds(sessions, agent_id) == [("SubAgentStarted", 1), ("SubAgentCompleted", 2)]


def test_a_start_can_be_pickled() -> None:
    start = pickle.loads(pickle.dumps(Start(continues="agent-1", purpose="more")))  # noqa: S301  # made in this test
    earlier = new_record("agent-1", "Explore", "look", {}, datetime.now(UTC))
    new = start.new_session(earlier)
    assert (start.continues, new.agent_name, new.purpose) == ("agent-1", "Explore", "more")


def killed(sessions: Sessions, wrapper: subprocess.Popen[str], **wanted: Any) -> Begun:
    begun = at.write(sessions, own_runs.begin, Start(**wanted), fields(wrapper.pid))
    wrapper.kill()
    wrapper.wait()
    return begun


def test_l18_a_session_whose_wrapper_was_killed_is_crashed_and_not_running(
    sessions: Sessions, wrapper: subprocess.Popen[str]
) -> None:
    agent_id = killed(sessions, wrapper).record["agent_id"]

    report = sessions.report(agent_id)
    text = "gaia-sessions run crashed or was closed while the agent was at work"
    assert (report["status"], report["state"], report["error"]) == ("error", "crashed", text)
    (verdict,) = sessions.reconcile()["verdicts"]
    assert (verdict["verdict"], verdict["closed"], verdict["phase"]) == ("lost", True, "abandoned")
    run = sessions.store.read(agent_id)["runs"][0]
    assert run["end"] == "lost"
    assert run["detail"].startswith("gaia-sessions run crashed or was closed: ")


def test_a_refused_resume_abandons_a_session_whose_wrapper_was_killed(
    sessions: Sessions, wrapper: subprocess.Popen[str]
) -> None:
    agent_id = killed(sessions, wrapper).record["agent_id"]

    with pytest.raises(RunNotAllowed, match=r"it has ended .abandoned.") as refused:
        begin(sessions, agent_id)
    assert refused.value.hint.endswith(f"gaia-sessions run --continues {agent_id} -- COMMAND")
    assert (sessions.store.read(agent_id)["phase"], kinds(sessions, agent_id)[-1]) == (
        "abandoned",
        ("SubAgentFailed", 2),
    )
    assert begin(sessions, continues=agent_id).record.get("continues") == agent_id


def test_a_session_in_planning_whose_wrapper_was_killed_resumes_in_one_commit(
    sessions: Sessions, wrapper: subprocess.Popen[str]
) -> None:
    agent_id = at.write(sessions, own_runs.begin, Start(), fields(wrapper.pid)).record["agent_id"]
    sessions.update(agent_id, "planning")
    wrapper.kill()
    wrapper.wait()

    begun = begin(sessions, agent_id)

    assert [run.get("end") for run in begun.record["runs"]] == ["lost", None]
    assert kinds(sessions, agent_id) == [("SubAgentStarted", 1), ("SubAgentFailed", 3), ("SubAgentStarted", 3)]
    assert (begun.record["revision"], begun.earlier and begun.earlier["runs"][0]["end"]) == (3, "lost")


def test_a_session_whose_wrapper_was_killed_can_be_continued_before_reconcile(
    sessions: Sessions, wrapper: subprocess.Popen[str]
) -> None:
    agent_id = killed(sessions, wrapper).record["agent_id"]
    begun = begin(sessions, continues=agent_id)
    assert begun.earlier is not None
    assert (begun.earlier["phase"], sessions.store.read(agent_id)["phase"]) == ("abandoned", "abandoned")


def test_a_run_is_judged_by_its_wrapper_and_not_by_its_files(
    sessions: Sessions, wrapper: subprocess.Popen[str], tmp_path: Path
) -> None:
    agent_id = at.write(sessions, own_runs.begin, Start(), fields(wrapper.pid)).record["agent_id"]
    log = Path(sessions.root, agent_id, "output-1.log")
    log.write_text("")
    os.utime(log, (0, 0))
    long_ago = ago(days=40)
    record: Any = sessions.store.read(agent_id)
    run = {**record["runs"][0], "started_at": long_ago, "output_path": str(tmp_path / "another.log")}
    rewrite(sessions, {**record, "created_at": long_ago, "last_updated": long_ago, "runs": [run]})

    assert [one["verdict"] for one in sessions.reconcile()["verdicts"]] == ["running"]
    assert sessions.cleanup(hours=1)["kept"] == [{"agent_id": agent_id, "reason": "running"}]
    (tmp_path / "another.log").write_text("at work, by the text of the record")
    assert sessions.show(agent_id).get("state") == "quiet"
    log.write_text("at work")
    assert sessions.show(agent_id).get("state") == "working"


def test_a_run_whose_process_is_unknown_is_never_lost(sessions: Sessions) -> None:
    agent_id = at.write(sessions, own_runs.begin, Start(), fields(wrapper={"pid": 2**22 + 1})).record["agent_id"]
    assert sessions.reconcile()["verdicts"][0]["verdict"] == "running"
    assert sessions.report(agent_id)["status"] == "running"


def test_runs_below_are_lost_with_their_wrapper_or_their_pid_namespace(
    sessions: Sessions, wrapper: subprocess.Popen[str]
) -> None:
    begun = begin(sessions)
    top = begun.record["agent_id"]
    inside: Any = {**process(os.getpid()), "pid_ns": "pid:[7]"}
    gone = at.write(sessions, own_runs.begin, Start(parent_id=top), fields(wrapper.pid)).record["agent_id"]
    wrapper.kill()
    wrapper.wait()
    contained = at.write(sessions, own_runs.begin, Start(parent_id=top), fields(wrapper=inside)).record["agent_id"]
    deeper = at.write(sessions, own_runs.begin, Start(parent_id=contained), fields(wrapper=inside)).record["agent_id"]
    alive = at.write(sessions, own_runs.begin, Start(parent_id=top), fields()).record["agent_id"]
    elsewhere = at.write(sessions, own_runs.begin, Start(), fields(wrapper=inside)).record["agent_id"]
    remote: Any = {**inside, "boot_id": "of another machine", "machine": "m"}
    other = at.write(sessions, own_runs.begin, Start(parent_id=top), fields(wrapper=remote)).record["agent_id"]
    host: Any = {
        "host": "claude-code",
        "host_session_id": "s",
        "host_process": inside,
        "started_at": format_time(datetime.now(UTC)),
    }
    hosted = sessions.create(parent_id=contained)
    record: Any = sessions.store.read(hosted)
    rewrite(sessions, {**record, "phase": "planning", "runs": [{"run": 1, **host}]})

    assert at.write(sessions, own_runs.end_runs_of_gone_hosts_below, top, begun.run, None) == [gone]
    assert sorted(at.write(sessions, own_runs.end_runs_of_gone_hosts_below, top, begun.run, "pid:[7]")) == sorted(
        [contained, deeper, hosted]
    )

    ends = {
        one: sessions.store.read(one)["runs"][0].get("end")
        for one in (top, alive, elsewhere, other, contained, deeper, hosted)
    }
    lost = dict.fromkeys((contained, deeper, hosted), "lost")
    assert ends == {**dict.fromkeys((top, alive, elsewhere, other)), **lost}
    assert (sessions.store.read(hosted)["phase"], sessions.store.read(contained)["phase"]) == ("planning", "abandoned")


@table("cause", CAUSES)
def test_a_run_that_could_begin_can_always_end(sessions: Sessions, cause: str) -> None:
    agent_id = sessions.create()
    sessions.add_message(agent_id, "user", "hello")
    record: Any = sessions.store.read(agent_id)
    full: Any = {**record, "metadata": {"filling": ""}}
    room = DOCUMENT_LIMIT - len(encode(full)) - RESERVED_BYTES  # an earlier version allowed this
    rewrite(sessions, {**full, "metadata": {"filling": "x" * room}})

    begun = begin(sessions, agent_id)
    ended = RunEnd(cause, None if cause == NOT_STARTED else 255, "m" * 9000, "no such file: " + "d" * 9000)
    record, _, _ = at.write(sessions, own_runs.end, agent_id, begun.run, ended)

    assert record["runs"][0]["end"] in ("failed", "killed")
    assert [one["role"] for one in sessions.messages(agent_id) if isinstance(one, dict)] == ["user", "assistant"]


def test_a_run_does_not_begin_if_the_record_has_no_room_for_its_end(sessions: Sessions) -> None:
    agent_id = sessions.create()
    record: Any = sessions.store.read(agent_id)
    full: Any = {**record, "metadata": {"filling": ""}}
    room = DOCUMENT_LIMIT - len(encode(full))
    rewrite(sessions, {**full, "metadata": {"filling": "x" * (room - 500)}})
    before = states(sessions)

    with pytest.raises(TooLarge):
        begin(sessions, agent_id)

    assert states(sessions) == before


def test_a_locked_session_below_delays_no_end(
    sessions: Sessions, wrapper: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_runs, "_SHORT_WAIT", 0.05)
    begun = begin(sessions)
    top = begun.record["agent_id"]
    lost = [
        at.write(sessions, own_runs.begin, Start(parent_id=top), fields(wrapper.pid)).record["agent_id"]
        for _ in range(2)
    ]
    wrapper.kill()
    wrapper.wait()
    with FileStore(sessions.root).open(lost[0]):
        assert at.write(sessions, own_runs.end_runs_of_gone_hosts_below, top, begun.run, None) == lost[1:]
    assert at.write(sessions, own_runs.end_runs_of_gone_hosts_below, top, begun.run, None) == lost[:1]


def test_run_not_allowed_is_a_conflict() -> None:
    assert issubclass(RunNotAllowed, Conflict)
