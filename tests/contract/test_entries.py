"""Contract of journal entries that create and change write with a record."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import InvalidInput, NewerSchema, SessionExists, SessionNotFound
from gaia_sessions.errors import TooLarge as RecordTooLarge
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.session.runs import agent_alias, delegation_alias
from gaia_sessions.session.updates import Change
from tests.contract.conftest import noted
from tests.records import id_found
from tests.removals import deleted

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Entry, Store
    from tests.contract.conftest import New


EVENTS = "events.jsonl"


def whole(record: Record) -> Entry:
    return {"record": deepcopy(record)}  # type: ignore[dict-item]  # a record is JSON


def numbered(number: int, revision: int = 1) -> Entry:
    return {"number": number, "revision": revision}


def noted_as(number: int, rule: Callable[[Record], Record] = noted) -> Callable[[Record], Change]:
    """Returns ``rule`` with an entry that has ``number`` and the new revision."""
    return lambda record: Change(rule(record), [numbered(number, record["revision"] + 1)])


def untouched(record: Record) -> Change:
    return Change(record, [{"nothing": "was written"}])


def journal(store: Store, agent_id: str = "agent-1") -> list[object]:
    return list(store.entries(agent_id, EVENTS))


def test_a_session_created_with_an_entry_has_a_journal_that_begins_with_it(store: Store, new: New) -> None:
    store.create(new(), entry=whole(new()))

    assert journal(store) == [{"record": new()}]
    assert store.read("agent-1") == new()


def test_a_change_appends_the_entry_that_its_rule_returned(store: Store, new: New) -> None:
    store.create(new())

    changed = store.change("agent-1", lambda record: Change(noted(record), [whole(record)]))

    assert changed == new(metadata={"noted": True}, revision=2)
    assert journal(store) == [{"record": new()}]
    assert store.read("agent-1") == changed


def test_each_change_with_an_entry_adds_exactly_one_line_in_order(store: Store, new: New) -> None:
    store.create(new(), entry=numbered(0))
    for number in range(1, 4):
        store.change("agent-1", noted_as(number))
        store.change("agent-1", untouched)
    store.change("agent-1", noted)

    assert journal(store) == [{"number": number, "revision": number + 1} for number in range(4)]
    assert store.read("agent-1")["revision"] == 5


def test_an_unchanged_record_adds_no_entry_and_an_equal_copy_adds_one(store: Store, new: New) -> None:
    store.create(new())

    assert store.change("agent-1", untouched) == new()
    assert journal(store) == []

    store.change("agent-1", noted_as(1, lambda record: {**record}))

    assert journal(store) == [{"number": 1, "revision": 2}]


def test_entries_of_changes_keep_their_order_among_appended_entries(store: Store, new: New) -> None:
    store.create(new())
    store.append("agent-1", EVENTS, ["before"])
    store.change("agent-1", noted_as(1))
    store.append("agent-1", EVENTS, ["after"])

    assert journal(store) == ["before", {"number": 1, "revision": 2}, "after"]


def test_entries_of_a_change_go_only_to_the_event_journal_of_their_session(store: Store, new: New) -> None:
    store.create(new(), entry=numbered(1))
    store.create(new("agent-2"), entry=numbered(2))

    store.change("agent-2", noted_as(3))

    assert journal(store) == [{"number": 1, "revision": 1}]
    assert journal(store, "agent-2") == [{"number": 2, "revision": 1}, {"number": 3, "revision": 2}]
    assert list(store.entries("agent-2", "transcript.jsonl")) == []


def test_a_write_without_an_entry_leaves_the_journal_empty(store: Store, new: New) -> None:
    store.create(new())
    store.create(new("agent-2"), entry=None)
    store.change("agent-1", noted)
    changed = store.change("agent-2", lambda record: Change(noted(record)))

    assert (store.read("agent-2"), changed["revision"]) == (changed, 2)
    assert (journal(store), journal(store, "agent-2")) == ([], [])


def test_a_refused_creation_adds_no_entry_to_the_existing_session(store: Store, new: New) -> None:
    store.create(new(), entry=numbered(1))

    with pytest.raises(SessionExists):
        store.create(new(purpose="second"), entry=numbered(2))

    assert (journal(store), store.read("agent-1")) == ([{"number": 1, "revision": 1}], new())


def test_a_refused_write_adds_no_entry(store: Store, new: New) -> None:
    store.create(new())
    store.create(new("agent-2", schema=2))

    def refuse(_record: Record) -> Record:
        raise LookupError

    def swell(record: Record) -> Record:
        return {**record, "purpose": "x" * DOCUMENT_LIMIT}

    refusals: list[tuple[str, Callable[[Record], Record], type[Exception]]] = [
        ("agent-1", refuse, LookupError),
        ("agent-1", swell, RecordTooLarge),
        ("agent-1", lambda record: {**record, "purpose": "a NUL \0"}, InvalidInput),
        ("agent-2", noted, NewerSchema),
        ("agent-3", noted, SessionNotFound),
    ]
    for agent_id, rule, error in refusals:
        with pytest.raises(error):
            store.change(agent_id, noted_as(1, rule))
    with pytest.raises(RecordTooLarge):
        store.create(swell(new("agent-4")), entry=numbered(1))

    assert (journal(store), journal(store, "agent-2")) == ([], [])
    assert {agent_id for agent_id, _ in store.scan()} == {"agent-1", "agent-2"}


def test_deleting_a_session_deletes_its_entries(store: Store, new: New) -> None:
    store.create(new(), entry=numbered(1))
    assert deleted(store, "agent-1", lambda _found: True)

    store.create(new(), entry=numbered(2))

    assert journal(store) == [{"number": 2, "revision": 1}]


def test_a_session_written_with_entries_is_found_by_its_keys(store: Store, new_with_run: New) -> None:
    delegation, agent = delegation_alias("host", "tool"), agent_alias("host", "child")
    store.create(new_with_run("agent-1", host_session_id="host", tool_use_id="tool"), entry=numbered(1))

    def join(record: Record) -> Record:
        return {**record, "runs": [{**record["runs"][0], "host_agent_id": "child"}]}

    store.change("agent-1", noted_as(2, join))

    assert [id_found(store, delegation), id_found(store, agent)] == ["agent-1", "agent-1"]
    assert journal(store) == [{"number": 1, "revision": 1}, {"number": 2, "revision": 2}]


UNREADABLE: list[Json] = [float("nan"), 1 << 63, "half of a pair \ud800", "a NUL \0", {"text": "x" * DOCUMENT_LIMIT}]


def test_a_write_with_an_unreadable_entry_is_refused_and_changes_nothing(store: Store, new: New) -> None:
    store.create(new())
    for entry in UNREADABLE:
        with pytest.raises(InvalidInput):
            store.change("agent-1", lambda record: Change(noted(record), [{"entry": entry}]))  # noqa: B023  # called at once
        with pytest.raises(InvalidInput):
            store.create(new("agent-2"), entry={"entry": entry})

        assert (dict(store.scan()), journal(store)) == ({"agent-1": new()}, [])
