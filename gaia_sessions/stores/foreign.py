"""Files that belong to somebody else, changed as carefully as our own.

Owns how: a link is followed and stays one, mode and owner stay as they were, whoever reads sees the old content or
the new, and it is changed only if it still is what the caller had read. What cannot be done so is refused with
``StoreFailure``, and the file is what it was.
"""

from __future__ import annotations

import os
import stat
import time

from gaia_sessions.errors import StoreFailure, TooLarge

from . import atomic
from .directory import Directory, TooBig, translating

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LONG_AGO = 3600.0
_TEMPORARY_HAS_MORE = len("..0123456789abcdef.tmp")
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def read(path: str, limit: int) -> bytes | None:
    """What ``path`` holds, None if there is no file; raises ``TooLarge``, ``StoreFailure``."""
    real = os.path.realpath(path)
    with translating("read", path):
        try:
            with Directory.at(os.path.dirname(real)) as folder:
                return folder.read(os.path.basename(real), limit)
        except FileNotFoundError:
            return None
        except TooBig:
            raise TooLarge(path, os.path.getsize(real), limit) from None


def write(path: str, old: bytes | None, new: bytes) -> None:
    """``path``, which held ``old`` (None: was not there), holds ``new``; durable on return.

    Raises ``StoreFailure``; ``DurabilityUnknown`` if it does, but the disk did not confirm it.
    """
    real = os.path.realpath(path)
    name = os.path.basename(real)
    temporary = f".{name}.{os.urandom(8).hex()}.tmp"
    with translating("write", path), Directory.at(os.path.dirname(real)) as folder:
        found = _checked(folder, name, path)
        try:
            _write_like(found, folder, temporary, new)
            _check_unchanged(folder, name, path, old)
            os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        except BaseException:
            atomic.discard(folder, temporary)
            raise
        atomic.confirm(folder)
        _sweep(folder, name)


def remove(path: str, old: bytes) -> None:
    """``path``, which held ``old``, is gone; durable on return. Raises as ``write`` does."""
    real = os.path.realpath(path)
    with translating("remove", path), Directory.at(os.path.dirname(real)) as folder:
        _checked(folder, os.path.basename(real), path)
        _check_unchanged(folder, os.path.basename(real), path, old)
        os.unlink(os.path.basename(real), dir_fd=folder.fd)
        atomic.confirm(folder)


def _checked(folder: Directory, name: str, path: str) -> os.stat_result | None:
    """What stands under ``name``, if it may be written at all: to root the system would not refuse anything."""
    try:
        found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not found.st_mode & _WRITABLE or not os.access(name, os.W_OK, dir_fd=folder.fd):
        raise StoreFailure(
            "write", path, "it is read-only", "make it writable, or leave it as whoever owns it wants it"
        )
    if found.st_nlink > 1:
        raise StoreFailure("write", path, "it has a second name, which would keep the old content", "remove the link")
    return found


def _write_like(found: os.stat_result | None, folder: Directory, name: str, data: bytes) -> None:
    """A new file with the mode and owner of ``found``; of one that was not there, with what the umask says."""
    with open(os.open(name, _NEW, 0o666 if found is None else 0o600, dir_fd=folder.fd), "wb") as file:
        if found is not None:
            made = os.fstat(file.fileno())
            if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
                os.fchown(file.fileno(), found.st_uid, found.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(found.st_mode))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sweep(folder: Directory, name: str) -> None:
    """What killed writers of the same file left behind is gone; a writer is done long before it is that old."""
    ours = (left for left in atomic.temporaries(folder) if left.startswith(f".{name}."))
    for left in (left for left in ours if len(left) == len(name) + _TEMPORARY_HAS_MORE):
        try:
            written = os.stat(left, dir_fd=folder.fd, follow_symlinks=False).st_mtime
        except OSError:  # its writer has just renamed it
            continue
        if written < time.time() - _LONG_AGO:
            atomic.discard(folder, left)


def _check_unchanged(folder: Directory, name: str, path: str, old: bytes | None) -> None:
    try:
        held = folder.read(name, len(old or b""))
    except FileNotFoundError:
        held = None
    except TooBig:
        held = b""
    if held != old:
        raise StoreFailure("write", path, "somebody else changed it meanwhile", "try again")
