"""Files and folders that belong to somebody else, changed as carefully as those of the store.

Owns how: a link is followed and stays a link (root follows that of a user only to what is that user's); mode, owner and
attributes stay as they were; whoever reads sees the old content or the new; and a file is changed only if it still
holds what the caller had read. What cannot be done so is refused with ``StoreFailure``, and the file stays as it is.

The system has no renaming that compares what it replaces. If a program writes between the last comparison and the
rename, a matter of microseconds, what it wrote is lost.
"""

from __future__ import annotations

import os
import stat
import time

from gaia_sessions import errors

from . import atomic
from .directory import FILE_FLAGS, PRIVATE_FILE, Directory, TooBig, make_folder, translate_errors

_DEFAULT_FILE, _DEFAULT_FOLDER = 0o666, 0o777
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
            raise errors.TooLarge(path, os.path.getsize(path), limit) from None


def write(path: str, old: bytes | None, new: bytes) -> None:
    """Writes ``new`` to ``path``, which held ``old`` (None: was not there); durable on return.

    Raises ``StoreFailure``; ``DurabilityUnknown`` if it does, but the disk did not confirm it.
    """
    with translate_errors("write", path):
        folder, name = _open_parent(path)
    with translate_errors("write", path), folder:
        found = _stat_writable(folder, name, path)
        atomic.replace(
            folder,
            name,
            new,
            durable=True,
            mode=PRIVATE_FILE if found else _DEFAULT_FILE,
            prepare=(lambda fd: _copy_metadata(folder, name, found, fd)) if found else _keep_umask_mode,
            check=lambda: _check_unchanged(folder, name, path, old),
        )
        _remove_leftovers(folder, name)


def remove(path: str, old: bytes) -> None:
    """Removes ``path``, which held ``old``; durable on return. Raises as ``write`` does."""
    with translate_errors("remove", path):
        folder, name = _open_parent(path)
    with translate_errors("remove", path), folder:
        _stat_writable(folder, name, path)
        _check_unchanged(folder, name, path, old)
        os.unlink(name, dir_fd=folder.fd)
        atomic.sync_folder(folder)


def make_folders(path: str) -> None:
    """Makes ``path`` and the missing folders above it, with the mode that the umask says; raises ``OSError``."""
    if os.path.isdir(path):
        return
    if os.geteuid():
        os.makedirs(path, exist_ok=True)
        return
    parent_path, name = os.path.split(path)
    make_folders(parent_path or os.curdir)
    with Directory.at(parent_path or os.curdir) as parent:
        make_folder(parent.fd, name, _DEFAULT_FOLDER)


def _open_parent(path: str) -> tuple[Directory, str]:
    """The folder of the file that ``path`` leads to, and its name in there."""
    if os.geteuid() == 0:
        from . import superuser

        if superuser.CAN_CHECK_LINKS:
            fd, name = superuser.open_parent(path)
            return Directory(fd, os.path.dirname(path)), name
    real = os.path.realpath(path)
    return Directory.at(os.path.dirname(real)), os.path.basename(real)


def _stat_writable(folder: Directory, name: str, path: str) -> os.stat_result | None:
    """What stands under ``name``, if it may be written at all: the system would refuse root nothing."""
    try:
        found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not found.st_mode & _WRITABLE or not os.access(name, os.W_OK, dir_fd=folder.fd):
        raise errors.StoreFailure(
            "write", path, "it is read-only", "make it writable, or leave it as whoever owns it wants it"
        )
    if found.st_nlink > 1:
        raise errors.StoreFailure(
            "write",
            path,
            "it has a second name, which would keep the old content",
            "remove that name, or let it keep the content: replace the file by a copy of it",
        )
    return found


def _copy_metadata(folder: Directory, name: str, found: os.stat_result, fd: int) -> None:
    created = os.fstat(fd)
    if (created.st_uid, created.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(fd, found.st_uid, found.st_gid)
    if hasattr(os, "listxattr"):  # only on Linux does Python know attributes
        _copy_attributes(folder, name, fd)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))


def _copy_attributes(folder: Directory, name: str, fd: int) -> None:
    """The extended attributes of the file ``name``, but for those that only the system may set."""
    old = os.open(name, os.O_RDONLY | FILE_FLAGS, dir_fd=folder.fd)
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
    """Removes what killed writers of the same file left behind; no living writer takes that long."""
    for leftover in [found for found in folder.names() if atomic.target_of(found) == name]:
        try:
            written_at = os.stat(leftover, dir_fd=folder.fd, follow_symlinks=False).st_mtime
        except OSError:  # its writer has just renamed it
            continue
        if written_at < time.time() - _LEFTOVER_SECONDS:
            atomic.discard(folder, leftover)


def _check_unchanged(folder: Directory, name: str, path: str, old: bytes | None) -> None:
    if _read_up_to(folder, name, len(old or b"")) != (old, True):
        raise errors.StoreFailure("write", path, "somebody else changed it meanwhile", "try again")


def _read_up_to(folder: Directory, name: str, limit: int) -> tuple[bytes | None, bool]:
    """What ``name`` holds, None for no file, and whether that is all of it."""
    try:
        return folder.read(name, limit), True
    except FileNotFoundError:
        return None, True
    except TooBig:
        return None, False
