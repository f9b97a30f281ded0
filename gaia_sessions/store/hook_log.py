"""The log of what hooks and the inbox did: a line per call, written when nobody watches and read when somebody asks.

Owns where the logs are, what a line says (time, event, ids, host, kinds, decision, milliseconds; never text of a
prompt, never the environment), and how lines are read back, of this version or an earlier one. A line that is lost or
cannot be read is no error. A hook only writes.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.system.project_root import claude_folder

from . import atomic
from . import root as roots
from .directory import Directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    HostSession = tuple[str, str]
    """A main session: the name of its host, and the id that the host gave it."""

MAX_LOG_BYTES = 1 << 20

MAX_LOGGED_ID_LENGTH = 128
"""Characters that a line keeps of an id."""

LOG_NAMES = ("hook", "inbox", "pre_delegate", "subagent_stop")
"""The logs that are read: others may keep files in the same folder."""

_MAX_READ_BYTES = 8 << 20
_SUFFIXES = (".log.old", ".log")
_PAYLOAD_KEYS = ("session_id", "agent_id", "tool_use_id", "tool_name", "agent_type")
_DEFAULT_HOST, _CLAUDE_SESSION_END = "claude-code", "SessionEnd"
"""Lines of earlier versions name neither the host nor a kind of event: they are of this host, which called it so."""


def log_folder(root: str) -> str:
    """``.claude/logs`` for a root that is a project's ``.claude/session``, else ``.logs`` in the root."""
    claude = claude_folder(root)
    return os.path.join(claude, "logs") if claude else os.path.join(root, roots.LOGS)


def append_line(root: str, name: str, line: dict[str, object]) -> None:
    """Appends ``line`` to the log ``name``, unless the system refuses."""
    try:
        with _open_folder(root) as folder:
            atomic.append_log_line(folder, f"{name}.log", strict.dump_line(line), MAX_LOG_BYTES)
    except (OSError, InvalidInput, StoreFailure):
        return


def payload_fields(payload: Mapping[str, Json], event: str) -> dict[str, object]:
    """What the host calls the event, under the key ``event``, and the ids in its payload, to find the call by."""
    fields: dict[str, object] = {} if payload.get(event) is None else {"event": shorten_id(payload[event])}
    return fields | {name: shorten_id(payload[name]) for name in _PAYLOAD_KEYS if name in payload}


def event_fields(events: list[Event]) -> dict[str, object]:
    """The host's session as runs have it, and the kinds of the events; nothing for no events."""
    if not events:
        return {}
    return {"host_session_id": shorten_id(events[0]["host_session_id"]), "kinds": [event["kind"] for event in events]}


def shorten_id(value: object) -> str:
    """``value`` as a line keeps it: an id of a host can be any text of any length."""
    return str(value)[:MAX_LOGGED_ID_LENGTH]


def _open_folder(root: str) -> Directory:
    above, name = os.path.split(log_folder(root))
    if above == root:
        from .root_ownership import make_root

        with make_root(root, durable=False) as root_directory:
            return root_directory.make(name)
    with Directory.at(above) as directory:  # a line is no reason to make the folder of a project
        if not directory.has(name):
            _make_ignored_folder(directory, name)
        return directory.below(name)


def _make_ignored_folder(parent: Directory, name: str) -> None:
    """A folder ``name`` in ``parent``, kept out of version control from its first moment, unless there is one."""
    temporary_name = f".{atomic.with_random_suffix(name)}.tmp"
    with parent.make(temporary_name) as folder:
        roots.write_ownership_mark(folder)
    try:
        os.rename(temporary_name, name, src_dir_fd=parent.fd, dst_dir_fd=parent.fd)
    except OSError:  # somebody else just made it
        atomic.discard_folder(parent, temporary_name)


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
    from gaia_sessions.session.events import SESSION_END  # no hook reads, and many have not loaded it

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
