"""What every store promises of journals: append, entries."""

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


def test_any_json_is_an_entry_and_a_long_one_comes_back_whole(store: Store, new: New) -> None:
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


def test_a_journal_is_empty_before_anything_is_added_and_adding_nothing_adds_nothing(store: Store, new: New) -> None:
    store.create(new())
    assert list(store.entries("agent-1", EVENTS)) == []

    store.append("agent-1", EVENTS, [])

    assert list(store.entries("agent-1", EVENTS)) == []


def test_journals_and_sessions_are_kept_apart(store: Store, new: New) -> None:
    store.create(new())
    store.create(new("agent-2"))

    store.append("agent-1", EVENTS, [1])
    store.append("agent-1", "notes.jsonl", [2])
    store.append("agent-2", EVENTS, [3])

    assert list(store.entries("agent-1", EVENTS)) == [1]
    assert list(store.entries("agent-1", "notes.jsonl")) == [2]
    assert list(store.entries("agent-2", EVENTS)) == [3]
    assert list(store.entries("agent-2", "notes.jsonl")) == []


def test_a_journal_moves_no_revision_and_outlives_changes(store: Store, new: New) -> None:
    store.create(new())
    store.append("agent-1", EVENTS, [1])
    assert store.read("agent-1") == new()

    store.change("agent-1", lambda record: {**record, "phase": "completed"})

    assert list(store.entries("agent-1", EVENTS)) == [1]


UNREADABLE: list[Json] = [float("nan"), 1 << 63, "half of a pair \ud800", "a NUL \0", {"text": "x" * (1 << 20)}]


def test_an_entry_that_could_not_be_read_back_is_refused_with_all_that_came_with_it(store: Store, new: New) -> None:
    store.create(new())
    store.append("agent-1", EVENTS, [1])

    for entry in UNREADABLE:
        with pytest.raises(InvalidInput):
            store.append("agent-1", EVENTS, [2, entry, 3])

        assert list(store.entries("agent-1", EVENTS)) == [1]
