"""One settings file that is there: what it holds, or why that is not read.

Loaded only where there is one. A project comes from anybody, with its settings: of these nothing is read but a small
regular file, and no link is followed.
"""

from __future__ import annotations

import os
import stat

_MOST_BYTES = 64 << 10


class Unread(Exception):
    """Why a file is not read, and what a person can do about it. is_file: whether what is there can be corrected."""

    def __init__(self, why: str, hint: str = "remove it", *, is_file: bool = False) -> None:
        super().__init__(why)
        self.hint = hint
        self.is_file = is_file


def content_of(path: str, opened: int | OSError, *, may_be_link: bool) -> bytes | Unread | None:
    """What the file at ``path`` holds, which was ``opened`` without following a link, or why it is not read.

    None if nobody can say that it is there. Its descriptor is closed.
    """
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
        raise Unread("larger than 64 KiB", "make it shorter or remove it", is_file=True)
    data = os.read(fd, found.st_size)
    while len(data) < found.st_size and (chunk := os.read(fd, found.st_size - len(data))):
        data += chunk
    return data


def _followed(path: str, refusal: OSError, *, may_be_link: bool) -> int:
    """The file that a link leads to, open; root follows that of a user only to what is that user's."""
    if not os.path.islink(path):
        raise refusal
    if not may_be_link:
        raise Unread("a link, not a file", "copy the file here in place of the link")
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if os.geteuid() == 0 and os.lstat(path).st_uid not in (0, os.fstat(fd).st_uid):
        os.close(fd)
        raise Unread("a link of another user")
    return fd
