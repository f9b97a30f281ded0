"""The look at a session on a server: a thread asks, because the server may take long to answer."""

from __future__ import annotations

import threading
import time

from gaia_sessions.session.own_runs import LEASE_LOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.store.port import Lease

_SECONDS_BETWEEN_LOOKS = 2.0


class ServerLook:
    """Calls ``look`` in a thread; a call of this object returns its last answer, or that the ``lease`` is over."""

    def __init__(self, look: Callable[[], str | None], lease: Lease, see: Callable[[], None]) -> None:
        self._look = look
        self._lease = lease
        self._see = see  # called in the thread of the caller
        self._found: str | None = None
        self._thread: threading.Thread | None = None

    def __call__(self) -> str | None:
        self._see()
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_always, name="gaia-sessions look", daemon=True)
            self._thread.start()
        if self._lease.is_over:
            return LEASE_LOST
        # A cancellation that cannot be read counts as one in the end, but here the lease decides about that.
        return None if self._lease.silent_until else self._found

    def _look_always(self) -> None:
        while self._lease.is_held:
            self._found = self._look()
            time.sleep(_SECONDS_BETWEEN_LOOKS)
