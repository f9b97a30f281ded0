"""The files and folders of a root, with their modes and owners.

Owns the walk, which follows no link, and the only change of modes: entries of the owner become private.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

USER_FILE = ".config.toml"
"""The settings in a root outside a project, which the user writes with any mode."""

_FOLDER = 0o700
_FILE = 0o600

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HANDLE = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeEntry(NamedTuple):
    """A directory or a plain file. mode: its permissions; changed: seconds since the epoch."""

    path: str
    is_folder: bool
    mode: int
    owner: int
    changed: float

    @property
    def expected_mode(self) -> int:
        """The permissions that the entry should have."""
        return _FOLDER if self.is_folder else _FILE


def is_user_file(root: str, path: str) -> bool:
    """Whether ``path`` is the settings file that the user writes in ``root``."""
    return path == os.path.join(root, USER_FILE)


def walk(root: str) -> list[TreeEntry]:
    """``root`` and the plain files and folders below it, without links and without what disappears meanwhile.

    The root itself may be a link. Raises ``OSError`` if it cannot be read.
    """
    found = [_entry(root, os.stat(root))]
    for folder, folders, files, fd in _folders(root):
        for name in (*folders, *files):
            status = _status(name, fd)
            if status and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
                found.append(_entry(os.path.join(folder, name), status))
    return found


def make_private(root: str, owner: int) -> int:
    """Makes the entries of ``owner`` in ``root`` private; returns how many were not.

    The settings of the user keep their mode, and so does a file with a second hard link.
    """
    count = 0
    if os.stat(root).st_uid == owner and stat.S_IMODE(os.stat(root).st_mode) != _FOLDER:
        os.chmod(root, _FOLDER)
        count += 1
    for folder, folders, files, fd in _folders(root):  # a folder gets its mode before it is entered
        names = (name for name in (*folders, *files) if not is_user_file(root, os.path.join(folder, name)))
        count += sum(_make_private(name, fd, owner) for name in names)
    return count


def _folders(root: str) -> Iterator[tuple[str, list[str], list[str], int]]:
    """``os.fwalk`` of ``root``, which is followed if it is a link, because of the slash at its end."""
    return os.fwalk(os.path.join(root, ""))


def _make_private(name: str, folder: int, owner: int) -> bool:
    try:
        handle = os.open(name, _HANDLE, dir_fd=folder)
    except OSError:
        return False
    try:
        status = os.fstat(handle)
        plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        wanted = _FOLDER if stat.S_ISDIR(status.st_mode) else _FILE
        if status.st_uid != owner or not (plain or wanted == _FOLDER) or stat.S_IMODE(status.st_mode) == wanted:
            return False
        _set_mode(handle, name, folder, wanted)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _set_mode(handle: int, name: str, folder: int, mode: int) -> None:
    """Changes the file that was opened, whatever now has its name; without ``/proc``, at least never a link."""
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
