"""Contract of waiting events: defer, waiting, deferred, dismiss."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import TooLarge
from gaia_sessions.session.clock import format_time
from tests.contract.conftest import not_planned

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.store.port import Store


def event(number: int, at: datetime) -> Event:
    return {"kind": "finalize", "at": format_time(at), "agent_id": f"agent-{number}", "outcome": "completed"}


KEYS = {1: "05979d02", 2: "05979d03"}
"""The keys of ``event`` by its number. They are in file names, so every version must make the same keys."""


pytestmark = not_planned


def waiting(store: Store) -> list[object]:
    return [found for _, found in store.deferred()]


def test_an_unused_inbox_is_empty_and_dismissing_from_it_changes_nothing(store: Store) -> None:
    assert (store.waiting(), waiting(store)) == ([], [])

    store.dismiss("gone already")

    assert (store.waiting(), waiting(store)) == ([], [])


def test_waiting_events_come_oldest_first(store: Store, began: datetime) -> None:
    times = [began + timedelta(microseconds=1 + number * 900_000) for number in range(12)]
    events = [event(number, at) for number, at in enumerate(times)]

    for one, at in zip(events, times, strict=True):
        store.defer(one, at)

    assert waiting(store) == events


def test_events_with_the_same_time_are_all_stored_even_equal_ones(store: Store, began: datetime) -> None:
    events = [event(number, began) for number in range(10)]

    for one in events:
        store.defer(one, began)

    found = waiting(store)
    assert len(found) == len(events)
    assert all(one in found for one in events)
    assert len({name for name, _ in store.deferred()}) == len(events)

    store.defer(event(1, began), began)
    assert (waiting(store).count(event(1, began)), len(waiting(store))) == (2, len(events) + 1)


def test_dismissing_an_event_once_or_twice_removes_only_that_event(store: Store, began: datetime) -> None:
    for number in range(3):
        store.defer(event(number, began), began + timedelta(seconds=number))
    names = [name for name, _ in store.deferred()]

    for _ in range(2):
        store.dismiss(names[1])

        assert waiting(store) == [event(0, began), event(2, began)]
        assert [name for name, _ in store.deferred()] == [names[0], names[2]]


def test_events_may_be_dismissed_during_iteration(store: Store, began: datetime) -> None:
    for number in range(5):
        store.defer(event(number, began), began + timedelta(seconds=number))

    seen = []
    for name, found in store.deferred():
        store.dismiss(name)
        seen.append(found)

    assert seen == [event(number, began) for number in range(5)]
    assert waiting(store) == []


def test_an_event_that_is_too_large_is_refused_and_not_stored(store: Store, began: datetime) -> None:
    with pytest.raises(TooLarge):
        store.defer({**event(1, began), "summary": "x" * (1 << 20)}, began)

    assert waiting(store) == []


def test_the_inbox_is_not_a_session(store: Store, began: datetime) -> None:
    store.defer(event(1, began), began)

    assert list(store.scan()) == []


def test_waiting_lists_the_names_and_keys_of_events_oldest_first(store: Store, began: datetime) -> None:
    for number in (2, 1):
        store.defer(event(number, began), began + timedelta(seconds=3 - number))

    assert [name for name, _ in store.waiting()] == [name for name, _ in store.deferred()]
    assert [keys for _, keys in store.waiting()] == [KEYS[2], KEYS[1]]


def test_events_can_be_read_by_name_and_missing_events_are_skipped(store: Store, began: datetime) -> None:
    for number in range(4):
        store.defer(event(number, began), began + timedelta(seconds=number))
    names = [name for name, _ in store.waiting()]
    store.dismiss(names[2])

    found = list(store.deferred([names[3], names[2], names[0], "nobody's"]))

    assert found == [(names[3], event(3, began)), (names[0], event(0, began))]
    assert list(store.deferred([])) == []
