"""The signals that a wrapper gets while it has a command: noted, and never a reason to leave before its end is written.

Owns which signals these are. Those that were ignored stay so, as ``nohup`` and shells want it.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals by which somebody ends us, and which the command is sent too."""

PAUSE = signal.SIGTSTP
"""What a terminal sends for Ctrl-Z."""

_CHUNK = 1 << 12


class Signals:
    """For the length of a block, in the main thread: what comes is in ``noted``, and ``fd`` can be read then."""

    def __init__(self) -> None:
        self.noted: list[int] = []
        self.fd, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before: dict[int, object] = {}
        self._fd_before = -1

    def __enter__(self) -> Self:
        self._fd_before = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in (*PASSED_ON, PAUSE, signal.SIGCHLD):
            handler = signal.getsignal(number)
            if handler is not signal.SIG_IGN or number == signal.SIGCHLD:
                self._before[number] = signal.signal(number, _note)
        # A terminal that stops whoever writes from the background would stop the clock of the limits.
        self._before[signal.SIGTTOU] = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what was there before
        signal.set_wakeup_fd(self._fd_before)

    def wake(self) -> None:
        """Makes ``fd`` readable, from any thread."""
        with suppress(BlockingIOError):  # it is
            os.write(self._wake, b"\0")

    def read(self) -> None:
        """Takes note of what has come."""
        with suppress(BlockingIOError):
            self.noted += [number for number in os.read(self.fd, _CHUNK) if number]

    def is_ended_by_somebody(self) -> bool:
        """Whether one came by which somebody ends us."""
        self.read()
        return any(number in PASSED_ON for number in self.noted)


def _note(*_: object) -> None:
    """Python writes the number of the signal, which wakes whoever waits for ``fd``."""
