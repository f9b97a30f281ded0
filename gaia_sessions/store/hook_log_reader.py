"""The lines of the logs of hooks, read back when somebody asks what happened.

Owns which logs are read, and what a line of this version or an earlier one means. A line that cannot be read is no
error. Must never write; no hook loads it. Of hosts it knows one name of an event, which lines of earlier versions have.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.events import SESSION_END

from .directory import Directory
from .hook_log import log_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json

    HostSession = tuple[str, str]
    """A main session: the name of its host, and the id that the host gave it."""

LOG_NAMES = ("hook", "inbox", "pre_delegate", "subagent_stop")
"""The logs that are read: others may keep files in the same folder."""

_MAX_READ_BYTES = 8 << 20
_SUFFIXES = (".log.old", ".log")
_DEFAULT_HOST, _CLAUDE_SESSION_END = "claude-code", "SessionEnd"
"""Lines of earlier versions name neither the host nor a kind of event: they are of this host, which called it so."""


def read_lines(root: str) -> Iterator[dict[str, Json]]:
    """The lines of every log that can be read, one log after the other, but for those that hold no JSON object."""
    for name in LOG_NAMES:
        yield from _read_log(root, name)


def line_time(line: Mapping[str, Json]) -> str | None:
    """When the line was written, as ``format_time`` has it; None for a line without a time."""
    try:
        return format_time(parse_time(line.get("at")))
    except ValueError:
        return None


def ended_host_sessions(root: str) -> dict[HostSession, datetime]:
    """When each main session ended whose last event was its end; their ids are shortened as in the lines.

    What follows in the same log happened later, whatever its time: clocks are set back.
    """
    last_events: dict[HostSession, tuple[datetime, bool]] = {}
    for name in LOG_NAMES:
        for host_session, event in _last_events(root, name).items():
            last_events[host_session] = max(last_events.get(host_session, event), event)
    return {host_session: at for host_session, (at, is_end) in last_events.items() if is_end}


def _last_events(root: str, name: str) -> dict[HostSession, tuple[datetime, bool]]:
    """When the last event of each main session in the log ``name`` came, and whether that was its end."""
    last: dict[HostSession, tuple[datetime, bool]] = {}
    for line in _read_log(root, name):
        host, session = line.get("host", _DEFAULT_HOST), line.get("host_session_id", line.get("session_id"))
        try:
            event = parse_time(line.get("at")), _is_session_end(line)
        except ValueError:
            continue
        if isinstance(host, str) and isinstance(session, str):
            last[host, session] = event
    return last


def _read_log(root: str, name: str) -> Iterator[dict[str, Json]]:
    try:
        folder = Directory.at(log_folder(root))
    except OSError:
        return
    with folder:
        for ending in _SUFFIXES:
            yield from _read_file(folder, name + ending)


def _is_session_end(line: Mapping[str, Json]) -> bool:
    """By the kinds of its events; lines of earlier versions have only the name that Claude Code gives the event."""
    kinds = line.get("kinds")
    return SESSION_END in kinds if isinstance(kinds, list) else line.get("event") == _CLAUDE_SESSION_END


def _read_file(folder: Directory, name: str) -> Iterator[dict[str, Json]]:
    try:
        data = folder.read(name, _MAX_READ_BYTES)
    except OSError:
        return
    for line in data.splitlines():
        try:
            yield strict.load_object(line)
        except InvalidInput:
            continue
