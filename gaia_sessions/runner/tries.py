"""The tries to write the end of a run.

A server may never answer. So a thread writes there, which is left alone when the time is over or a signal comes.
"""

from __future__ import annotations

import select
import threading
import time

from gaia_sessions.errors import DurabilityUnknown, LockTimeout, StoreFailure

from .supervise import END_NOT_STORED, END_STORED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.store.port import Lease

    from .signals import Signals

    Written = TypeVar("Written")

MAY_PASS = LockTimeout, StoreFailure, DurabilityUnknown
"""Errors that the next try may not meet."""

_SECONDS_BETWEEN_TRIES = 0.5
_SECONDS_BETWEEN_LOOKS = 0.25
_SECONDS_TO_TELL = 5.0
"""After this time without success, people are told."""

_SECONDS_TO_ANSWER = 1.0
"""How long a server may take to answer before a signal ends the tries."""


class Tries:
    """Tries to write an end for as long as ``lease`` has patience; a signal ends that too."""

    def __init__(self, lease: Lease, signals: Signals, tell: Callable[[str, str], None], server: str | None) -> None:
        """``server``: its URL; None if the sessions are in files."""
        self._lease = lease
        self._signals = signals
        self._tell = tell
        self._server = server
        self._has_told = False

    def written(self, write: Callable[[], Written]) -> Written:
        """Returns what ``write`` returns; raises its last error."""
        self._signals.noted.clear()
        self._began = time.monotonic()
        self._error: SessionsError | None = None
        while True:
            try:
                found = write() if self._server is None else self._in_thread(write, self._server)
            except MAY_PASS as error:
                self._error = error
                if self._is_given_up():
                    raise
                self._tell_if_late()
                time.sleep(_SECONDS_BETWEEN_TRIES)
                continue
            if self._has_told:
                self._tell(END_STORED, "")
            return found

    def _in_thread(self, write: Callable[[], Written], server: str) -> Written:
        found: list[Written] = []
        failed: list[BaseException] = []

        def act() -> None:
            try:
                found.append(write())
            except BaseException as error:  # noqa: BLE001  # the main thread raises it
                failed.append(error)
            self._signals.wake()

        threading.Thread(target=act, name="gaia-sessions end", daemon=True).start()
        while not (found or failed):
            if self._is_given_up(_SECONDS_TO_ANSWER):
                raise self._error or StoreFailure("write", server, "the server did not answer")
            select.select([self._signals.fd], [], [], _SECONDS_BETWEEN_LOOKS)
            self._tell_if_late()
        if failed:
            raise failed[0]
        return found[0]

    def _is_given_up(self, seconds: float = 0.0) -> bool:
        """Whether the time is over, or a signal came and ``seconds`` have passed."""
        passed = time.monotonic() - self._began
        return passed >= self._lease.patience or (self._signals.is_ended_by_somebody() and passed >= seconds)

    def _tell_if_late(self) -> None:
        if not self._has_told and time.monotonic() - self._began >= _SECONDS_TO_TELL:
            self._has_told = True
            self._tell(END_NOT_STORED, f"{self._lease.patience:.0f}")
