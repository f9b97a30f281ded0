"""What root makes in somebody's folder is given to the owner of that folder: with sudo, and in containers.

Owns that nothing else is given away. The folder is theirs, so they may put what they like under a name, a file of
root's too, which they could not read otherwise: only what we have just made changes hands. Loaded by root alone.
"""

from __future__ import annotations

import os
import stat

from .directory import owner_to_keep

_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_or_create(folder: int, name: str, flags: int, mode: int) -> int:
    """The file ``name`` in ``folder``, an open directory; given away if it was not there."""
    while True:
        try:
            fd = os.open(name, flags | os.O_EXCL, mode, dir_fd=folder)
        except FileExistsError:
            try:
                return os.open(name, flags & ~os.O_CREAT, dir_fd=folder)
            except FileNotFoundError:  # it was removed in between
                continue
        give_to_folder_owner(folder, fd)
        return fd


def give_to_folder_owner(folder: int, fd: int) -> None:
    """The open file ``fd``, which we have just made, is the owner's of ``folder``.

    Where the system refuses that, as to a root without the capability, it stays ours.
    """
    owner = owner_to_keep(folder)
    if owner is None:
        return
    try:
        os.fchown(fd, *owner)
    except OSError:
        return


def give_new_to_folder_owner(folder: int, name: str) -> None:
    """The same for what we made under ``name``; if it is anything but empty, it is not what we made."""
    if owner_to_keep(folder) is None:
        return
    fd = os.open(name, _OPEN_FLAGS, dir_fd=folder)
    try:
        if _is_new(fd):
            give_to_folder_owner(folder, fd)
    finally:
        os.close(fd)


def _is_new(fd: int) -> bool:
    found = os.fstat(fd)
    if found.st_uid:
        return False
    if stat.S_ISDIR(found.st_mode):
        return not os.listdir(fd)
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size == 0
