"""Times: how they are written, read and compared."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gaia_sessions.session.clock import (
    FUTURE_TOLERANCE,
    are_canonical_times,
    compact_timestamp,
    format_time,
    is_ahead,
    is_within,
    parse_time,
    seconds_between,
)
from tests.table import table

MOMENT = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)

_OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
# Two days from either end: no offset moves these out of the years 1 to 9999.
MOMENTS = st.datetimes(
    datetime(1, 1, 3),  # noqa: DTZ001  # hypothesis wants bounds without a zone
    datetime(9999, 12, 29),  # noqa: DTZ001
    timezones=_OFFSETS,
)


@table(
    ("moment", "text"),
    [
        (MOMENT.replace(microsecond=123456), "2026-01-08T18:05:30.123456Z"),  # the documented example
        (MOMENT, "2026-01-08T18:05:30.000000Z"),  # six digits even for a whole second
        (
            MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30))),
            "2026-01-08T18:05:30.000000Z",
        ),  # any zone is converted to UTC
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),  # four digits even for year 1
    ],
)
def test_a_time_is_written_in_one_form(moment: datetime, text: str) -> None:
    assert format_time(moment) == text


@given(MOMENTS)
def test_a_written_time_is_read_back_as_the_same_moment_in_utc(moment: datetime) -> None:
    again = parse_time(format_time(moment))
    assert again == moment
    assert again.tzinfo is UTC


@given(MOMENTS, MOMENTS)
def test_text_order_is_time_order(one: datetime, other: datetime) -> None:
    assert (format_time(one) < format_time(other)) == (one < other)


@table(
    ("text", "moment"),
    [
        ("2026-01-08T18:05:30Z", MOMENT),  # Z, as in the users' documents
        ("2026-01-08T18:05:30.123456Z", MOMENT.replace(microsecond=123456)),  # the form that gaia_sessions writes
        ("2026-01-08T18:05:30.5Z", MOMENT.replace(microsecond=500000)),  # a short fraction
        ("2026-01-08T18:05:30,5Z", MOMENT.replace(microsecond=500000)),  # a comma
        ("2026-01-08T18:05:30.123456789Z", MOMENT.replace(microsecond=123456)),  # nanoseconds are cut
        ("2026-01-08T19:05:30+01:00", MOMENT),  # an offset east
        ("2026-01-08T10:35:30-07:30", MOMENT),  # an offset west
        ("2026-01-08T19:05:30+0100", MOMENT),  # an offset without a colon
        ("2026-01-08T18:05:30-00:00", MOMENT),  # minus zero
        ("2026-01-08T18:05:30", MOMENT),  # no offset is UTC
        ("2026-01-08 18:05:30", MOMENT),  # a blank in place of the T
        ("2026-01-08T18:05", MOMENT.replace(second=0)),  # no seconds
        ("2026-01-08T18", MOMENT.replace(minute=0, second=0)),  # hours only
        ("20260108T180530Z", MOMENT),  # the basic form
        ("20260108T18", MOMENT.replace(minute=0, second=0)),  # the shortest form
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),  # a leap day
    ],
)
def test_every_iso_8601_time_is_read_as_utc(text: str, moment: datetime) -> None:
    again = parse_time(text)
    assert (again, again.tzinfo) == (moment, UTC)


@table(
    "text",
    [
        None,  # null
        1767895530,  # a number
        True,  # a boolean
        MOMENT,  # a datetime
        "",  # empty
        "now",  # a word
        "2026-01-08",  # a date alone
        "20260108",  # a basic date alone
        "2026-01-08T",  # a date and no time
        "2026-01-08 ",  # a date and a blank
        "2026-W02-4",  # a week date
        "2026-W02-4T18:05:30",  # a week date with a time
        "18:05:30.000000",  # a time alone
        "2026-02-29T00:00:00Z",  # a day that does not exist
        "2026-13-01T00:00:00Z",  # a month that does not exist
        "2026-01-08T25:00:00Z",  # an hour that does not exist
        "2026-01-08T18:05:60Z",  # a leap second
        "2026-01-08T18:05:30+25:00",  # an offset that does not exist
        "0000-01-01T00:00:00Z",  # year 0
        "0001-01-01T00:00:00+00:01",  # before year 1 in UTC
        "9999-12-31T23:59:59-00:01",  # after year 9999 in UTC
        "2026-01-08T18:05:30Z\n",  # a newline at the end
        " 2026-01-08T18:05:30Z",  # a blank in front
        "٢٠٢٦-01-08T18:05:30Z",  # digits of another script
        "2026-01-08T18:05:30Z and more",  # text after it
        *("2026-01-08+01:00", "2026-01-08-01:00", "2026-01-08?18:05", "20260108-1805"),  # a date with an offset
    ],
)
def test_a_value_that_is_not_an_iso_8601_time_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"\Anot a time\Z"):
        parse_time(text)


@table("date", ["2026-01-08{}18:05:30Z", "20260108{}180530Z"])
def test_only_a_t_or_a_blank_separates_date_and_time_of_day(date: str) -> None:
    for char in map(chr, range(128)):
        text = date.format(char)
        if char in "Tt ":
            assert parse_time(text) == MOMENT
        else:
            with pytest.raises(ValueError, match=r"\Anot a time\Z"):
                parse_time(text)


@given(st.one_of(st.text(), st.text("0123456789-:.TZ+W ", min_size=10, max_size=30)))
@example("0001-01-01T00:00:00+23:59")
def test_reading_any_text_as_a_time_gives_utc_or_a_value_error(text: str) -> None:
    try:
        moment = parse_time(text)
    except ValueError as error:
        assert str(error) == "not a time"  # noqa: PT017  # most texts are not times
    else:
        assert moment.tzinfo is UTC


WRITTEN = "2026-01-08T18:05:30.123456Z"
NEARLY = st.builds(
    lambda place, mark: WRITTEN[:place] + mark + WRITTEN[place + 1 :],
    st.integers(0, len(WRITTEN) - 1),
    st.sampled_from([*"0129TtWZ -:+.,", "", "00", "\u0663", "\n"]),
)
NOT_AS_WRITTEN = ["2026-01-08T18:05:30Z", "2026-W02-4T10:00:00.123456Z", "2026-01-08x18:05:30.123456Z", "", "yesterday"]


@given(st.lists(st.one_of(NEARLY, NEARLY, st.just(WRITTEN), st.sampled_from(NOT_AS_WRITTEN)), max_size=5))
@example([])
@example([WRITTEN, "2026-02-30T18:05:30.123456Z"])
@example([f"{WRITTEN}\n", WRITTEN[1:]])
@example([WRITTEN[:-1], f"Z{WRITTEN}"])
@example(["2026-01-08T18:05:30:123456Z"])
def test_times_are_canonical_exactly_if_each_has_the_documented_form(texts: list[str]) -> None:
    assert are_canonical_times(texts) == all(map(is_canonical, texts))


def is_canonical(text: str) -> bool:
    """Whether ``text`` has the documented form and is a moment that exists."""
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{6})Z", text, re.ASCII)
    try:
        return found is not None and bool(datetime(*map(int, found.groups()), tzinfo=UTC))  # type: ignore[misc, arg-type]
    except ValueError:
        return False


@given(st.lists(st.datetimes(timezones=st.just(UTC)), max_size=300))
def test_times_that_format_time_wrote_are_canonical(moments: list[datetime]) -> None:
    assert are_canonical_times([format_time(moment) for moment in moments])


@table("text", [None, 1, b"2026-01-08T18:05:30.123456Z", ["x"]])
def test_a_value_that_is_not_text_raises_a_type_error(text: Any) -> None:
    with pytest.raises(TypeError):
        are_canonical_times([WRITTEN, text])


@table(
    ("moment", "stamp"),
    [
        (MOMENT.replace(microsecond=999999), "20260108-180530"),  # the fraction is cut
        (datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1))), "20251231-230000"),  # converted to UTC
    ],
)
def test_the_stamp_of_an_id_is_utc_to_the_second(moment: datetime, stamp: str) -> None:
    assert compact_timestamp(moment) == stamp


@table(
    ("later", "seconds"),
    [
        (MOMENT + timedelta(minutes=30), 1800.0),  # half an hour
        (MOMENT + timedelta(microseconds=1), 1e-06),  # the smallest step
        (MOMENT, 0.0),  # no difference
        (MOMENT - timedelta(days=1), 0.0),  # a clock set back counts as no difference
        (MOMENT.astimezone(timezone(timedelta(hours=9))), 0.0),  # the same moment in another zone
    ],
)
def test_the_seconds_between_two_times_are_never_negative(later: datetime, seconds: float) -> None:
    assert seconds_between(MOMENT, later) == seconds


AHEAD = timedelta(minutes=5, microseconds=1)


def test_clocks_may_disagree_by_five_minutes() -> None:
    assert timedelta(minutes=5) == FUTURE_TOLERANCE
    assert [is_ahead(MOMENT + off, MOMENT) for off in (-AHEAD, FUTURE_TOLERANCE, AHEAD)] == [False, False, True]


def test_a_time_from_a_wrong_clock_is_never_within_a_span() -> None:
    offs = (-timedelta(minutes=10), -timedelta(minutes=9), timedelta(), FUTURE_TOLERANCE, AHEAD)
    within = [is_within(timedelta(minutes=10), MOMENT + off, MOMENT) for off in offs]
    assert within == [False, True, True, True, False]
