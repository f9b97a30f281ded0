"""The signals that a wrapper gets while it runs a command. It notes them, and exits after it wrote the end of the run.

Ignored signals stay ignored, as ``nohup`` and shells want it.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that tell us to end. The command gets them too."""

PAUSE = signal.SIGTSTP
"""A terminal sends it for Ctrl-Z."""

_CHUNK = 1 << 12


class Signals:
    """Collects signals in ``noted`` during a ``with`` block in the main thread; each signal makes ``fd`` readable."""

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
        # A terminal may stop background processes that write. That would stop the clock of the limits.
        self._before[signal.SIGTTOU] = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        return self

    def __exit__(self, *_: object) -> None:
        # Python prints an error if a child ends just while the default is set again. Our handler does nothing.
        if self._before[signal.SIGCHLD] is signal.SIG_DFL:
            del self._before[signal.SIGCHLD]
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what was there before
        signal.set_wakeup_fd(self._fd_before)

    def wake(self) -> None:
        """Makes ``fd`` readable, from any thread."""
        with suppress(BlockingIOError):  # it is readable already
            os.write(self._wake, b"\0")

    def read(self) -> None:
        """Notes what has come."""
        with suppress(BlockingIOError):
            self.noted += [number for number in os.read(self.fd, _CHUNK) if number]

    def is_ended_by_somebody(self) -> bool:
        """Returns whether a signal came that tells us to end."""
        self.read()
        return any(number in PASSED_ON for number in self.noted)


def _note(*_: object) -> None:
    """Does nothing: Python writes the number of the signal to ``fd``."""
