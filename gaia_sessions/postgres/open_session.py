"""A session whose row is locked until the outermost block of its store ends."""

from __future__ import annotations

from gaia_sessions.errors import LockTimeout, SessionNotFound
from gaia_sessions.session import index_keys
from gaia_sessions.session.cancellation import cancellation_of
from gaia_sessions.session.record import as_stored, encode, parent_id_of, with_moving
from gaia_sessions.session.retention import fit_record
from gaia_sessions.session.runs import has_ended
from gaia_sessions.session.schema import LOST
from gaia_sessions.session.transcript import (
    committed_bytes,
    current_turn,
    generation_of,
    last_seq,
    number_messages,
    with_next_transcript,
    with_transcript,
)
from gaia_sessions.session.updates import Change, check_writable, with_next_revision
from gaia_sessions.store import documents as shared
from gaia_sessions.store import marks
from gaia_sessions.store.journal import entry_lines
from gaia_sessions.store.reading import EVENTS

from .connections import LockNotAvailable
from .reader import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Self

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Cancellation, Mark
    from gaia_sessions.session.index_keys import IndexKey
    from gaia_sessions.session.schema import Moving, Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.session.transcript import Message, NewMessage

    from .blocks import Blocks
    from .transaction import Transaction


class OpenSession:
    """The session ``agent_id`` of ``store``, locked for a ``with`` block."""

    __slots__ = (
        *("_block", "_cancellation", "_data", "_key", "_known", "_knows_cancellation", "_record", "_seconds"),
        *("_store", "_transaction", "added", "agent_id", "incarnation", "mark"),
    )

    added: Sequence[Message]
    _block: AbstractContextManager[Transaction]
    _transaction: Transaction

    def __init__(self, store: Blocks, agent_id: str, seconds: float) -> None:
        self.added = ()
        self.agent_id = agent_id
        self._key = "session", agent_id
        self._store = store
        self._seconds = seconds
        self._record: Record | None = None
        self._cancellation: Cancellation | None = None
        self._knows_cancellation = False

    def __enter__(self) -> Self:
        self._block = self._store.block()
        self._transaction = self._block.__enter__()
        try:
            self._lock()
        except BaseException as error:
            self._block.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _lock(self) -> None:
        sql = "SELECT incarnation, record, mark FROM gaia_sessions.session WHERE id = %s FOR UPDATE"
        sql += "" if self._seconds > 0 else " NOWAIT"
        timeout = LockTimeout(f"{self._store.root}/{self.agent_id}", self._seconds, None)
        if self._key in self._transaction.held_keys:
            raise timeout
        self._known = self._store.known_revision(self.agent_id)
        try:
            rows = self._transaction.rows(sql, (self.agent_id,), wait=self._seconds)
        except LockNotAvailable:
            raise timeout from None
        if not rows:
            raise SessionNotFound(self.agent_id)
        self._transaction.held_keys.add(self._key)
        [(self.incarnation, self._data, self.mark)] = rows

    def __exit__(self, kind: object = None, error: object = None, trace: object = None) -> None:
        self._transaction.held_keys.discard(self._key)
        self._block.__exit__(kind, error, trace)  # type: ignore[arg-type]  # what the block of the caller got

    @property
    def record(self) -> Record:
        if self._record is None:
            record = self._store.decoded(self.agent_id, self._data, self.incarnation, self._known)
            check_writable(record)
            self._record = record
        return self._record

    def cancellation(self) -> Cancellation | None:
        if not self._knows_cancellation:
            self._look_for_marks(self.record)
        return self._cancellation

    def _look_for_marks(self, record: Record) -> None:
        own = [] if self.mark is None else [(self.agent_id, marks.decode(self.mark.encode()))]
        above = self._store.marks_above(record) if "parent_id" in record else []
        found = [*own, *(marked for marked in above if marked[0] != self.agent_id)]
        self._cancellation = cancellation_of(self.agent_id, found) if found else None
        self._knows_cancellation = True

    def commit(
        self,
        change: Record | Change,
        *,
        reserved: int = 0,
        proved: Cancellation | None = None,
        messages: Sequence[NewMessage] = (),
        documents: Mapping[Scope, Document] | None = None,
    ) -> Record:
        before = self.record
        self.added = ()
        record, entries = (change.record, change.entries) if isinstance(change, Change) else (change, ())
        if record is before and not messages and not documents:
            return before
        record, stored = _with_messages(before, record, messages)
        if proved is not None:
            self._cancellation, self._knows_cancellation = proved, True
        elif not self._knows_cancellation or "parent_id" in record:
            self._look_for_marks(record)
        if self._cancellation is not None:
            record, entries = marks.applied(before, record, entries, self._cancellation)
        lines = entry_lines(entries)
        encoded = {scope: shared.encode(document) for scope, document in (documents or {}).items()}
        record, data = fit_record(with_next_revision(record), reserved, before)
        self._write(before, record, data)
        write_lines(self._transaction, self.incarnation, EVENTS, texts_of(lines))
        numbered = zip((message["seq"] for message in stored[0]), texts_of(stored[1]), strict=True)
        write_messages(self._transaction, self.incarnation, generation_of(record), numbered)
        write_documents(self._transaction, encoded)
        self._record = record
        self.added = stored[0]
        return record

    def _write(self, before: Record, record: Record, data: bytes) -> None:
        added, removed = index_keys.difference(before, record)
        write_keys(self._transaction, self.incarnation, added)
        remove_keys(self._transaction, self.incarnation, removed)
        self._transaction.write(
            "UPDATE gaia_sessions.session SET revision = %s, record = %s, parent_id = %s WHERE incarnation = %s",
            (record["revision"], data.decode(), parent_id_of(record), self.incarnation),
        )
        lost = _leases_of_lost_runs(before, record)
        if lost:  # also after a start of the server, their processes cannot renew them
            sql = "UPDATE gaia_sessions.lease SET until = '-infinity' WHERE id = ANY(%s)"
            self._transaction.write(sql, (lost,))
        self._store.note_revision(self.incarnation, record)

    def set_moving(self, moving: Moving | None) -> None:
        """Fences the session, or with None takes the fence away; nothing else of the record changes."""
        before: Record = as_stored(self._data.encode())  # type: ignore[assignment]  # as it was stored
        record = with_moving(before, moving)
        self._write(before, record, encode(record))

    def append(self, journal: str, entries: Sequence[Json]) -> None:
        """Adds ``entries`` to the end of a ``journal``."""
        check_writable(self.record)
        write_lines(self._transaction, self.incarnation, journal, texts_of(entry_lines(entries)))

    def set_mark(self, mark: Mark) -> None:
        """Stores the cancellation mark."""
        write_mark(self._transaction, self.incarnation, mark)

    def delete(self) -> None:
        """Deletes the session. What readers may be reading stays until a sweep."""
        for sql in (
            "DELETE FROM gaia_sessions.session WHERE incarnation = %s",
            "DELETE FROM gaia_sessions.session_key WHERE incarnation = %s",
            "INSERT INTO gaia_sessions.deleted (incarnation) VALUES (%s)",
        ):
            self._transaction.write(sql, (self.incarnation,))


def _leases_of_lost_runs(before: Record, record: Record) -> list[str]:
    """Returns the leases of the runs that end as lost in ``record``, and had no end ``before``."""
    if before.get("runs") is record.get("runs"):
        return []
    was_open = {run["run"] for run in before.get("runs", ()) if not has_ended(run)}
    lost = [run for run in record.get("runs", ()) if run["run"] in was_open and run.get("end") == LOST]
    return [run["wrapper"]["lease"] for run in lost if "lease" in run.get("wrapper", ())]


def _with_messages(
    before: Record, record: Record, messages: Sequence[NewMessage]
) -> tuple[Record, tuple[list[Message], bytes]]:
    """Returns ``record`` with the place of ``messages``, and the messages as they are stored, with their lines."""
    size = committed_bytes(before)
    if generation_of(record) != generation_of(before):
        record, size = with_next_transcript(record, generation_of(before) + 1, last_seq(before)), 0
    stored, lines = number_messages(messages, last_seq(before) + 1, current_turn(before))
    if stored:
        record = with_transcript(record, size + len(lines), stored[-1]["seq"])
    return record, (stored, lines)


def write_keys(transaction: Transaction, incarnation: int, keys: Sequence[IndexKey]) -> None:
    """Adds the keys by which the session is found."""
    if keys:
        transaction.write(
            "INSERT INTO gaia_sessions.session_key (key, incarnation) "
            "SELECT key, %s FROM pg_catalog.unnest(%s::bytea[]) AS new (key) ON CONFLICT DO NOTHING",
            (incarnation, list({*map(digest_of, keys)})),
        )


def remove_keys(transaction: Transaction, incarnation: int, keys: Sequence[IndexKey]) -> None:
    """Removes keys of the session."""
    if keys:
        transaction.write(
            "DELETE FROM gaia_sessions.session_key WHERE incarnation = %s AND key = ANY(%s::bytea[])",
            (incarnation, [*map(digest_of, keys)]),
        )


def texts_of(lines: bytes) -> list[str]:
    """Returns ``lines`` as texts, without their ends."""
    return [line.decode() for line in lines.splitlines()]


def write_lines(transaction: Transaction, incarnation: int, journal: str, lines: Iterable[str]) -> None:
    """Adds whole lines to the end of a journal."""
    for line in lines:
        transaction.write(
            "INSERT INTO gaia_sessions.journal (incarnation, name, line) VALUES (%s, %s, %s)",
            (incarnation, journal, line),
        )


def write_messages(
    transaction: Transaction, incarnation: int, generation: int, numbered: Iterable[tuple[int, str]]
) -> None:
    """Adds the lines of messages, each with its number."""
    for seq, line in numbered:
        transaction.write(
            "INSERT INTO gaia_sessions.message (incarnation, generation, seq, line) VALUES (%s, %s, %s, %s)",
            (incarnation, generation, seq, line),
        )


def write_mark(transaction: Transaction, incarnation: int, mark: Mark) -> None:
    """Stores the cancellation mark."""
    sql = "UPDATE gaia_sessions.session SET mark = %s WHERE incarnation = %s"
    transaction.write(sql, (marks.encode(mark).decode(), incarnation))


def write_documents(transaction: Transaction, encoded: Mapping[Scope, bytes]) -> None:
    """Replaces documents."""
    for scope, data in encoded.items():
        transaction.write(
            "INSERT INTO gaia_sessions.document (key, document) VALUES (%s, %s) "
            "ON CONFLICT (key) DO UPDATE SET document = EXCLUDED.document",
            (digest_of(scope), data.decode()),
        )
