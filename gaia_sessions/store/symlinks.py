"""How root reaches a path: by descriptors from folder to folder, and through whose links.

Owns the rule: a link of a user leads root only to what is that user's. Nothing is looked at by path and opened
afterwards: the user could exchange it in between. Loaded by root alone, and only where a path may lead through links.
"""

from __future__ import annotations

import errno
import os
import stat

from gaia_sessions.system.users import user_name

_STEP = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
"""As many as the system follows."""

KNOWN = hasattr(os, "O_PATH")
"""Whether the system can open a link itself; elsewhere paths are opened as they are."""


def folder(path: str) -> int:
    """The directory at ``path``, open; ``PermissionError`` for one that a link of somebody else leads to."""
    way = _Way(path)
    try:
        fd = os.open(way.name, _FOLDER, dir_fd=way.above)
    finally:
        os.close(way.above)
    try:
        way.check(os.fstat(fd).st_uid)
    except BaseException:
        os.close(fd)
        raise
    return fd


def file(path: str) -> tuple[int, str]:
    """The directory, open, and the name in it to which ``path`` leads, which was no link; there need be no file."""
    way = _Way(path)
    try:
        way.check(_owner(way.above, way.name))
        return os.open(".", _FOLDER, dir_fd=way.above), way.name
    finally:
        os.close(way.above)


def _owner(above: int, name: str) -> int:
    """Whose ``name`` is; whose it would be if it is not there."""
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False).st_uid
    except FileNotFoundError:
        return os.fstat(above).st_uid


class _Way:
    """Where a path leads: the folder ``above``, open for going on from it only, and the ``name`` in there.

    owners: the users other than root whose links lead there.
    """

    __slots__ = ("above", "links", "name", "owners", "rest")

    def __init__(self, path: str) -> None:
        self.owners: set[int] = set()
        self.name = "."
        self.links = 0
        self.rest = _names(path)
        self.above = os.open("/" if path.startswith("/") else ".", _STEP)
        try:
            while self.rest:
                self._go(self.rest.pop())
        except BaseException:
            os.close(self.above)
            raise

    def check(self, uid: int) -> None:
        """Raises ``PermissionError`` if what the path leads to, which is that of ``uid``, is not the links' owners'."""
        for owner in self.owners - {uid}:
            raise PermissionError(
                errno.EPERM, f"a link of {user_name(owner)} leads to what belongs to {user_name(uid)}"
            )

    def _go(self, name: str) -> None:
        try:
            found = os.open(name, _STEP, dir_fd=self.above)
        except FileNotFoundError:
            self._end_at(name)
            return
        status = os.fstat(found)
        if stat.S_ISLNK(status.st_mode):
            self._follow(found, status.st_uid)
        elif self.rest:
            self._stand_in(found)
        else:
            os.close(found)
            self.name = name

    def _end_at(self, name: str) -> None:
        if self.rest:
            self.check(os.fstat(self.above).st_uid)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        self.name = name

    def _follow(self, link: int, owner: int) -> None:
        target = os.readlink("", dir_fd=link)
        os.close(link)
        self.links += 1
        if self.links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self.owners |= {owner} - {0}
        self.rest += _names(target)
        if target.startswith("/"):
            self._stand_in(os.open("/", _STEP))

    def _stand_in(self, folder: int) -> None:
        os.close(self.above)
        self.above = folder


def _names(path: str) -> list[str]:
    """The names in ``path``, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
