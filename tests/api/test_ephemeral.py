"""``EphemeralSession``: memory, budget, skills and cancellation token of an agent, also across processes."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import (
    CancellationToken,
    EphemeralSession,
    Sessions,
    cleanup_sessions,
    get_session,
)
from gaia_sessions.errors import Cancelled, SessionFinal, SessionNotFound
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.record import encode
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.store.file_store import FileStore
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message


@pytest.fixture(autouse=True)
def _in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(tmp_path / "sessions"))


def in_another_process(code: str, *arguments: str) -> str:
    """What ``code`` prints in another process; its ``session`` is the session of the first argument."""
    lines = (
        f"import sys\nfrom gaia_sessions import EphemeralSession\nsession = EphemeralSession.open(sys.argv[1])\n{code}"
    )
    done = subprocess.run([sys.executable, "-c", lines, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def record_of(session: EphemeralSession) -> Record:
    record = get_session(session.agent_id)
    assert record is not None
    return record


def texts(messages: list[Message]) -> list[str]:
    return [message["content"] for message in messages]


def test_e1_a_sub_agent_has_64000_tokens_and_a_root_200000_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = EphemeralSession.with_default_limits()
    child, small = EphemeralSession(None, root), EphemeralSession(500, root.agent_id)

    assert [one.memory.max_tokens for one in (root, child, small)] == [200_000, 64_000, 500]
    monkeypatch.setenv("GAIA_SESSIONS_SUB_AGENT_MAX_TOKENS", "70000")
    other = EphemeralSession(None, root)
    assert (other.memory.max_tokens, other.memory.limit_reached) == (70_000, False)
    usage = other.charge(70_000)
    assert (usage["max_tokens"], usage["limit_reached"], other.memory.limit_reached) == (70_000, True, True)
    assert other.memory.sync_token_count(69_999)["limit_reached"] is False
    assert other.report()["max_tokens"] is None, "only its program holds it to that"


def test_with_parent_token_makes_the_session_of_the_token_the_parent() -> None:
    parent = EphemeralSession(None)

    child = EphemeralSession.with_parent_token(300, parent.cancellation_token, agent_name="reviewer")

    assert record_of(child)["parent_id"] == parent.agent_id
    parent.cancellation_token.cancel()
    assert child.cancellation_token.is_cancelled


def test_with_parent_token_takes_a_token_in_memory_that_cancels_the_session() -> None:
    token = CancellationToken()
    one, other = (EphemeralSession.with_parent_token(None, token) for _ in range(2))
    assert "parent_id" not in record_of(one)

    EphemeralSession.open(other.agent_id).cancellation_token.cancel()
    assert [each.cancellation_token.is_cancelled for each in (one, other)] == [False, True]

    token.cancel("enough")
    assert one.cancellation_token.is_cancelled
    with pytest.raises(Cancelled, match="enough"):
        one.cancellation_token.check()


def test_with_parent_token_uses_the_root_of_a_child_token(tmp_path: Path) -> None:
    parent = EphemeralSession(None, root=str(tmp_path / "elsewhere"))

    child = EphemeralSession.with_parent_token(None, parent.cancellation_token.child_token())

    assert child.root == parent.root
    assert not child.cancellation_token.is_cancelled
    parent.cancellation_token.cancel()
    assert child.cancellation_token.is_cancelled


def test_e8_a_skill_counts_once_and_against_the_budget() -> None:
    session = EphemeralSession(None)

    assert session.register_loaded_skill("s", 100)
    assert not session.register_loaded_skill("s", 500)
    assert session.register_loaded_skill("t", 7)

    assert (session.skill_token_count(), session.memory.token_count) == (107, 107)


def test_e9_skills_belong_to_one_session_in_all_processes() -> None:
    parent = EphemeralSession(None)
    child = EphemeralSession(None, parent)
    parent.register_loaded_skill("of the parent", 1)
    in_another_process("session.register_loaded_skill('of the child', 1)", child.agent_id)

    assert [set(one.loaded_skills) for one in (parent, child)] == [{"of the parent"}, {"of the child"}]
    assert child.is_skill_loaded("of the child")
    assert not child.is_skill_loaded("of the parent")


def test_e10_messages_add_tokens_a_total_replaces_them_and_clear_removes_all() -> None:
    session = EphemeralSession(1000)
    memory = session.memory

    memory.add_message("user", "12345678")
    memory.add_message("tool", "x", tool_name="Bash", tool_call_id="call_1", tokens=30)
    memory.add_todo("read")
    assert (memory.token_count, texts(memory.get_messages())) == (32, ["12345678", "x"])

    memory.sync_token_count(500)
    memory.add_message("assistant", "done", tokens=1)
    assert memory.token_count == 501

    memory.clear()
    assert (memory.get_messages(), memory.token_count, memory.todos) == ([], 0, [])
    assert memory.add_message("user", "again", tokens=2)["seq"] == 4
    assert memory.token_count == 2


def test_e15_a_compaction_keeps_the_newest_messages_and_the_whole_transcript() -> None:
    session = EphemeralSession(1000)
    memory = session.memory
    for number in range(20):
        memory.add_message("user", f"say {number}", tokens=45)
    assert (memory.compaction_due, memory.token_count) == (True, 900)

    assert memory.compact()

    summary, *kept = memory.get_messages()
    assert texts(kept) == [f"say {number}" for number in range(16, 20)]
    assert (summary["role"], "say 0" in summary["content"]) == ("system", True)
    assert memory.token_count == 4 * 45 + -(-len(summary["content"].encode()) // 4)
    assert not memory.compaction_due
    assert len(list(Sessions().messages(session.agent_id))) == 20
    assert len(EphemeralSession.open(session.agent_id).memory.get_messages()) == 5

    assert not memory.compact(), "four messages are too few"
    for number in range(20, 40):
        memory.add_message("user", f"say {number}", tokens=1)
    assert memory.compact()
    again, *kept = memory.get_messages()
    assert "say 0" in again["content"]
    assert texts(kept) == [f"say {number}" for number in range(35, 40)]
    assert texts(memory.get_messages(last=2)) == ["say 38", "say 39"]
    assert texts(memory.get_messages(last=6)) == [again["content"], *texts(kept)]

    memory.clear()
    assert (memory.get_messages(), memory.token_count) == ([], 0)


@table("left", [None, b"", b"x" * 100, b"\0\n" * 100])
def test_a_compacted_memory_stores_new_messages_after_its_transcript_was_lost(left: bytes | None) -> None:
    session = EphemeralSession(None)
    for number in range(100):
        session.memory.add_message("user", f"say {number}")
    assert session.memory.compact()
    transcript = Path(os.environ["GAIA_SESSIONS_ROOT"], session.agent_id, "transcript.jsonl")
    transcript.unlink()
    if left is not None:
        transcript.write_bytes(left)

    for number in range(30):
        session.memory.add_message("user", f"new {number}")

    summary, *remembered = texts(session.memory.get_messages())
    assert "say 79" in summary
    assert remembered == [f"new {number}" for number in range(30)]


def test_charged_tokens_stay_after_a_compaction() -> None:
    session = EphemeralSession(1000)
    session.charge(5000)
    for number in range(10):
        Sessions().add_message(session.agent_id, "user", f"say {number}", tokens=500 * (number % 2) or None)

    assert session.memory.compact()

    summary = session.memory.get_messages()[0]["content"]
    assert session.memory.token_count == 5000 + -(-len(summary.encode()) // 4)
    assert session.memory.limit_reached


class Clock:
    """The clock of this process; for other processes it moves the times in the record back."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def go_on(self, session: EphemeralSession, seconds: int) -> None:
        self.seconds += seconds
        path = Path(session.root, session.agent_id, "state.json")

        def earlier(found: re.Match[str]) -> str:
            return format_time(parse_time(found[0]) - timedelta(seconds=seconds))

        path.write_text(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", earlier, path.read_text("utf-8")), encoding="utf-8")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("gaia_sessions.api.ephemeral.time", clock)
    return clock


def test_e13_elapsed_time_grows_in_every_process_until_the_session_ends(clock: Clock) -> None:
    session = EphemeralSession(None)
    clock.go_on(session, 90)
    assert session.elapsed_secs() == 90
    assert 90 <= int(in_another_process("print(session.elapsed_secs())", session.agent_id)) < 150

    session.finalize("completed", "done")
    ended = session.elapsed_secs()
    assert ended >= 90
    clock.go_on(session, 90)

    assert session.elapsed_secs() == ended
    assert in_another_process("print(session.elapsed_secs())", session.agent_id) == str(ended)


def test_e14_a_message_of_a_child_is_not_in_the_memory_of_its_parent() -> None:
    parent = EphemeralSession(None)
    child = EphemeralSession(None, parent)

    child.memory.add_message("user", "only here")

    assert (parent.memory.get_messages(), parent.memory.token_count) == ([], 0)
    assert texts(child.memory.get_messages()) == ["only here"]


def test_another_process_has_the_same_memory() -> None:
    session = EphemeralSession(None)
    session.memory.add_message("user", "one")

    in_another_process("session.memory.add_message('assistant', 'two', tokens=4)", session.agent_id)

    assert texts(session.memory.get_messages(last=1)) == ["two"]
    assert [message["seq"] for message in session.memory.get_messages()] == [1, 2]


def test_the_memory_leaves_out_a_message_that_cannot_be_read() -> None:
    session = EphemeralSession(None)
    session.memory.add_message("user", "one")
    session.memory.add_message("user", "two")
    transcript = Path(session.root) / session.agent_id / "transcript.jsonl"
    transcript.write_bytes(transcript.read_bytes().replace(b'"role"', b'"rolE"', 1))

    assert texts(session.memory.get_messages()) == ["two"]
    assert len(list(Sessions().messages(session.agent_id))) == 2


def test_an_ended_session_takes_no_message_and_no_charge() -> None:
    session = EphemeralSession(None)
    session.memory.add_message("user", "one", tokens=1)
    session.finalize("failed", error="no")

    for write in (lambda: session.memory.add_message("user", "two"), lambda: session.charge(1), session.memory.clear):
        with pytest.raises(SessionFinal):
            write()
    assert (texts(session.memory.get_messages()), session.memory.token_count) == (["one"], 1)


class OfTheProgram(Exception):
    """An exception of the program."""

    def __str__(self) -> str:
        return str(self.args[0])


def test_the_end_of_a_with_block_completes_the_session() -> None:
    with EphemeralSession(None) as session:
        session.memory.add_message("user", "one")
        assert record_of(session)["phase"] == "initializing"

    assert (record_of(session)["phase"], record_of(session)["error_count"]) == ("completed", 0)


@table(
    ("text", "stored"),
    [
        ("no such plan", "no such plan"),
        ("two\nlines, \0 and \ud800", "two lines, and \\ud800"),
        ("x" * 2_000_000, "x" * 4000),
        (None, "None"),
    ],
)
def test_an_exception_in_the_block_fails_the_session_and_propagates(text: str | None, stored: str) -> None:
    with pytest.raises(OfTheProgram) as raised, EphemeralSession(None) as session:
        raise OfTheProgram(text)

    record = record_of(session)
    assert (record["phase"], record["error_count"]) == ("failed", 1)
    assert record["last_error"] is not None
    assert record["last_error"]["message"] == f"{__name__}.OfTheProgram: {stored}"[:4000]
    assert not hasattr(raised.value, "__notes__")


@table("outcome", ["completed", "failed", "abandoned"])
@table("error", [None, OfTheProgram("too late"), KeyboardInterrupt()])
def test_the_end_of_the_block_does_not_change_a_final_session(outcome: str, error: BaseException | None) -> None:
    with pytest.raises(type(error)) if error else nullcontext(), EphemeralSession(None) as session:
        EphemeralSession.open(session.agent_id).finalize(outcome, "as said")
        before = record_of(session)
        if error:
            raise error

    assert record_of(session) == before


def test_a_cancelled_exception_that_leaves_the_block_changes_no_session() -> None:
    parent = EphemeralSession(None)
    child = EphemeralSession(None, parent)
    child.cancellation_token.cancel("enough")
    before = record_of(parent), record_of(child)

    with pytest.raises(Cancelled), parent, child:
        child.cancellation_token.check()

    assert (record_of(parent), record_of(child)) == before


def test_a_block_that_ends_after_a_cancellation_abandons_the_session_silently() -> None:
    parent = EphemeralSession(None)
    with EphemeralSession(None, parent) as session:
        parent.cancellation_token.cancel("enough")

    assert record_of(session)["phase"] == "abandoned"


def test_a_block_also_completes_an_existing_session() -> None:
    agent_id = EphemeralSession(None).agent_id

    with EphemeralSession.open(agent_id) as session:
        pass

    assert record_of(session)["phase"] == "completed"


def test_an_exception_gets_a_note_if_the_end_cannot_be_written() -> None:
    def remove_and_raise() -> None:
        with EphemeralSession(None) as session:
            shutil.rmtree(Path(session.root) / session.agent_id)
            raise OfTheProgram(session.agent_id)

    with pytest.raises(OfTheProgram) as raised:
        remove_and_raise()

    agent_id = raised.value.args[0]
    assert raised.value.__notes__ == [f"session {agent_id!r} could not be ended as failed: no session {agent_id!r}"]


WITHOUT_DESCRIPTORS = """
import os, resource, sys
from gaia_sessions import EphemeralSession
with EphemeralSession.open(sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    raise ValueError("of the program")
"""


def test_an_exception_gets_a_note_if_no_file_can_be_opened() -> None:
    session = EphemeralSession(None)
    command = [sys.executable, "-c", WITHOUT_DESCRIPTORS, session.agent_id]

    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()

    last, note = said[-2:]
    assert last == "ValueError: of the program"
    assert note.startswith(f"session {session.agent_id!r} could not be ended as failed: ")
    assert record_of(session)["phase"] == "initializing"


@table("letter", ["x", '"', "\N{GRINNING FACE}"])
def test_a_full_record_stores_only_the_beginning_of_the_exception(letter: str) -> None:
    session = EphemeralSession(None)
    fill(session)

    with pytest.raises(OfTheProgram) as raised, session:
        raise OfTheProgram(letter * 5000)

    record = record_of(session)
    assert (record["phase"], record["error_count"]) == ("failed", 1)
    assert record["last_error"] is not None
    assert record["last_error"]["message"] == f"{__name__}.OfTheProgram: {letter * 200}"[:200]
    assert not hasattr(raised.value, "__notes__")


def fill(session: EphemeralSession) -> None:
    """Fills the record with as much metadata as an earlier version allowed."""
    store = FileStore(session.root)
    room = DOCUMENT_LIMIT - RESERVED_BYTES - len(encode(store.read(session.agent_id))) - 100
    store.change(session.agent_id, lambda record: {**record, "metadata": {"notes": "x" * room}})


def test_an_end_that_cannot_be_written_raises_if_there_is_no_other_exception() -> None:
    with pytest.raises(SessionNotFound), EphemeralSession(None) as session:
        shutil.rmtree(Path(session.root) / session.agent_id)


INTERRUPTED = [
    "at_work(); [time.sleep(0.1) for _ in range(600)]",
    "asyncio.run(work())",
    "asyncio.run(work_in_a_block())",
    "signal.signal(signal.SIGINT, lambda *_: sys.exit(3)); at_work(); time.sleep(60)",
]

PROGRAM = """
import asyncio, signal, sys, time
from gaia_sessions import EphemeralSession
signal.signal(signal.SIGINT, signal.default_int_handler)

def at_work():
    print("at work", flush=True)

async def work():
    at_work()
    await asyncio.sleep(60)

async def work_in_a_block():
    with EphemeralSession.open(sys.argv[1]):
        await work()

with EphemeralSession.open(sys.argv[1]):
    %s
"""


@table("waiting", INTERRUPTED)
def test_ctrl_c_abandons_the_work(waiting: str) -> None:
    session = EphemeralSession(None)
    command = [sys.executable, "-c", PROGRAM % waiting, session.agent_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "at work\n"
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=20)

    record = record_of(session)
    assert (record["phase"], record["last_error"]) == ("abandoned", None)
    assert program.returncode == (3 if "exit" in waiting else -signal.SIGINT)
    assert "could not be ended" not in said


def test_todos_have_numbers_and_statuses() -> None:
    memory = EphemeralSession(None).memory

    assert [memory.add_todo("read"), memory.add_todo("write")] == [1, 2]
    memory.set_todo_status(1)

    assert [(todo["number"], todo["status"]) for todo in memory.todos] == [(1, "completed"), (2, "pending")]


def test_a_session_that_does_not_exist_is_not_opened() -> None:
    with pytest.raises(SessionNotFound):
        EphemeralSession.open("agent-404")
    with pytest.raises(SessionNotFound):
        EphemeralSession(None, "agent-404")


def test_the_repr_of_a_session_opens_the_session_again() -> None:
    session = EphemeralSession(None)
    session.memory.add_message("user", "one")

    again: EphemeralSession = eval(repr(session))  # noqa: S307  # as a user would paste it

    assert (again.agent_id, texts(again.memory.get_messages())) == (session.agent_id, ["one"])
    assert again.started_at == session.started_at


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_worker_process_can_use_the_session_its_memory_and_its_token(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = EphemeralSession(None)
    session = EphemeralSession(500, parent)
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(tmp_path / "another"))  # the session carries its own root

    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        assert pool.submit(session.charge, 7).result()["tokens"] == 7
        assert pool.submit(session.memory.add_message, "user", "from there", tokens=3).result()["seq"] == 1
        assert not pool.submit(session.cancellation_token.wait, 0).result()
        assert not pool.submit(session.cancellation_token.child_token().wait, 0).result()
        waiting = pool.submit(session.cancellation_token.wait, 20)
        parent.cancellation_token.cancel("enough")
        assert waiting.result()
        cancelled = pool.submit(attrgetter("cancellation_token.cancellation", "elapsed_secs"), session).result()[0]

    assert (texts(session.memory.get_messages()), session.memory.token_count) == (["from there"], 10)
    assert (cancelled["reason"], cancelled["by"]) == ("enough", parent.agent_id)


COPIES: list[Callable[[EphemeralSession], EphemeralSession]] = [
    copy.copy,
    copy.deepcopy,
    *(
        lambda one, number=number: pickle.loads(pickle.dumps(one, number))  # noqa: S301
        for number in range(pickle.HIGHEST_PROTOCOL + 1)
    ),
]


@table("made", COPIES)
def test_a_copy_is_the_same_session(made: Callable[[EphemeralSession], EphemeralSession]) -> None:
    session = EphemeralSession(500)
    session.label = "of the program"  # type: ignore[attr-defined]
    session.memory.add_message("user", "one", tokens=3)
    assert not session.cancellation_token.is_cancelled

    again = made(session)

    assert (again.agent_id, again.root, again.started_at) == (session.agent_id, session.root, session.started_at)
    assert again.label == "of the program"  # type: ignore[attr-defined]
    again.memory.add_message("user", "two", tokens=4)
    assert (texts(session.memory.get_messages()), session.memory.token_count) == (["one", "two"], 7)
    session.cancellation_token.cancel("enough")
    assert again.cancellation_token.is_cancelled


def test_the_time_before_a_pickle_is_loaded_counts_as_elapsed(clock: Clock) -> None:
    session = EphemeralSession(None)
    data = pickle.dumps(session)
    clock.go_on(session, 90)
    again: EphemeralSession = pickle.loads(data)  # noqa: S301
    assert (session.elapsed_secs(), again.elapsed_secs() in range(90, 150)) == (90, True)


def test_a_token_in_memory_cancels_copies_of_the_session_but_not_earlier_pickles() -> None:
    token = CancellationToken()
    session = EphemeralSession.with_parent_token(None, token)
    there: EphemeralSession = pickle.loads(pickle.dumps(session))  # noqa: S301
    copies = [copy.copy(session), copy.deepcopy(session)]

    token.cancel("enough")

    assert [one.cancellation_token.is_cancelled for one in (*copies, there)] == [True, True, False]
    late: EphemeralSession = pickle.loads(pickle.dumps(session))  # noqa: S301
    assert late.cancellation_token.cancellation == token.cancellation
    there.cancellation_token.cancel("there")
    assert session.cancellation_token.cancellation == token.cancellation


def test_a_removed_session_cannot_be_unpickled() -> None:
    session = EphemeralSession(None)
    data = pickle.dumps(session)
    session.finalize("completed")
    cleanup_sessions(0)
    with pytest.raises(SessionNotFound):
        pickle.loads(data)  # noqa: S301
