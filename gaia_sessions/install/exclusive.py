"""One at a time: whoever reads settings in order to write them keeps others of us out until it is done.

Owns the lock in our folder of the user's state directory, which both come and go with whoever holds it.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import LockTimeout, SessionsError
from gaia_sessions.store import locks
from gaia_sessions.store.directory import Directory, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_LOCK_NAME = "settings" + locks.SUFFIX
_TIMEOUT = 10.0


class SettingsLock:
    """Held until the ``with`` block ends; raises ``LockTimeout`` if somebody else holds it for too long.

    Where nothing can be locked it holds nothing: leaving must be possible there too, and whoever comes
    needs the folder for more than the lock.
    """

    __slots__ = ("_folder", "_lock", "_made", "_state")

    def __init__(self, state: str) -> None:
        self._state = state
        self._folder: Directory | None = None
        self._lock: locks.Lock | None = None
        self._made: list[str] = []
        """The folders that were not there before, the innermost first."""

    def __enter__(self) -> Self:
        try:
            while not self._acquire():
                continue
        except LockTimeout:
            raise
        except SessionsError:
            return self
        return self

    def _acquire(self) -> bool:
        """Whether we hold it; False if the last who did took the folder away just as we waited in it."""
        with translate_errors("make", self._state):
            self._made += _missing_folders(self._state)
            os.makedirs(self._state, mode=0o700, exist_ok=True)
            try:
                folder = Directory.at(self._state)
            except FileNotFoundError:
                return False
        try:
            self._lock = locks.acquire(folder, _LOCK_NAME, _TIMEOUT, locks.sleep_and_retry)
        except SessionsError:
            gone = os.fstat(folder.fd).st_nlink == 0
            os.close(folder.fd)
            if gone:
                return False
            raise
        self._folder = folder
        return True

    def __exit__(self, *_: object) -> None:
        if self._lock is None or self._folder is None:
            return
        with self._folder, self._lock:
            try:
                self._lock.remove()
                for folder in dict.fromkeys((self._state, *self._made)):
                    os.rmdir(folder)
            except OSError:  # receipts are in there, or what somebody else keeps beside them
                return


def _missing_folders(path: str) -> list[str]:
    """``path`` and the folders above it that are not there, the innermost first."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing
