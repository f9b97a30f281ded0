"""The lock on an exact key of some host, for a look-up and what follows from it.

Owns the life of its lock file: such keys come only once, so the file goes when the block ends.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.ids import encode_key

from . import atomic, locks
from .directory import translate_errors
from .root import LOCKS, ensure_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .directory import Directory


class KeyLock:
    """A block that nobody else is in with the same ``key``."""

    __slots__ = ("_folder", "_lock", "_make_root", "_name", "_timeout", "_wait")

    def __init__(
        self, make_root: Callable[[], Directory], key: tuple[str, ...], timeout: float, wait: locks.WaitForLock
    ) -> None:
        self._make_root = make_root
        self._name = f".key.{encode_key(*key)}{locks.SUFFIX}"
        self._timeout = timeout
        self._wait = wait

    def __enter__(self) -> None:
        with translate_errors("lock", self._name), self._make_root() as root:
            self._folder = ensure_folder(root, LOCKS)
        try:
            self._lock = locks.acquire(self._folder, self._name, self._timeout, self._wait)
        except SessionsError:
            os.close(self._folder.fd)
            raise

    def __exit__(self, *_: object) -> None:
        with self._folder, self._lock:
            atomic.discard(self._folder, self._name)
