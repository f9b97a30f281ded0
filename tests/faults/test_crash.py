"""Operations killed at any system call: the state is old or new, and nobody has to repair anything.

An operation is killed at each call that touches its project (the last call writes the answer), before the call takes
effect, each time on a new copy. Then it runs again. At last, all files are aged by two hours and cleaned up.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.errors import SessionsError
from gaia_sessions.session.runs import aliases_of, open_conversations
from gaia_sessions.store.above import Above
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.sweep import sweep_sessions
from tests.faults.conftest import (
    A_SAMPLE,
    EACH_CHANGE,
    OPERATIONS,
    STRACE,
    Operation,
    command,
    message_lines,
    root_of,
    run,
    short_and_whole,
    sweep,
)
from tests.faults.worker import TURN
from tests.figures import counted, left, standing_figures, unread
from tests.records import id_found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.api.listing import Line
    from gaia_sessions.session.transcript import Message
    from tests.faults.conftest import Call, Case

    CaseOf = Callable[[Operation], Case]

pytestmark = pytest.mark.usefixtures("needs_strace")

TWO_HOURS = 7200
STAGES = ("old", "partly", "new")
MAY_BE_PARTLY_DONE = ("cleanup", "change state in three documents", "append an event of an app")


@sweep(lambda _: EACH_CHANGE)
def test_a_kill_at_any_call_leaves_the_old_or_new_state_and_needs_no_repair(
    case_of: CaseOf, operation: Operation, reach: str
) -> None:
    case = case_of(operation)
    kills = [_kill(case, call, project) for call, project, _ in case.killed(reach)]

    assert [(call, wrong) for call, _, wrong in kills if wrong] == []
    stood = [STAGES.index(stage) for _, stage, _ in kills]
    assert stood == sorted(stood)
    assert (STAGES[stood[0]], STAGES[stood[-1]]) == ("old", "new")


def test_shared_keys_are_written_after_the_record(case_of: CaseOf, operation_named: Callable[[str], Operation]) -> None:
    case = case_of(operation_named("change state in three documents"))
    renamed = [call.line for call in case.calls if "rename" in call.name and "tmp" in call.line]
    assert [word in line for line, word in zip(renamed, ("state.json", "app-kb", "user-kb"), strict=True)] == [True] * 3


def test_the_next_command_syncs_a_folder_that_a_killed_process_made(
    case_of: CaseOf, operation_named: Callable[[str], Operation]
) -> None:
    case = case_of(operation_named("create in a fresh root"))
    made = next(number for number, call in enumerate(case.calls) if '"session"' in call.line and "mkdir" in call.name)
    sync = next(call for call in case.calls[made:] if call.name == "fsync")
    assert "<.claude>" in sync.line
    project = case.copy()

    case.start_with(f"fsync:signal=SIGKILL:when={sync.ordinal}", project)
    ended, calls = case.start_with("fsync:signal=SIGKILL:when=1000", project)

    assert "ACK" in ended.stdout
    assert [call for call in calls if call.name == "fsync" and "<.claude>" in call.line] != []


@pytest.mark.parametrize("name", ["import a session from elsewhere", "update"])
def test_the_next_command_syncs_a_session_whose_import_was_killed(
    case_of: CaseOf, operation_named: Callable[[str], Operation], name: str
) -> None:
    case = case_of(operation_named("import a session from elsewhere"))
    rename = next(n for n, call in enumerate(case.calls) if "rename" in call.name and '"agent-new"' in call.line)
    sync = next(call for call in case.calls[rename:] if call.name == "fsync")
    assert sync.line.endswith("<.claude/session>) = 0")
    project = case.copy()

    case.start_with(f"fsync:signal=SIGKILL:when={sync.ordinal}", project)
    assert case.outcome_of(project) == "new"
    Path(case.root(project), "agent-new", "cancelled.json").unlink()
    record = Path(case.root(project), "agent-new", "state.json")
    record.write_bytes(record.read_bytes().replace(b'"phase": "abandoned"', b'"phase": "planning"'))
    words = command(name, case.root(project), "agent-new") if name == "update" else case.operation.words(project)
    trace = f"{project}.synced"
    ended = run(words, trace=[*STRACE, "-o", trace])

    assert "ACK" in ended.stdout
    assert re.search(r"fsync\(\d+<[^>]*/\.claude/session>\)", Path(trace).read_text(encoding="utf-8"))


@short_and_whole
def test_a_message_after_a_kill_during_emptying_cuts_neither_transcript(
    case_of: CaseOf, operation_named: Callable[[str], Operation], reach: str
) -> None:
    case = case_of(operation_named("empty a transcript"))
    before = case.before["agent-1/transcript.jsonl"]
    stood = []
    for call, project, _ in case.killed(reach):
        stood.append(case.outcome_of(project))
        was_read = [message["content"] for message in _messages(case, project)]
        message = gaia_sessions.Sessions(case.root(project)).add_message("agent-1", "user", "after")

        assert [message["content"] for message in _messages(case, project)] == [*was_read, "after"]
        assert (len(was_read), message["seq"]) == (3 if stood[-1] == "old" else 0, 4), call
        assert case.documents(project)["agent-1/transcript.jsonl"].startswith(before), call
        names = {path.name for path in Path(case.root(project), "agent-1").glob("transcript*")}
        assert names == ({"transcript.jsonl"} | ({"transcript-1.jsonl"} if stood[-1] == "new" else set())), call
    assert set(stood) == {"old", "new"}


@short_and_whole
def test_a_kill_during_a_reset_leaves_the_old_or_new_conversation_ready_for_a_turn(
    case_of: CaseOf, operation_named: Callable[[str], Operation], reach: str
) -> None:
    case = case_of(operation_named("reset"))
    before, stood = case.before["told/transcript.jsonl"], []
    for call, project, _ in case.killed(reach):
        stood.append(case.outcome_of(project))
        sessions = gaia_sessions.Sessions(case.root(project))
        turns = sessions.store.read("told")["turns"]
        turn = sessions.add_turn("told", TURN, number=turns + 1)
        messages = [message for message in sessions.messages("told") if isinstance(message, dict)]

        assert turns == (1 if stood[-1] == "old" else 0), call
        assert [message["turn"] for message in messages] == [0] + [1] * 4 + [2] * (4 * turns), call
        assert messages[-len(TURN) :] == turn["messages"], call
        assert case.documents(project)["told/transcript.jsonl"].startswith(before), call
    assert set(stood) == {"old", "new"}


RESTORED = ["add a message to a restored record", "empty the transcript of a restored record"]


@short_and_whole
@pytest.mark.parametrize("name", RESTORED)
def test_a_kill_at_any_call_loses_no_message_newer_than_a_restored_record(
    case_of: CaseOf, operation_named: Callable[[str], Operation], name: str, reach: str
) -> None:
    case = case_of(operation_named(name))
    acknowledged = message_lines(case.root(str(case.made)))
    assert len(acknowledged) == 5
    lost = {}
    for call, project, _ in case.killed(reach):
        at_once = acknowledged - message_lines(case.root(project))
        case.operation.start(project)
        lost[str(call)] = at_once | (acknowledged - message_lines(case.root(project)))

    assert {call: lines for call, lines in lost.items() if lines} == {}
    assert len(lost) > 5


@short_and_whole
def test_a_kill_during_the_removal_of_a_cancelled_session_leaves_its_child_cancelled(
    case_of: CaseOf, operation_named: Callable[[str], Operation], reach: str
) -> None:
    case = case_of(operation_named("remove a cancelled session"))
    stood = set()
    for call, project, _ in case.killed(reach):
        stood.add(case.outcome_of(project))
        store = FileStore(case.root(project))

        found = Above(store).cancellation(store.read("agent-1"))
        assert found is not None, call
        assert (found["by"], found["reason"]) == ("parent", "by a worker"), call
    assert stood == {"old", "new"}


@short_and_whole
def test_a_kill_during_the_removal_of_two_sessions_leaves_each_whole_or_gone(case_of: CaseOf, reach: str) -> None:
    names = ("agent-1", "agent-2")
    removal = Operation(
        "remove two",
        OPERATIONS["remove an open session"].prepare,
        lambda project: command("rm", root_of(project), *names),
        {f"{agent_id}/state.json": _is_gone for agent_id in names},
        {f"agent-1/{name}": _is_gone for name in ("events.jsonl", "transcript.jsonl")},
    )
    case, left = case_of(removal), set()
    for call, project, _ in case.killed(reach):
        there = case.documents(project)
        standing = tuple(agent_id for agent_id in names if f"{agent_id}/state.json" in there)
        left.add(standing)

        gone = tuple(f"{agent_id}/" for agent_id in names if agent_id not in standing)
        assert there == {name: data for name, data in case.before.items() if not name.startswith(gone)}, call
        assert list(_wrong_views(case.root(project))) == [], call
        gaia_sessions.Sessions(case.root(project)).remove(standing, force=True)
        assert case.outcome_of(project) == "new", call
    assert left == {names, ("agent-1",), ()}


@short_and_whole
@pytest.mark.parametrize("name", ["cleanup", "remove an open session", "remove a cancelled session"])
def test_after_a_kill_during_a_removal_the_figures_count_each_session_once_and_unchanged(
    case_of: CaseOf, operation_named: Callable[[str], Operation], name: str, reach: str
) -> None:
    case = case_of(operation_named(name))
    before = standing_figures(FileStore(case.root(str(case.made))))
    seen = set()
    for call, project, _ in case.killed(reach):
        store = FileStore(case.root(project))
        for when in ("at once", "after the next command"):
            counts, lines = counted(store), left(store)
            gone = {key for key, how in counts.items() if how == "left"}
            seen.add((when, len(lines), len(gone)))
            assert (counts.keys(), unread(store)) == (before.keys(), 0), (call, when)
            assert {key: lines[key] for key in gone} == {key: before[key] for key in gone}, (call, when)
            case.operation.start(project)
    removed = 2 if name == "cleanup" else 1
    assert seen >= {("at once", 0, 0), ("at once", removed, removed), ("after the next command", removed, removed)}
    assert reach == A_SAMPLE or ("at once", removed, 0) in seen


def _is_gone(_agent_id: str, data: bytes | None) -> bool:
    return data is None


def _messages(case: Case, project: str) -> list[Message]:
    found = gaia_sessions.Sessions(case.root(project)).messages("agent-1")
    return [message for message in found if isinstance(message, dict)]


def _kill(case: Case, call: Call, project: str) -> tuple[str, str, dict[str, list[str]]]:
    """The call, the state after a kill there, and the faults at once, after the next command and after a cleanup."""
    stood = case.outcome_of(project)
    wrong = {
        "at once": [*_wrong_stand(case, stood), *_wrong_views(case.root(project))],
        "after the next command": [*_next_command(case, project)],
        "after a cleanup": [*_cleaned(case, project)],
    }
    return str(call), stood, {when: what for when, what in wrong.items() if what}


def _wrong_stand(case: Case, stood: str) -> list[str]:
    allowed = STAGES if case.operation.name in MAY_BE_PARTLY_DONE else ("old", "new")
    return [] if stood in allowed else [stood]


def _wrong_views(root: str) -> Iterator[str]:
    """Readers must see every session whole, and the active ones as active. Other users may not read the files."""
    there = {path.name for path in Path(root).glob("[!.]*")}
    lines = _listed(root)
    if {line["agent_id"] for line in lines} != there or any("problem" in line for line in lines):
        yield f"listed: {lines}"
    active = {line["agent_id"] for line in lines if line["status"] == "active" and "cancelled" not in line}
    hinted = {line["agent_id"] for line in _listed(root, active_only=True)}
    if hinted != active:
        yield f"listed as active: {hinted}"
    yield from _wrongly_found(FileStore(root))
    for agent_id in there:
        if gaia_sessions.get_session(agent_id, root=root) is None:
            yield f"not found: {agent_id}"
        messages = list(gaia_sessions.Sessions(root).messages(agent_id))
        yield from (f"no message: {message}" for message in messages if not isinstance(message, dict))
    for path in Path(root).rglob("*"):
        if path.lstat().st_mode & 0o077:
            yield f"open to others: {path.name}"


def _listed(root: str, *, active_only: bool = False) -> list[Line]:
    """The sessions without an app, and those of the only app."""
    apps = (None, "kb")
    return [line for app in apps for line in gaia_sessions.list_sessions(active_only=active_only, app=app, root=root)]


def _wrongly_found(store: FileStore) -> Iterator[str]:
    """Keys and conversations by which a session is not found."""
    for agent_id, record in store.scan():
        if isinstance(record, SessionsError):
            continue
        yield from (f"not by {alias}: {agent_id}" for alias in aliases_of(record) if id_found(store, alias) != agent_id)
        for host_session_id in open_conversations(record):
            if agent_id not in dict(store.scan(active_only=True, host_session_id=host_session_id)):
                yield f"not in {host_session_id}: {agent_id}"


def _next_command(case: Case, project: str) -> Iterator[str]:
    operation = case.operation
    ended = operation.start(project)
    if ended.returncode not in operation.again or (ended.returncode == 0 and ended.stderr):
        yield f"exit {ended.returncode}: {ended.stderr}"
    stands = case.outcome_of(project)
    if stands != "new":
        yield stands
    for name in operation.aside:
        if case.is_as_before(project, name):
            yield f"{name} is still the old one"
    yield from (f"still waiting: {path}" for path in Path(case.root(project), ".inbox").glob("*.json"))
    yield from _wrong_views(case.root(project))
    logs = Path(project, ".claude", "logs")
    if logs.is_dir() and not (logs / ".gitignore").is_file():
        yield "the log directory has no .gitignore"


def _cleaned(case: Case, project: str) -> Iterator[str]:
    root = case.root(project)
    before = {name for name in case.documents(project) if not name.startswith("old-")}
    aged = os.path.getmtime(root) - TWO_HOURS
    for path in Path(root).rglob("*"):
        os.utime(path, (aged, aged), follow_symlinks=False)
    gaia_sessions.cleanup_sessions(root=root)
    with FileStore(root) as store:
        sweep_sessions(store.folder, datetime.now(UTC))  # as doctor --fix does
    yield from case.leftovers(project)
    if case.documents(project).keys() != before:
        yield f"sessions: {sorted(case.documents(project))}"
    yield from _wrong_views(root)
