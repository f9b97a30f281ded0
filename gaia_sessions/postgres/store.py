"""The store on a PostgreSQL server: the port over one database.

The outermost block of a store (an open session, the lock of a key, one method) is one transaction, which inner blocks
join. What they write is durable when the outermost block ends; until then nobody sees it.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.errors import DurabilityUnknown, LockTimeout, SessionsError, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.session import index_keys
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.record import decode, parent_id_of
from gaia_sessions.session.retention import fit_record
from gaia_sessions.session.transcript import beginning_with
from gaia_sessions.store import document_lock_key, marks, read_or_corrupt
from gaia_sessions.store import documents as shared
from gaia_sessions.store.inbox_keys import keys_of_event
from gaia_sessions.store.journal import entry_lines
from gaia_sessions.store.reading import EVENTS, RECORD

from .blocks import Blocks, repeatable
from .connections import LockNotAvailable, server_of
from .key_lock import KeyLock
from .lease import Lease
from .open_session import OpenSession, texts_of, write_documents, write_keys, write_lines, write_messages
from .output import ServerOutput
from .reader import digest_of, number_in
from .schema import IS_GONE, NOTE_CLEANUP, NOTE_TIMELINE, READ_KEEP_DAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.session.transcript import NewMessage
    from gaia_sessions.store.port import Entry, HeldLock, ImportSource, MarkRule, RecordOrError, StoreRule

    from .transaction import Transaction


def open_store(
    url: str, config: Config, *, lock_timeout: float | None = None, seconds_at_first: float | None = None
) -> PostgresStore:
    """Returns the store at ``url`` with the settings of ``config``, for one call and one thread.

    seconds_at_first: how long the server may take to answer this process for the first time; None: as said before.
    """
    if seconds_at_first is not None:
        server_of(url).seconds_at_first = seconds_at_first
    return PostgresStore(
        url,
        durable=config.durability == "full",
        keeps_figures=config.keep_figures,
        lock_timeout=config.lock_timeout if lock_timeout is None else lock_timeout,
    )


class PostgresStore(Blocks):
    """Implements the port with the tables of one database."""

    @repeatable
    def create(
        self,
        record: Record,
        entry: Entry | None = None,
        *,
        reserved: int = 0,
        system_prompt: NewMessage | None = None,
        documents: Mapping[Scope, Document] | None = None,
    ) -> None:
        check_agent_id(record["agent_id"])
        encoded = {scope: shared.encode(document) for scope, document in (documents or {}).items()}
        line = b""
        if system_prompt is not None:
            committed, line = beginning_with(system_prompt, 1)
            record = {**record, **committed}
        kept, data = fit_record(record, reserved)
        lines = entry_lines([entry] if entry else ())
        with self.block() as transaction:
            self.marks_above(kept)
            incarnation = self._insert(transaction, kept, data)
            write_lines(transaction, incarnation, EVENTS, texts_of(lines))
            write_messages(transaction, incarnation, 0, enumerate(texts_of(line), 1))
            write_documents(transaction, encoded)

    def _insert(self, transaction: Transaction, record: Record, data: bytes) -> int:
        """Inserts the row of a new session and its keys; returns its incarnation."""
        sql = (
            "INSERT INTO gaia_sessions.session (id, revision, record, parent_id) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (id) DO NOTHING RETURNING incarnation"
        )
        agent_id = record["agent_id"]
        values = agent_id, record["revision"], data.decode(), parent_id_of(record)
        try:
            rows = transaction.inserted(sql, values, wait=self.lock_timeout)
        except LockNotAvailable:
            raise LockTimeout(f"{self.root}/{agent_id}", self.lock_timeout, None) from None
        if not rows:
            raise errors.SessionExists(agent_id)
        incarnation = int(rows[0][0])
        write_keys(transaction, incarnation, index_keys.keys_of(record))
        return incarnation

    @repeatable
    def take_in(self, record: Record, source: ImportSource, *, reserved: int = 0) -> None:
        from gaia_sessions.store.settled import settled  # few commands import

        from .taking_in import files_of

        kept, data = fit_record(record, reserved)
        files = settled(kept, files_of(source, check_agent_id(record["agent_id"])))
        with self.block() as transaction:
            self._put(transaction, kept, {**files, RECORD: data})

    @repeatable
    def put(self, agent_id: str, files: Mapping[str, bytes]) -> None:
        with self.block() as transaction:
            self._put(transaction, decode(files[RECORD], agent_id), files)
            stored = self.files(agent_id)
            if stored != files:
                transaction.abandon()
                name = next(name for name in {**files, **stored} if files.get(name) != stored.get(name))
                reason = f"{name} has bytes that a server cannot keep, such as those that are not UTF-8"
                raise StoreFailure(
                    "copy", f"{self.root}/{agent_id}", reason, "correct that file, or use `gaia-sessions import`"
                )

    def _put(self, transaction: Transaction, record: Record, files: Mapping[str, bytes]) -> None:
        from .taking_in import write_files

        self.marks_above(record)
        write_files(transaction, self._insert(transaction, record, files[RECORD]), files)

    def repair(self, agent_id: str) -> None:
        self.read(agent_id)  # no file here can be damaged

    def open(self, agent_id: str, *, timeout: float | None = None) -> OpenSession:
        return OpenSession(self, check_agent_id(agent_id), self.lock_timeout if timeout is None else timeout)

    @repeatable
    def change(self, agent_id: str, rule: StoreRule, *, timeout: float | None = None, reserved: int = 0) -> Record:
        with self.open(agent_id, timeout=timeout) as session:
            return session.commit(rule(session.record), reserved=reserved)

    @repeatable
    def open_output(self, record: Record, number: int) -> ServerOutput:
        incarnation = self._incarnation_of(record)
        with self.block() as transaction:
            transaction.write(
                "DELETE FROM gaia_sessions.output WHERE incarnation = %s AND run = %s", (incarnation, number)
            )
        runs = [run for run in record.get("runs", ()) if run["run"] == number]
        return ServerOutput(self.root, incarnation, number, runs[0].get("wrapper", {}).get("lease") if runs else None)

    @repeatable
    def mark(self, agent_id: str, rule: MarkRule, *, timeout: float | None = None) -> Mark:
        with self.open(agent_id, timeout=timeout) as session:
            old = None if session.mark is None else marks.decode(session.mark.encode())
            new = rule(old)
            if new is not old:
                session.set_mark(new)
            return new

    def delete_each(
        self,
        agent_ids: Iterable[str],
        should_delete: Callable[[str, RecordOrError], bool],
        *,
        timeout: float | None = 0,
    ) -> Iterator[tuple[str, bool | SessionsError]]:
        def act() -> bool:
            with self.open(agent_id, timeout=timeout) as session:
                if not should_delete(agent_id, read_or_corrupt(self, agent_id)):
                    return False
                session.delete()
                return True

        for agent_id in agent_ids:
            outcome: bool | SessionsError
            try:
                outcome = self.repeated(act)
            except DurabilityUnknown:
                raise
            except SessionsError as error:
                outcome = error
            yield agent_id, outcome

    @repeatable
    def add_figures(self, figures: Sequence[Mapping[str, object]]) -> None:
        with self.block() as transaction:
            for one in figures if self.keeps_figures else ():
                line = strict.dump_line(one).decode().rstrip("\n")
                transaction.write("INSERT INTO gaia_sessions.figures (line) VALUES (%s)", (line,))

    def sync(self) -> None:
        """Does nothing: what is committed is durable."""

    def ensure_index(self) -> None:
        """Does nothing: the server keeps its indexes."""

    @repeatable
    def sweep(self, now: datetime) -> list[str]:  # noqa: ARG002  # the server's clock decides
        with self.block() as transaction:
            for sql in _SWEEP:
                transaction.write(sql)
        return []

    def keep_days(self) -> float:
        [[days]] = self._rows(READ_KEEP_DAYS)
        return float(days)

    def lock_key(self, key: tuple[str, ...], timeout: float | None = None) -> HeldLock:
        return KeyLock(self, key, self.lock_timeout if timeout is None else timeout)

    def lease(self, sends_to: str | None = None) -> Lease:
        if sends_to is not None:  # the open run in the record excludes other sends
            check_agent_id(sends_to)
        return Lease(self.root, self.lock_timeout)

    @repeatable
    def add_document(self, document: Document) -> None:
        scope = (*document["scope"],)
        with self.lock_key(document_lock_key(scope)), self.block() as transaction:
            transaction.write(
                "INSERT INTO gaia_sessions.document (key, document) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                (digest_of(scope), shared.encode(document).decode()),
            )

    @repeatable
    def remove_document(self, scope: Scope) -> None:
        with self.block() as transaction:
            transaction.write("DELETE FROM gaia_sessions.document WHERE key = %s", (digest_of(scope),))

    @repeatable
    def append(self, agent_id: str, journal: str, entries: list[Json], *, timeout: float | None = None) -> None:
        with self.open(agent_id, timeout=timeout) as session:
            session.append(journal, entries)

    @repeatable
    def defer(self, event: Event, now: datetime) -> str:  # noqa: ARG002  # order of arrival is order of time
        sql = "INSERT INTO gaia_sessions.inbox (keys, event) VALUES (%s, %s) RETURNING number"
        with self.block() as transaction:
            [[number]] = transaction.inserted(sql, (keys_of_event(event), strict.dumps(event).decode()))
        return str(number)

    @repeatable
    def dismiss(self, name: str) -> None:
        number = number_in(name)
        if number:
            with self.block() as transaction:
                transaction.write("DELETE FROM gaia_sessions.inbox WHERE number = %s", (number,))


_GONE = f"(SELECT incarnation FROM gaia_sessions.deleted WHERE {IS_GONE})"
_SWEEP = (
    *(f"DELETE FROM gaia_sessions.{table} WHERE incarnation IN {_GONE}" for table in ("journal", "message", "output")),
    f"DELETE FROM gaia_sessions.deleted WHERE {IS_GONE}",
    "DELETE FROM gaia_sessions.committed WHERE at < clock_timestamp() - interval '1 day'",
    "DELETE FROM gaia_sessions.lease WHERE until < clock_timestamp() - interval '1 day'",
    NOTE_TIMELINE,
    NOTE_CLEANUP,
)
"""Removes what no reader can be reading any more, the IDs of old commits, and old leases; notes timeline and time."""
