"""The look at a session on a server: a thread asks, because the server may take long to answer.

It reports once that the server does not answer, and once that it is back.
"""

from __future__ import annotations

import threading
import time

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.own_runs import LEASE_LOST

from .supervise import SERVER_BACK, SERVER_SILENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.store.port import Lease

    from .client_of_run import ClientOfRun
    from .supervise import Teller

_SECONDS_BETWEEN_LOOKS = 2.0


class ServerLook:
    """Calls ``look`` in a thread; a call of this object returns its last answer, or that the ``lease`` is over."""

    def __init__(self, look: Callable[[], str | None], lease: Lease, tell: Teller, client: ClientOfRun | None) -> None:
        self._look = look
        self._lease = lease
        self._tell = tell
        self._is_silent = False  # as it was told
        self._client = client
        self._found: str | None = None
        self._thread: threading.Thread | None = None

    def __call__(self) -> str | None:
        if self._client:
            self._client.see()
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_always, name="gaia-sessions look", daemon=True)
            self._thread.start()
        if self._lease.is_over:
            return LEASE_LOST
        until = self._lease.silent_until
        self._tell_of_server(until)
        # A cancellation that cannot be read counts as one in the end, but here the lease decides about that.
        return None if until else self._found

    def _tell_of_server(self, silent_until: datetime | None) -> None:
        if silent_until is not None and not self._is_silent:
            self._tell(SERVER_SILENT, format_time(silent_until))
        elif silent_until is None and self._is_silent:
            self._tell(SERVER_BACK)
        self._is_silent = silent_until is not None

    def _look_always(self) -> None:
        while self._lease.is_held:
            self._found = self._look()
            time.sleep(_SECONDS_BETWEEN_LOOKS)
