"""Files that belong to somebody else, changed as carefully as our own.

Owns how: a link is followed and stays one (root follows that of a user only to what is that user's), mode, owner and
attributes stay as they were, whoever reads sees the old content or the new, and it is changed only if it still is what
the caller had read. What cannot be done so is refused with ``StoreFailure``, and the file is what it was.

The system has no renaming that asks what it replaces: what somebody who takes no lock of ours writes between that
last look and the rename, a matter of microseconds, is lost.
"""

from __future__ import annotations

import os
import stat
import time
from functools import partial

from gaia_sessions.errors import StoreFailure, TooLarge

from . import atomic
from .directory import Directory, TooBig, translate_errors

_PRIVATE_MODE, _DEFAULT_MODE = 0o600, 0o666
_LEFTOVER_SECONDS = 3600.0
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def read(path: str, limit: int) -> bytes | None:
    """What ``path`` holds, None if there is no file; raises ``TooLarge``, ``StoreFailure``."""
    with translate_errors("read", path):
        try:
            folder, name = _open_parent(path)
            with folder:
                return folder.read(name, limit)
        except FileNotFoundError:
            return None
        except TooBig:
            raise TooLarge(path, os.path.getsize(path), limit) from None


def write(path: str, old: bytes | None, new: bytes) -> None:
    """``path``, which held ``old`` (None: was not there), holds ``new``; durable on return.

    Raises ``StoreFailure``; ``DurabilityUnknown`` if it does, but the disk did not confirm it.
    """
    with translate_errors("write", path):
        folder, name = _open_parent(path)
    with translate_errors("write", path), folder:
        found = _stat_writable(folder, name, path)
        apply_mode, mode = (
            (partial(_copy_metadata, folder, name, found), _PRIVATE_MODE)
            if found
            else (_keep_umask_mode, _DEFAULT_MODE)
        )
        check = partial(_check_unchanged, folder, name, path, old)
        atomic.replace(folder, name, new, durable=True, mode=mode, apply_mode=apply_mode, check=check)
        _remove_leftovers(folder, name)


def remove(path: str, old: bytes) -> None:
    """``path``, which held ``old``, is gone; durable on return. Raises as ``write`` does."""
    with translate_errors("remove", path):
        folder, name = _open_parent(path)
    with translate_errors("remove", path), folder:
        _stat_writable(folder, name, path)
        _check_unchanged(folder, name, path, old)
        os.unlink(name, dir_fd=folder.fd)
        atomic.sync_folder(folder)


def _open_parent(path: str) -> tuple[Directory, str]:
    """The folder of the file that ``path`` leads to, and its name; root follows no link to what is not the linker's."""
    if os.geteuid() == 0:
        from . import symlinks

        if symlinks.SUPPORTED:
            fd, name = symlinks.open_parent(path)
            return Directory(fd, os.path.dirname(path)), name
    real = os.path.realpath(path)
    return Directory.at(os.path.dirname(real)), os.path.basename(real)


def _stat_writable(folder: Directory, name: str, path: str) -> os.stat_result | None:
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


def _copy_metadata(folder: Directory, name: str, found: os.stat_result, fd: int) -> None:
    created = os.fstat(fd)
    if (created.st_uid, created.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(fd, found.st_uid, found.st_gid)
    if hasattr(os, "listxattr"):  # Linux; elsewhere Python knows none
        _copy_attributes(folder, name, fd)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))


def _copy_attributes(folder: Directory, name: str, fd: int) -> None:
    """Those of the file ``name`` that the system lets go over: some are its own to give."""
    old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder.fd)
    try:
        for attribute in _attributes(old):
            try:
                os.setxattr(fd, attribute, os.getxattr(old, attribute))
            except OSError:
                continue
    finally:
        os.close(old)


def _attributes(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError:  # a file system without any
        return []


def _keep_umask_mode(_: int) -> None:
    return


def _remove_leftovers(folder: Directory, name: str) -> None:
    """What killed writers of the same file left behind is gone; a writer is done long before it is that old."""
    for leftover in atomic.temporaries_of(folder, name):
        try:
            written_at = os.stat(leftover, dir_fd=folder.fd, follow_symlinks=False).st_mtime
        except OSError:  # its writer has just renamed it
            continue
        if written_at < time.time() - _LEFTOVER_SECONDS:
            atomic.discard(folder, leftover)


def _check_unchanged(folder: Directory, name: str, path: str, old: bytes | None) -> None:
    if _read_up_to(folder, name, len(old or b"")) != (old, True):
        raise StoreFailure("write", path, "somebody else changed it meanwhile", "try again")


def _read_up_to(folder: Directory, name: str, limit: int) -> tuple[bytes | None, bool]:
    """What ``name`` holds, None for no file, and whether that is all of it."""
    try:
        return folder.read(name, limit), True
    except FileNotFoundError:
        return None, True
    except TooBig:
        return None, False
