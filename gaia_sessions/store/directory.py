"""A directory that is held open: everything below it is reached by name from its descriptor, never through a link.

This module opens all files of the store (flags, modes, owners). Errors of the system stay ``OSError``;
``translate_errors`` turns them into ``StoreFailure``.
"""

from __future__ import annotations

import errno
import os
import stat

from gaia_sessions.errors import StoreFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from .superuser import Owner

FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""The flags for every open: with O_NONBLOCK, a FIFO under the name of a file cannot block us."""

PRIVATE_FILE = 0o600
"""The mode of every file of the store, whatever the umask says."""

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PRIVATE_FOLDER = 0o700


class NotAFile(OSError):
    """The name belongs to something that is not a regular file."""


class TooBig(OSError):
    """The file is larger than the limit of its reader."""


class Directory:
    """An open directory; its ``with`` block closes it. ``path`` is for messages only."""

    __slots__ = ("fd", "path")

    is_there = True

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    @classmethod
    def at(cls, path: str) -> Self:
        """Opens the directory at ``path``; the user root follows another user's link only to that user's files."""
        fd = os.open(path, _FOLDER_FLAGS)
        if os.geteuid() or _was_opened_directly(fd, path):
            return cls(fd, path)
        os.close(fd)
        from . import superuser

        return cls(superuser.open_folder(path) if superuser.CAN_CHECK_LINKS else os.open(path, _FOLDER_FLAGS), path)

    def below(self, *names: str) -> Directory:
        """Opens the directory at ``names`` in this one; no name may be a link."""
        return self._walk(names, _open)

    def make(self, *names: str) -> Directory:
        """Opens the directory at ``names`` in this one, and makes each that is missing."""
        return self._walk(names, _open_or_make)

    def _walk(self, names: tuple[str, ...], step: Callable[[Directory, str], Directory]) -> Directory:
        directory = step(self, names[0])
        for name in names[1:]:
            with directory:
                directory = step(directory, name)
        return directory

    def add(self, name: str) -> None:
        """Makes the folder ``name``, private whatever the umask says, unless it exists."""
        if not make_folder(self.fd, name, _PRIVATE_FOLDER):
            return
        if stat.S_IMODE(os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode) != _PRIVATE_FOLDER:
            _make_folder_private(self.fd, name)

    def read(self, name: str, limit: int) -> bytes:
        """Returns the content of the regular file ``name``; raises ``NotAFile``, or ``TooBig`` over ``limit`` bytes."""
        fd, found = self.open_file(name, limit)
        try:
            return read_all(fd, found.st_size)
        finally:
            os.close(fd)

    def open_file(self, name: str, limit: int | None = None) -> tuple[int, os.stat_result]:
        """Opens the regular file ``name`` for reading, and returns its descriptor and status; errors as in ``read``."""
        fd = _open_file(self.fd, name)
        try:
            found = os.fstat(fd)
        except OSError:
            os.close(fd)
            raise
        if stat.S_ISREG(found.st_mode) and (limit is None or found.st_size <= limit):
            return fd, found
        os.close(fd)
        if stat.S_ISREG(found.st_mode):
            raise TooBig(f"{name} is larger than {limit} bytes")
        raise NotAFile(f"{name} is not a regular file")

    def is_of_this_user(self) -> bool:
        """Returns whether this directory belongs to the current user, or the user is root."""
        user = os.geteuid()  # asked about the open directory: what a path leads to can change
        return user == 0 or user == os.fstat(self.fd).st_uid

    def has(self, name: str) -> bool:
        """Returns whether anything has the name ``name``."""
        return self.inode(name) is not None

    def inode(self, name: str) -> tuple[int, int] | None:
        """Returns the device and inode of the file ``name``; None if there is none."""
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def is_at(self, name: str, opened: os.stat_result) -> bool:
        """Returns whether ``name`` still leads to the file that had the status ``opened``."""
        return self.inode(name) == (opened.st_dev, opened.st_ino)

    def names(self) -> list[str]:
        return os.listdir(self.fd)

    def entries(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self.fd) as entries:
            yield from entries

    def names_below(self, *names: str) -> list[str]:
        """Returns the names in the directory at ``names`` in this one; none if there is no such directory."""
        try:
            with self.below(*names) as directory:
                return directory.names()
        except FileNotFoundError:
            return []


class KeptDirectory(Directory):
    """A directory that needs no ``with`` block: it stays open until ``close``, or until the object is garbage."""

    __slots__ = ()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the directory. A second call does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close


class Nowhere(KeptDirectory):
    """A directory that does not exist: it is empty, and nothing can be made in it."""

    __slots__ = ()

    is_there = False

    def __init__(self, path: str) -> None:
        super().__init__(-1, path)

    def _walk(self, names: tuple[str, ...], _step: object) -> Directory:
        raise _missing(f"{self.path}/{names[0]}")

    def open_file(self, name: str, _limit: int | None = None) -> tuple[int, os.stat_result]:
        raise _missing(f"{self.path}/{name}")

    def inode(self, _name: str) -> None:
        return None

    def names(self) -> list[str]:
        return []

    def entries(self) -> Iterator[os.DirEntry[str]]:
        return iter(())


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _was_opened_directly(fd: int, path: str) -> bool:
    """Returns whether ``fd`` was surely opened through no link: the system names it by ``path`` itself."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == path
    except OSError:
        return False


def _open(folder: Directory, name: str) -> Directory:
    return Directory(os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder.fd), f"{folder.path}/{name}")


def _open_file(folder: int, name: str) -> int:
    try:
        return os.open(name, os.O_RDONLY | FILE_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device that does not exist
            raise NotAFile(f"{name} is not a regular file") from None
        raise


def _open_or_make(folder: Directory, name: str) -> Directory:
    try:
        return _open(folder, name)
    except FileNotFoundError:
        folder.add(name)
        return _open(folder, name)


def make_folder(folder: int, name: str, mode: int) -> bool:
    """Makes the folder ``name`` and returns whether it did: False if another process just made it."""
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        return False
    give_to_folder_owner(folder, name)
    return True


def _owner_to_keep(folder: int) -> Owner | None:
    """Returns the owner of the open ``folder`` if this process is root and the folder is another user's."""
    if os.geteuid():
        return None
    found = os.fstat(folder)
    return (found.st_uid, found.st_gid) if found.st_uid else None


def give_to_folder_owner(folder: int, name: str) -> None:
    """Gives what this process just made under ``name`` to the owner of the open ``folder``; only root does so."""
    owner = _owner_to_keep(folder)
    if owner is not None:
        from . import superuser

        superuser.give_if_new(folder, name, FILE_FLAGS, owner)


def open_or_create(folder: int, name: str, flags: int, mode: int = PRIVATE_FILE) -> int:
    """Opens the file ``name`` by ``flags``, or creates it; a new file belongs to the owner of ``folder``."""
    flags |= os.O_CREAT | FILE_FLAGS
    owner = _owner_to_keep(folder)
    if owner is None:
        return os.open(name, flags, mode, dir_fd=folder)
    from . import superuser

    return superuser.open_or_create(folder, name, flags, mode, owner)


def open_private(folder: int, name: str, flags: int) -> tuple[int, os.stat_result]:
    """Opens or creates the regular file ``name``, makes it private, and returns its descriptor and status."""
    fd = open_or_create(folder, name, flags)
    try:
        return fd, _make_private(fd)
    except BaseException:
        os.close(fd)
        raise


def _make_private(fd: int) -> os.stat_result:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if stat.S_IMODE(found.st_mode) != PRIVATE_FILE and found.st_nlink == 1:  # another name shares the mode
        os.fchmod(fd, PRIVATE_FILE)
    return found


def _make_folder_private(folder: int, name: str) -> None:
    """Makes a folder private that the umask made too strict to be opened; follows no link."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, _PRIVATE_FOLDER, dir_fd=folder, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{handle}", _PRIVATE_FOLDER)
    finally:
        os.close(handle)


def read_all(fd: int, size: int) -> bytes:
    """Returns the first ``size`` bytes of the open file, or fewer if it was cut in the meantime."""
    data = os.read(fd, size)
    while len(data) < size and (chunk := os.read(fd, size - len(data))):
        data += chunk
    return data


class translate_errors:  # noqa: N801  # it reads as a verb: with translate_errors("create", path)
    """A ``with`` block in which an ``OSError`` becomes a ``StoreFailure`` with the action and the path."""

    __slots__ = ("action", "path")

    def __init__(self, action: str, path: str) -> None:
        self.action = action
        self.path = path

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, OSError):
            raise refusal(self.action, self.path, error) from error


def refusal(action: str, path: str, error: OSError) -> StoreFailure:
    """Returns the ``StoreFailure`` for ``error``: the system refused ``action`` on ``path``."""
    return StoreFailure(action, path, error.strerror or str(error))
