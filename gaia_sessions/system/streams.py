"""The standard streams of a process, as file descriptors: input may never end, and output may never be read.

Never use ``sys.stdin`` or ``sys.stdout``: their buffers could turn a closed pipe into an exit code or a late traceback.
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
"""How many bytes a pipe that is ready accepts without blocking the writer."""
_TYPING_TIMEOUT = 60
"""Seconds that a person may take to type a line."""
_MIN_SECONDS = 0.1
"""The shortest time for writing, in seconds: it applies even if the time limit has already passed."""


def fill_closed_streams() -> None:
    """Opens ``/dev/null`` for each closed standard stream, so that no later file gets its number."""
    for descriptor in _STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            # The file gets the lowest free number, which is this one. A read ends at once, and what is written is lost.
            os.open(os.devnull, os.O_RDWR)


def read_input(limit: int, seconds: float) -> bytes:
    """Reads standard input until it ends, exceeds ``limit`` by one byte, or ``seconds`` have passed."""
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
    """Prompts on stderr and reads what a person types until the input ends or ``is_whole``; None if nobody can type."""
    # Both must be terminals: a host that lets hooks read its terminal still captures their stderr. A host that gives
    # hooks a terminal of their own may never end the input, so each line must come within a minute.
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
    """Returns whether this process receives what is typed; the system stops any other process that reads it."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # the terminal belongs to another session
        return False


def write_output(data: bytes, seconds: float) -> bool:
    """Writes ``data`` to standard output as far as it is read within ``seconds``; returns whether all was written."""
    # A reader that is gone is no error. What was written before the time was up stays written.
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
    """Opens the terminal of standard output again, without blocking if possible; other programs share descriptor 1."""
    # A terminal with room for one byte counts as ready, and blocks a writer of more bytes until all were read.
    try:
        return os.open(os.ttyname(1), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 1


def _write_some(target: int, data: memoryview) -> int:
    try:
        return os.write(target, data)
    except BlockingIOError:  # one program made the pipe non-blocking, and another has just filled it
        return 0
