"""How root reaches a path: by descriptors from folder to folder, and through whose links.

Owns the rule: a link of a user leads root only to what is that user's. Nothing is looked at by path and opened
afterwards: the user could exchange it in between. Loaded by root alone, and only where a path may lead through links.
"""

from __future__ import annotations

import errno
import os
import stat

from gaia_sessions.system.users import user_name

_STEP_FLAGS = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40
"""As many as the system follows."""

SUPPORTED = hasattr(os, "O_PATH")
"""Whether the system can open a link itself; elsewhere paths are opened as they are."""


def open_folder(path: str) -> int:
    """The directory at ``path``, open; ``PermissionError`` for one that a link of somebody else leads to."""
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
    """The directory, open, and the name in it to which ``path`` leads, which was no link; there need be no file."""
    walk = _PathWalk(path)
    try:
        walk.check(_owner_uid(walk.parent_fd, walk.name))
        return os.open(".", _FOLDER_FLAGS, dir_fd=walk.parent_fd), walk.name
    finally:
        os.close(walk.parent_fd)


def _owner_uid(parent_fd: int, name: str) -> int:
    """Whose ``name`` is; whose it would be if it is not there."""
    try:
        return os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_uid
    except FileNotFoundError:
        return os.fstat(parent_fd).st_uid


class _PathWalk:
    """Where a path leads: the folder ``parent_fd``, open for going on from it only, and the ``name`` in there.

    owners: the users other than root whose links lead there.
    """

    __slots__ = ("links", "name", "owners", "parent_fd", "rest")

    def __init__(self, path: str) -> None:
        self.owners: set[int] = set()
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
        """Raises ``PermissionError`` if what the path leads to, which is that of ``uid``, is not the links' owners'."""
        for owner in self.owners - {uid}:
            raise PermissionError(
                errno.EPERM, f"a link of {user_name(owner)} leads to what belongs to {user_name(uid)}"
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
    """The names in ``path``, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
