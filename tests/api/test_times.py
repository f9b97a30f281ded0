"""Times as users write them, in several time zones and on days when clocks change."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.api.times import moment_of
from gaia_sessions.errors import BadArgument
from gaia_sessions.session.clock import length_of_time, parse_time
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOW = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def move_to(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the time zone of this process; it is UTC at first."""

    def move(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    move("UTC")
    yield move
    monkeypatch.undo()
    time.tzset()


def read(value: object, now: datetime = NOW) -> str:
    return moment_of(value, "since", now).isoformat().removesuffix("+00:00")


AGES = [
    *[("2h", 7200), ("2H", 7200), ("90m", 5400), ("1.5h", 5400), ("3d", 259_200), ("1w", 604_800), ("60s", 60)],
    *[("2 hours ago", 7200), ("2 hours", 7200), ("2h ago", 7200), ("1 hour ago", 3600), ("30 minutes ago", 1800)],
    *[("30 min ago", 1800), ("  1 Day  Ago ", 86_400), ("2weeks", 1_209_600), ("0s", 0), ("500ms", 0.5), ("5 secs", 5)],
    *[("1h30m", 5400), ("1h30m ago", 5400), ("1 hour 30 minutes ago", 5400), ("15min", 900), ("1d 2h 3m 4s", 93_784)],
]


@table(("text", "seconds"), AGES)
def test_an_age_counts_back_from_now(text: str, seconds: float) -> None:
    assert moment_of(text, "since", NOW) == NOW - timedelta(seconds=seconds)


def test_a_text_without_an_offset_is_local_and_a_datetime_without_one_is_utc(move_to: Callable[[str], None]) -> None:
    move_to("Europe/Berlin")
    assert read("now") == "2026-01-08T18:05:30"
    assert read("today") == read("2026-01-08") == read("20260108") == "2026-01-07T23:00:00"
    assert read("Yesterday") == read("2026-01-07") == "2026-01-06T23:00:00"
    assert read("2026-01-08T18:05") == read("2026-01-08 18:05") == read("18:05") == "2026-01-08T17:05:00"
    assert read("2026-07-08 18:05") == read("2026-07-08 6:05pm") == "2026-07-08T16:05:00"
    for text in ("2026-01-08T18:05Z", "2026-01-08 19:05+01:00", "2026-01-08 18:05 UTC", "2026-01-08T13:05:00-05:00"):
        assert read(text) == "2026-01-08T18:05:00"
    assert read(datetime(2026, 1, 8, 18, 5)) == "2026-01-08T18:05:00"  # noqa: DTZ001  # the case under test
    assert read(datetime(2026, 1, 8, 18, 5, tzinfo=timezone(timedelta(hours=5)))) == "2026-01-08T13:05:00"


CHANGES = [
    # On Sunday 2026-03-29 clocks jump from 2 to 3, so the day has 23 hours.
    ("Europe/Berlin", "2026-03-30T10:00:00", "yesterday", "2026-03-28T23:00:00"),
    ("Europe/Berlin", "2026-03-30T10:00:00", "today", "2026-03-29T22:00:00"),
    ("Europe/Berlin", "2026-03-29T02:30:00", "2h", "2026-03-29T00:30:00"),
    ("Europe/Berlin", "2026-03-29T02:30:00", "1d", "2026-03-28T02:30:00"),
    ("Europe/Berlin", "2026-03-30T10:00:00", "2026-03-29T02:30", "2026-03-29T01:30:00"),  # 02:30 does not exist
    # On Sunday 2026-10-25 clocks go from 3 back to 2, so the day has 25 hours and 02:30 exists twice.
    ("Europe/Berlin", "2026-10-26T10:00:00", "yesterday", "2026-10-24T22:00:00"),
    ("Europe/Berlin", "2026-10-26T10:00:00", "today", "2026-10-25T23:00:00"),
    ("Europe/Berlin", "2026-10-26T10:00:00", "2026-10-25T02:30", "2026-10-25T00:30:00"),
    # Clocks that change at midnight: the day begins at 1, or twice.
    ("America/Santiago", "2026-09-06T12:00:00", "today", "2026-09-06T04:00:00"),
    ("America/Havana", "2026-11-01T12:00:00", "today", "2026-11-01T04:00:00"),
    # 2026-01-08 is a Thursday. A weekday is the latest one, and ``last`` is never today.
    ("UTC", "2026-01-08T18:05:30", "Thursday", "2026-01-08T00:00:00"),
    ("UTC", "2026-01-08T18:05:30", "last thursday", "2026-01-01T00:00:00"),
    ("UTC", "2026-01-08T18:05:30", "friday", "2026-01-02T00:00:00"),
    ("UTC", "2026-01-08T18:05:30", "last  Monday", "2026-01-05T00:00:00"),
    ("UTC", "2026-01-08T18:05:30", "this week", "2026-01-05T00:00:00"),
    ("UTC", "2026-01-08T18:05:30", "last week", "2025-12-29T00:00:00"),
    ("Europe/Berlin", "2026-03-30T10:00:00", "sunday", "2026-03-28T23:00:00"),
    # Local midnight counts: just before it, and at it.
    ("Asia/Kolkata", "2026-01-08T18:29:59", "yesterday", "2026-01-06T18:30:00"),
    ("Asia/Kolkata", "2026-01-08T18:30:00", "yesterday", "2026-01-07T18:30:00"),
    ("America/Los_Angeles", "2026-01-01T07:00:00", "yesterday", "2025-12-30T08:00:00"),
    # A time of day is the latest one.
    ("UTC", "2026-01-08T18:05:30", "18:05", "2026-01-08T18:05:00"),
    ("UTC", "2026-01-08T18:05:30", "18:05:30", "2026-01-08T18:05:30"),
    ("UTC", "2026-01-08T18:05:30", "18:06", "2026-01-07T18:06:00"),
    ("Asia/Kolkata", "2026-01-08T18:29:59", "00:30", "2026-01-07T19:00:00"),
    ("Asia/Kolkata", "2026-01-08T18:30:00", "00:30", "2026-01-07T19:00:00"),
    ("Europe/Berlin", "2026-03-29T10:00:00", "13:00", "2026-03-28T12:00:00"),
]


@table(("zone", "now", "text", "expected"), CHANGES)
def test_days_begin_at_local_midnight_and_lengths_are_real_time_when_clocks_change(
    move_to: Callable[[str], None], zone: str, now: str, text: str, expected: str
) -> None:
    move_to(zone)
    assert read(text, parse_time(now)) == expected


NO_TIMES = [
    *["soon", "", "h", "2 x", "monkey", "next monday", "last", "1h30 ago", "-2h", "2h30", "5", "1.2.3h", "ago"],
    *["2 hours later", "tomorrow", "99999999999w", "2026-13-01", "2026-02-30", "2026-01-08 25:00"],
    *["2026-01-08 18:05 XYZ", "10:30 monday", "2026-01-08 monday", "2026-01-08 Thu", "20260108 18:05 friday"],
    *["25:00", "12:00 01/02/2026", "0001-01-01T00:00+14:00", "08/01/2026", 1.5, True, [], ["2h"], b"2h"],
    datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
]


@table("value", NO_TIMES)
def test_an_invalid_time_is_refused_at_the_call(value: Any, root: str) -> None:
    sessions = gaia_sessions.Sessions(root)
    agent_id = sessions.create()
    for name, ask in [
        ("since", lambda: gaia_sessions.list_sessions(since=value, root=root)),
        ("until", lambda: sessions.list(until=value)),
        ("created_since", lambda: sessions.tree(created_since=value)),
        ("since", lambda: sessions.messages(agent_id, since=value)),
    ]:
        with pytest.raises(BadArgument, match=f"^{name} .+ is not valid") as refused:
            ask()  # type: ignore[no-untyped-call]  # a lambda has no types
        assert refused.value.hint == "must be a time like 2h, 18:05, yesterday, 'last week' or 2026-01-08"


def test_the_python_api_takes_times_as_the_command_line_does(root: str) -> None:
    gaia_sessions.create_session(agent_id="agent-1", root=root)
    for since in ("2h", "yesterday", "today", "2 hours ago", "2026-01-08", datetime(2026, 1, 8)):  # noqa: DTZ001  # allowed
        assert [line["agent_id"] for line in gaia_sessions.list_sessions(since=since, root=root)] == ["agent-1"]
        assert list(gaia_sessions.list_sessions(until=since, root=root)) == []
    assert len(list(gaia_sessions.list_sessions(until="now", created_since="2h", root=root))) == 1


LENGTHS = [
    *[("2h", "h", 2), ("90m", "h", 1.5), ("24", "h", 24), ("1h30m", "h", 1.5), ("2d", "h", 48), ("2 days", "m", 2880)],
    *[("1h30m", "m", 90), ("5m", "s", 300), ("500ms", "s", 0.5), ("15min", "s", 900)],
]


@table(("text", "unit", "number"), LENGTHS)
def test_a_length_of_time_is_converted_to_the_given_unit(text: str, unit: str, number: float) -> None:
    assert length_of_time(text, unit) == number


NO_LENGTHS = [
    *["", "h", "2x", "2 hours ago", "1h30", "s", "--5m", "2,5h", "-5", "-2h", "1h-30m", "2 fortnights", "nan", "inf"],
    *["1_0", "\N{FULLWIDTH DIGIT ONE}", "\N{ARABIC-INDIC DIGIT ONE}", "1ms" * 20_000 + "x", "1" * 60_000 + "x"],
]


@table("text", NO_LENGTHS)
def test_an_invalid_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        length_of_time(text, "s")
