"""Times as a record stores them, and lengths of time as people write them.

Modules that a hook loads import the classes of ``datetime`` from here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import UTC as UTC  # noqa: PLC0414  # other modules import these from here
    from datetime import datetime as datetime  # noqa: PLC0414  # see above
    from datetime import timedelta as timedelta  # noqa: PLC0414  # see above
else:
    try:  # importing the module ``datetime`` costs a seventh of a bare start before Python 3.12
        from _datetime import datetime, timedelta, timezone
    except ImportError:
        from datetime import datetime, timedelta, timezone
    UTC = timezone.utc  # noqa: UP017  # the module in C has no other name for it

FUTURE_TOLERANCE = timedelta(minutes=5)
"""A time further ahead counts as wrong; the clocks of one person's machines differ by less."""


def format_time(moment: datetime) -> str:
    """Writes ``2026-01-08T18:05:30.123456Z``: always UTC with six digits, so text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def parse_time(text: object) -> datetime:
    """Reads an ISO 8601 date with a time of day; a time without an offset is in UTC. Raises ``ValueError``."""
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
"""Examples of lengths of time, for messages."""


def length_of_time(text: str, unit: str) -> float:
    """Reads ``2h``, ``1h30m`` or a plain number as a number of ``unit``; else raises ``ValueError``."""
    try:
        length = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        import re  # most calls read no length of time, or a number

        part, typed = rf"([0-9.]+)\s*({'|'.join(_SECONDS)})s?(?![a-z])\s*", text.strip().lower()
        if not re.fullmatch(f"(?>{part})+", typed):  # atomic: "ms" has two readings, which would multiply
            raise
        length = sum(float(number) * _SECONDS[word] for number, word in re.findall(part, typed)) / _SECONDS[unit]
    if not 0 <= length < float("inf"):
        raise ValueError(text)
    return length


def are_canonical_times(texts: list[str]) -> bool:
    """Whether each text is a time in exactly the form that we write."""
    # Records have hundreds of times: one check of them all runs in C.
    if "\n".join(texts).translate(_DIGITS) != "\n".join([_SHAPE] * len(texts)):  # Python reads other separators too
        return False
    try:
        return all(map(datetime.fromisoformat, texts))
    except ValueError:
        return False


_SHAPE = "0000-00-00T00:00:00.000000Z"
_DIGITS = str.maketrans("0123456789-T:.Z\n", "0000000000-T:.Z\n")  # a character that is not in the table costs more


def compact_timestamp(moment: datetime) -> str:
    """Writes the time as generated IDs have it: ``20260108-180530``, UTC."""
    return moment.astimezone(UTC).strftime("%Y%m%d-%H%M%S")


def is_ahead(moment: datetime, now: datetime) -> bool:
    """Whether ``moment`` is so far in the future that a clock was wrong."""
    return moment - now > FUTURE_TOLERANCE


def is_within(span: timedelta, moment: datetime, now: datetime) -> bool:
    """Whether less than ``span`` has passed since ``moment``, and no clock was wrong."""
    return now - moment < span and not is_ahead(moment, now)


def seconds_between(earlier: datetime, later: datetime) -> float:
    """Returns the seconds from ``earlier`` to ``later``, never negative: a clock may be set back."""
    return max(0.0, (later - earlier).total_seconds())
