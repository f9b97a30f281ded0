"""The standard streams of a process, as descriptors.

Owns reading input that may never end and writing output that nobody may read. Stays below ``sys.stdin``
and ``sys.stdout``, whose buffers could turn a closed pipe into an exit code or a late traceback.
"""

from __future__ import annotations

import os
import select
import time

_STANDARD = (0, 1, 2)
_CHUNK = 1 << 16
_AT_ONCE = select.PIPE_BUF
"""Bytes that a pipe which is ready for writing takes without making the writer wait; of more it may take a part."""


def secure() -> None:
    """No file opened from here on can get the number of a standard stream that was closed."""
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            # Numbers are given out from the lowest, so this one is filled; reading it ends, writing it is lost.
            os.open(os.devnull, os.O_RDWR)


def read_input(limit: int, seconds: float) -> bytes:
    """What comes on standard input until it ends, up to one byte over ``limit``, for at most so many ``seconds``."""
    end = time.monotonic() + seconds
    data = bytearray()
    while len(data) <= limit:
        ready, _, _ = select.select([0], [], [], max(0.0, end - time.monotonic()))
        chunk = os.read(0, min(_CHUNK, limit + 1 - len(data))) if ready else b""
        if not chunk:
            break
        data += chunk
    return bytes(data)


def write_output(data: bytes, seconds: float) -> bool:
    """``data`` on standard output, as far as it is read within so many ``seconds``; whether that was all of it.

    A reader who went away is none of our business. What was written before the time was up stays written: a reader who
    comes later finds the beginning of ``data``, then the end of the output.
    """
    end = time.monotonic() + seconds
    rest = memoryview(data)
    try:
        while rest:
            _, ready, _ = select.select([], [1], [], max(0.0, end - time.monotonic()))
            if not ready:
                return False
            rest = rest[_written(rest[:_AT_ONCE]) :]
    except OSError:
        return False
    return True


def _written(data: memoryview) -> int:
    try:
        return os.write(1, data)
    except BlockingIOError:  # somebody made the pipe non-blocking, and somebody else filled it meanwhile
        return 0
