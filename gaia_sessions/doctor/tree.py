"""All that stands below a root, as the system has it, and who may touch it.

Owns the walk, which follows no link, and the one thing ever done to modes: what is ours becomes private.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

USER_FILE = ".config.toml"
"""What the user writes in a root that is no project's, with whatever mode they like."""

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
    def wanted(self) -> int:
        """The permissions that it should have."""
        return _FOLDER if self.is_folder else _FILE


def is_user_file(root: str, path: str) -> bool:
    """Whether ``path`` is what the user writes there."""
    return path == os.path.join(root, USER_FILE)


def walk(root: str) -> list[TreeEntry]:
    """``root`` and what is below it; what goes meanwhile, links, and what is neither file nor folder are left out.

    The root itself may be a link. Raises ``OSError`` if it cannot be looked at.
    """
    found = [_entry(root, os.stat(root))]
    for folder, folders, files, fd in _folders(root):
        for name in (*folders, *files):
            status = _status(name, fd)
            if status and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
                found.append(_entry(os.path.join(folder, name), status))
    return found


def make_private(root: str, owner: int) -> int:
    """What ``owner`` has in ``root`` is private to them from here on; how many entries were not.

    What the user writes there stays as it is. A file with a second name is left as it is: it may be anybody's.
    """
    count = 0
    if os.stat(root).st_uid == owner and stat.S_IMODE(os.stat(root).st_mode) != _FOLDER:
        os.chmod(root, _FOLDER)
        count += 1
    for folder, folders, files, fd in _folders(root):  # a folder is made passable before it is entered
        names = (name for name in (*folders, *files) if not is_user_file(root, os.path.join(folder, name)))
        count += sum(_make_private(name, fd, owner) for name in names)
    return count


def _folders(root: str) -> Iterator[tuple[str, list[str], list[str], int]]:
    """As ``os.fwalk`` has them, from the root on if that is a link: with a slash behind it, it is followed."""
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
    """Of the very file looked at, whatever has its name by now; without ``/proc``, of no link at least."""
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
