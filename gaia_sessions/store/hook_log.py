"""The log of what hooks and the inbox did: a line per call, written when nobody watches.

Owns where the logs are and what a line says: time, event, ids, host, kinds, decision, milliseconds; never text of a
prompt, never the environment. A line that is lost is no error. How lines are read back is in ``hook_log_reader``. Every
call of a hook loads this module, so it loads that of the root only where a root or a folder is made. Must never make a
call fail.
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
"""Characters that a line keeps of an id."""

_ATTEMPTS = 1000
"""How often a log is opened; again where somebody else just made it the old one, or is about to."""

_PAYLOAD_KEYS = ("session_id", "agent_id", "tool_use_id", "tool_name", "agent_type")


def log_folder(root: str) -> str:
    """``.claude/logs`` for a root that is a project's ``.claude/session``, else ``.logs`` in the root."""
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
    """Appends one line to a log, unsynced; raises ``OSError``.

    A log over ``limit`` bytes, or with a second name as in a snapshot, first becomes the one old file. No line is lost
    to another writer that does the same.
    """
    for _ in range(_ATTEMPTS):
        fd, found = open_private(folder.fd, name, os.O_WRONLY | os.O_APPEND)
        try:
            is_rotated = (found.st_size >= limit or found.st_nlink > 1) and _rotate(folder, name, fd, found)
            if not is_rotated and found.st_nlink == 1:
                os.write(fd, line)
                return
        finally:
            os.close(fd)
    raise OSError(errno.EBUSY, "somebody else is making it the old file")


def _rotate(folder: Directory, name: str, fd: int, opened: os.stat_result) -> bool:
    """Whether the log open as ``fd`` has become the old file, renamed here or by somebody else.

    Under a lock on the log itself: of two writers that rename, the second would replace the old file with the new log.
    While somebody else holds that lock, a line still belongs into a full log.
    """
    from . import locks

    if not locks.lock_open_file(fd):
        return False
    try:
        if folder.is_at(name, opened):
            os.rename(name, name + ".old", src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    finally:
        locks.unlock_open_file(fd)
    return True


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
        from .root import make_root

        with make_root(root, durable=False) as root_directory:
            return root_directory.make(name)
    check_links(above)
    with Directory.at(above) as directory:  # a line is no reason to make the folder of a project
        if not directory.has(name):
            _make_ignored_folder(directory, name)
        return directory.below(name)


def _make_ignored_folder(parent: Directory, name: str) -> None:
    """A folder ``name`` in ``parent``, kept out of version control from its first moment, unless there is one."""
    from . import atomic
    from .root import ignore_all

    temporary_name = f".{atomic.with_random_suffix(name)}.tmp"
    with parent.make(temporary_name) as folder:
        ignore_all(folder)
    try:
        os.rename(temporary_name, name, src_dir_fd=parent.fd, dst_dir_fd=parent.fd)
    except OSError:  # somebody else just made it
        atomic.discard_folder(parent, temporary_name)
