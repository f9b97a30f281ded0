"""The tries to write the end of a run.

A server may never answer. So a thread writes there, which is left alone when the time is over or a signal comes.
"""

from __future__ import annotations

import select
import threading
import time
from datetime import timedelta

from gaia_sessions.errors import DurabilityUnknown, LockTimeout, StoreFailure
from gaia_sessions.session.clock import format_time
from gaia_sessions.system import utc_now

from .supervise import END_NOT_STORED, END_STORED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

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


def written(
    write: Callable[[], Written], lease: Lease, signals: Signals, tell: Callable[[str, str], None], server: str | None
) -> Written:
    """Returns what ``write`` returns; tries for as long as ``lease`` has patience, or until a signal comes.

    ``server``: its URL; None if the sessions are in files. Raises the last error; if the server does not answer now,
    a ``StoreFailure`` that says so.
    """
    signals.noted.clear()
    began = time.monotonic()
    has_told = False

    def is_given_up(least: float = 0.0) -> bool:
        """Whether the time is over, or a signal came and ``least`` seconds have passed; if not, tells people."""
        nonlocal has_told
        passed = time.monotonic() - began
        if passed >= lease.patience or (signals.is_ended_by_somebody() and passed >= least):
            return True
        if not has_told and passed >= _SECONDS_TO_TELL:
            has_told = True
            tell(END_NOT_STORED, format_time(utc_now() + timedelta(seconds=lease.patience - passed)))
        return False

    while True:
        try:
            found = write() if server is None else _in_thread(write, server, signals, is_given_up)
        except MAY_PASS:
            if is_given_up():
                raise
            time.sleep(_SECONDS_BETWEEN_TRIES)
            continue
        if has_told:
            tell(END_STORED, "")
        return found


def _in_thread(
    write: Callable[[], Written], server: str, signals: Signals, is_given_up: Callable[[float], bool]
) -> Written:
    found: list[Written] = []
    failed: list[BaseException] = []

    def act() -> None:
        try:
            found.append(write())
        except BaseException as error:  # noqa: BLE001  # the main thread raises it
            failed.append(error)
        signals.wake()

    threading.Thread(target=act, name="gaia-sessions end", daemon=True).start()
    while not (found or failed):
        if is_given_up(_SECONDS_TO_ANSWER):
            raise StoreFailure("write", server, "the server did not answer")
        select.select([signals.fd], [], [], _SECONDS_BETWEEN_LOOKS)
    if failed:
        raise failed[0]
    return found[0]
