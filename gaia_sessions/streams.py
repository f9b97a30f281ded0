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


def write_output(data: bytes) -> None:
    """``data`` on standard output; a reader who went away is none of our business."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[_written(rest) :]
    except OSError:
        return


def _written(data: memoryview) -> int:
    try:
        return os.write(1, data)
    except BlockingIOError:  # a pipe that somebody made non-blocking, and its reader is slow
        select.select([], [1], [], 1.0)
        return 0
