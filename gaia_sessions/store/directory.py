"""A directory held open: everything below it is reached by name from its descriptor, never through a link.

Owns looking, reading, making folders, and opening files: with which flags and modes, and whose they are afterwards
(what root makes in a user's folder belongs to that user). Errors of the system pass through as ``OSError``;
``translate_errors`` turns them into a ``StoreFailure`` that names the path.
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
"""The flags with which every file is opened: a FIFO that stands under its name must not make anybody wait."""

PRIVATE_FILE = 0o600
"""The mode of every file of the store, whatever the umask says."""

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PRIVATE_FOLDER = 0o700


class NotAFile(OSError):
    """Something other than a regular file stands under the name."""


class TooBig(OSError):
    """The file is larger than the reader is willing to read."""


class Directory:
    """An open directory, closed at the end of its ``with`` block. ``path`` is for messages only."""

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
        """The directory at ``path``. Root follows a link of a user only to what belongs to that user."""
        fd = os.open(path, _FOLDER_FLAGS)
        if os.geteuid() or _was_opened_directly(fd, path):
            return cls(fd, path)
        os.close(fd)
        from . import superuser

        return cls(superuser.open_folder(path) if superuser.CAN_CHECK_LINKS else os.open(path, _FOLDER_FLAGS), path)

    def below(self, *names: str) -> Directory:
        """The directory at ``names`` in this one, none of them a link."""
        return self._walk(names, _open)

    def make(self, *names: str) -> Directory:
        """The directory at ``names`` in this one, each of them made if it was not there."""
        return self._walk(names, _open_or_make)

    def _walk(self, names: tuple[str, ...], step: Callable[[Directory, str], Directory]) -> Directory:
        directory = step(self, names[0])
        for name in names[1:]:
            with directory:
                directory = step(directory, name)
        return directory

    def add(self, name: str) -> None:
        """Makes ``name``, private whatever the umask; nothing if somebody else just did."""
        if not make_folder(self.fd, name, _PRIVATE_FOLDER):
            return
        if stat.S_IMODE(os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode) != _PRIVATE_FOLDER:
            _make_folder_private(self.fd, name)

    def read(self, name: str, limit: int) -> bytes:
        """The whole of the regular file ``name``; ``TooBig`` over ``limit`` bytes, ``NotAFile`` for anything else."""
        fd, found = self.open_file(name, limit)
        try:
            return read_all(fd, found.st_size)
        finally:
            os.close(fd)

    def open_file(self, name: str, limit: int | None = None) -> tuple[int, os.stat_result]:
        """The regular file ``name``, open for reading, and what the system says of it; ``NotAFile`` for others.

        ``TooBig`` if it has more than ``limit`` bytes.
        """
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
        """Whether it belongs to the user who runs this, or that user is root; asked of what is open, not of a path."""
        user = os.geteuid()
        return user == 0 or user == os.fstat(self.fd).st_uid

    def has(self, name: str) -> bool:
        """Whether anything at all stands under ``name``."""
        return self.inode(name) is not None

    def inode(self, name: str) -> tuple[int, int] | None:
        """Which file stands under ``name`` now, as device and inode; None if there is none."""
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def is_at(self, name: str, opened: os.stat_result) -> bool:
        """Whether ``name`` still leads to the file of which this was said when it was ``opened``."""
        return self.inode(name) == (opened.st_dev, opened.st_ino)

    def names(self) -> list[str]:
        """What is in here, in no order."""
        return os.listdir(self.fd)

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """What is in here, in no order, each with what the system says of it."""
        with os.scandir(self.fd) as entries:
            yield from entries

    def names_below(self, *names: str) -> list[str]:
        """What is in the directory at ``names`` in this one, in no order; nothing if there is none."""
        try:
            with self.below(*names) as directory:
                return directory.names()
        except FileNotFoundError:
            return []


class KeptDirectory(Directory):
    """A directory that may stay open without a block: until ``close``, or until nobody has this object any more."""

    __slots__ = ()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes it; a second time does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close


class Nowhere(KeptDirectory):
    """A directory that does not exist: nothing is in it, and nothing can be made there."""

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
    """Whether ``fd`` was surely opened through no link, since the system knows it by ``path`` itself."""
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
        if error.errno == errno.ENXIO:  # a socket, or a device that is not there
            raise NotAFile(f"{name} is not a regular file") from None
        raise


def _open_or_make(folder: Directory, name: str) -> Directory:
    try:
        return _open(folder, name)
    except FileNotFoundError:
        folder.add(name)
        return _open(folder, name)


def make_folder(folder: int, name: str, mode: int) -> bool:
    """Whether this call made the folder ``name``: False if somebody else just did."""
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        return False
    give_to_folder_owner(folder, name)
    return True


def _owner_to_keep(folder: int) -> Owner | None:
    """To whom belongs what this process makes in the open ``folder``, if it is root in the folder of somebody else."""
    if os.geteuid():
        return None
    found = os.fstat(folder)
    return (found.st_uid, found.st_gid) if found.st_uid else None


def give_to_folder_owner(folder: int, name: str) -> None:
    """Gives what this process just made under ``name`` to the owner of the open ``folder``, if this is root."""
    owner = _owner_to_keep(folder)
    if owner is not None:
        from . import superuser

        superuser.give_if_new(folder, name, FILE_FLAGS, owner)


def open_or_create(folder: int, name: str, flags: int, mode: int = PRIVATE_FILE) -> int:
    """The file ``name`` in the open ``folder``, by ``flags`` that create it; its owner is that of the folder."""
    flags |= os.O_CREAT | FILE_FLAGS
    owner = _owner_to_keep(folder)
    if owner is None:
        return os.open(name, flags, mode, dir_fd=folder)
    from . import superuser

    return superuser.open_or_create(folder, name, flags, mode, owner)


def open_private(folder: int, name: str, flags: int) -> tuple[int, os.stat_result]:
    """``name``, opened or created, and what the system says of it; private unless it has a second name.

    Raises ``OSError`` for all but a regular file.
    """
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
    if stat.S_IMODE(found.st_mode) != PRIVATE_FILE and found.st_nlink == 1:
        os.fchmod(fd, PRIVATE_FILE)
    return found


def _make_folder_private(folder: int, name: str) -> None:
    """Makes a folder private that an umask made too strict to be opened; follows no link."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, _PRIVATE_FOLDER, dir_fd=folder, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{handle}", _PRIVATE_FOLDER)
    finally:
        os.close(handle)


def read_all(fd: int, size: int) -> bytes:
    """The first ``size`` bytes, as many as there were when the file was looked at; less if it was cut meanwhile."""
    data = os.read(fd, size)
    while len(data) < size and (chunk := os.read(fd, size - len(data))):
        data += chunk
    return data


class translate_errors:  # noqa: N801  # reads as the verb it is: with translate_errors("create", path)
    """A block in which an ``OSError`` becomes a ``StoreFailure``: what was done, to which file, why it was refused."""

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
    """What ``error`` says: that the system refused ``action`` on ``path``, and why."""
    return StoreFailure(action, path, error.strerror or str(error))
