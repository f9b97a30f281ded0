"""Reads one settings file. Loaded only if there is one.

A stranger can have written a project and its settings, so only a small regular file is read, and no link is followed.
"""

from __future__ import annotations

import os
import stat

_MOST_BYTES = 64 << 10


class Unread(Exception):
    """Says why a file is not read, with a hint; ``is_file`` says whether it is a file that can be corrected."""

    def __init__(self, why: str, hint: str = "remove it", *, is_file: bool = False) -> None:
        super().__init__(why)
        self.hint = hint
        self.is_file = is_file


def content_of(path: str, opened: int | OSError, *, may_be_link: bool) -> bytes | Unread | None:
    """Returns the content of the ``opened`` file and closes it, or why the file is not read; None if it is gone."""
    try:
        fd = _followed(path, opened, may_be_link=may_be_link) if isinstance(opened, OSError) else opened
        try:
            return _read(fd, path)
        finally:
            os.close(fd)
    except Unread as refused:
        return refused
    except OSError as error:
        if not os.path.lexists(path) or isinstance(error, FileNotFoundError):
            return None
        why, is_file = error.strerror or str(error), os.path.isfile(path)
        return Unread(why, "make it readable or remove it", is_file=True) if is_file else Unread(why)


def _read(fd: int, path: str) -> bytes:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise Unread("not a file")
    if found.st_uid not in (os.geteuid(), 0) and found.st_uid != os.stat(os.path.dirname(path)).st_uid:
        raise Unread(f"it belongs to the user {found.st_uid}", "chown it or remove it")
    if found.st_size > _MOST_BYTES:
        raise Unread("larger than 64 KiB", "shorten or remove it", is_file=True)
    data = os.read(fd, found.st_size)
    while len(data) < found.st_size and (chunk := os.read(fd, found.st_size - len(data))):
        data += chunk
    return data


def _followed(path: str, refusal: OSError, *, may_be_link: bool) -> int:
    """Opens the target of a link. The user root follows a link of another user only to a file of that user."""
    if not os.path.islink(path):
        raise refusal
    if not may_be_link:
        raise Unread("a link, not a file", "replace the link with a copy of the file")
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if os.geteuid() == 0 and os.lstat(path).st_uid not in (0, os.fstat(fd).st_uid):
        os.close(fd)
        raise Unread("a link of another user")
    return fd
