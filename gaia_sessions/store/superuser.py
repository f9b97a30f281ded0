"""What the user root does differently from other users; no other user loads this.

Root follows a user's link only to what belongs to that user. Root gives to a user only what it made in that user's
folder: the user may put any file under a name, even a file of root.
"""

from __future__ import annotations

import errno
import os
import stat

from gaia_sessions.system.users import user_name

_STEP_FLAGS = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40
"""The most links that are followed, as many as the system follows."""

CAN_CHECK_LINKS = hasattr(os, "O_PATH")
"""Whether the system can open a link itself; on other systems paths are opened as they are."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    Owner = tuple[int, int]
    """The IDs of a user and a group."""


def open_folder(path: str) -> int:
    """Opens the directory at ``path``; raises ``PermissionError`` if a link leads to it that is not its owner's."""
    walk = _PathWalk(path)
    try:
        fd = os.open(walk.name, _FOLDER_FLAGS, dir_fd=walk.parent_fd)
    finally:
        os.close(walk.parent_fd)
    try:
        walk.check(os.fstat(fd).st_uid)
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_parent(path: str) -> tuple[int, str]:
    """Opens the directory that holds what ``path`` leads to, and returns the name there, which may be missing."""
    walk = _PathWalk(path)
    try:
        walk.check(_owner_uid(walk.parent_fd, walk.name))
        return os.open(".", _FOLDER_FLAGS, dir_fd=walk.parent_fd), walk.name
    finally:
        os.close(walk.parent_fd)


def open_or_create(folder: int, name: str, flags: int, mode: int, owner: Owner) -> int:
    """Opens the file ``name`` by ``flags``; a new file is given to ``owner``."""
    while True:
        try:
            fd = os.open(name, flags | os.O_EXCL, mode, dir_fd=folder)
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
            try:
                return os.open(name, flags & ~os.O_CREAT, dir_fd=folder)
            except FileNotFoundError:  # removed since the first try
                continue
        give(fd, owner)
        return fd


def give(fd: int, owner: Owner) -> None:
    """Gives the open file ``fd``, which this process has just made, to ``owner``."""
    try:
        os.fchown(fd, *owner)
    except OSError:  # root without the capability: the file stays root's
        return


def give_if_new(folder: int, name: str, flags: int, owner: Owner) -> None:
    """Gives ``name`` to ``owner`` if it is still the empty file or folder that this process made."""
    fd = os.open(name, flags | os.O_RDONLY, dir_fd=folder)
    try:
        if _is_new(fd):
            give(fd, owner)
    finally:
        os.close(fd)


def _is_new(fd: int) -> bool:
    found = os.fstat(fd)
    if found.st_uid:
        return False
    if stat.S_ISDIR(found.st_mode):
        return not os.listdir(fd)
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size == 0


def _owner_uid(parent_fd: int, name: str) -> int:
    """Returns the user who owns ``name``, or would own it if it existed."""
    try:
        return os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_uid
    except FileNotFoundError:
        return os.fstat(parent_fd).st_uid


# It walks from folder to folder by descriptors: a path that is checked and then opened could be exchanged in between.
class _PathWalk:
    """Where a path leads: the open folder ``parent_fd`` and the ``name`` in it."""

    __slots__ = ("links", "name", "owners", "parent_fd", "rest")

    def __init__(self, path: str) -> None:
        self.owners: set[int] = set()  # the users other than root whose links lead there
        self.name = "."
        self.links = 0
        self.rest = _names_reversed(path)
        self.parent_fd = os.open("/" if path.startswith("/") else ".", _STEP_FLAGS)
        try:
            while self.rest:
                self._step(self.rest.pop())
        except BaseException:
            os.close(self.parent_fd)
            raise

    def check(self, uid: int) -> None:
        """Raises ``PermissionError`` if the path leads through a link of another user to what belongs to ``uid``."""
        for owner in self.owners - {uid}:
            raise PermissionError(
                errno.EPERM, f"a link of {user_name(owner)} leads to a file or folder of {user_name(uid)}"
            )

    def _step(self, name: str) -> None:
        try:
            fd = os.open(name, _STEP_FLAGS, dir_fd=self.parent_fd)
        except FileNotFoundError:
            self._finish_at(name)
            return
        status = os.fstat(fd)
        if stat.S_ISLNK(status.st_mode):
            self._follow_link(fd, status.st_uid)
        elif self.rest:
            self._enter(fd)
        else:
            os.close(fd)
            self.name = name

    def _finish_at(self, name: str) -> None:
        if self.rest:
            self.check(os.fstat(self.parent_fd).st_uid)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        self.name = name

    def _follow_link(self, link: int, owner: int) -> None:
        target = os.readlink("", dir_fd=link)
        os.close(link)
        self.links += 1
        if self.links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self.owners |= {owner} - {0}
        self.rest += _names_reversed(target)
        if target.startswith("/"):
            self._enter(os.open("/", _STEP_FLAGS))

    def _enter(self, fd: int) -> None:
        os.close(self.parent_fd)
        self.parent_fd = fd


def _names_reversed(path: str) -> list[str]:
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
