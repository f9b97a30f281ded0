"""Times as people and programs write them. Only this module imports dateutil."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta

from gaia_sessions.errors import BadArgument
from gaia_sessions.session.clock import length_of_time

_AGE = re.compile(r"((?:\d[\d.]*\s*[a-z]+\s*)+?)(\s+ago)?", re.ASCII)
_CLOCK = re.compile(r"\d\d:\d\d(?::\d\d)?", re.ASCII)
_DATE_START = re.compile(r"\d{4}-?\d\d-?\d\d", re.ASCII)
_DAY_NAME = re.compile(r"[^a-z](mon|tue|wed|thu|fri|sat|sun)")
_WEEKDAY = re.compile(r"(last\s+)?((?:mon|tues|wednes|thurs|fri|satur|sun)day)")
_WANTED = "a time like 2h, 18:05, yesterday, 'last week' or 2026-01-08"
_WANTED_SPAN = "a time and a number of seconds, like ('2026-01-08T18:05:30', 90)"


def moment_of(value: object, name: str, now: datetime) -> datetime:
    """Returns the UTC time that the argument ``name`` means: an age, words, a time of day, or a date."""
    try:
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        if isinstance(value, str):
            return _read(value.strip(), now)
    except (ValueError, OverflowError):
        pass
    raise BadArgument(name, value, _WANTED)


def span_of(value: object, name: str, now: datetime) -> tuple[datetime, datetime]:
    """Returns the start and the end of the span that the argument ``name`` means: a time and a number of seconds."""
    if isinstance(value, list | tuple) and len(value) == 2 and not isinstance(value[1], bool):  # noqa: PLR2004  # a pair
        start = moment_of(value[0], name, now)
        with suppress(TypeError, ValueError, OverflowError):
            end = start + timedelta(seconds=value[1])
            if start <= end:
                return start, end
    raise BadArgument(name, value, _WANTED_SPAN)


def _read(text: str, now: datetime) -> datetime:
    word = text.casefold()
    if word == "now":
        return now
    today = now.astimezone().replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    days_ago = {"today": 0, "yesterday": 1, "this week": today.weekday(), "last week": today.weekday() + 7}
    if word in days_ago:
        return _from_local(today - timedelta(days=days_ago[word]))
    named = _WEEKDAY.fullmatch(word)
    if named:
        from dateutil import parser

        return _from_local(parser.parse(named[2], default=today - timedelta(days=7 if named[1] else 6)))
    age = _AGE.fullmatch(" ".join(word.split()))  # the pattern would be slow with many blanks
    if age:
        return now - timedelta(seconds=length_of_time(age[1], "s"))
    if _CLOCK.fullmatch(text):
        moment = datetime.combine(today, time.fromisoformat(text))
        # A time that is still to come today means yesterday.
        return _from_local(moment - timedelta(days=_from_local(moment) > now))
    # dateutil accepts almost any text, and moves to a named day.
    if not _DATE_START.match(text) or _DAY_NAME.search(word):
        raise ValueError(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        from dateutil import parser

        moment = parser.parse(text, default=today, tzinfos=_offset)
    return moment.astimezone(UTC) if moment.tzinfo else _from_local(moment)


def _from_local(moment: datetime) -> datetime:
    """Returns the UTC time. If a local time occurs twice, it is the first."""
    return datetime.fromtimestamp(moment.timestamp(), UTC)


def _offset(name: str | None, seconds: int | None) -> int | None:
    """Returns the offset; without this check, dateutil would ignore a zone whose name is unknown."""
    if name and seconds is None:
        raise ValueError(name)
    return seconds
