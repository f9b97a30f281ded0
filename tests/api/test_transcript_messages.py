"""Which messages are read since a time, also if they were stored in another order than they were made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.api.transcript_messages import messages
from gaia_sessions.errors import BadArgument, InvalidInput
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.record import new_record
from gaia_sessions.session.transcript import new_message
from tests.memory_store import MemoryStore
from tests.places import writing
from tests.table import table
from tests.transcripts import add_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime(2026, 1, 8, 18, 0, tzinfo=UTC)


def store_with(*minutes: float) -> MemoryStore:
    """A session with one message for each of ``minutes`` after NOW, stored in that order."""
    store = MemoryStore()
    store.create(new_record("agent-1", "Explore", "-", {}, NOW))
    made = [new_message("user", f"{each:g}", NOW + timedelta(minutes=each)) for each in minutes]
    add_messages(store, "agent-1", made)
    return store


def taken(store: MemoryStore, minutes: float, last: int | None = None) -> list[str]:
    found = messages(writing(store, NOW), "agent-1", last=last, since=NOW + timedelta(minutes=minutes))
    return [message["content"] for message in found if isinstance(message, dict)]


def test_messages_since_a_time_are_those_made_then_or_later() -> None:
    store = store_with(0, 10, 20, 30)
    assert taken(store, 20) == ["20", "30"]
    assert taken(store, 20.1) == ["30"]
    assert taken(store, -1) == ["0", "10", "20", "30"]
    assert taken(store, 31) == []
    assert taken(store, 0, last=2) == ["20", "30"]


def test_older_messages_that_are_stored_later_hide_no_newer_message() -> None:
    assert taken(store_with(0, 20, 21, 19, 18), 20) == ["20", "21"]


def test_the_search_ends_at_a_message_that_is_over_five_minutes_older() -> None:
    assert taken(store_with(20, 14, 30), 20) == ["30"]
    assert taken(store_with(20, 15, 30), 20) == ["20", "30"]


class Lines(MemoryStore):
    """A transcript of messages made so many minutes after NOW; None is an unreadable message."""

    def __init__(self, lines: list[int | None]) -> None:
        super().__init__()
        self.create(new_record("agent-1", "Explore", "-", {}, NOW))
        self.lines: list[Any] = [
            InvalidInput(f"{place}", "line") if minutes is None else made(place, minutes)
            for place, minutes in enumerate(lines, 1)
        ]

    def messages_backwards(self, _: str) -> Iterator[Any]:
        yield from reversed(self.lines)


def made(place: int, minutes: int) -> dict[str, Any]:
    return {"seq": place, "turn": 1, **new_message("user", "-", NOW + timedelta(minutes=minutes))}


@given(
    st.lists(st.none() | st.integers(0, 20), max_size=20),
    st.none() | st.integers(0, 12),
    st.none() | st.integers(-1, 21),
)
def test_the_result_is_the_newest_part_of_a_search_from_the_end(
    lines: list[int | None], last: int | None, minutes: int | None
) -> None:
    store = Lines(lines)
    since = None if minutes is None else NOW + timedelta(minutes=minutes)
    found: list[Any] = []
    unreadable: list[Any] = []
    for line in reversed(store.lines):
        if since is None:
            found.append(line)
        elif isinstance(line, InvalidInput):
            unreadable.append(line)
        elif parse_time(line["timestamp"]) < since - timedelta(minutes=5):
            break
        elif parse_time(line["timestamp"]) >= since:
            found += [*unreadable, line]
            unreadable = []

    assert list(messages(writing(store, NOW), "agent-1", last=last, since=since)) == found[:last][::-1]


def test_few_more_messages_are_read_than_returned() -> None:
    class Counted(MemoryStore):
        count = 0

        def messages_backwards(self, agent_id: str):  # type: ignore[no-untyped-def]  # noqa: ANN202  # as in the port
            for message in super().messages_backwards(agent_id):
                self.count += 1
                yield message

    store = Counted()
    store.create(new_record("agent-1", "Explore", "-", {}, NOW))
    many = [new_message("user", "x", NOW + timedelta(minutes=each)) for each in range(1000)]
    add_messages(store, "agent-1", many)
    store.count = 0

    assert len(list(messages(writing(store, NOW), "agent-1", last=20))) == 20
    assert store.count == 21
    assert len(taken(store, 990)) == 10
    assert store.count < 40


@table("last", [-1, 1.5, "2", True])
def test_an_invalid_number_of_messages_is_refused(last: Any) -> None:
    with pytest.raises(BadArgument):
        messages(writing(store_with(0), NOW), "agent-1", last=last)
