"""Contract of journals: append, entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import InvalidInput

if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New


EVENTS = "events.jsonl"


def test_entries_come_back_in_the_order_they_were_added(store: Store, new: New) -> None:
    store.create(new())

    store.append("agent-1", EVENTS, [{"number": 1}, {"number": 2}])
    store.append("agent-1", EVENTS, [{"number": 3}])

    assert list(store.entries("agent-1", EVENTS)) == [{"number": 1}, {"number": 2}, {"number": 3}]


LONG: list[Json] = [{"text": "x" * 60_000, "number": number} for number in range(20)]


def test_any_json_value_can_be_an_entry_and_long_entries_come_back_whole(store: Store, new: New) -> None:
    store.create(new())
    entries: list[Json] = [
        None,
        True,
        0,
        -1.5,
        "",
        "two\nlines\r\n",
        "\u2028 \u0085 ünïcode \x1b",
        [],
        [[1]],
        {},
        {"": 1},
        *LONG,
    ]

    store.append("agent-1", EVENTS, entries)

    assert list(store.entries("agent-1", EVENTS)) == entries


def test_a_new_journal_is_empty_and_appending_no_entries_adds_none(store: Store, new: New) -> None:
    store.create(new())
    assert list(store.entries("agent-1", EVENTS)) == []

    store.append("agent-1", EVENTS, [])

    assert list(store.entries("agent-1", EVENTS)) == []


def test_journals_of_different_names_and_sessions_are_separate(store: Store, new: New) -> None:
    store.create(new())
    store.create(new("agent-2"))

    store.append("agent-1", EVENTS, [1])
    store.append("agent-1", "notes.jsonl", [2])
    store.append("agent-2", EVENTS, [3])

    assert list(store.entries("agent-1", EVENTS)) == [1]
    assert list(store.entries("agent-1", "notes.jsonl")) == [2]
    assert list(store.entries("agent-2", EVENTS)) == [3]
    assert list(store.entries("agent-2", "notes.jsonl")) == []


def test_an_append_keeps_the_revision_and_a_change_keeps_the_journal(store: Store, new: New) -> None:
    store.create(new())
    store.append("agent-1", EVENTS, [1])
    assert store.read("agent-1") == new()

    store.change("agent-1", lambda record: {**record, "phase": "completed"})

    assert list(store.entries("agent-1", EVENTS)) == [1]


UNREADABLE: list[Json] = [float("nan"), 1 << 63, "half of a pair \ud800", "a NUL \0", {"text": "x" * (1 << 20)}]


def test_an_append_with_one_unreadable_entry_is_refused_whole(store: Store, new: New) -> None:
    store.create(new())
    store.append("agent-1", EVENTS, [1])

    for entry in UNREADABLE:
        with pytest.raises(InvalidInput):
            store.append("agent-1", EVENTS, [2, entry, 3])

        assert list(store.entries("agent-1", EVENTS)) == [1]
