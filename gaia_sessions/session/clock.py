"""Times as a record stores them, and lengths of time as people write them.

Owns the one format that is written, the forms that are read, and how far clocks may differ. Modules that a hook loads
import the classes of ``datetime`` from here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import UTC as UTC  # noqa: PLC0414  # other modules import these from here
    from datetime import datetime as datetime  # noqa: PLC0414  # see above
    from datetime import timedelta as timedelta  # noqa: PLC0414  # see above
else:
    try:  # the same classes without the module around them, which costs a seventh of a bare start before Python 3.12
        from _datetime import datetime, timedelta, timezone
    except ImportError:
        from datetime import datetime, timedelta, timezone
    UTC = timezone.utc  # noqa: UP017  # the module in C has no other name for it

FUTURE_TOLERANCE = timedelta(minutes=5)
"""How far ahead a time may be before it counts as wrong: the clocks of one person's machines differ."""


def format_time(moment: datetime) -> str:
    """``2026-01-08T18:05:30.123456Z``: always UTC, always six digits, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def parse_time(text: object) -> datetime:
    """An aware UTC time from ISO 8601 with date and time of day: ``Z``, any offset, or none (= UTC).

    Raises ``ValueError`` for everything else, a date alone and times outside the years 1 to 9999 included.
    """
    if not isinstance(text, str) or not text.isascii() or len(text) < len("20260108T18"):
        raise ValueError("not a time")
    if "W" in text or text[10 if text[4] == "-" else 8] not in "Tt ":  # fromisoformat takes weeks, and any character
        raise ValueError("not a time")
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is UTC:  # as we write it
            return moment
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("not a time") from None


_SECONDS = {
    "ms": 0.001,
    **dict.fromkeys(("s", "sec", "second"), 1),
    **dict.fromkeys(("m", "min", "minute"), 60),
    **dict.fromkeys(("h", "hr", "hour"), 3600),
    **dict.fromkeys(("d", "day"), 86400),
    **dict.fromkeys(("w", "week"), 604800),
}

LENGTHS = "90s, 15m, 1h30m or 2d"
"""Lengths of time, for a message that says what can be written."""


def length_of_time(text: str, unit: str) -> float:
    """How many of ``unit``, one of ``_SECONDS``, are in ``2h``, ``1h30m``, ``1.5 hours``; a number alone is in it.

    Raises ``ValueError`` for everything else, a number below 0 and one that is not finite included.
    """
    try:
        length = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        import re  # most calls read no length of time, or a number

        part, typed = rf"([0-9.]+)\s*({'|'.join(_SECONDS)})s?(?![a-z])\s*", text.strip().lower()
        if not re.fullmatch(f"(?>{part})+", typed):  # atomic, since "ms" would be read in two ways, over and over
            raise
        length = sum(float(number) * _SECONDS[word] for number, word in re.findall(part, typed)) / _SECONDS[unit]
    if not 0 <= length < float("inf"):
        raise ValueError(text)
    return length


def are_canonical_times(texts: list[str]) -> bool:
    """Whether each text is a time in exactly the form that is written.

    Hundreds are checked at once, so the work is done in C. Raises ``TypeError`` if one is not a string.
    """
    if "\n".join(texts).translate(_DIGITS) != "\n".join([_SHAPE] * len(texts)):  # Python reads other separators too
        return False
    try:
        return all(map(datetime.fromisoformat, texts))
    except ValueError:
        return False


_SHAPE = "0000-00-00T00:00:00.000000Z"
_DIGITS = str.maketrans("0123456789-T:.Z\n", "0000000000-T:.Z\n")  # all of them: a character that is missing costs more


def compact_timestamp(moment: datetime) -> str:
    """The time in the form of generated ids: ``20260108-180530``, UTC."""
    return moment.astimezone(UTC).strftime("%Y%m%d-%H%M%S")


def is_ahead(moment: datetime, now: datetime) -> bool:
    """Whether ``moment`` is so far in the future that a clock was wrong."""
    return moment - now > FUTURE_TOLERANCE


def is_within(span: timedelta, moment: datetime, now: datetime) -> bool:
    """Whether less than ``span`` has passed since ``moment``, and no clock was wrong."""
    return now - moment < span and not is_ahead(moment, now)


def seconds_between(earlier: datetime, later: datetime) -> float:
    """The seconds from ``earlier`` to ``later``, never negative: a clock may be set back."""
    return max(0.0, (later - earlier).total_seconds())
