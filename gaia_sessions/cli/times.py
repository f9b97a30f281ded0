"""The times people type: ``2h``, ``yesterday``'s date, a stamp from a log. The one door to dateutil."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

from gaia_sessions.errors import UsageError
from gaia_sessions.session.clock import utc_now

_DATE_START = re.compile(r"\d{4}-?\d\d-?\d\d|\d\d:\d\d", re.ASCII)

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Time(click.ParamType[datetime]):
    """``90m`` (so long ago) or a date and time; without an offset it is local."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, _ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        text = str(value).strip()
        try:
            return _time_ago(text) if text[-1:] in _UNITS and text[:-1].isdecimal() else _parse_time(text)
        except (ValueError, OverflowError):
            message = f"{_option_name(param)} {text!r} is not a time"
            raise UsageError(message, "use for example 2h or 3d (ago), 2026-01-08 or 2026-01-08T18:05") from None


class Hours(click.ParamType[float]):
    """A number of hours, or a length of time with its unit: ``24``, ``90m``, ``2h``, ``7d``."""

    name = "hours"

    def convert(self, value: object, param: click.Parameter | None, _ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            if text[-1:] not in _UNITS:
                return float(text)
            return timedelta(**{_UNITS[text[-1]]: float(text[:-1])}) / timedelta(hours=1)
        except (ValueError, OverflowError):
            message = f"{_option_name(param)} {text!r} is not a length of time"
            raise UsageError(message, "use for example 24 (hours), 90m, 2h or 7d") from None


def _option_name(param: click.Parameter | None) -> str:
    return param.opts[0] if param else "time"


def _time_ago(text: str) -> datetime:
    return utc_now() - timedelta(**{_UNITS[text[-1]]: int(text[:-1])})


def _parse_time(text: str) -> datetime:
    if not _DATE_START.match(text):  # dateutil would make something of nearly anything
        raise ValueError(text)
    from dateutil import parser, tz

    midnight = datetime.now(tz.tzlocal()).replace(hour=0, minute=0, second=0, microsecond=0)
    return parser.parse(text, default=midnight).astimezone(UTC)


TIME = Time()
HOURS = Hours()
