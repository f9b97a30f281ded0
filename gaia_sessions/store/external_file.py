"""Changes files and folders of other programs (settings of hosts), as carefully as files of the store.

A file is changed only if it still holds what the caller read. No system call compares and renames in one step: if a
program writes in the microseconds between our last comparison and the rename, its write is lost.
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
    """Returns what ``path`` holds, or None if there is no file."""
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
    """Writes ``new`` to ``path``, which held ``old`` (None: no file); durable on return."""
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
    """Removes ``path``, which held ``old``; durable on return."""
    with translate_errors("remove", path):
        folder, name = _open_parent(path)
    with translate_errors("remove", path), folder:
        _stat_writable(folder, name, path)
        _check_unchanged(folder, name, path, old)
        os.unlink(name, dir_fd=folder.fd)
        atomic.sync_folder(folder)


def make_folders(path: str) -> None:
    """Makes ``path`` and the missing folders above it, with the mode of the umask."""
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
    """Returns the folder of the file that ``path`` leads to, and its name there: a link stays a link."""
    if os.geteuid() == 0:
        from . import superuser

        if superuser.CAN_CHECK_LINKS:
            fd, name = superuser.open_parent(path)
            return Directory(fd, os.path.dirname(path)), name
    real = os.path.realpath(path)
    return Directory.at(os.path.dirname(real)), os.path.basename(real)


def _stat_writable(folder: Directory, name: str, path: str) -> os.stat_result | None:
    """Returns the status of ``name``, or None if it is missing; raises ``StoreFailure`` if it may not be written."""
    try:
        found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    # The mode is checked as well, because ``access`` allows root everything.
    if not found.st_mode & _WRITABLE or not os.access(name, os.W_OK, dir_fd=folder.fd):
        raise errors.StoreFailure(
            "write", path, "it is read-only", "make it writable, or ask its owner to, and try again"
        )
    if found.st_nlink > 1:
        raise errors.StoreFailure(
            "write",
            path,
            "it has a second hard link, which would keep the old content",
            "remove the other link, or replace this file with a copy of itself",
        )
    return found


def _copy_metadata(folder: Directory, name: str, found: os.stat_result, fd: int) -> None:
    created = os.fstat(fd)
    if (created.st_uid, created.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(fd, found.st_uid, found.st_gid)
    if hasattr(os, "listxattr"):  # Python has attributes on Linux only
        _copy_attributes(folder, name, fd)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))


def _copy_attributes(folder: Directory, name: str, fd: int) -> None:
    """Copies the extended attributes of the file ``name``, except those that only the system may set."""
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
    except OSError:  # a file system without attributes
        return []


def _keep_umask_mode(_: int) -> None:
    return


def _remove_leftovers(folder: Directory, name: str) -> None:
    """Removes temporary files of killed writers of this file: older than an hour, as no living writer takes so long."""
    for leftover in [found for found in folder.names() if atomic.target_of(found) == name]:
        try:
            written_at = os.stat(leftover, dir_fd=folder.fd, follow_symlinks=False).st_mtime
        except OSError:  # its writer has just renamed it
            continue
        if written_at < time.time() - _LEFTOVER_SECONDS:
            atomic.discard(folder, leftover)


def _check_unchanged(folder: Directory, name: str, path: str, old: bytes | None) -> None:
    if _read_up_to(folder, name, len(old or b"")) != (old, True):
        raise errors.StoreFailure("write", path, "another program has just changed it", "try again")


def _read_up_to(folder: Directory, name: str, limit: int) -> tuple[bytes | None, bool]:
    """Returns what ``name`` holds (None for no file), and whether that is all of it."""
    try:
        return folder.read(name, limit), True
    except FileNotFoundError:
        return None, True
    except TooBig:
        return None, False
