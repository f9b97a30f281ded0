"""One transaction: what a store reads and locks in its outermost block, and writes when that block ends.

A transaction is written exactly once. It inserts a random ID; if the connection is lost during the commit, the same ID
is inserted as void: that succeeds only if the transaction never can.
"""

from __future__ import annotations

import os
import threading
import time
from uuid import uuid4

from gaia_sessions.errors import DurabilityUnknown, StoreFailure
from gaia_sessions.errors.others import OutcomeUnknown

from .connections import (
    LockNotAvailable,
    Refused,
    execute,
    is_lost,
    is_refused,
    is_repeatable,
    not_written,
    refusal,
    with_values,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from gaia_sessions.errors import SessionsError

    from .connections import Connection, Row, Server

_SECONDS_TO_SETTLE = 30.0
"""How long to try to learn whether a commit has succeeded."""

_SECONDS_BETWEEN_TRIES = 0.1
_MILLISECONDS_OF_STATEMENT = 15_000  # less than the client waits for an answer
_MILLISECONDS_IDLE = 30_000
_SETTLE = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL synchronous_commit = on;
INSERT INTO gaia_sessions.committed (id, is_void) VALUES (%s, true)
    ON CONFLICT (id) DO UPDATE SET at = committed.at RETURNING is_void;
COMMIT
"""
"""The update changes nothing, but its commit is durable only after the commit that it asks about."""


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.open: dict[str, Transaction] = {}


of_thread = _OfThread()
"""The open transactions of the present thread, by the URL of their server."""


class Transaction:
    """A transaction on ``server``; it has no connection until something is read, locked or written."""

    def __init__(self, server: Server, seconds: float, *, durable: bool) -> None:
        self._server = server
        self._seconds = seconds  # how long to wait for the server
        self._durable = durable
        self._id = str(uuid4())
        self._pid = os.getpid()
        self._connection: Connection | None = None
        self._unsent: list[str] = []
        self._has_written = False
        self.is_written = False  # the commit has succeeded, or perhaps has
        self._failure: SessionsError | None = None
        self._warnings: list[str] = []
        self.held_keys: set[tuple[str, ...]] = set()
        self.revisions: dict[str, tuple[int, int]] = {}  # the incarnation and the revision of each session that it saw

    def rows(self, sql: str, values: Sequence[object] = (), *, wait: float | None = None) -> list[Row]:
        """Returns the rows of ``sql``, after all that was written before.

        ``wait``: ``sql`` locks something, and waits for it so many seconds. Raises ``LockNotAvailable`` after that.
        """
        self._check()
        if self._connection is None:
            return self._first(sql, values, wait)
        if wait is None:
            return self._send([with_values(self._connection, sql, values)])
        if self._unsent:
            self._send([])
        lock = with_values(self._connection, sql, values)
        try:
            return self._execute(["SAVEPOINT lock", _limits(wait), lock, _limits()], wait)
        except LockNotAvailable:
            self._execute(["ROLLBACK TO lock"])
            raise

    def inserted(self, sql: str, values: Sequence[object], *, wait: float | None = None) -> list[Row]:
        """Writes now, and returns what ``sql`` returns; ``wait`` as in ``rows``, for a key that others may insert."""
        rows = self.rows(sql, values, wait=wait)
        self._has_written = True
        return rows

    def write(self, sql: str, values: Sequence[object] = ()) -> None:
        """Writes with the next statement that reads, or at the end."""
        self._check()
        if self._connection is None:
            self._first("SELECT 1", (), None)
        self._unsent.append(with_values(self._open, sql, values))
        self._has_written = True

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise StoreFailure("use the transaction", self._server.url, "it is over")
        return self._connection

    def _first(self, sql: str, values: Sequence[object], wait: float | None) -> list[Row]:
        """Begins, and returns the rows of ``sql``; begins again on another connection if the first one is dead."""
        until = time.monotonic() + self._seconds
        while True:
            self._connection = connection = self._server.take(until)
            begin = (
                "BEGIN ISOLATION LEVEL READ COMMITTED; "
                f"SET LOCAL synchronous_commit = {'on' if self._durable else 'off'}; "
                f"SET LOCAL idle_in_transaction_session_timeout = {_MILLISECONDS_IDLE}; {_limits(wait)}"
            )
            try:
                statement = with_values(connection, sql, values)
                return execute(connection, f"{begin}; {statement}; {_limits()}", seconds=wait or 0)
            except LockNotAvailable as error:
                self._roll_back()
                if wait is None:
                    raise self._failed(not_written(self._server.url, error)) from error
                raise
            except Refused as error:
                lost = is_lost(connection, error)
                self._give(is_usable=False)
                if not lost:
                    action = "read" if wait is None else "write"
                    raise self._failed(refusal(action, self._server.url, error)) from error
                self._server.close_idle()
                if time.monotonic() >= until:
                    raise self._failed(not_written(self._server.url, error)) from error
                time.sleep(_SECONDS_BETWEEN_TRIES)

    def _send(self, statements: list[str]) -> list[Row]:
        unsent, self._unsent = self._unsent, []
        return self._execute([*unsent, *statements])

    def _execute(self, statements: list[str], wait: float | None = None) -> list[Row]:
        connection = self._open
        try:
            return execute(connection, "; ".join(statements) or "SELECT 1", seconds=wait or 0)
        except Refused as error:
            if wait is not None and isinstance(error, LockNotAvailable):
                raise
            raise self._broken(connection, error) from error
        except BaseException as error:  # an interruption: perhaps only a part of the statements is done
            self._failed(not_written(self._server.url, error))
            self._give(is_usable=False)
            raise

    def _broken(self, connection: Connection, error: psycopg.Error) -> SessionsError:
        """Takes the transaction back after an ``error``, and returns what to raise."""
        lost = is_lost(connection, error)
        self.is_written = False
        self._roll_back()
        if lost:
            self._server.close_idle()
        if lost or is_repeatable(error):
            return self._failed(not_written(self._server.url, error))
        return self._failed(refusal("write", self._server.url, error))

    def finish(self) -> None:
        """Commits what was written, and frees all locks. Raises if it is not written, or if that is unknown."""
        if self._failure is not None:
            self._roll_back()
            if self._has_written:
                raise self._failure
            return
        connection = self._connection
        if connection is None:
            return
        if os.getpid() != self._pid:
            self._connection = None
            return
        if not self._has_written:
            self._roll_back()
            return
        statements = [*self._unsent, f"INSERT INTO gaia_sessions.committed (id) VALUES ('{self._id}')", "COMMIT"]
        self._warnings.clear()
        self.is_written = True
        connection.add_notice_handler(self._note)
        try:
            execute(connection, "; ".join(statements), seconds=self._seconds)
        except Refused as error:
            if is_refused(connection, error):
                raise self._broken(connection, error) from error
            self._server.close_idle()
            self._give(is_usable=False)
            self._settle(error)
            return
        except BaseException:
            self._give(is_usable=False)
            raise
        finally:
            connection.remove_notice_handler(self._note)
        self._give()
        if self._warnings:  # the wait for a synchronous standby was cut short
            raise DurabilityUnknown(self._server.url, self._warnings[0])

    def abandon(self) -> None:
        """Undoes what was written: an interruption may have come between two statements that belong together."""
        if os.getpid() == self._pid:
            self._roll_back()

    def _note(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            self._warnings.append(diagnostic.message_primary or "the server warned")

    def _settle(self, lost: BaseException) -> None:
        """Returns if the commit has succeeded. Raises ``NotWritten`` after it was made impossible."""
        until = time.monotonic() + max(_SECONDS_TO_SETTLE, self._seconds)
        while True:
            try:
                with self._server.connection(until) as connection:
                    [[is_void]] = execute(connection, with_values(connection, _SETTLE, (self._id,)))
            except (Refused, StoreFailure) as error:
                if time.monotonic() >= until:
                    raise OutcomeUnknown(self._server.url, str(error)) from error
                self._server.close_idle()
                time.sleep(_SECONDS_BETWEEN_TRIES)
                continue
            if is_void:
                self.is_written = False
                raise not_written(self._server.url, lost)
            return

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if os.getpid() != self._pid:
            reason = f"process {self._pid}, which forked this process, holds the lock"
            raise StoreFailure("use the transaction", self._server.url, reason)

    def _failed(self, failure: SessionsError) -> SessionsError:
        self._failure = failure
        return failure

    def _roll_back(self) -> None:
        connection = self._connection
        if connection is None:
            return
        is_usable = not connection.closed
        if is_usable:
            try:
                execute(connection, "ROLLBACK")
            except Refused:
                is_usable = False
            except BaseException:
                self._give(is_usable=False)
                raise
        self._give(is_usable=is_usable)

    def _give(self, *, is_usable: bool = True) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._server.give(connection, is_usable=is_usable)


def _limits(seconds: float | None = None) -> str:
    """Returns the statements that limit the wait for a lock to ``seconds``, or to what any statement may take."""
    wait = 0 if seconds is None else max(1, min(int(seconds * 1000), 1_000_000_000))  # 0 would mean no limit
    longest = _MILLISECONDS_OF_STATEMENT + wait
    return f"SET LOCAL statement_timeout = {longest}; SET LOCAL lock_timeout = {wait or longest}"
