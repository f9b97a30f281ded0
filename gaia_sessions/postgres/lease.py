"""The lease of a run on a server: a row that its process renews, by which every machine sees that the run goes on."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

from gaia_sessions.errors import SessionsError
from gaia_sessions.store import SECONDS_TO_END
from gaia_sessions.system import utc_now
from gaia_sessions.system.processes import describe

from .connections import execute, server_of, with_values
from .transaction import of_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Self

    from gaia_sessions.session.schema import HostProcess

    from .connections import Connection, Row

_RENEWALS = 12
"""How many times a lease is renewed in the time after which it lapses; after a failure, five times as many."""

_MOST_WITHOUT = 3 / 4
"""After this part of that time without a renewal, the work must end: others may soon call it lost."""

_SILENCE = 1 / 24
"""After this part of that time without an answer, the server counts as silent."""

_SECONDS_FOR_SERVER = 2.0
"""How long to wait for the server at a renewal and at the end."""

_BEGIN = (
    "INSERT INTO gaia_sessions.lease (id, until) VALUES (%s, clock_timestamp() + gaia_sessions.lapse()) "
    "ON CONFLICT (id) DO UPDATE SET until = EXCLUDED.until "  # the answer to the first try was lost
    "RETURNING extract(epoch FROM gaia_sessions.lapse())::float8"
)
_RENEW = """
WITH renewed AS (
    UPDATE gaia_sessions.lease SET until = clock_timestamp() + gaia_sessions.lapse()
    WHERE id = %s AND gaia_sessions.is_valid(until) RETURNING id
)
SELECT EXISTS (SELECT FROM renewed), EXISTS (SELECT FROM gaia_sessions.lease WHERE id = %s)
"""
_END = """
UPDATE gaia_sessions.lease SET until = least(until, clock_timestamp() + interval '10 seconds') WHERE id = %s
"""
"""It stays for those who have read the record of the run before its end."""


class Lease:
    """The right of this process to work on one run: begun by entering it, renewed by a thread, ended by leaving it."""

    def __init__(self, url: str, seconds: float) -> None:
        self.id = uuid4().hex
        self.is_held = False
        self._url = url
        self._seconds_to_begin = seconds  # how long to wait for the server
        self._has_lapsed = False
        self._pid: int | None = None
        self._renewed = 0.0
        self._unanswered: float | None = None  # since when the server does not answer
        self._seconds = 0.0  # after which the lease lapses
        self._has_row = True
        self._ends = threading.Event()
        self._renewing = threading.Thread()

    @property
    def is_over(self) -> bool:
        return self._has_lapsed or (self.is_held and self._seconds_left < 0)

    @property
    def _seconds_left(self) -> float:
        return self._renewed + self._seconds * _MOST_WITHOUT - _clock()

    @property
    def silent_until(self) -> datetime | None:
        since = self._unanswered
        if not self.is_held or since is None or _clock() - since < self._seconds * _SILENCE:
            return None
        return utc_now() + timedelta(seconds=self._seconds_left)

    @property
    def patience(self) -> float:
        return min(SECONDS_TO_END, self._seconds / 2)  # then others go on with the work

    def holder(self) -> HostProcess:
        """Returns the description of this process with the lease."""
        return {**(describe(os.getpid()) or {"pid": os.getpid()}), "lease": self.id}

    def __enter__(self) -> Self:
        transaction = of_thread.open.get(self._url)
        self._ends.set()  # of an entry before, whose transaction was not written
        self._renewed = _clock()
        if transaction is None:
            [(self._seconds,)] = self._asked("begin the run", _BEGIN, self._seconds_to_begin)
        else:  # it begins with the run: another connection might wait for this one for ever
            [(self._seconds,)] = transaction.inserted(_BEGIN, (self.id,))
        self.is_held = True
        self._pid = os.getpid()
        self._ends = threading.Event()
        self._renewing = threading.Thread(
            target=self._renew_until, args=(self._ends,), name="gaia-sessions lease", daemon=True
        )
        self._renewing.start()
        return self

    def __exit__(self, kind: object = None, error: object = None, trace: object = None) -> None:
        if not self.is_held or self._pid != os.getpid():
            return
        self.is_held = False
        # In a transaction, nothing is written yet, and the lease may be entered again: a late end would cut it short.
        self._has_row = self._url not in of_thread.open
        self._ends.set()
        if self._unanswered is None:
            self._renewing.join(_SECONDS_FOR_SERVER)

    def _renew_until(self, ends: threading.Event) -> None:
        """Renews the lease, and ends it: a server that hangs holds up nobody but this thread."""
        usual = pause = self._seconds / _RENEWALS
        while not ends.wait(pause) and not self.is_over:
            pause = usual if self._is_renewed() else usual / 5
        ends.wait()  # a lease that is over is ended, too, when its run has ended
        if not self.is_held and self._has_row:  # else it was entered again
            with suppress(SessionsError):  # it lapses, and a sweep removes it
                self._asked("end the run", _END, _SECONDS_FOR_SERVER)

    def _is_renewed(self) -> bool:
        """Renews the lease; notes it if the lease has lapsed."""
        began = _clock()
        try:
            [(is_renewed, is_there)] = self._asked("renew the lease", _RENEW, _SECONDS_FOR_SERVER)
        except SessionsError:
            self._unanswered = self._unanswered or began
            return False
        self._unanswered = None
        if is_renewed:
            self._renewed = began
        else:  # without a row, the transaction that begins the run is not written yet
            self._has_lapsed = bool(is_there)
        return bool(is_renewed)

    def _asked(self, action: str, sql: str, seconds: float) -> list[Row]:
        """Returns the rows of ``sql``, in a transaction of its own."""

        def ask(connection: Connection) -> list[Row]:
            return execute(connection, with_values(connection, sql, (self.id,) * sql.count("%s")))

        return server_of(self._url).asked(action, seconds, ask)


def _clock() -> float:
    """Returns a time that also passes while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
