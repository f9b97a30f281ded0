"""What the log says: which calls there were, and whose sessions were heard to end.

Owns reading the lines that ``log`` wrote, of this version or an earlier one. Finding one unreadable is no error.
Never loaded by a hook, which only writes.
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
    """A main session: which host's, and the id that the host gave it."""

LOG_NAMES = ("hook", "inbox", "pre_delegate", "subagent_stop")
"""The names of ours: the folder of the logs is not ours alone."""

_MAX_LOG_BYTES = 8 << 20
_SUFFIXES = (".log.old", ".log")
_DEFAULT_HOST, _CLAUDE_SESSION_END = "claude-code", "SessionEnd"
"""Whose lines those of earlier versions are, which name no host and say nothing in our words."""


def read_lines(root: str) -> Iterator[dict[str, Json]]:
    """The lines of every log of ours that can be read, one log after the other; what is no object is passed over."""
    for name in LOG_NAMES:
        yield from _read_log(root, name)


def line_time(line: Mapping[str, Json]) -> str | None:
    """When the line was written, in the form in which we write times; None for one that says no time."""
    try:
        return format_time(parse_time(line.get("at")))
    except ValueError:
        return None


def ended_host_sessions(root: str) -> dict[HostSession, datetime]:
    """When main sessions ended of which nothing was heard after that; their ids as lines have them, cut.

    What came after it in the same log was heard later, whatever its time: clocks are set back.
    """
    last_events: dict[HostSession, tuple[datetime, bool]] = {}
    for name in LOG_NAMES:
        for host_session, event in _last_events(root, name).items():
            last_events[host_session] = max(last_events.get(host_session, event), event)
    return {host_session: at for host_session, (at, is_end) in last_events.items() if is_end}


def _last_events(root: str, name: str) -> dict[HostSession, tuple[datetime, bool]]:
    """When each main session was heard of last in the log ``name``, and whether that was its end."""
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
    """By our own word; lines of earlier versions have only that of Claude Code."""
    kinds = line.get("kinds")
    return SESSION_END in kinds if isinstance(kinds, list) else line.get("event") == _CLAUDE_SESSION_END


def _read_file(folder: Directory, name: str) -> Iterator[dict[str, Json]]:
    try:
        data = folder.read(name, _MAX_LOG_BYTES)
    except OSError:
        return
    for line in data.splitlines():
        try:
            yield strict.load_object(line)
        except InvalidInput:
            continue
