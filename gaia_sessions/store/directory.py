"""A directory held open: everything below it is reached by name from its descriptor, never through a link.

Owns looking, reading, and whose the files and folders are that we make: those of root in somebody's folder are theirs.
What writes a file is in ``atomic``; what the names mean is known above.
Errors of the system pass through as ``OSError``; ``translate_errors`` turns them into ours, with the path.
"""

from __future__ import annotations

import errno
import os
import stat

from gaia_sessions.errors import StoreFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A FIFO planted under the name must not make a reader wait, so files open without blocking.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PRIVATE_FOLDER_MODE = 0o700
_PRIVATE_FILE_MODE = 0o600
_DEFAULT_FOLDER_MODE = 0o777


class NotAFile(OSError):
    """Something other than a regular file stands under the name."""


class TooBig(OSError):
    """The file is larger than the reader is willing to read."""


class Directory:
    """An open directory; closes with its ``with`` block. ``path`` is for messages only."""

    __slots__ = ("fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    @classmethod
    def at(cls, path: str) -> Directory:
        """The directory at ``path``; a link there is followed: which root to use is the user's choice.

        Root goes through no link of a user to what is not that user's: ``PermissionError``.
        """
        fd = os.open(path, _FOLDER_FLAGS)
        if os.geteuid() or _was_opened_directly(fd, path):
            return cls(fd, path)
        os.close(fd)
        from . import symlinks

        return cls(symlinks.open_folder(path) if symlinks.SUPPORTED else os.open(path, _FOLDER_FLAGS), path)

    def below(self, *names: str) -> Directory:
        """The directory at ``names`` in this one, none of them a link."""
        return self._walk(names, _open)

    def make(self, *names: str) -> Directory:
        """The same, each of ``names`` created if it was not there."""
        return self._walk(names, _open_or_make)

    def _walk(self, names: tuple[str, ...], step: Callable[[Directory, str], Directory]) -> Directory:
        directory = step(self, names[0])
        for name in names[1:]:
            with directory:
                directory = step(directory, name)
        return directory

    def add(self, name: str) -> None:
        """Makes ``name``, private whatever the umask; nothing if somebody else just did."""
        if not _make_folder(self.fd, name, _PRIVATE_FOLDER_MODE):
            return
        if stat.S_IMODE(os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode) != _PRIVATE_FOLDER_MODE:
            _make_folder_private(self.fd, name)

    def read(self, name: str, limit: int) -> bytes:
        """The whole of the regular file ``name``; ``TooBig`` over ``limit`` bytes, ``NotAFile`` for anything else."""
        fd = _open_file(self.fd, name)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise NotAFile(f"{name} is not a regular file")
            if found.st_size > limit:
                raise TooBig(f"{name} is larger than {limit} bytes")
            return _read_all(fd, found.st_size)
        finally:
            os.close(fd)

    def has(self, name: str) -> bool:
        """Whether anything at all stands under ``name``."""
        return self.inode(name) is not None

    def inode(self, name: str) -> tuple[int, int] | None:
        """Which file ``name`` is now, as device and inode; None for none."""
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def names(self) -> list[str]:
        """What is in here, in no order."""
        return os.listdir(self.fd)

    def sync(self) -> None:
        """The names in here are on the disk when this returns."""
        os.fsync(self.fd)


def _was_opened_directly(fd: int, path: str) -> bool:
    """Whether ``fd`` is sure to have been opened through no link, since the system calls it ``path`` itself."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == path
    except OSError:
        return False


def _open(folder: Directory, name: str) -> Directory:
    return Directory(os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder.fd), f"{folder.path}/{name}")


def _open_file(folder: int, name: str) -> int:
    try:
        return os.open(name, _FILE_FLAGS, dir_fd=folder)
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


def make_folders(path: str) -> None:
    """``path`` and what is missing above it, with the mode that the umask says; raises ``OSError``."""
    if os.path.isdir(path):
        return
    if os.geteuid():
        os.makedirs(path, exist_ok=True)
        return
    parent_path, name = os.path.split(path)
    make_folders(parent_path or os.curdir)
    with Directory.at(parent_path or os.curdir) as parent:
        _make_folder(parent.fd, name, _DEFAULT_FOLDER_MODE)


def _make_folder(folder: int, name: str, mode: int) -> bool:
    """Whether the folder ``name`` is of our making: False if somebody else just made it."""
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        return False
    if owner_to_keep(folder):
        from . import file_ownership

        file_ownership.give_new_to_folder_owner(folder, name)
    return True


def owner_to_keep(folder: int) -> tuple[int, int] | None:
    """User and group that get what we make in the open ``folder``: its owner, where root works in somebody else's."""
    if os.geteuid():
        return None
    found = os.fstat(folder)
    return (found.st_uid, found.st_gid) if found.st_uid else None


def open_or_create(folder: int, name: str, flags: int) -> int:
    """The file ``name`` in the open ``folder``, by ``flags`` that create a private one if it was not there."""
    if owner_to_keep(folder) is None:
        return os.open(name, flags, _PRIVATE_FILE_MODE, dir_fd=folder)
    from . import file_ownership

    return file_ownership.open_or_create(folder, name, flags, _PRIVATE_FILE_MODE)


def _make_folder_private(folder: int, name: str) -> None:
    """For an umask so strict that the folder could not even be opened; follows no link."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, _PRIVATE_FOLDER_MODE, dir_fd=folder, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{handle}", _PRIVATE_FOLDER_MODE)
    finally:
        os.close(handle)


def make_private(fd: int) -> int:
    """The size of the open file ``fd``, which is nobody else's from now on whatever the umask was.

    Raises ``OSError`` for what is no regular file, and for one that has a second name: it may be anybody's.
    """
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if found.st_nlink > 1:
        raise OSError(errno.EMLINK, "the file has a second name")
    if stat.S_IMODE(found.st_mode) != _PRIVATE_FILE_MODE:
        os.fchmod(fd, _PRIVATE_FILE_MODE)
    return found.st_size


def _read_all(fd: int, size: int) -> bytes:
    """As much as there was when its size was asked: what is appended meanwhile is for the next reader."""
    data = os.read(fd, size)
    while len(data) < size and (chunk := os.read(fd, size - len(data))):
        data += chunk
    return data


class translate_errors:  # noqa: N801  # reads as the verb it is: with translating("create", path)
    """A block in which an error of the system becomes ours: what was being done, to which file, why it was refused."""

    __slots__ = ("action", "path")

    def __init__(self, action: str, path: str) -> None:
        self.action = action
        self.path = path

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, OSError):
            raise StoreFailure(self.action, self.path, error.strerror or str(error)) from error
