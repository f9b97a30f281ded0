"""Claude Code's interruptions: agents that were stopped although nobody gave up their work.
As seen in runs of 2.1.197 and 2.1.330. Only the end of a transcript is read.
"""

from __future__ import annotations

import os

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.agent_files import agent_of, last_transcript_line, member_of, newest_names, transcript_of
from gaia_sessions.hosts.payload import object_in, object_in_bytes
from gaia_sessions.session.clock import format_time, parse_time, timedelta
from gaia_sessions.session.host_events import NOTIFICATION
from gaia_sessions.session.run_ends import is_before
from gaia_sessions.session.schema import (
    CONNECTION_LOST,
    INTERRUPTED,
    KILLED,
    OVERLOADED,
    STOPPED_BY_USER,
    STOPPED_MEANWHILE,
    USAGE_LIMIT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, tzinfo

    from gaia_sessions.hosts.payload import HookPayload, Payload
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.run_ends import ReportedEnd
    from gaia_sessions.session.schema import Run

_WORDS = (
    (USAGE_LIMIT, ("you've hit your ", "request rejected (429)")),
    (OVERLOADED, (" 529 ", "overloaded")),
    (CONNECTION_LOST, ("connection dropped", "unable to connect to api", "connection error")),
)
"""The words of interruptions, as captures of 2.1.197 and 2.1.330 have them. A failure with other words is none."""

_KINDS = {"rate_limit": (USAGE_LIMIT,), "server_error": (OVERLOADED, CONNECTION_LOST)}
"""What the ``error`` of a failure's payload can mean."""

_SUMMARY, _SUMMARY_END = 'Agent "', '" failed: '
_EARLY_END = "Agent terminated early due to an API error: "
_CLIENT_WORDS = ("API Error: ", "You've hit your ")
"""The beginnings of texts of the client itself. An agent may write the same words elsewhere."""

_RESET = (
    r"resets (?:(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2}), )?"
    r"(?P<hour>1[0-2]|[1-9])(?::(?P<minute>[0-5]\d))?(?P<half>[ap]m)"
    r"(?: \((?P<zone>[^)]*)\))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_JUST_PAST = timedelta(minutes=5)
"""A time without a date is not tomorrow's if it passed less than this ago."""

_LONGEST_LIMIT = timedelta(days=366)
"""A later reset is ignored: work would wait for it, and stay on disk, for ever."""

_INTERRUPTED_LINE = "[Request interrupted by user"
_TYPE_OF_USER = "user"
_STOPPED_KEY, _STOPPED_IN_WORDS = "stoppedByUser", "stopped by the user"
_NEWEST_TRANSCRIPTS = 20
_PREFIX, _SUFFIX, _META_SUFFIX = "agent-", ".jsonl", ".meta.json"


def keys_of_failure(error: str | None, text: str, transcript: Json, now: datetime) -> dict[str, object]:
    """Returns what a failure's event says of its interruption and the reset of its limit; empty for a real failure."""
    interruption = _interruption_of(error, text)
    if interruption != USAGE_LIMIT:
        return {"interruption": interruption} if interruption else {}
    return {"interruption": interruption, "paused_until": reset_time(text, transcript, now)}


def _interruption_of(error: str | None, text: str) -> str | None:
    """Returns the interruption; None for a real failure. A rate limit is an interruption, whatever its text says."""
    if error == "rate_limit":
        return USAGE_LIMIT
    if error is None and not _is_of_client(text):
        return None
    possible = _KINDS.get(error, ()) if error else tuple(name for name, _ in _WORDS)
    folded = text.casefold()
    return next((name for name, words in _WORDS if name in possible and any(word in folded for word in words)), None)


def _is_of_client(text: str) -> bool:
    if text.startswith(_SUMMARY):
        text = text.partition(_SUMMARY_END)[2]
    return text.removeprefix(_EARLY_END).startswith(_CLIENT_WORDS)


def reset_time(text: str, transcript: Json, now: datetime) -> str | None:
    """Returns when the limit is reset: exactly by the last line of the transcript, else to the minute by ``text``."""
    exact = _moment(_reset_in(object_in_bytes(last_transcript_line(CLAUDE_CODE, transcript))))
    moment = exact if exact and abs(exact - now) < _LONGEST_LIMIT else _stated_time(text, now)
    return format_time(moment) if moment else None


def failed_delegation(payload: HookPayload, tool_use_id: str, agent_name: str) -> Event:
    """Returns the failure of a delegation: the user interrupted it, or its agent failed or was interrupted."""
    path, text = payload.raw.get("transcript_path"), payload.text("error")
    agent = agent_of(CLAUDE_CODE, path, tool_use_id)
    keys = {"tool_use_id": tool_use_id, "host_agent_id": agent, "agent_name": agent_name}
    if payload.raw.get("is_interrupt") is True:
        return payload.failure(text, **keys, interrupted=True, interruption=INTERRUPTED)
    transcript = transcript_of(path, agent) if agent else None
    return payload.failure(text, **keys, **keys_of_failure(None, text, transcript, payload.now))


def events_before_prompt(payload: HookPayload, folder: str) -> list[Event]:
    """Returns the interruptions of agents in ``folder``."""
    # No event reports Esc, and a prompt is the first event after it. The last line of a transcript is its only trace.
    found = interrupted_agents(folder)
    told = [payload.event(NOTIFICATION, host_agent_id=agent, **keys) for agent, keys in found]
    if _STOPPED_IN_WORDS not in payload.text("prompt"):
        return told
    stopped = _stopped_while_they_waited(folder)
    return told + [
        payload.event(NOTIFICATION, host_agent_id=agent, waits=True, interruption=STOPPED_BY_USER) for agent in stopped
    ]


def _stopped_while_they_waited(folder: str) -> Iterator[str]:
    """Yields the newest agents that the user stopped."""
    # An agent that waited for its own work has no line about the stop in its transcript (2.1.332).
    for name in newest_names(CLAUDE_CODE, folder, _NEWEST_TRANSCRIPTS, _PREFIX, _META_SUFFIX):
        if member_of(CLAUDE_CODE, os.path.join(folder, name), _STOPPED_KEY) is True:
            yield name.removeprefix(_PREFIX).removesuffix(_META_SUFFIX)


def interrupted_agents(folder: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the newest agents in ``folder`` whose transcripts end with an interruption, each with its event's keys."""
    for name in newest_names(CLAUDE_CODE, folder, _NEWEST_TRANSCRIPTS, _PREFIX, _SUFFIX):
        keys = in_transcript(os.path.join(folder, name))
        if keys:
            yield name.removeprefix(_PREFIX).removesuffix(_SUFFIX), keys


def end_in_transcript(run: Run) -> ReportedEnd | None:
    """Returns the end of a run whose transcript ends with an interruption; None if that was before the run."""
    path = run.get("transcript_path", "")
    # The transcript of an agent that waited for its own work has no line about the user's stop. The file beside it has.
    if "own_work" in run and _is_stopped_by_user(path):
        return KILLED, {"detail": STOPPED_MEANWHILE, "interruption": STOPPED_BY_USER}
    keys = in_transcript(path)
    if not keys or is_before(keys.get("interrupted_at"), run):
        return None
    return KILLED, {"detail": "interrupted", "interruption": keys["interruption"]}


def in_transcript(path: str) -> dict[str, str]:
    """Returns the interruption at the end of the transcript, as keys of an event; empty for any other end."""
    line = object_in_bytes(last_transcript_line(CLAUDE_CODE, path))
    content = object_in(line, "message").get("content")
    texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else [content]
    is_said = any(isinstance(text, str) and text.startswith(_INTERRUPTED_LINE) for text in texts)
    if not is_said or line.get("type") != _TYPE_OF_USER:
        return {}
    why = STOPPED_BY_USER if _is_stopped_by_user(path) else INTERRUPTED
    try:
        return {"interruption": why, "interrupted_at": format_time(parse_time(line.get("timestamp")))}
    except ValueError:
        return {"interruption": why}


def _is_stopped_by_user(transcript: str) -> bool:
    return member_of(CLAUDE_CODE, transcript.removesuffix(_SUFFIX) + _META_SUFFIX, _STOPPED_KEY) is True


def _stated_time(text: str, now: datetime) -> datetime | None:
    import re  # expensive for a hook, and few failures name a time

    found = re.search(_RESET, text)
    zone = _zone(found["zone"]) if found else None
    if not found or zone is None:
        return None
    hour = int(found["hour"]) % 12 + (12 if found["half"] == "pm" else 0)
    try:
        local = now.astimezone(zone).replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        moments = _dates(local, found["month"], int(found["day"])) if found["month"] else _next_days(local)
        past = timedelta(days=180) if found["month"] else _JUST_PAST
        return next((moment for moment in moments if moment > now - past), None)
    except (ValueError, OverflowError):
        return None


def _next_days(local: datetime) -> Iterator[datetime]:
    """Yields this time of day yesterday, today and tomorrow: both moments if clocks are set back over it."""
    for days in (-1, 0, 1):
        for fold in (0, 1):
            yield (local + timedelta(days=days)).replace(fold=fold)


def _dates(local: datetime, month: str, day: int) -> Iterator[datetime]:
    """Yields this time on that day of last year, this year and next year, if the year has the day."""
    for year in (local.year - 1, local.year, local.year + 1):
        try:
            yield local.replace(year=year, month=_MONTHS.index(month) + 1, day=day)
        except ValueError:  # 29 February
            continue


def _zone(name: str | None) -> tzinfo | None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _reset_in(line: Payload) -> object:
    """Returns when the limit is reset, in seconds since 1970, if the client's own line says it; else None."""
    limit = object_in(object_in(line, "apiErrorParams"), "rate_limit_info") or object_in(line, "quotaLimits")
    return limit.get("resetsAt")


def _moment(seconds: object) -> datetime | None:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC) if type(seconds) in (int, float) else None  # type: ignore[arg-type]  # just checked
    except (ValueError, OverflowError, OSError):
        return None
