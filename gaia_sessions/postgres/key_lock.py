"""The lock on a key: a lock of the server that the transaction of its block holds."""

from __future__ import annotations

from gaia_sessions.errors import LockTimeout

from .connections import LockNotAvailable
from .reader import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .blocks import Blocks


class KeyLock:
    """A ``with`` block that one transaction at a time can be in for a ``key``: a lock that its commit frees."""

    __slots__ = ("_block", "_key", "_seconds", "_store", "_transaction", "is_held")

    def __init__(self, store: Blocks, key: tuple[str, ...], seconds: float) -> None:
        self._store = store
        self._key = key
        self._seconds = seconds
        self.is_held = False

    def __enter__(self) -> None:
        self._block = self._store.block()
        self._transaction = self._block.__enter__()
        try:
            self._lock(int.from_bytes(digest_of(self._key)[:8], signed=True))
        except BaseException as error:
            self._block.__exit__(type(error), error, error.__traceback__)
            raise
        self._transaction.held_keys.add(self._key)
        self.is_held = True

    def _lock(self, number: int) -> None:
        timeout = LockTimeout(f"{self._store.root}: the key {'/'.join(self._key)}", self._seconds, None)
        if self._key in self._transaction.held_keys:
            raise timeout
        if self._seconds <= 0:
            [[is_locked]] = self._transaction.rows("SELECT pg_try_advisory_xact_lock(%s)", (number,))
            if not is_locked:
                raise timeout
            return
        try:
            self._transaction.rows("SELECT pg_advisory_xact_lock(%s)", (number,), wait=self._seconds)
        except LockNotAvailable:
            raise timeout from None

    def __exit__(self, kind: object = None, error: object = None, trace: object = None) -> None:
        if self.is_held:
            self.is_held = False
            self._transaction.held_keys.discard(self._key)
            self._block.__exit__(kind, error, trace)  # type: ignore[arg-type]  # what the block of the caller got
