"""The log of what hooks and the inbox did: one line per call, never the text of a prompt, never the environment.

A lost line is no error: nothing here may make a call fail. Every call of a hook loads this module, so it imports
the module ``root`` only if it makes a root or a folder.
"""

from __future__ import annotations

import errno
import os

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.system.project_root import check_links, claude_folder

from .directory import Directory, open_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event

MAX_LOG_BYTES = 1 << 20

MAX_LOGGED_ID_LENGTH = 128
"""The longest ID in a line, in characters."""

_ATTEMPTS = 1000
"""How often a log is opened while other processes rotate it."""

_PAYLOAD_KEYS = ("session_id", "agent_id", "tool_use_id", "tool_name", "agent_type")


def log_folder(root: str) -> str:
    """Returns ``.claude/logs`` for a root that is a project's ``.claude/session``, otherwise ``.logs`` in the root."""
    claude = claude_folder(root)
    if claude:
        return os.path.join(claude, "logs")
    from .root import LOGS

    return os.path.join(root, LOGS)


def append_line(root: str, name: str, line: dict[str, object]) -> None:
    """Appends ``line`` to the log ``name``, unless the system refuses."""
    try:
        with _open_folder(root) as folder:
            append_log_line(folder, f"{name}.log", strict.dump_line(line), MAX_LOG_BYTES)
    except (OSError, InvalidInput, StoreFailure):
        return


def append_log_line(folder: Directory, name: str, line: bytes, limit: int) -> None:
    """Appends one line to a log, unsynced, and rotates a log that is over ``limit`` bytes or in a snapshot."""
    for _ in range(_ATTEMPTS):  # again if another process has just renamed the log, so that no line is lost
        fd, found = open_private(folder.fd, name, os.O_WRONLY | os.O_APPEND)
        try:
            is_rotated = (found.st_size >= limit or found.st_nlink > 1) and _rotate(folder, name, fd, found)
            if not is_rotated and found.st_nlink == 1:
                os.write(fd, line)
                return
        finally:
            os.close(fd)
    raise OSError(errno.EBUSY, "another process is rotating it")


def _rotate(folder: Directory, name: str, fd: int, opened: os.stat_result) -> bool:
    """Renames the open log to ``.old``; returns whether we or another process renamed it."""
    from . import locks

    # The lock is on the log itself. Without it, the second of two renames would replace the old file with the new log.
    if not locks.lock_open_file(fd):
        return False  # while another process rotates the log, a line still goes to the full file
    try:
        if folder.is_at(name, opened):
            os.rename(name, name + ".old", src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    finally:
        locks.unlock_open_file(fd)
    return True


def payload_fields(payload: Mapping[str, Json], event: str) -> dict[str, object]:
    """Returns the event of ``payload`` and the IDs in it, by which a call can be found."""
    fields: dict[str, object] = {} if payload.get(event) is None else {"event": shorten_id(payload[event])}
    return fields | {name: shorten_id(payload[name]) for name in _PAYLOAD_KEYS if name in payload}


def event_fields(events: list[Event]) -> dict[str, object]:
    """Returns the ID of the conversation and the kinds of ``events``; an empty dict if there are no events."""
    if not events:
        return {}
    return {"host_session_id": shorten_id(events[0]["host_session_id"]), "kinds": [event["kind"] for event in events]}


def shorten_id(value: object) -> str:
    """Returns ``value`` as a line stores it: an ID of a host can be any text of any length."""
    return str(value)[:MAX_LOGGED_ID_LENGTH]


def _open_folder(root: str) -> Directory:
    above, name = os.path.split(log_folder(root))
    if above == root:
        from .root import make_root

        with make_root(root, durable=False) as root_directory:
            return root_directory.make(name)
    check_links(above)
    with Directory.at(above) as directory:  # it must exist: a log line makes no ``.claude``
        if not directory.has(name):
            _make_ignored_folder(directory, name)
        return directory.below(name)


def _make_ignored_folder(parent: Directory, name: str) -> None:
    """Makes the folder ``name`` in ``parent``, with its .gitignore from the first moment, unless it exists."""
    from . import atomic
    from .root import ignore_all

    temporary_name = f".{atomic.with_random_suffix(name)}.tmp"
    with parent.make(temporary_name) as folder:
        ignore_all(folder)
    try:
        os.rename(temporary_name, name, src_dir_fd=parent.fd, dst_dir_fd=parent.fd)
    except OSError:  # another process just made it
        atomic.discard_folder(parent, temporary_name)
