"""A plan over a store: it changes nothing in the store below, and it misses nothing there.

The contract tests check that a plan behaves like a store.
"""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import CorruptSession, SessionNotFound, StoreFailure
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.session.runs import delegation_alias
from gaia_sessions.store import reading
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.planned import Plan
from tests.contract.conftest import finished
from tests.records import id_found
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.directory import Directory
    from gaia_sessions.store.port import RecordOrError

BEGAN = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)
EVENT: Event = {"kind": "finalize", "at": format_time(BEGAN), "agent_id": "one", "outcome": "completed"}
ALIAS = delegation_alias("host", "tool")
EVENTS = "events.jsonl"


def new(agent_id: str, **changed: object) -> Record:
    runs = [{"run": 1, "host_session_id": "host", "tool_use_id": "tool"}]
    return {**new_record(agent_id, "Explore", "look around", {}, BEGAN), "runs": runs, **changed}  # type: ignore[typeddict-item]


def without_runs(record: Record) -> Record:
    return {**record, "runs": []}


@pytest.fixture
def below(tmp_path: Path) -> FileStore:
    """A store with the sessions ``one`` and ``two``, a journal entry and a waiting event."""
    store = FileStore(f"{tmp_path}/root")
    store.create(new("one"), {"number": 1})
    store.create(new("two"))
    store.defer(EVENT, BEGAN)
    return store


@pytest.fixture
def plan(below: FileStore) -> Plan:
    return Plan(below, below.waiting())


def contents(store: FileStore) -> dict[str, bytes]:
    root = Path(store.root)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_planned_changes_write_no_file_of_the_store_below(below: FileStore, plan: Plan) -> None:
    before = contents(below)

    plan.create(new("three"), {"number": 1})
    plan.change("one", finished)
    plan.append("one", EVENTS, [{"number": 2}])
    plan.mark("one", lambda _: {"at": format_time(BEGAN), "below": True})
    deleted(plan, "two", lambda _found: True)
    plan.add_figures([{"agent_id": "two"}])
    plan.dismiss(plan.waiting()[0][0])
    with plan.lock_key(("key",), 0):
        plan.ensure_index()
    plan.sweep(BEGAN)

    assert contents(below) == before


def test_planned_journal_entries_come_after_the_stored_ones(plan: Plan) -> None:
    plan.append("one", EVENTS, [{"number": 2}])

    assert [*plan.entries("one", EVENTS)] == [{"number": 1}, {"number": 2}]
    stored, planned = plan.entries_by_origin("one", EVENTS)
    assert ([*stored], planned) == ([{"number": 1}], [{"number": 2}])


def test_a_plan_has_only_the_events_it_was_given_until_they_are_dismissed(below: FileStore, plan: Plan) -> None:
    [(name, keys)] = below.waiting()
    assert ([*plan.waiting()], [*plan.deferred()], [*plan.deferred(["other"])]) == ([(name, keys)], [(name, EVENT)], [])
    plan.dismiss(name)
    for nothing in (plan, Plan(below)):
        assert ([*nothing.waiting()], [*nothing.deferred()], [*nothing.deferred([name])]) == ([], [], [])


def test_a_key_that_one_session_loses_leads_to_the_session_that_still_has_it(plan: Plan) -> None:
    assert id_found(plan, ALIAS) == "two"

    plan.change("two", without_runs)
    assert id_found(plan, ALIAS) == "one"

    deleted(plan, "one", lambda _found: True)
    assert id_found(plan, ALIAS) is None


def test_a_scan_yields_each_session_once_as_it_is_at_that_moment(plan: Plan) -> None:
    scan = plan.scan()
    first, record = next(scan)
    [other] = {"one", "two"} - {first}

    changed = [plan.change(agent_id, finished) for agent_id in (first, other)]

    assert [*scan] == [(other, changed[1])]
    assert record == new(first)


def test_a_scan_yields_planned_sessions_in_the_order_of_their_creation(plan: Plan) -> None:
    """So a dry run always reports the same order."""
    agent_ids = [f"new-{number}" for number in range(9)]
    for agent_id in agent_ids:
        plan.create(new(agent_id))

    assert [agent_id for agent_id, _ in plan.scan()][2:] == agent_ids


def test_a_corrupt_session_below_has_a_journal_and_can_be_deleted(below: FileStore, plan: Plan) -> None:
    Path(below.root, "one", "state.json").write_text("no record", encoding="utf-8")
    judged: list[RecordOrError] = []

    def judge(found: RecordOrError) -> bool:
        judged.append(found)
        return True

    plan.append("one", EVENTS, [{"number": 2}])
    assert [*plan.entries("one", EVENTS)] == [{"number": 1}, {"number": 2}]
    with pytest.raises(CorruptSession):
        plan.change("one", finished)
    assert deleted(plan, "one", judge)

    assert [type(found) for found in judged] == [CorruptSession]
    assert dict(plan.scan()) == {"two": new("two")}
    with pytest.raises(SessionNotFound):
        plan.read("one")


def test_a_session_created_only_in_a_plan_has_no_messages_and_no_output(plan: Plan) -> None:
    plan.create(new("three"), {"number": 1})

    assert [*plan.messages("three"), *plan.messages_backwards("three"), *plan.messages_from_turn("three", 1)] == []
    assert plan.output(plan.read("three"), 1) == b""
    assert ([*plan.entries("three", EVENTS)], plan.marks(["three", "one"])) == ([{"number": 1}], [])
    deleted(plan, "three", lambda _: True)
    for read in (plan.messages, plan.messages_backwards, lambda agent_id: plan.entries(agent_id, EVENTS)):
        with pytest.raises(SessionNotFound):
            read("three")


class Counting(FileStore):
    """Counts how often a plan asks the store for many records."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.looks: Counter[str] = Counter()

    def scan(self, **asked: Any) -> Any:
        self.looks["of a conversation" if asked.get("host_session_id") else "of all"] += 1
        return super().scan(**asked)

    def having(self, alias: Any, **asked: Any) -> Any:
        self.looks["of a key"] += 1
        return super().having(alias, **asked)

    def children(self, parent_ids: Any, **asked: Any) -> Any:
        self.looks["below"] += 1
        return super().children(parent_ids, **asked)


def of_conversation(plan: Plan, number: int) -> list[str]:
    return [agent_id for agent_id, _ in plan.scan(active_only=True, host_session_id=f"c-{number}")]


def of_delegation(plan: Plan, number: int) -> list[str]:
    return [one["agent_id"] for one in plan.having(delegation_alias(f"c-{number}", "t"))]


def open_below(plan: Plan, number: int) -> list[str]:
    return [one["agent_id"] for one in plan.children([f"s-{number - 1}"], open_only=True)]


@table("find", [of_conversation, of_delegation, open_below])
def test_a_plan_scans_all_sessions_once_for_many_keys_and_never_with_an_index(
    tmp_path: Path, find: Callable[[Plan, int], list[str]]
) -> None:
    """Each of many waiting events may search for a key."""
    store = Counting(f"{tmp_path}/{find.__name__}")
    for number in range(40):
        runs = [{"run": 1, "host_session_id": f"c-{number}", "tool_use_id": "t"}]
        store.create(new(f"s-{number}", runs=runs, parent_id=f"s-{number - 1}"))
    expected = [[f"s-{number}"] for number in range(40)]

    for looks in (0, 1):
        if looks:
            without_index(store)
        plan = Plan(store)
        store.looks.clear()
        assert [find(plan, number) for _ in range(3) for number in range(40)] == expected * 3
        plan.change("s-7", lambda record: {**record, "runs": [], "parent_id": "elsewhere", "phase": "completed"})
        assert [find(plan, number) for number in range(40)] == [*expected[:7], [], *expected[8:]]
        assert (store.looks["of all"], store.looks.total()) == (looks, 40 + looks)


def without_index(store: FileStore) -> None:
    shutil.rmtree(f"{store.root}/.index")
    store.close()


def test_a_session_that_cannot_be_read_may_be_below_any_session_and_in_any_conversation(tmp_path: Path) -> None:
    class Refusing(FileStore):
        def __init__(self, root: str) -> None:
            super().__init__(root)
            self._read = self.refuse

        def refuse(self, root: Directory, agent_id: str) -> Record:
            if agent_id == "refused":
                raise StoreFailure("read", "state.json", "no")
            return reading.read(root, agent_id)

        def read(self, agent_id: str) -> Record:
            return self.refuse(self.folder, agent_id)

    store = Refusing(f"{tmp_path}/root")
    store.create(new("one", parent_id="above"))
    store.create(new("refused"))
    without_index(store)
    for sessions in (store, Plan(store)):
        assert sessions.having(delegation_alias("host", "other")) == []

        with pytest.raises(StoreFailure):
            sessions.children(["above"])
        found = sessions.scan(active_only=True, host_session_id="host")
        assert sorted(agent_id for agent_id, _ in found) == ["one", "refused"]
        assert id_found(sessions, ALIAS) == "one"


def test_a_scan_that_failed_is_repeated_by_the_next_search(tmp_path: Path) -> None:
    """Otherwise a key that the failed scan did not reach would count as missing."""

    class BrokenOff(FileStore):
        looks = 0

        def scan(self, **asked: Any) -> Any:
            self.looks += 1
            if self.looks == 1:
                raise StoreFailure("look through", self.root, "too many sessions for one call of a hook")
            return super().scan(**asked)

    store = BrokenOff(f"{tmp_path}/root")
    store.create(new("one"))
    without_index(store)
    plan = Plan(store)
    with pytest.raises(StoreFailure):
        plan.find(ALIAS)
    assert id_found(plan, ALIAS) == "one"


def test_a_search_that_meets_a_wrong_index_entry_scans_all_sessions(tmp_path: Path) -> None:
    for store in (FileStore(f"{tmp_path}/command"), FileStore(f"{tmp_path}/hook", seconds_left=lambda: 60.0)):
        store.create(new("one"))
        store.create(new("two", runs=[]))
        for shard in Path(store.root, ".index").glob("*.keys"):
            shard.write_bytes(shard.read_bytes().replace(b" one\n", b" two\n"))
        assert (id_found(store, ALIAS), id_found(store, delegation_alias("host", "other"))) == ("one", None)
