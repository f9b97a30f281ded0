"""The files and folders in a root whose names only the store uses, with their modes and owners.

The walk follows no link, and skips files and folders of other programs.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.store import documents, inbox, index, index_repair, locks, reading
from gaia_sessions.store import root as roots
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.session_directory import id_in_transit
from gaia_sessions.system.project_root import claude_folder

_FOLDER = 0o700
_FILE = 0o600

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HANDLE = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeEntry(NamedTuple):
    """A directory or a plain file. ``mode``: its permissions; ``changed``: seconds since the epoch."""

    path: str
    is_folder: bool
    mode: int
    owner: int
    changed: float


def expected_mode(root: str, path: str, mode: int, *, is_folder: bool) -> int:
    """Returns the permissions that ``path``, which has ``mode``, should have: none for group and others."""
    # Locks are empty, so others can read them; outside of projects, others can have files in these folders.
    private = _FOLDER if is_folder else _FILE
    top, *below = os.path.relpath(path, root).split(os.sep)
    is_open = top == roots.LOCKS if below else top in (os.curdir, *_IS_OURS_IN) and claude_folder(root) is None
    return mode | private if is_open else private


def walk(root: str) -> list[TreeEntry]:
    """Returns ``root`` and our plain files and folders below it, without links and files that disappear meanwhile."""
    found = [_entry(root, os.stat(root))]
    for folder, name, fd in _own_names(root):
        status = _status(name, fd)
        if status and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
            found.append(_entry(os.path.join(folder, name), status))
    return found


def make_private(root: str, owner: int) -> int:
    """Corrects the modes of the entries of ``owner`` in ``root``; returns how many modes were wrong."""
    count = 0
    found = os.stat(root)
    mode = stat.S_IMODE(found.st_mode)
    wanted = expected_mode(root, root, mode, is_folder=True)
    if found.st_uid == owner and mode != wanted:
        os.chmod(root, wanted)
        count += 1
    for folder, name, fd in _own_names(root):
        count += _make_private(root, os.path.join(folder, name), fd, owner)
    return count


_IS_OURS_IN: dict[str, Callable[[str], object]] = {
    roots.LOCKS: lambda name: locks.is_name(name) or name == index.LOCK,
    roots.STAGE: id_in_transit,
    roots.TRASH: id_in_transit,
    roots.INBOX: lambda name: inbox.is_event_name(name) or inbox.is_unfinished(name),
    roots.INDEX: index_repair.is_own_name,
    roots.SHARED: documents.is_own_name,
}
"""Says for each folder beside the sessions which names only the store uses. Everything below such a name is ours."""

_IN_ROOT = frozenset([roots.STATS, *_IS_OURS_IN])


def _own_names(root: str) -> Iterator[tuple[str, str, int]]:
    """Yields each name that only the store uses, the path of its folder, and the open folder; folders come first."""
    # The slash at the end follows a root that is a link.
    for folder, folders, files, fd in os.fwalk(os.path.join(root, "")):
        is_ours = _choose(root, os.path.relpath(folder, root), fd)
        folders[:] = filter(is_ours, folders)
        yield from ((folder, name, fd) for name in (*folders, *filter(is_ours, files)))


def _choose(root: str, place: str, fd: int) -> Callable[[str], object]:
    """Returns which names in the folder ``place`` of ``root`` belong to the store."""
    top, *below = place.split(os.sep)
    if top == os.curdir:
        return lambda name: name in _IN_ROOT or roots.is_unfinished(name) or _is_session(root, name, fd)
    if below:
        return lambda _: top in _IS_OURS_IN
    return _IS_OURS_IN.get(top, reading.is_own_name)


def _is_session(root: str, name: str, fd: int) -> bool:
    """Returns whether the folder ``name`` has a record; outside of projects, a readable one."""
    folder = Directory(fd, root)
    if not is_agent_id(name) or not reading.has_record(folder, name):
        return False
    if claude_folder(root) is not None:
        return True
    try:
        reading.read(folder, name)
    except SessionsError:
        return False
    return True


def _make_private(root: str, path: str, folder: int, owner: int) -> bool:
    name = os.path.basename(path)
    try:
        handle = os.open(name, _HANDLE, dir_fd=folder)
    except OSError:
        return False
    try:
        status = os.fstat(handle)
        mode, is_folder = stat.S_IMODE(status.st_mode), stat.S_ISDIR(status.st_mode)
        plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1  # a second link can be another's file
        wanted = expected_mode(root, path, mode, is_folder=is_folder)
        if status.st_uid != owner or not (plain or is_folder) or mode == wanted:
            return False
        _set_mode(handle, name, folder, wanted)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _set_mode(handle: int, name: str, folder: int, mode: int) -> None:
    """Changes the mode of the opened file, even if it was renamed. Without ``/proc``, it at least follows no link."""
    if hasattr(os, "O_PATH"):
        os.chmod(f"/proc/self/fd/{handle}", mode)
    else:
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)


def _entry(path: str, status: os.stat_result) -> TreeEntry:
    mode = stat.S_IMODE(status.st_mode)
    return TreeEntry(path, stat.S_ISDIR(status.st_mode), mode, status.st_uid, status.st_mtime)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
