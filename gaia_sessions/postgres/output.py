"""The output of a run's command, in rows: its first and its last MiB. A thread stores it once a second."""

from __future__ import annotations

import threading
import time

from gaia_sessions.errors import SessionsError
from gaia_sessions.store import SECONDS_TO_END
from gaia_sessions.store.output_file import KEPT_BYTES, MOST_REST, omitted_at

from .connections import Refused, execute, server_of, with_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .connections import Connection, Row
    from .transaction import Transaction

_SECONDS_BETWEEN = 1.0
_HANDED_OVER = ("_url", "_incarnation", "_number", "_lease", "_size")
_SECONDS_TO_CLOSE = SECONDS_TO_END / 2
"""How long a call of ``close`` tries to store the last part: then there is time for the end of the run."""

_SECONDS_TO_HAND_OVER = 10.0
"""The same for the output that another process goes on with; until then nobody reads from the command."""

_INSERT = (
    "INSERT INTO gaia_sessions.output (incarnation, run, start, data) "
    "SELECT incarnation, %s, %s, %s FROM gaia_sessions.session WHERE incarnation = %s "
    "ON CONFLICT (incarnation, run, start) DO UPDATE SET data = EXCLUDED.data"
)
"""A part whose first answer was lost is stored again, perhaps longer."""

_DELETE = (
    "DELETE FROM gaia_sessions.output WHERE incarnation = %s AND run = %s "
    "AND start >= %s AND start + octet_length(data) <= %s"
)
_NOTE = "UPDATE gaia_sessions.lease SET written_at = clock_timestamp() WHERE id = %s"


class ServerOutput:
    """The output of run ``number``; it belongs to one ``incarnation`` of the session."""

    def __init__(self, url: str, incarnation: int, number: int, lease: str | None) -> None:
        self._url = url
        self._incarnation = incarnation
        self._number = number
        self._lease = lease
        self._size = 0  # of the whole output
        self._begin()

    def _begin(self) -> None:
        self._pieces: list[tuple[int, bytes]] = []  # not stored yet, each with its place
        self._changing = threading.Lock()
        self._storing = threading.Lock()
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def __getstate__(self) -> dict[str, object]:
        return {name: self.__dict__[name] for name in _HANDED_OVER}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._begin()

    def write(self, data: bytes) -> None:
        with self._changing:
            room = max(0, KEPT_BYTES - self._size)  # the first MiB and the rest are different rows
            for piece in (data[:room], data[room:]):
                if piece:
                    self._pieces.append((self._size, piece))
                    self._size += len(piece)
            self._drop_middle()
            if self._thread is None and not self._ends.is_set():
                self._thread = threading.Thread(target=self._store_always, name="gaia-sessions output", daemon=True)
                self._thread.start()

    def _drop_middle(self) -> None:
        """Drops what belongs neither to the first nor to the last MiB, if there is much of it."""
        rest = [one for one in self._pieces if one[0] >= KEPT_BYTES]
        if sum(len(data) for _, data in rest) > MOST_REST:
            first = [one for one in self._pieces if one[0] < KEPT_BYTES]
            last = self._size - KEPT_BYTES
            self._pieces = first + [(start, data) for start, data in rest if start + len(data) > last]

    def handed_over(self) -> Sequence[int] | None:
        self._end(_SECONDS_TO_HAND_OVER)
        try:
            return () if not self._pieces and self._is_there() else None
        except SessionsError:
            return None

    def close(self) -> None:
        self._end(_SECONDS_TO_CLOSE)

    def _end(self, seconds: float) -> None:
        self._ends.set()
        until = time.monotonic() + seconds
        while not self._is_stored() and time.monotonic() < until:
            time.sleep(_SECONDS_BETWEEN / 4)

    def _store_always(self) -> None:
        while not self._ends.wait(_SECONDS_BETWEEN):
            self._is_stored()

    def _is_stored(self) -> bool:
        """Stores what is new; what the server refuses is tried again."""
        with self._storing:
            with self._changing:
                pieces, size = _merged(self._pieces), self._size
                self._pieces = []
            if not pieces:
                return True
            try:
                self._store(pieces, size)
            except (SessionsError, Refused):
                with self._changing:
                    self._pieces = pieces + self._pieces
                    self._drop_middle()
                return False
            return True

    def _store(self, pieces: list[tuple[int, bytes]], size: int) -> None:
        rows: list[tuple[str, tuple[object, ...]]] = [
            (_INSERT, (self._number, start, data, self._incarnation)) for start, data in pieces
        ]
        rows.append((_DELETE, (self._incarnation, self._number, KEPT_BYTES, size - KEPT_BYTES)))
        if self._lease:
            rows.append((_NOTE, (self._lease,)))
        server = server_of(self._url)
        with server.connection(time.monotonic() + _SECONDS_BETWEEN) as connection:
            sql = "; ".join(with_values(connection, one, values) for one, values in rows)
            execute(connection, f"BEGIN; {sql}; COMMIT")

    def _is_there(self) -> bool:
        def ask(connection: Connection) -> list[Row]:
            sql = "SELECT 1 FROM gaia_sessions.session WHERE incarnation = %s"
            return execute(connection, with_values(connection, sql, (self._incarnation,)))

        return bool(server_of(self._url).asked("read", _SECONDS_TO_HAND_OVER, ask))


def write_output(transaction: Transaction, incarnation: int, run: int, data: bytes) -> None:
    """Stores the content of an output file; the first MiB and the rest are different rows."""
    omitted, rest = omitted_at(data, KEPT_BYTES)
    for start, piece in ((0, data[:KEPT_BYTES]), (KEPT_BYTES + omitted, data[rest:])):
        if piece or not start:  # an output without a byte has a row, too
            transaction.write(_INSERT, (run, start, piece, incarnation))


def _merged(pieces: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Joins pieces that follow each other, but never across the end of the first MiB."""
    merged: list[tuple[int, bytes]] = []
    for start, data in pieces:
        if merged and start != KEPT_BYTES and merged[-1][0] + len(merged[-1][1]) == start:
            merged[-1] = merged[-1][0], merged[-1][1] + data
        else:
            merged.append((start, data))
    return merged
