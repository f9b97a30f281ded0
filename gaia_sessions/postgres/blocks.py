"""The blocks of a store: the outermost one is a transaction, which inner blocks join.

What is written in a block is durable when the outermost block ends; until then nobody else sees it.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import wraps

from gaia_sessions.errors import SessionsError
from gaia_sessions.errors.others import NotWritten
from gaia_sessions.session.record import parent_id_of
from gaia_sessions.store import MOST_ABOVE, marks

from .reader import ABOVE, Reader, too_many_above
from .transaction import Transaction, of_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Concatenate, ParamSpec, TypeVar

    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.schema import Record

    Arguments = ParamSpec("Arguments")
    Own = TypeVar("Own", bound="Blocks")
    Result = TypeVar("Result")

_SECONDS_BETWEEN_TRIES = 0.05


def repeatable(method: Callable[Concatenate[Own, Arguments], Result]) -> Callable[Concatenate[Own, Arguments], Result]:
    """Repeats a method whose connection was lost before anything of it was written."""

    @wraps(method)
    def act(self: Own, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        return self.repeated(lambda: method(self, *arguments, **named))

    return act


class Blocks(Reader):
    """A reader that can also lock and write, in blocks."""

    def __init__(
        self, url: str, *, durable: bool = True, keeps_figures: bool = True, lock_timeout: float = 10.0
    ) -> None:
        super().__init__(url, seconds=lock_timeout)
        self.durable = durable  # False lets the server answer before its disk has the commit
        self.keeps_figures = keeps_figures  # whether removed sessions leave their figures
        self.lock_timeout = lock_timeout
        self._commits = 0  # how many transactions are written, or perhaps are

    @contextmanager
    def block(self) -> Iterator[Transaction]:
        """Joins the transaction of the outermost block, or is the outermost block."""
        if self._transaction is not None:
            yield self._transaction
            return
        if not self._server.is_checked:
            self._server.asked("use the tables", self._seconds, self._check_schema)
        self._transaction = transaction = Transaction(self._server, self.lock_timeout, durable=self.durable)
        of_thread.open[self.root] = transaction
        try:
            yield transaction
        except BaseException as error:
            if not isinstance(error, Exception | GeneratorExit):
                self._end()
                transaction.abandon()
                raise
            try:
                self._finish(transaction)  # what was acknowledged in this block stays, as in files
            except SessionsError as failure:
                raise failure from error
            raise
        self._finish(transaction)

    def _end(self) -> None:
        self._transaction = None
        of_thread.open.pop(self.root, None)

    def _finish(self, transaction: Transaction) -> None:
        self._end()
        try:
            transaction.finish()
        finally:
            self._commits += transaction.is_written
        for agent_id, (incarnation, revision) in transaction.revisions.items():
            self._keep_revision(agent_id, incarnation, revision)

    def repeated(self, act: Callable[[], Result]) -> Result:
        until = time.monotonic() + self.lock_timeout
        commits = self._commits
        while True:
            try:
                return act()
            except NotWritten:  # in a block, the whole block is not written
                if self._transaction is not None or self._commits > commits or time.monotonic() >= until:
                    raise
                time.sleep(_SECONDS_BETWEEN_TRIES)

    def known_revision(self, agent_id: str) -> tuple[int, int] | None:
        """Returns the incarnation and the highest revision that this process knows of a session."""
        return self._server.revisions.get(agent_id)

    def decoded(self, agent_id: str, data: str, incarnation: int, known: tuple[int, int] | None) -> Record:
        """Returns the record that was read under the lock; ``known`` is the revision that was known before."""
        record = self._decoded(agent_id, data)
        self._note_leases([record])
        self.note_revision(incarnation, record, known)
        return record

    def marks_above(self, record: Record) -> list[tuple[str, Mark]]:
        """Returns the marks of the sessions above ``record``, the nearest first."""
        parent_id = parent_id_of(record)
        rows = self._rows(ABOVE, (parent_id,)) if parent_id else []
        if len(rows) > MOST_ABOVE:
            raise too_many_above(record, rows[MOST_ABOVE - 1][0])
        return [(agent_id, marks.decode(mark.encode())) for agent_id, _, mark in rows if mark is not None]
