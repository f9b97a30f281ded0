"""How open runs are judged by evidence: a table of rules, then real processes, namespaces and logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.api.reconciling import close_runs
from gaia_sessions.doctor.all_checks import examine
from gaia_sessions.hosts import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import encode
from gaia_sessions.session.verdicts import Evidence, judge
from gaia_sessions.store import hook_log
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.hook_log_reader import LOG_NAMES
from gaia_sessions.system.processes import describe
from tests.hook.client import client
from tests.places import planned
from tests.records import WHEN, record_with
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Put = Callable[..., None]

NOW = datetime(2026, 1, 8, 19, 0, tzinfo=UTC)
GONE = Evidence("Codex crashed or was closed: there is no process 7", host_gone=True)
THERE = Evidence("Codex runs: process 7 exists", host_gone=False)
UNKNOWN = Evidence()
NOBODY = 2**22 + 1  # larger than every pid


def ago(**span: float) -> str:
    return format_time(NOW - timedelta(**span))


def at(**span: float) -> datetime:
    return NOW - timedelta(**span)


def evidence_of(**evidence: Any) -> Evidence:
    return Evidence("its host cannot be told", **evidence)


BEGUN: dict[str, Any] = {"run": 1, "host": "claude-code", "host_session_id": "s", "started_at": ago(hours=1)}
CLAIMED: dict[str, Any] = {"run": 1, "host": "claude-code", "host_session_id": "s", "claimed_at": ago(hours=1)}
WITHOUT_START_EVENT: dict[str, Any] = {**CLAIMED, "unannounced": True}


VERDICTS: list[tuple[dict[str, Any], Evidence, str]] = [
    (BEGUN, GONE, "lost"),  # its host is gone
    ({**BEGUN, "started_at": ago(seconds=5)}, GONE, "lost"),  # its host is gone right after the start
    (BEGUN, THERE, "running"),  # its host runs
    (BEGUN, evidence_of(host_gone=False, written_at=at(days=1)), "running"),  # its host runs, no output for a day
    (BEGUN, UNKNOWN, "unsure"),  # nothing is known
    ({**BEGUN, "started_at": ago(minutes=9)}, UNKNOWN, "running"),  # started less than ten minutes ago
    ({**BEGUN, "started_at": ago(minutes=10)}, UNKNOWN, "unsure"),  # started ten minutes ago
    ({**BEGUN, "started_at": ago(hours=-1)}, UNKNOWN, "unsure"),  # starts in the future
    ({"run": 1, "host_agent_id": "a"}, UNKNOWN, "unsure"),  # the start is unknown
    ({"run": 1, "host_agent_id": "a"}, GONE, "lost"),  # the start is unknown, its host is gone
    (BEGUN, evidence_of(written_at=at(minutes=9)), "running"),  # wrote less than ten minutes ago
    (BEGUN, evidence_of(written_at=at(minutes=10)), "unsure"),  # wrote ten minutes ago
    (BEGUN, evidence_of(written_at=at(minutes=-4)), "running"),  # wrote, by a clock that is a little ahead
    (BEGUN, evidence_of(written_at=at(minutes=-6)), "unsure"),  # wrote in the future
    (
        {**BEGUN, "started_at": ago(seconds=59)},
        evidence_of(written_at=at(days=1)),
        "running",
    ),  # no output, but started just now
    (BEGUN, evidence_of(over_at=at(minutes=5)), "ended_with_host"),  # the host's session ended
    (BEGUN, evidence_of(over_at=at(minutes=5), host_gone=True), "ended_with_host"),  # the session ended, then the host
    (BEGUN, evidence_of(over_at=at(minutes=5), host_gone=False), "unsure"),  # the session ended, but the host runs
    (CLAIMED, evidence_of(over_at=at(minutes=5), host_gone=False), "unsure"),  # the same for a claim
    (
        BEGUN,
        evidence_of(over_at=at(minutes=-4)),
        "ended_with_host",
    ),  # the session ended, by a clock that is a little ahead
    (BEGUN, evidence_of(over_at=at(minutes=-6)), "unsure"),  # the session ended in the future
    (BEGUN, evidence_of(over_at=at(hours=2), host_gone=False), "running"),  # the session ended before the start
    (BEGUN, evidence_of(over_at=at(hours=2)), "unsure"),  # the session ended before the start, nothing known since
    (BEGUN, evidence_of(over_at=at(minutes=5), written_at=at(minutes=3)), "running"),  # wrote after that end
    (
        BEGUN,
        evidence_of(over_at=at(minutes=5), written_at=at(minutes=4.5)),
        "ended_with_host",
    ),  # wrote right after that end
    (
        {"run": 1, "host_agent_id": "a"},
        evidence_of(over_at=at(minutes=5)),
        "unsure",
    ),  # the session ended, maybe before the start
    (CLAIMED, GONE, "lost"),  # never started, its host is gone
    ({**CLAIMED, "run": 2}, GONE, "denied"),  # the same for a later claim: the phase stays
    (CLAIMED, evidence_of(over_at=at(minutes=5), host_gone=True), "denied"),  # the session ended before the host did
    (CLAIMED, evidence_of(over_at=at(minutes=5)), "denied"),  # never started, the host's session ended
    (CLAIMED, evidence_of(over_at=at(hours=2)), "unsure"),  # delegated after that end
    (CLAIMED, THERE, "unsure"),  # never started, its host runs
    (CLAIMED, UNKNOWN, "unsure"),  # never started, nothing is known
    ({**CLAIMED, "claimed_at": ago(minutes=9)}, UNKNOWN, "running"),  # the claim holds
    ({**CLAIMED, "claimed_at": ago(minutes=9)}, GONE, "unsure"),  # the claim holds, host gone
    ({**CLAIMED, "claimed_at": ago(minutes=10)}, GONE, "lost"),  # the claim has just expired
    ({**CLAIMED, "claimed_at": ago(hours=-1)}, GONE, "unsure"),  # delegated in the future
    ({"run": 1}, GONE, "unsure"),  # an empty run
    (WITHOUT_START_EVENT, GONE, "lost"),  # no start event, its host is gone
    ({**WITHOUT_START_EVENT, "claimed_at": ago(minutes=1)}, GONE, "lost"),  # no start event, its host is gone soon
    (WITHOUT_START_EVENT, THERE, "running"),  # no start event, its host runs
    (WITHOUT_START_EVENT, UNKNOWN, "unsure"),  # no start event, nothing is known
    ({**WITHOUT_START_EVENT, "claimed_at": ago(minutes=9)}, UNKNOWN, "running"),  # no start event, claimed just now
    (WITHOUT_START_EVENT, evidence_of(over_at=at(minutes=5)), "ended_with_host"),  # no start event, session ended
    ({**WITHOUT_START_EVENT, "unannounced": False}, GONE, "lost"),  # a start event would have come
]


@table(("run", "evidence", "verdict"), VERDICTS)
def test_each_kind_of_evidence_has_its_verdict(run: Any, evidence: Evidence, verdict: str) -> None:
    word, detail = judge(run, evidence, NOW)
    assert word == verdict
    assert detail


def test_a_verdict_names_its_evidence() -> None:
    assert judge(BEGUN, GONE, NOW) == ("lost", "Codex crashed or was closed: there is no process 7")  # type: ignore[arg-type]
    expected = "the process of its client is unknown; it started at 2026-01-08T18:00:00.000000Z"
    assert judge(BEGUN, UNKNOWN, NOW) == ("unsure", f"{expected}, and it has no readable transcript")  # type: ignore[arg-type]


def reconciled(root: str, *runs: dict[str, Any], phase: str = "executing", ended: bool = False) -> Any:
    """Reconciles a session with ``runs``; the report, the record and the events.

    ended: whether the log says that the conversation of the runs ended a minute ago.
    """
    store = FileStore(root)
    store.create(record_with(*runs, phase=phase))
    if ended:
        line: dict[str, object] = {
            "at": ago(minutes=1),
            "host": "claude-code",
            "host_session_id": "s",
            "kinds": ["session_end"],
        }
        hook_log.append_line(root, HOOK, line)
    report = close_runs(store, NOW, root)
    second = close_runs(store, NOW, root)
    assert [verdict for verdict in second["verdicts"] if verdict["closed"]] == []
    return report, store.read("agent-1"), list(store.entries("agent-1", "events.jsonl"))


def gone_here() -> Any:
    process: Any = describe(os.getpid())
    return {**process, "pid": NOBODY}


def test_a_lost_run_is_closed_with_its_evidence_and_its_session_abandoned(root: str) -> None:
    run = {**BEGUN, "host": "claude-code", "host_agent_id": "a", "host_process": gone_here()}
    report, record, events = reconciled(root, run)
    detail = f"Claude Code crashed or was closed: there is no process {NOBODY}"
    verdict = {
        "agent_id": "agent-1",
        "run": 1,
        "verdict": "lost",
        "evidence": detail,
        "phase": "abandoned",
        "closed": True,
    }
    nothing: dict[str, Any] = {key: [] for key in ("abandoned", "busy", "kept", "corrupt", "failed", "counted")}
    assert report == {"dry_run": False, "verdicts": [verdict], **nothing}
    assert record["runs"] == [{**run, "ended_at": format_time(NOW), "end": "lost", "detail": detail}]
    assert (record["phase"], record["revision"], record["last_updated"]) == ("abandoned", 2, record["created_at"])
    evidence = {"host": "claude-code", "host_session_id": "s", "host_agent_id": "a", "host_gone": True}
    stands = {"run": 1, "phase": "abandoned", "end": "lost", "detail": detail, "revision": 2}
    assert events == [{"at": format_time(NOW), "kind": "reconcile", **stands, "evidence": evidence}]


@table("phase", ["investigating", "planning", "approval"])
def test_a_resumable_session_stays_open_when_its_run_is_lost(root: str, phase: str) -> None:
    _, record, _ = reconciled(f"{root}-{phase}", {**BEGUN, "host_process": gone_here()}, phase=phase)
    assert (record["phase"], record["runs"][0]["end"]) == (phase, "lost")


def test_a_session_whose_claimed_run_is_lost_stays_open(root: str) -> None:
    _, record, _ = reconciled(root, {**CLAIMED, "host_process": gone_here()}, phase="initializing")
    assert (record["phase"], record["resume_ready"], record["runs"][0]["end"]) == ("investigating", True, "lost")


def test_a_delegation_that_never_started_abandons_only_the_session_that_it_created(root: str) -> None:
    claimed = {**CLAIMED, "host_process": gone_here()}
    _, record, _ = reconciled(root, claimed, phase="initializing", ended=True)
    assert (record["phase"], record["runs"][0]["end"]) == ("abandoned", "denied")

    earlier = {"run": 1, "ended_at": ago(hours=2), "end": "stopped"}
    _, record, _ = reconciled(f"{root}-other", earlier, {**claimed, "run": 2}, phase="approval")
    assert (record["phase"], record["runs"][1]["end"]) == ("approval", "denied")


@table(("ended", "end"), [(False, "lost"), (True, "ended_with_host")])
def test_a_run_without_a_start_event_counts_from_its_delegation(root: str, end: str, *, ended: bool) -> None:
    run = {**WITHOUT_START_EVENT, "claimed_at": WHEN, "host_process": gone_here()}
    _, record, _ = reconciled(f"{root}-{end}", run, phase="initializing", ended=ended)
    assert (record["phase"], record["resume_ready"]) == ("investigating", True)
    assert (record["last_updated"], record["history"][-1]["timestamp"]) == (WHEN, WHEN)
    [closed] = record["runs"]
    assert (closed["started_at"], closed["end"], closed["ended_at"]) == (WHEN, end, format_time(NOW))


def test_reconcile_never_moves_last_updated_back(root: str) -> None:
    store = FileStore(root)
    run = {**WITHOUT_START_EVENT, "claimed_at": WHEN, "host_process": gone_here()}
    store.create({**record_with(run, phase="planning"), "last_updated": ago(minutes=3)})
    close_runs(store, NOW)
    record = store.read("agent-1")
    assert (record["last_updated"], record["phase"], record["runs"][0]["end"]) == (ago(minutes=3), "planning", "lost")


def test_a_session_end_in_the_hook_log_closes_the_run(root: str) -> None:
    _, record, [event] = reconciled(root, BEGUN, ended=True)
    assert (record["phase"], record["runs"][0]["end"]) == ("abandoned", "ended_with_host")
    assert event["evidence"] == {
        "host": "claude-code",
        "host_session_id": "s",
        "host_gone": None,
        "session_end": ago(minutes=1),
    }


def test_each_run_of_a_session_is_judged_by_itself(root: str) -> None:
    process = gone_here()
    runs = [{**BEGUN, "run": 1, "host_process": process}, {**BEGUN, "run": 2}, {**CLAIMED, "run": 3}]
    report, record, events = reconciled(root, *runs)
    assert [(verdict["run"], verdict["verdict"], verdict["closed"]) for verdict in report["verdicts"]] == [
        (1, "lost", True),
        (2, "unsure", False),
        (3, "unsure", False),
    ]
    assert ([run.get("end") for run in record["runs"]], record["phase"]) == (["lost", None, None], "executing")
    assert len(events) == 1


def test_all_runs_of_a_session_are_closed_in_one_write(root: str) -> None:
    process = gone_here()
    report, record, events = reconciled(root, *({**BEGUN, "run": run, "host_process": process} for run in range(1, 9)))
    assert [(verdict["run"], verdict["phase"], verdict["closed"]) for verdict in report["verdicts"]] == [
        (run, "abandoned", True) for run in range(1, 9)
    ]
    assert (record["revision"], [run["end"] for run in record["runs"]]) == (2, ["lost"] * 8)
    assert [event["run"] for event in events] == [*range(1, 9)]


def test_a_dry_run_reports_the_same_and_writes_nothing(root: str) -> None:
    run = {**BEGUN, "host_process": gone_here()}
    report, *_ = reconciled(root, run)
    store = FileStore(f"{root}-dry")
    store.create(record_with(run, phase="executing"))
    before = encode(store.read("agent-1"))
    assert close_runs(planned(store), NOW) == report
    assert (encode(store.read("agent-1")), list(store.entries("agent-1", "events.jsonl"))) == (before, [])


def test_a_final_session_is_not_judged(root: str) -> None:
    report, record, _ = reconciled(root, {**BEGUN, "host_process": gone_here()}, phase="completed")
    assert (report["verdicts"], "end" in record["runs"][0]) == ([], False)


# The tests below use real processes and the real clock.


@pytest.fixture
def put(root: str) -> Put:
    """Creates a session with ``runs``, as hooks leave it."""

    def session(agent_id: str, *runs: dict[str, Any], phase: str = "executing") -> None:
        FileStore(root).create({**record_with(*runs, phase=phase), "agent_id": agent_id})

    return session


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def verdicts(root: str, *, dry_run: bool = False) -> dict[str, str]:
    report = gaia_sessions.Sessions(root).reconcile(dry_run=dry_run)
    return {verdict["agent_id"]: verdict["verdict"] for verdict in report["verdicts"]}


def ends(root: str, agent_id: str) -> list[str | None]:
    record = gaia_sessions.get_session(agent_id, root=root)
    assert record is not None
    return [run.get("end") for run in record["runs"]]


def test_a_killed_host_is_distinguished_from_one_that_runs(root: str, put: Put, child: subprocess.Popen[bytes]) -> None:
    put("killed", {**BEGUN, "host_process": describe(child.pid)})
    put("alive", {**BEGUN, "host_process": describe(os.getpid())})
    assert verdicts(root) == {"killed": "running", "alive": "running"}
    child.kill()
    child.wait()
    assert verdicts(root, dry_run=True) == {"killed": "lost", "alive": "running"}
    assert ends(root, "killed") == [None]
    assert verdicts(root) == {"killed": "lost", "alive": "running"}
    assert (ends(root, "killed"), ends(root, "alive")) == (["lost"], [None])
    assert verdicts(root) == {"alive": "running"}


def test_records_of_hooks_are_enough_to_judge_runs_of_a_killed_host(root: str, tmp_path: Path) -> None:
    """One delegation whose agent started, and one whose agent never started."""
    script = Path(gaia_sessions.__file__).parents[1] / "hooks" / "every_event.py"
    asked = {"description": "x", "prompt": "x", "subagent_type": "Explore"}
    delegation = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Agent", "tool_input": asked}
    launched = {"status": "async_launched", "agentId": "a", "agentType": "Explore", "isAsync": True}
    events = (
        {**delegation, "tool_use_id": "toolu_1"},
        {**delegation, "tool_use_id": "toolu_2"},
        {**delegation, "tool_use_id": "toolu_1", "hook_event_name": "PostToolUse", "tool_response": launched},
    )
    with client() as host:
        environment = {**os.environ, "GAIA_SESSIONS_ROOT": root, "CLAUDE_PID": str(host.pid)}
        for event in events:
            host.run([sys.executable, str(script)], json.dumps(event).encode(), str(tmp_path), environment)
        assert sorted(verdicts(root).values()) == ["running", "running"]
        host.kill()
    assert sorted(verdicts(root).values()) == ["lost", "unsure"]  # a start may still come while the claim holds
    store = FileStore(root)
    later = close_runs(store, datetime.now(UTC) + timedelta(minutes=11))
    assert [verdict["verdict"] for verdict in later["verdicts"]] == ["lost"]
    left = [line["phase"] for line in gaia_sessions.list_sessions(root=root) if "phase" in line]
    assert left == ["investigating"] * 2  # both may be resumed


def test_another_boot_id_proves_a_loss_only_on_the_same_machine(root: str, put: Put) -> None:
    process: Any = describe(os.getpid())
    if "machine" not in process:
        pytest.skip("needs a machine that has an id (/etc/machine-id)")
    put("here", {**BEGUN, "host_process": {**process, "boot_id": "another"}})
    put("elsewhere", {**BEGUN, "host_process": {**process, "boot_id": "another", "machine": "0" * 32}})
    assert verdicts(root) == {"here": "lost", "elsewhere": "unsure"}
    assert (ends(root, "here"), ends(root, "elsewhere")) == (["lost"], [None])


WRITES = """
import os, sys
from gaia_sessions.system.processes import describe
from gaia_sessions.session.record import new_record
from tests.places import planned
from gaia_sessions.store.file_store import FileStore
from datetime import UTC, datetime
root, *pids = sys.argv[1:]
for pid in pids:
    run = {"run": 1, "started_at": "2026-01-08T18:00:00Z", "host_process": {**describe(os.getpid()), "pid": int(pid)}}
    record = new_record(f"a-{pid}", "-", "-", {}, datetime(2026, 1, 8, 18, tzinfo=UTC))
    FileStore(root).create({**record, "phase": "executing", "runs": [run]})
"""
RECONCILES = """
import json, sys, gaia_sessions
print(json.dumps(gaia_sessions.Sessions(sys.argv[1]).reconcile()))
"""


def inside(source: str, *arguments: str) -> str:
    """What ``source`` prints in its own pid namespace with the same files, as in a container."""
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", source, *arguments]
    if subprocess.run([*command[:4], "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a pid namespace")
    package = Path(gaia_sessions.__file__).parents[1]
    return subprocess.run(command, capture_output=True, check=True, text=True, cwd=package).stdout


def test_runs_of_another_pid_namespace_are_not_ended_from_outside(root: str) -> None:
    """Also if a process, or the first process, has the same pid outside."""
    pids = [os.getpid(), 1, NOBODY]
    inside(WRITES, root, *map(str, pids))
    states = [Path(root, f"a-{pid}", "state.json") for pid in pids]
    before = [state.read_bytes() for state in states]
    report = gaia_sessions.Sessions(root).reconcile()
    expected = (
        "it is unknown whether its client still runs: it ran in another pid namespace, or its pid is unknown; "
        "it started at 2026-01-08T18:00:00.000000Z, and it has no readable transcript"
    )
    verdict = {"run": 1, "verdict": "unsure", "evidence": expected, "phase": "executing", "closed": False}
    found = sorted(report["verdicts"], key=lambda one: one["agent_id"])
    assert found == [{"agent_id": agent_id, **verdict} for agent_id in sorted(f"a-{pid}" for pid in pids)]
    assert [state.read_bytes() for state in states] == before
    assert list(Path(root).glob("*/events.jsonl")) == []


def test_runs_from_outside_are_not_ended_inside_a_pid_namespace(
    root: str, put: Put, child: subprocess.Popen[bytes]
) -> None:
    put("alive", {**BEGUN, "host_process": describe(child.pid)})
    put("dead", {**BEGUN, "host_process": gone_here()})
    report = json.loads(inside(RECONCILES, root))
    assert {verdict["agent_id"]: verdict["verdict"] for verdict in report["verdicts"]} == {
        "alive": "unsure",
        "dead": "unsure",
    }
    assert (ends(root, "alive"), ends(root, "dead")) == ([None], [None])


def test_the_proc_of_another_pid_namespace_proves_nothing(root: str) -> None:
    """The ``/proc`` of another namespace shows other pids."""
    unmounted = ["unshare", "--pid", "--fork", sys.executable, "-c", "from gaia_sessions.system.processes import *"]
    asks = f"{unmounted[-1]}\nimport os; print(describe(os.getpid()), gone_and_reason({gone_here()!r}))"
    completed = subprocess.run(
        [*unmounted[:-1], asks],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(gaia_sessions.__file__).parents[1],
    )
    if completed.returncode:
        pytest.skip("needs the right to make a pid namespace")
    assert completed.stdout == "None (None, 'its process is unknown')\n"
    assert root


def test_a_hidden_process_is_not_gone(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """With ``hidepid=2``, ``/proc`` hides the processes of other users."""
    tmp_path.chmod(0o755)
    loads = "import json, sys; from gaia_sessions.system.processes import *"
    asks = f"{loads}\nprint(gone_and_reason(json.loads(sys.argv[1])))"
    script = (
        "mount -t proc -o hidepid=2 proc /proc && "
        'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" -I -S -c "$1" "$2"'
    )
    source = f"import sys; sys.path.insert(0, {str(Path(gaia_sessions.__file__).parents[1])!r}); {asks}"
    words = [sys.executable, source, json.dumps(describe(child.pid))]
    completed = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, *words], capture_output=True, text=True, check=False
    )
    if completed.returncode:
        pytest.skip("needs the right to mount, and a checkout that others may read")
    assert completed.stdout == f"(None, 'process {child.pid} is hidden')\n"


def log_line(session_id: str, event: str, minute: int) -> dict[str, object]:
    """The log line of a call of Claude Code; a SessionEnd has its kind."""
    line = {"at": f"2026-01-08T18:{minute:02}:00Z", "event": event, "session_id": session_id, "host": "claude-code"}
    return {**line, "kinds": ["session_end"]} if event == "SessionEnd" else {**line}


def test_the_hook_log_is_evidence_that_a_conversation_ended(root: str, put: Put) -> None:
    put("over", {**BEGUN, "host_session_id": "over"})
    put("resumed", {**BEGUN, "host_session_id": "resumed"})
    put("other", {**BEGUN, "host_session_id": "other"})
    put("long", {**BEGUN, "host_session_id": "l" * 200})
    for session_id, event, minute in [
        ("over", "SubagentStart", 1),
        ("over", "SessionEnd", 2),
        ("over", "SubagentStop", 1),
        ("over", "SessionEnd", 2),
        ("l" * 128, "SessionEnd", 2),
        ("resumed", "SessionEnd", 2),
        ("resumed", "SessionStart", 3),
    ]:
        hook_log.append_line(root, "hook", log_line(session_id, event, minute))
    Path(root, ".logs", "inbox.log").write_bytes(b"\xff\n[]\n{\n" + b'{"at": 5, "session_id": {}}\n')
    assert verdicts(root) == {
        "over": "ended_with_host",
        "long": "unsure",  # the log has only the beginning of its ID, which other IDs may share
        "resumed": "unsure",
        "other": "unsure",
    }
    assert ends(root, "over") == ["ended_with_host"]


def test_a_later_log_line_undoes_an_end_even_if_the_clock_was_set_back(root: str, put: Put) -> None:
    for name in ("resumed", "elsewhere", "over"):
        put(name, {**BEGUN, "host_session_id": name})
    for session_id, event, minute, hook in [
        ("resumed", "SessionEnd", 5, "hook"),
        ("resumed", "SessionStart", 2, "hook"),
        ("elsewhere", "PreToolUse", 6, "pre_delegate"),
        ("elsewhere", "SessionEnd", 5, "hook"),
        ("over", "PreToolUse", 4, "pre_delegate"),
        ("over", "SessionEnd", 5, "hook"),
    ]:
        hook_log.append_line(root, hook, log_line(session_id, event, minute))
    assert verdicts(root) == {"resumed": "unsure", "elsewhere": "unsure", "over": "ended_with_host"}


def test_the_old_half_of_a_log_is_read_first(root: str, put: Put) -> None:
    put("a", BEGUN)
    hook_log.append_line(root, "hook", log_line("s", "SessionEnd", 5))
    Path(root, ".logs", "hook.log").rename(Path(root, ".logs", "hook.log.old"))
    hook_log.append_line(root, "hook", log_line("s", "SessionStart", 5))
    assert verdicts(root) == {"a": "unsure"}


def test_only_own_logs_and_lines_of_the_same_host_are_evidence(root: str, put: Put) -> None:
    put("a", BEGUN)
    put("b", {**BEGUN, "host": "codex"})
    put("c", {key: value for key, value in BEGUN.items() if key != "host"})
    line = log_line("s", "SessionEnd", 5)
    hook_log.append_line(root, "somebody-elses", line)
    hook_log.append_line(root, "hook", {**line, "host": "qwen-code"})
    assert verdicts(root) == dict.fromkeys("abc", "unsure")
    hook_log.append_line(root, "hook", {**line, "host": "codex"})
    assert verdicts(root) == {"a": "unsure", "b": "ended_with_host", "c": "unsure"}


def test_every_log_of_the_hooks_is_read() -> None:
    assert set(LOG_NAMES) == {HOOK, PRE_DELEGATE, SUBAGENT_STOP, "inbox"}


def test_no_log_line_ends_the_run_of_a_host_that_is_there(root: str, put: Put) -> None:
    put("a", {**BEGUN, "host_process": describe(os.getpid())})
    hook_log.append_line(root, "hook", log_line("s", "SessionEnd", 5))
    assert (verdicts(root), ends(root, "a")) == ({"a": "unsure"}, [None])


def test_a_session_end_is_recognized_by_its_kind_whatever_the_host_calls_it(root: str, put: Put) -> None:
    for name in ("cursor", "heard", "told"):
        put(name, {**BEGUN, "host_session_id": name})
    for name, event, kinds, minute in [
        ("cursor", "sessionEnd", ["session_end"], 2),
        ("heard", "sessionEnd", ["session_end"], 2),
        ("heard", "subagentStart", ["delegate", "start"], 3),
        ("told", "SessionEnd", ["main_stop"], 2),
    ]:
        line = log_line("another id of the host", event, minute)
        hook_log.append_line(root, "hook", {**line, "host_session_id": name, "kinds": kinds})
    hook_log.append_line(root, "hook", {**log_line("cursor", "x", 9), "kinds": {}})
    assert verdicts(root, dry_run=True) == {"cursor": "unsure", "heard": "unsure", "told": "unsure"}
    line = log_line("another id of the host", "sessionEnd", 10)
    hook_log.append_line(root, "hook", {**line, "host_session_id": "cursor", "kinds": ["session_end"]})
    assert verdicts(root) == {"cursor": "ended_with_host", "heard": "unsure", "told": "unsure"}


def test_a_recently_written_transcript_of_the_client_shows_that_the_run_works(root: str, put: Put, talks: Path) -> None:
    for name in ("fresh", "silent"):
        (talks / name).write_text("{}\n", encoding="utf-8")
        put(name, {**BEGUN, "host": "claude-code", "transcript_path": str(talks / name)})
    os.utime(talks / "silent", (0, datetime.now(UTC).timestamp() - 600))
    Path("fresh").write_text("{}\n", encoding="utf-8")
    (talks / "link").symlink_to("fresh")
    others = (
        "/nowhere/x",
        str(talks),
        "fresh",
        os.path.abspath("fresh"),
        f"{talks}/link",
        f"{talks}/../-project/fresh",
    )
    for number, path in enumerate(others):
        put(f"other-{number}", {**BEGUN, "host": "claude-code", "transcript_path": path})
    put("elsewhere", {**BEGUN, "host": "codex", "transcript_path": str(talks / "fresh")})
    unsure = dict.fromkeys(("silent", "elsewhere", *(f"other-{number}" for number in range(len(others)))), "unsure")
    assert verdicts(root) == {"fresh": "running", **unsure}


def test_reconcile_a_dry_run_and_the_doctor_apply_the_inbox_first(root: str, put: Put) -> None:
    put("a", {**BEGUN, "host_agent_id": "x", "host_process": gone_here()})
    event: Any = {"kind": "session_end", "at": format_time(datetime.now(UTC)), "host_session_id": "s"}
    FileStore(root).defer(event, datetime.now(UTC))
    assert verdicts(root, dry_run=True) == {}
    [runs] = [check for check in examine(root, {})["checks"] if check["name"] == "runs"]
    assert (runs["state"], runs["found"]) == ("ok", "0 runs without an end, 0 unsure")
    assert (verdicts(root), ends(root, "a")) == ({}, ["ended_with_host"])


def test_a_locked_session_is_busy_and_not_changed(root: str, put: Put) -> None:
    put("a", {**BEGUN, "host_process": gone_here()}, {**BEGUN, "run": 2, "host_process": gone_here()})

    def wait(*_: object) -> None:
        pytest.fail("it waits")

    def rule(record: Any) -> Any:
        report = close_runs(FileStore(root, wait=wait), datetime.now(UTC))
        assert (report["verdicts"], report["busy"]) == ([], ["a"])
        return record

    FileStore(root).change("a", rule)
    assert ends(root, "a") == [None, None]


def test_the_verdict_under_the_lock_counts(root: str, put: Put) -> None:
    """The agent stops between the first look and the lock; its own end counts."""
    put("a", {**BEGUN, "host_process": gone_here()})

    class Late(FileStore):
        def open(self, agent_id: str, *, timeout: float | None = None) -> Any:
            ended: Any = {**BEGUN, "ended_at": ago(), "end": "stopped"}
            FileStore(root).change(agent_id, lambda record: {**record, "runs": [ended]})
            return super().open(agent_id, timeout=timeout)

    report = close_runs(Late(root), datetime.now(UTC))
    assert (report["verdicts"], ends(root, "a")) == ([], ["stopped"])


def test_corrupt_and_newer_records_are_reported_and_hide_no_session(root: str, put: Put) -> None:
    put("a", {**BEGUN, "host_process": gone_here()})
    put("final", {**BEGUN, "host_process": gone_here()}, phase="completed")
    for name, data in (("torn", b"{"), ("newer", b'{"agent_id": "newer", "schema": 2}')):
        Path(root, name).mkdir()
        Path(root, name, "state.json").write_bytes(data)
    Path(root, ".index", "complete").unlink()  # as after a restart: every session is read
    report = gaia_sessions.Sessions(root).reconcile()
    assert [verdict["agent_id"] for verdict in report["verdicts"]] == ["a"]
    assert report["kept"] == [{"agent_id": "newer", "reason": "newer_schema"}]
    assert [left["agent_id"] for left in report["corrupt"]] == ["torn"]
    assert report["failed"] == []


def test_cleanup_reconciles_first(root: str, put: Put) -> None:
    put("a", {**BEGUN, "host_process": gone_here()})
    put("b", BEGUN)
    dry = gaia_sessions.cleanup_sessions(10**6, dry_run=True, root=root)
    assert ends(root, "a") == [None]
    report = gaia_sessions.cleanup_sessions(10**6, root=root)
    assert (ends(root, "a"), ends(root, "b")) == (["lost"], [None])
    closed_runs = [(verdict["agent_id"], verdict["verdict"], verdict["closed"]) for verdict in report["closed"]]
    assert closed_runs == [("a", "lost", True)]
    assert dry["closed"] == report["closed"]


def test_reconcile_without_a_root_finds_nothing_and_creates_nothing(root: str) -> None:
    assert verdicts(root) == {}
    assert not Path(root).exists()
