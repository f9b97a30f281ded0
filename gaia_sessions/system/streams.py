"""The standard streams of a process, as descriptors.

Owns reading input that may never end or is typed, and writing output that nobody may read. Stays below ``sys.stdin``
and ``sys.stdout``, whose buffers could turn a closed pipe into an exit code or a late traceback.
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_STANDARD = (0, 1, 2)
_CHUNK = 1 << 16
_WRITE_SIZE = select.PIPE_BUF
"""Bytes that a pipe which is ready for writing takes without making the writer wait; of more it may take a part."""
_TYPING_TIMEOUT = 60
"""Seconds that a person may take for a line."""
_MIN_SECONDS = 0.1
"""Seconds in which a reader gets what can be written without waiting, even when the time is up before."""


def fill_closed_streams() -> None:
    """No file opened from here on can get the number of a standard stream that was closed."""
    for descriptor in _STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            # Numbers are given out from the lowest, so this one is filled; reading it ends, writing it is lost.
            os.open(os.devnull, os.O_RDWR)


def read_input(limit: int, seconds: float) -> bytes:
    """What comes on standard input until it ends, up to one byte over ``limit``, for at most so many ``seconds``."""
    deadline = time.monotonic() + seconds
    data = bytearray()
    while len(data) <= limit:
        ready, _, _ = select.select([0], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(0, min(_CHUNK, limit + 1 - len(data))) if ready else b""
        if not chunk:
            break
        data += chunk
    return bytes(data)


def read_typed(prompt: str, limit: int, is_whole: Callable[[bytes], bool]) -> bytes | None:
    """What a person types, after ``prompt`` on standard error, until it ends or ``is_whole``; None if nobody can type.

    Both must be terminals: a host that lets its hooks read its own terminal still reads what they say itself. One that
    gives them a terminal of their own may never end the input, so nobody is waited for longer than a minute.
    """
    if not (os.isatty(0) and os.isatty(2) and _is_in_foreground()):
        return None
    os.write(2, prompt.encode())
    data = bytearray()
    while len(data) <= limit and select.select([0], [], [], _TYPING_TIMEOUT)[0]:
        chunk = os.read(0, _CHUNK)
        data += chunk
        if not chunk or is_whole(bytes(data)):
            break
    return bytes(data)


def _is_in_foreground() -> bool:
    """Whether what is typed is for us: the system stops any other process that reads it."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # it is not the terminal of our session
        return False


def write_output(data: bytes, seconds: float) -> bool:
    """``data`` on standard output, as far as it is read within so many ``seconds``; whether that was all of it.

    A reader who went away is none of our business. What was written before the time was up stays written: a reader who
    comes later finds the beginning of ``data``, then the end of the output.
    """
    target = _open_terminal() if os.isatty(1) else 1
    try:
        return _write_all(target, data, seconds)
    except OSError:
        return False
    finally:
        if target != 1:
            os.close(target)


def _write_all(target: int, data: bytes, seconds: float) -> bool:
    started = time.monotonic()
    deadline = started + max(seconds, _MIN_SECONDS)
    rest = memoryview(data)
    while rest and time.monotonic() < deadline:
        _, ready, _ = select.select([], [target], [], max(0.0, started + seconds - time.monotonic()))
        if not ready:
            return False
        rest = rest[_write_some(target, rest[:_WRITE_SIZE]) :]
    return not rest


def _open_terminal() -> int:
    """The terminal on standard output, opened anew without blocking if the system lets us; others share the old one.

    A terminal is ready when it has room for one byte, and lets whoever writes more wait until all of it was read.
    """
    try:
        return os.open(os.ttyname(1), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 1


def _write_some(target: int, data: memoryview) -> int:
    try:
        return os.write(target, data)
    except BlockingIOError:  # somebody made the pipe non-blocking, and somebody else filled it meanwhile
        return 0
