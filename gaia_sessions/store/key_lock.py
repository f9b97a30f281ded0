"""The lock on a key. Finding or creating a session locks the host's key; a send locks a key until the send ends."""

from __future__ import annotations

import os

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.ids import encode_key

from . import SECONDS_TO_END, locks
from .directory import translate_errors
from .root import LOCKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import HostProcess

    from .directory import Directory


def path_of(root: str, key: tuple[str, ...]) -> str:
    """Returns the lock file for ``key`` in the store at ``root``."""
    return os.path.join(os.path.abspath(root), LOCKS, f"{locks.KEY_PREFIX}{encode_key(*key)}{locks.SUFFIX}")


class _OnFiles:
    """What all leases on files say: no server decides when they are over."""

    __slots__ = ()

    is_over = False
    silent_until = None
    patience = SECONDS_TO_END


class KeyLock(_OnFiles):
    """A ``with`` block that nobody else can be in with the same ``key`` at the same time."""

    __slots__ = ("_folder", "_lock", "_name", "_open_folder", "_path", "_root", "_timeout", "_wait")

    def __init__(
        self,
        root: str,
        open_folder: Callable[[], Directory],
        key: tuple[str, ...],
        timeout: float,
        wait: locks.WaitForLock,
    ) -> None:
        self._root = root
        self._open_folder = open_folder
        self._path = path_of(root, key)
        self._name = os.path.basename(self._path)
        self._lock: locks.Lock | None = None
        self._timeout = timeout
        self._wait = wait

    @property
    def is_held(self) -> bool:
        return self._lock is not None

    def holder(self) -> HostProcess:
        """Names the lock file, which exists as long as the block lasts."""
        from gaia_sessions.system.processes import describe_holder  # only a send needs it

        return describe_holder(self._path)

    def __enter__(self) -> None:
        if self._lock is not None:
            return
        with translate_errors("lock", f"{self._root}/{self._name}"):
            self._folder = self._open_folder()
        try:
            self._lock = locks.acquire(self._folder, self._name, self._timeout, self._wait)
        except SessionsError:
            os.close(self._folder.fd)
            raise

    def __exit__(self, *_: object) -> None:
        """Frees the lock. A second call does nothing."""
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        with self._folder, lock:
            try:
                lock.remove()  # few keys are used again
            except OSError:  # a later sweep removes it
                return


class Presence(_OnFiles):
    """The lease of a command in files: its wrapper is found by its process alone."""

    __slots__ = ("is_held",)

    def __init__(self) -> None:
        self.is_held = False

    def holder(self) -> HostProcess:
        from gaia_sessions.system.processes import describe

        return describe(os.getpid()) or {"pid": os.getpid()}

    def __enter__(self) -> None:
        self.is_held = True

    def __exit__(self, *_: object) -> None:
        self.is_held = False
