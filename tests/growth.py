"""The cases of ``tests/test_growth.py``: loops over input that anybody can write.

A case makes an input of a given size and returns the call that loops over it. As a program, this module forks a
process for each call and prints the pids, so that a tool can count the cost of each call.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.api.cancelling import mark_cancelled
from gaia_sessions.api.cleaning import CleanupPolicy, remove_unused
from gaia_sessions.api.importing import _as_imported
from gaia_sessions.api.reconciling import close_runs
from gaia_sessions.cli.render.short_ids import shorten_ids
from gaia_sessions.config import Config
from gaia_sessions.errors import InvalidInput
from gaia_sessions.hosts.clients import JsonLines
from gaia_sessions.ingest import Terms
from gaia_sessions.ingest.delegate import delegate
from gaia_sessions.ingest.dispatch import apply_event
from gaia_sessions.ingest.main_agent import session_end, session_left
from gaia_sessions.jsonio import strict
from gaia_sessions.session.guard import LONGEST_WORD, guard
from gaia_sessions.session.index_keys import difference
from gaia_sessions.session.run_ends import with_earlier_runs_lost
from gaia_sessions.session.runs import run_of_agent, updated_run
from gaia_sessions.session.shared_keys import Delta
from gaia_sessions.session.tools import ToolRules, may_use
from gaia_sessions.session.work_spans import overlap_of
from gaia_sessions.store.above import Above, all_below
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.inbox_keys import events_to_try
from gaia_sessions.system.processes import describe
from tests.memory_store import MemoryStore
from tests.places import planned
from tests.records import LIMITS, START, WHEN, moved, record_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Case = Callable[[int], Callable[[], object]]

LATER = START + timedelta(days=30)
TIMES = 4


def keys_that_are_cleared(number: int) -> Callable[[], object]:
    keys = [f"k{key}" for key in range(number)]
    values = dict.fromkeys(keys, 1)
    return lambda: Delta(unset=keys).parts(record_with())[()].applied(values)  # type: ignore[arg-type]  # a number is JSON


def a_key_that_is_cleared_twice(number: int) -> Callable[[], object]:
    keys = [f"k{key}" for key in range(number)]

    def refused() -> None:
        with suppress(InvalidInput):
            Delta(unset=[*keys, keys[-1]])

    return refused


def runs_of(number: int, **fields: Any) -> list[dict[str, Any]]:
    """``number`` open runs of one conversation. A function in ``fields`` is called with the number of the run."""
    fixed = {"host": "claude-code", "host_session_id": "s", "host_agent_id": "a"}
    made = ({name: of(run) if callable(of) else of for name, of in fields.items()} for run in range(1, number + 1))
    return [{"run": run, **fixed, **one} for run, one in enumerate(made, 1)]


def agents_of(number: int, **fields: Any) -> Any:
    return record_with(*runs_of(number, host_agent_id=lambda run: f"a{run}", started_at=WHEN, **fields))


def kept(record: Any) -> MemoryStore:
    store = MemoryStore()
    store.create(record)
    return store


def runs_of_one_agent_in_two_conversations(number: int) -> Callable[[], object]:
    record = record_with(*runs_of(number, host_session_id=lambda run: f"s{run % 2}", ended_at=WHEN, end="stopped"))
    return lambda: run_of_agent(record, "s1", "a")


def runs_that_are_looked_up(number: int) -> Callable[[], object]:
    record = agents_of(number)
    return lambda: [updated_run(record, run) for run in record["runs"]]


def runs_before_the_latest(number: int) -> Callable[[], object]:
    record = agents_of(number)
    return lambda: with_earlier_runs_lost(record, "gone", LATER)


def agents_that_began_each_other(number: int) -> Callable[[], object]:
    parents = agents_of(number, background=lambda run: run == 1, parent_host_agent_id=lambda run: f"a{run - 1}")
    return told(session_left, kept(parents))


def times_that_a_delegation_names_a_session(number: int) -> Callable[[], object]:
    """The named session has ``number`` runs too."""
    store = kept(agents_of(number))
    event: Any = {"kind": "delegate", "at": WHEN, "host": "claude-code", "host_session_id": "s", "tool_use_id": "t"}
    event |= {"agent_name": "a", "purpose": "p", "resume": ["s"] * number, "mentioned": ["agent-1", "none"] * number}
    return lambda: delegate(store, event, Terms(LATER, Config({}), 0))


def runs_that_are_imported_without_an_end(number: int) -> Callable[[], object]:
    record = record_with(*({"run": run} for run in range(1, number + 1)))
    return lambda: _as_imported(record, None, "/elsewhere", LATER)


def runs_that_end_with_their_conversation(number: int) -> Callable[[], object]:
    return told(session_end, kept(agents_of(number)))


def told(handler: Any, store: MemoryStore) -> Callable[[], object]:
    event = {"kind": "session_end", "at": WHEN, "host": "claude-code", "host_session_id": "s"}
    return lambda: handler(store, event, Terms(LATER, Config({}), 0))


def agents_that_were_heard_of_before_their_parent(number: int) -> Callable[[], object]:
    store = kept(record_with(*runs_of(1, host_agent_id="parent", tool_use_id="t")))
    for one in range(number):
        [run] = runs_of(1, host_agent_id=f"a{one}", parent_host_agent_id="parent")
        store.create({**record_with(run), "agent_id": f"s{one}"})
    keys = {"host_session_id": "s", "host_agent_id": "parent", "tool_use_id": "t"}
    event: Any = {"kind": "start", "at": WHEN, "host": "claude-code", **keys}
    return lambda: apply_event(store, event, Terms(LATER, Config({}), 0))


def runs_that_nobody_saw_end(number: int) -> Callable[[], object]:
    gone = {**(describe(os.getpid()) or {}), "pid": 2**22 + 1}  # no pid is as large
    store = kept(agents_of(number, host_process=gone))
    return lambda: close_runs(store, LATER)


def runs_and_moves_beside_each_other(number: int) -> Callable[[], object]:
    moves = [moved("planning", "executing"), moved("executing", "planning")] * number
    record: Any = {**agents_of(number), "history": moves}
    asked = (START, LATER)
    return lambda: overlap_of(record, asked, LATER, {}, lambda _: None)


def tools_in_the_lists_of_two_sessions(number: int) -> Callable[[], object]:
    names = [f"t{tool}" for tool in range(number)]
    records: Any = [{**record_with(), "allowed_tools": tools} for tools in (names, names[::-1])]
    return lambda: may_use("t1", records, ToolRules())


def keys_in_the_index(number: int) -> Callable[[], object]:
    before, after = agents_of(number), agents_of(number, tool_use_id=lambda run: f"t{run}", workflow={"run_id": "w"})
    return lambda: difference(before, after)


def events_that_wait(number: int) -> Callable[[], object]:
    waiting = [(f"event {event}", f"{event:08x}{event:08x}") for event in range(number)]
    return lambda: events_to_try(waiting, {f"{key:08x}" for key in range(number, 2 * number)}, 3, 0)


def members_below_a_long_key(number: int) -> Callable[[], object]:
    text = json.dumps({"k" * 50 * number: ["\u2028", *[""] * number]}).encode()
    return lambda: strict.loads(text)


def a_line_in_pieces(number: int) -> Callable[[], object]:
    lines = JsonLines()
    return lambda: [[*lines.add(b" " * 64)] for _ in range(number)]


def below_each_other(number: int, above_all: str | None = None) -> MemoryStore:
    """``number`` sessions, each below the one before. The first is below ``above_all``, which can be one of them."""
    store = MemoryStore()
    for one in reversed(range(number)):  # a new session reads all sessions above it
        parent_id = f"s{one - 1}" if one else above_all
        store.create({**record_with(), "agent_id": f"s{one}", **({"parent_id": parent_id} if parent_id else {})})  # type: ignore[typeddict-item]  # keys of one
    return store


def sessions_below_each_other(number: int) -> Callable[[], object]:
    folder, store = without_index({"parent_id": f"s{one - 1}"} if one else {} for one in range(number))

    def call(_: object = folder) -> None:
        if len([*all_below(store, "s0")]) != number - 1:
            raise RuntimeError("some are missing")

    return call


def without_index(keys: Iterable[dict[str, Any]]) -> tuple[object, FileStore]:
    """A folder, and a store in it with an incomplete index and a session for each of ``keys``."""
    folder = tempfile.TemporaryDirectory()
    store = FileStore(f"{folder.name}/root", durable=False)
    for one, more in enumerate(keys):
        store.create({**record_with(), "agent_id": f"s{one}", **more})  # type: ignore[typeddict-item]  # keys of one
    os.unlink(f"{folder.name}/root/.index/complete")
    return folder, FileStore(f"{folder.name}/root", durable=False)


def cancelled_sessions_below_each_other(number: int) -> Callable[[], object]:
    return reconciled_once_cancelled(below_each_other(number))


def cancelled_sessions_in_a_circle(number: int) -> Callable[[], object]:
    return reconciled_once_cancelled(below_each_other(number, f"s{number - 1}"))


def reconciled_once_cancelled(store: MemoryStore) -> Callable[[], object]:
    mark_cancelled(store, LATER, "s0", None, below=True)
    return lambda: close_runs(store, LATER)


def sessions_that_may_be_below_one(number: int) -> Callable[[], object]:
    store = below_each_other(number)
    above, records = Above(store), [store.read(f"s{one}") for one in range(number)]
    return lambda: [above.is_below(record, "another") for record in records]


def sessions_that_would_be_removed(number: int) -> Callable[[], object]:
    folder, store = without_index({} for _ in range(number))

    def call(_: object = folder) -> None:
        remove_unused(planned(store), CleanupPolicy(LATER, 1, LIMITS, keep_days=7))

    return call


def old_sessions_below_each_other(number: int) -> Callable[[], object]:
    return removed_from_files(number, in_circle=False)


def old_sessions_in_a_circle(number: int) -> Callable[[], object]:
    return removed_from_files(number, in_circle=True)


def removed_from_files(number: int, *, in_circle: bool) -> Callable[[], object]:
    """The cleanup of ``number`` sessions, each below the session with the next ID."""
    folder = tempfile.TemporaryDirectory()
    store = FileStore(f"{folder.name}/root", durable=False)
    for one in range(number):
        above = {"parent_id": f"s{one + 1:04}"} if one < number - 1 else {}
        store.create({**record_with(), "agent_id": f"s{one:04}", "phase": "completed", **above})  # type: ignore[typeddict-item]  # keys of one
    if in_circle:
        store.change(f"s{number - 1:04}", lambda record: {**record, "parent_id": "s0000"})

    def call(_: object = folder) -> None:
        removed = remove_unused(store, CleanupPolicy(LATER, 1, LIMITS, keep_days=7))["removed"]
        if len(removed) != number:
            raise RuntimeError(f"{number} sessions were to be removed, not {len(removed)}")

    return call


def a_parent_that_is_no_id(number: int) -> Callable[[], object]:
    return lambda: shorten_ids(["agent-1", "é" * number])


def tasks_for_the_guard(number: int) -> Callable[[], object]:
    more = ["a" * length for length in range(1, LONGEST_WORD + 1)]
    pieces = ("a", "a ", "a-", "\n", "\nplease ", "and please ", "review-", ". ")
    return lambda: [guard("find " + piece * number, more) for piece in pieces]


CASES: dict[Case, int] = {
    keys_that_are_cleared: 400,
    a_key_that_is_cleared_twice: 400,
    runs_of_one_agent_in_two_conversations: 200,
    runs_that_are_looked_up: 200,
    runs_before_the_latest: 100,
    agents_that_began_each_other: 100,
    times_that_a_delegation_names_a_session: 100,
    runs_that_are_imported_without_an_end: 1800,
    runs_that_end_with_their_conversation: 40,
    agents_that_were_heard_of_before_their_parent: 15,
    runs_that_nobody_saw_end: 40,
    runs_and_moves_beside_each_other: 400,
    tools_in_the_lists_of_two_sessions: 200,
    keys_in_the_index: 200,
    events_that_wait: 300,
    members_below_a_long_key: 1000,
    a_line_in_pieces: 500,
    sessions_below_each_other: 24,
    cancelled_sessions_below_each_other: 24,
    cancelled_sessions_in_a_circle: 24,
    sessions_that_may_be_below_one: 50,
    sessions_that_would_be_removed: 24,
    old_sessions_below_each_other: 24,
    old_sessions_in_a_circle: 24,
    a_parent_that_is_no_id: 5000,
    tasks_for_the_guard: 2000,
}
"""Each case with its size. At this size, a quadratic loop costs more than everything that is done once."""


def main() -> None:
    for case, number in CASES.items():
        for size in (number, number * TIMES):
            nothing, call = map(_in_a_process, (lambda: None, case(size)))
            sys.stdout.write(f"{case.__name__} {size} {nothing} {call}\n")
            sys.stdout.flush()


def _in_a_process(call: Callable[[], object]) -> int:
    pid = os.fork()
    if not pid:
        call()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    return pid


if __name__ == "__main__":
    main()
