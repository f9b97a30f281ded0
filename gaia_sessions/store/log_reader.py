"""What the log says: which calls there were, and whose sessions were heard to end.

Owns reading the lines that ``log`` wrote, of this version or an earlier one. Finding one unreadable is no error.
Never loaded by a hook, which only writes.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import read_time, write_time
from gaia_sessions.session.events import SESSION_END

from .directory import Directory
from .hook_log import folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json

    Whose = tuple[str, str]
    """A main session: which host's, and the id that the host gave it."""

LOGS = ("hook", "inbox", "pre_delegate", "subagent_stop")
"""The names of ours: the folder of the logs is not ours alone."""

_LONGEST = 8 << 20
_ENDINGS = (".log.old", ".log")
_FIRST_HOST, _ITS_SESSION_END = "claude-code", "SessionEnd"
"""Whose lines those of earlier versions are, which name no host and say nothing in our words."""


def lines(root: str) -> Iterator[dict[str, Json]]:
    """The lines of every log of ours that can be read, one log after the other; what is no object is passed over."""
    for name in LOGS:
        yield from _lines_of(root, name)


def time_of(line: Mapping[str, Json]) -> str | None:
    """When the line was written, in the form in which we write times; None for one that says no time."""
    try:
        return write_time(read_time(line.get("at")))
    except ValueError:
        return None


def sessions_over(root: str) -> dict[Whose, datetime]:
    """When main sessions ended of which nothing was heard after that; their ids as lines have them, cut.

    What came after it in the same log was heard later, whatever its time: clocks are set back.
    """
    last: dict[Whose, tuple[datetime, bool]] = {}
    for name in LOGS:
        for whose, heard in _last_heard(root, name).items():
            last[whose] = max(last.get(whose, heard), heard)
    return {whose: at for whose, (at, over) in last.items() if over}


def _last_heard(root: str, name: str) -> dict[Whose, tuple[datetime, bool]]:
    """When each main session was heard of last in the log ``name``, and whether that was its end."""
    last: dict[Whose, tuple[datetime, bool]] = {}
    for line in _lines_of(root, name):
        host, session = line.get("host", _FIRST_HOST), line.get("host_session_id", line.get("session_id"))
        try:
            heard = read_time(line.get("at")), _is_session_end(line)
        except ValueError:
            continue
        if isinstance(host, str) and isinstance(session, str):
            last[host, session] = heard
    return last


def _lines_of(root: str, name: str) -> Iterator[dict[str, Json]]:
    try:
        folder = Directory.at(folder_of(root))
    except OSError:
        return
    with folder:
        for ending in _ENDINGS:
            yield from _lines_in(folder, name + ending)


def _is_session_end(line: Mapping[str, Json]) -> bool:
    """By our own word; lines of earlier versions have only that of Claude Code."""
    kinds = line.get("kinds")
    return SESSION_END in kinds if isinstance(kinds, list) else line.get("event") == _ITS_SESSION_END


def _lines_in(folder: Directory, name: str) -> Iterator[dict[str, Json]]:
    try:
        data = folder.read(name, _LONGEST)
    except OSError:
        return
    for line in data.splitlines():
        try:
            yield strict.load_object(line)
        except InvalidInput:
            continue
