"""What a command writes: shown at once, stored in a log, and its end remembered.

A slow reader of our output holds up only the command: a thread writes each stream, and while much waits, nothing is
read from the command.
"""

from __future__ import annotations

import os
import queue
import signal
import stat
import threading
import time
from contextlib import suppress
from select import PIPE_BUF

from gaia_sessions.session.transcript import COMMIT_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.store.port import Output

MESSAGE_BYTES = 64 << 10
"""How much of the end of stdout is the last message of the command."""

_MOST_WAITING = 256 << 10
"""Bytes of a stream that may wait for its reader; above that, the command is not read from."""

_LONGEST_LINE = 64 << 10
"""Bytes of a line that wait for its end; a longer line is shown in pieces."""

_CONTINUATION = range(0x80, 0xC0)
"""Bytes that begin no character of UTF-8."""


class Tail:
    """The end of all that was added."""

    __slots__ = ("_data", "_is_cut")

    def __init__(self) -> None:
        self._data = bytearray()
        self._is_cut = False

    def add(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > 2 * MESSAGE_BYTES:
            self._cut()

    def _cut(self) -> None:
        if len(self._data) > MESSAGE_BYTES:
            del self._data[:-MESSAGE_BYTES]
            self._is_cut = True

    def text(self) -> str:
        """Returns the end as text, from the first whole character on; invalid UTF-8 is replaced, NUL is left out."""
        self._cut()
        first = 0
        while self._is_cut and first < min(3, len(self._data)) and self._data[first] in _CONTINUATION:
            first += 1
        return self._data[first:].decode("utf-8", "replace").replace("\0", "")


class Whole:
    """All that was added, up to the limit of a turn; beyond that, its beginning and its end."""

    __slots__ = ("_data", "_left_out")

    def __init__(self) -> None:
        self._data = bytearray()
        self._left_out = 0

    @property
    def is_cut(self) -> bool:
        """Whether more was added than is stored."""
        return self._left_out > 0

    def add(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > COMMIT_LIMIT:
            self._left_out += len(self._data) - 2 * MESSAGE_BYTES
            del self._data[MESSAGE_BYTES:-MESSAGE_BYTES]

    def text(self) -> str:
        """Returns what is stored as text; invalid UTF-8 is replaced, NUL is left out."""
        data = bytes(self._data)
        if self._left_out:
            gap = f"\n[... {self._left_out:,} bytes left out ...]\n".encode()
            data = data[:MESSAGE_BYTES] + gap + data[MESSAGE_BYTES:]
        return data.decode("utf-8", "replace").replace("\0", "")


class NoLog:
    """The log of a command whose output is not stored."""

    def write(self, data: bytes) -> None:
        """Stores nothing."""

    def handed_over(self) -> None:
        """Returns no file."""

    def close(self) -> None:
        """Closes nothing."""


class Live:
    """One of our streams, written by a thread. ``on_room`` is called when less waits. ``refused``: a failed write."""

    def __init__(self, fd: int, on_room: Callable[[], None]) -> None:
        self._fd = fd
        self._on_room = on_room
        self._is_terminal, self._is_pipe = os.isatty(fd), _is_pipe(fd)
        self._begun = bytearray()  # a line that is not whole yet
        self._last = b""
        self._waiting = 0
        self.refused: OSError | None = None
        self._lock = threading.Lock()
        self._given: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        return self._waiting > _MOST_WAITING

    def write(self, data: bytes) -> None:
        # Whole lines, so that other writers tear no line. In the foreground of a terminal, a person sees each piece.
        end = data.rfind(b"\n") + 1
        if self._is_in_foreground() or len(data) - end + (0 if end else len(self._begun)) > _LONGEST_LINE:
            end = len(data)
        if not end:
            self._begun += data
            return
        self._give(bytes(self._begun) + data[:end])
        self._begun = bytearray(data[end:])

    def finish(self) -> None:
        """Waits until all is written, or until nobody reads it any more."""
        last = (self._last + self._begun)[-1:]  # a terminal gets a line end if it lacks one
        self._give(bytes(self._begun) + (b"\n" if self._is_terminal and last not in (b"", b"\n") else b""))
        self._given.put(b"")
        self._thread.join()

    def _give(self, data: bytes) -> None:
        if data:
            self._last = data[-1:]
            with self._lock:
                self._waiting += len(data)
            self._given.put(data)

    def _is_in_foreground(self) -> bool:
        """Returns whether this process has the terminal for itself."""
        # A shell lets what it starts with & ignore Ctrl-C.
        if self._is_terminal and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            with suppress(OSError):  # the terminal belongs to others
                return os.tcgetpgrp(self._fd) == os.getpgrp()
        return False

    def _write_all(self) -> None:
        is_read = True
        while data := self._given.get():
            for piece in _pieces(data) if self._is_pipe else (data,):
                view = memoryview(piece)
                while view and is_read:
                    try:
                        view = view[os.write(self._fd, view) :]
                    except BlockingIOError:  # another process made the shared stream non-blocking
                        time.sleep(0.01)
                    except OSError as error:
                        is_read = False
                        self.refused = None if isinstance(error, BrokenPipeError) else error
            with self._lock:
                was_full = self.is_full
                self._waiting -= len(data)
            if was_full and not self.is_full:
                self._on_room()


def _is_pipe(fd: int) -> bool:
    with suppress(OSError):  # it is closed
        return stat.S_ISFIFO(os.fstat(fd).st_mode)
    return False


def _pieces(lines: bytes) -> Iterator[bytes]:
    """Yields ``lines`` in pieces that end with a line and fit into a pipe; a longer piece is a single line."""
    begin = 0
    while len(lines) - begin > PIPE_BUF:
        end = lines.rfind(b"\n", begin, begin + PIPE_BUF) + 1 or lines.find(b"\n", begin) + 1 or len(lines)
        yield lines[begin:end]
        begin = end
    yield lines[begin:]


class Outputs:
    """Both streams of a command, by their numbers, 1 and 2."""

    __slots__ = ("_live", "_log", "_said")

    def __init__(
        self, log: Output, live: dict[int, int], on_room: Callable[[], None], said: Tail | Whole | None = None
    ) -> None:
        """``live`` has the descriptor on which a stream is shown; ``said`` stores stdout, by default its end."""
        self._log = log
        self._live = {number: Live(fd, on_room) for number, fd in live.items()}
        self._said = said or Tail()

    def add(self, number: int, data: bytes) -> None:
        """Stores what came on a stream, and shows it."""
        self._log.write(data)
        if number == 1:
            self._said.add(data)
        if number in self._live:
            self._live[number].write(data)

    def is_full(self, number: int) -> bool:
        """Returns whether the stream should not be read at the moment."""
        return number in self._live and self._live[number].is_full

    def message(self) -> str:
        """Returns the end of stdout."""
        return self._said.text()

    def close(self) -> None:
        """Ends the log, which is on disk when this returns."""
        self._log.close()

    def finish(self) -> OSError | None:
        """Waits until all was shown. Returns the error if a write failed, but not if the reader is gone."""
        for live in self._live.values():
            live.finish()
        return next((live.refused for live in self._live.values() if live.refused), None)
