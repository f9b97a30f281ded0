"""The reading half of the store: it reads in pages, so that a reader never waits and holds nothing.

Only ``files``, for a copy, reads a session whole.
"""

from __future__ import annotations

import hashlib
import json
from itertools import chain, dropwhile, takewhile

from gaia_sessions import errors
from gaia_sessions.errors import CorruptSession, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.session import index_keys
from gaia_sessions.session.ids import check_agent_id, is_agent_id
from gaia_sessions.session.lineage import ancestors_of
from gaia_sessions.session.record import (
    SCHEMA,
    check_readable,
    decode,
    has_newer_schema,
    is_child,
    is_open_of_app,
    parent_id_of,
)
from gaia_sessions.session.runs import has_ended, newest_of, with_alias
from gaia_sessions.session.transcript import decode_message, generation_of, last_seq
from gaia_sessions.store import MOST_ABOVE, documents, marks, reading
from gaia_sessions.store.output_file import KEPT_BYTES, note_of_omitted
from gaia_sessions.system import leases

from .connections import execute, server_of, with_values
from .schema import check_version, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Self

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.index_keys import IndexKey
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.session.transcript import Message
    from gaia_sessions.store.inbox_keys import WaitingEvent
    from gaia_sessions.store.port import IsWanted, Messages, RecordOrError

    from .connections import Connection, Row
    from .transaction import Transaction

_PAGE = 200
"""The most rows of one page."""

_PAGE_BYTES = 1 << 20
"""The most bytes of one page, unless its first row alone has more."""

_MOST_REVISIONS = 1000
"""How many sessions a process remembers the revision of."""

_FIRST = -1
_DIGITS_OF_BIGINT = 19

_LEASES = """
SELECT id, gaia_sessions.is_valid(l.until), extract(epoch FROM l.written_at)::float8
FROM pg_catalog.unnest(%s::text[]) AS wanted (id) LEFT JOIN gaia_sessions.lease l USING (id)
"""
"""After a start of the server every lease counts as valid for one term: nobody could renew it before."""

ABOVE = f"""
WITH RECURSIVE above (id, depth) AS (
    SELECT %s::text COLLATE "C", 1
    UNION ALL
    SELECT s.parent_id, depth + 1 FROM above JOIN gaia_sessions.session s ON s.id = above.id
    WHERE s.parent_id IS NOT NULL AND depth <= {MOST_ABOVE}
) CYCLE id SET is_repeated USING path
SELECT above.id, s.record, s.mark FROM above JOIN gaia_sessions.session s ON s.id = above.id
WHERE NOT is_repeated ORDER BY depth
"""


def digest_of(parts: Sequence[str]) -> bytes:
    """Returns 16 bytes that stand for ``parts``: an index of the server takes no long text."""
    return hashlib.sha256(json.dumps(parts).encode()).digest()[:16]


class Reader:
    """Implements the reading part of the port with the tables of one database."""

    def __init__(self, url: str, *, seconds: float) -> None:
        self.root = url
        self._server = server_of(url)
        self._seconds = seconds  # how long to wait for the server
        self._transaction: Transaction | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Does nothing: nothing is held between two calls."""

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Returns the rows of one statement that reads, in the transaction if there is one."""
        if self._transaction is not None:
            return self._transaction.rows(sql, values)

        def ask(connection: Connection) -> list[Row]:
            self._check_schema(connection)
            return execute(connection, with_values(connection, sql, values))

        return self._server.asked("read", self._seconds, ask)

    def _check_schema(self, connection: Connection) -> None:
        if not self._server.is_checked:
            check_version(version_of(connection), self.root)
            self._server.note_checked()

    def read(self, agent_id: str) -> Record:
        return self._found(agent_id)[1]

    def _found(self, agent_id: str) -> tuple[int, Record]:
        """Returns the incarnation and the record of a session."""
        known = self._server.revisions.get(check_agent_id(agent_id))
        rows = self._rows("SELECT incarnation, record FROM gaia_sessions.session WHERE id = %s", (agent_id,))
        if not rows:
            raise SessionNotFound(agent_id)
        [(incarnation, data)] = rows
        record = self._decoded(agent_id, data)
        self._note_leases([record])
        self.note_revision(incarnation, record, known)
        return incarnation, record

    def _decoded(self, agent_id: str, data: str) -> Record:
        """Returns the record; its leases are not known yet."""
        try:
            record = decode(data.encode(), agent_id)
        except errors.InvalidInput as error:
            raise CorruptSession(agent_id, f"{self.root}/{agent_id}", str(error)) from None
        try:
            check_readable(record)
        except errors.NewerSchema:  # its runs may have another form
            return record
        for run in record.get("runs", ()):
            run.pop("output_path", None)  # no file of this machine has the output
            for process in (run.get("wrapper", {}), run.get("host_process", {})):
                process.pop("lock", None)
        return record

    def _note_leases(self, records: Iterable[Record]) -> None:
        """Looks at the leases of all open runs of ``records`` in one query, for those who judge the runs."""
        wanted = [
            run["wrapper"]["lease"]
            for record in records
            if not has_newer_schema(record)
            for run in record.get("runs", ())
            if not has_ended(run) and "lease" in run.get("wrapper", ())
        ]
        if wanted:
            leases.note(wanted, {str(row[0]): (row[1], row[2]) for row in self._rows(_LEASES, (wanted,))})

    def note_revision(self, incarnation: int, record: Record, known: tuple[int, int] | None = None) -> None:
        """Warns if the server has an older revision than the ``known`` one: then it has lost writes."""
        agent_id, revision = record["agent_id"], record["revision"]
        if known is not None and known[0] == incarnation and revision < known[1]:
            import warnings

            warnings.warn(errors.WritesLost(self.root, agent_id, known[1], revision), stacklevel=2)
            self._server.revisions[agent_id] = incarnation, revision
        elif self._transaction is not None:  # it may be no revision at all if the transaction fails
            self._transaction.revisions[agent_id] = incarnation, revision
        else:
            self._keep_revision(agent_id, incarnation, revision)

    def _keep_revision(self, agent_id: str, incarnation: int, revision: int) -> None:
        revisions = self._server.revisions
        latest = revisions.pop(agent_id, (incarnation, 0))
        revisions[agent_id] = incarnation, max(revision, latest[1] if latest[0] == incarnation else 0)
        for oldest in [*revisions][:-_MOST_REVISIONS]:
            revisions.pop(oldest, None)

    def ancestors(self, record: Record) -> dict[str, Record | None]:
        parent_id = parent_id_of(record)
        if parent_id is None:
            return {}
        rows = self._rows(ABOVE, (parent_id,))
        return self._ancestors(record, {agent_id: data for agent_id, data, _ in rows})

    def _ancestors(self, record: Record, found: dict[str, str]) -> dict[str, Record | None]:
        seen: list[str] = []

        def read(agent_id: str) -> Record | None:
            if len(seen) == MOST_ABOVE:
                raise too_many_above(record, seen[-1])
            seen.append(agent_id)
            try:
                return self._decoded(agent_id, found[agent_id])
            except (KeyError, CorruptSession):
                return None

        above = ancestors_of(record, read)
        self._note_leases(filter(None, above.values()))
        return above

    def has(self, agent_id: str) -> bool:
        return bool(self._rows("SELECT 1 FROM gaia_sessions.session WHERE id = %s", (check_agent_id(agent_id),)))

    def ids(self) -> list[str]:
        return [agent_id for (agent_id,) in self._rows("SELECT id FROM gaia_sessions.session")]

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        return self._paged(index_keys.narrowest_key(agent_name, host_session_id) if active_only else None)

    def _paged(self, *keys: IndexKey | None) -> Iterator[tuple[str, RecordOrError]]:
        """Yields the sessions with one of ``keys``, or all sessions, each once; one page is in memory."""
        last, digests = 0, [digest_of(key) for key in keys if key is not None]
        while True:
            if digests:
                source = (
                    "SELECT s.incarnation, s.id, s.record FROM gaia_sessions.session_key k "
                    "JOIN gaia_sessions.session s USING (incarnation) WHERE k.key = ANY(%s) AND k.incarnation > %s"
                )
                values: tuple[object, ...] = (digests, last)
            else:
                source = "SELECT incarnation, id, record FROM gaia_sessions.session WHERE incarnation > %s"
                values = (last,)
            rows = self._page(source, "incarnation", "record", values)
            found = [(agent_id, self._decoded_or_error(agent_id, data)) for _, agent_id, data, *_ in rows]
            self._note_leases(record for _, record in found if not isinstance(record, SessionsError))
            yield from found
            if not rows:
                return
            last = rows[-1][0]

    def _page(self, source: str, order: str, text: str, values: Sequence[object], direction: str = "ASC") -> list[Row]:
        """Returns the first rows of ``source`` by ``order``: at most 200, and about 1 MiB of their ``text``."""
        # The text of this module alone is in the statement; everything else is in ``values``.
        return self._rows(
            f"SELECT * FROM (SELECT *, row_number() OVER w AS page_row, sum(octet_length({text})) OVER w AS page_bytes "
            f"FROM ({source} ORDER BY {order} {direction} LIMIT {_PAGE}) source "
            f"WINDOW w AS (ORDER BY {order} {direction})) page "
            f"WHERE page_bytes <= {_PAGE_BYTES} OR page_row = 1 ORDER BY {order} {direction}",
            values,
        )

    def _decoded_or_error(self, agent_id: str, data: str) -> RecordOrError:
        try:
            return self._decoded(agent_id, data)
        except CorruptSession as error:
            return error

    def _with_key(self, *keys: IndexKey) -> Iterator[Record]:
        """Yields the readable records with one of ``keys``."""
        for _, record in self._paged(*keys) if keys else ():
            if not isinstance(record, SessionsError):
                yield record

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        wanted = frozenset(map(check_agent_id, parent_ids))
        key_of = index_keys.open_child_key if open_only else index_keys.parent_key
        found = self._with_key(*map(key_of, wanted))
        return [record for record in found if is_child(record, wanted, open_only=open_only)]

    def find(self, alias: Alias, *, strict: bool = False) -> Record | None:
        return newest_of(self.having(alias, strict=strict))

    def having(self, alias: Alias, *, strict: bool = False) -> list[Record]:
        found = self._paged(index_keys.alias_key(alias))
        return with_alias(
            alias, (_usable(record, strict=strict) for _, record in found if _counts(record, strict=strict))
        )

    def open_of_app(self, app: str, user: str | None = None) -> Iterator[Record]:
        key = index_keys.ACTIVE_KEY if user is None else index_keys.app_user_key(app, user)
        return (record for record in self._with_key(key) if is_open_of_app(record, app, user))

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        asked = [agent_id for agent_id in agent_ids if is_agent_id(agent_id)]
        if not asked:
            return []
        rows = self._rows(
            "SELECT id, mark FROM gaia_sessions.session WHERE id = ANY(%s) AND mark IS NOT NULL", (asked,)
        )
        found: dict[str, str] = dict(rows)
        return [(agent_id, marks.decode(found[agent_id].encode())) for agent_id in asked if agent_id in found]

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        return self._entries(self._incarnation(agent_id), journal)

    def _incarnation(self, agent_id: str) -> int:
        rows = self._rows("SELECT incarnation FROM gaia_sessions.session WHERE id = %s", (check_agent_id(agent_id),))
        if not rows:
            raise SessionNotFound(agent_id)
        return int(rows[0][0])

    def _entries(self, incarnation: int, journal: str) -> Iterator[Json | SessionsError]:
        last = 0
        source = "SELECT number, line FROM gaia_sessions.journal WHERE incarnation = %s AND name = %s AND number > %s"
        while rows := self._page(source, "number", "line", (incarnation, journal, last)):
            for number, line, *_ in rows:
                try:
                    yield strict.loads(line.encode())
                except errors.InvalidInput as error:
                    yield errors.InvalidInput(str(error), f"{self.root} {journal} entry {number}")
            last = rows[-1][0]

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        self.read(agent_id)  # raises now, not at the first step
        return self._in_order(agent_id, is_wanted)

    def _in_order(self, agent_id: str, is_wanted: IsWanted | None) -> Messages:
        incarnation, record = self._found(agent_id)
        if is_wanted is None:
            yield from self._messages(incarnation, record, _FIRST)
            return
        newest = takewhile(lambda one: is_wanted(one[1]), self._numbered(incarnation, record, "DESC"))
        first = min((seq for seq, _ in newest), default=None)
        if first is not None:
            yield from self._messages(incarnation, record, first - 1)

    def messages_backwards(self, agent_id: str) -> Messages:
        self.read(agent_id)
        return self._newest_first(agent_id)

    def _newest_first(self, agent_id: str) -> Messages:
        yield from (message for _, message in self._numbered(*self._found(agent_id), "DESC"))

    def messages_from_turn(self, agent_id: str, turn: int) -> Messages:
        found = self.messages(agent_id, is_wanted=lambda one: isinstance(one, SessionsError) or one["turn"] >= turn)
        return dropwhile(lambda one: isinstance(one, SessionsError), found)

    def _messages(self, incarnation: int, record: Record, after: int) -> Messages:
        return (message for _, message in self._numbered(incarnation, record, "ASC", after))

    def _numbered(
        self, incarnation: int, record: Record, direction: str, after: int = _FIRST
    ) -> Iterator[tuple[int, Message | SessionsError]]:
        """Yields the messages that ``record`` commits, with their numbers, in one direction."""
        least, most = after, last_seq(record) + 1
        source = (
            "SELECT seq, line FROM gaia_sessions.message "
            "WHERE incarnation = %s AND generation = %s AND seq > %s AND seq < %s"
        )
        while rows := self._page(source, "seq", "line", (incarnation, generation_of(record), least, most), direction):
            for seq, line, *_ in rows:
                yield seq, self._message(incarnation, seq, line)
            if direction == "ASC":
                least = rows[-1][0]
            else:
                most = rows[-1][0]

    def _message(self, incarnation: int, seq: int, line: str) -> Message | SessionsError:
        try:
            return decode_message(line.encode())
        except errors.InvalidInput as error:
            return errors.InvalidInput(str(error), f"{self.root} message {seq} of session number {incarnation}")

    def figures(self) -> Iterator[dict[str, Json] | None]:
        last = 0
        source = "SELECT number, line FROM gaia_sessions.figures WHERE number > %s"
        while rows := self._page(source, "number", "line", (last,)):
            yield from (_object_in(line) for _, line, *_ in rows)
            last = rows[-1][0]

    def output_path(self, agent_id: str, number: int) -> None:  # noqa: ARG002  # it is no file
        check_agent_id(agent_id)

    def output(self, record: Record, number: int) -> bytes:
        return self._output(self._incarnation_of(record), number)

    def _output(self, incarnation: int, number: int) -> bytes:
        last, pieces = -1, []
        source = "SELECT start, data FROM gaia_sessions.output WHERE incarnation = %s AND run = %s AND start > %s"
        while rows := self._page(source, "start", "data", (incarnation, number, last)):
            pieces += [(start, bytes(data)) for start, data, *_ in rows]
            last = rows[-1][0]
        return _joined(pieces)

    def files(self, agent_id: str) -> dict[str, bytes]:
        rows = self._rows("SELECT incarnation, record, mark FROM gaia_sessions.session WHERE id = %s", (agent_id,))
        if not rows:
            raise SessionNotFound(agent_id)
        [(incarnation, record, mark)] = rows
        found = {reading.RECORD: bytearray(record.encode())}
        if mark is not None:
            found[reading.CANCELLED] = bytearray(mark.encode())
        sql = "SELECT generation, line FROM gaia_sessions.message WHERE incarnation = %s ORDER BY generation, seq"
        lines = [(reading.transcript_name(generation), line) for generation, line in self._rows(sql, (incarnation,))]
        sql = (
            "SELECT name, line FROM gaia_sessions.journal WHERE incarnation = %s AND name = ANY(%s) "
            "ORDER BY name, number"
        )
        for name, line in chain(lines, self._rows(sql, (incarnation, [reading.EVENTS, reading.ASIDE]))):
            found.setdefault(name, bytearray()).extend(line.encode() + b"\n")
        runs = self._rows("SELECT DISTINCT run FROM gaia_sessions.output WHERE incarnation = %s", (incarnation,))
        outputs = {reading.output_name(run): self._output(incarnation, run) for (run,) in runs}
        return {name: bytes(data) for name, data in found.items()} | outputs

    def _incarnation_of(self, record: Record) -> int:
        """Returns the incarnation of the session of ``record``; another session may have its ID now."""
        incarnation, stored = self._found(record["agent_id"])
        if stored["created_at"] != record["created_at"]:
            raise SessionNotFound(record["agent_id"])
        return incarnation

    def waiting(self) -> list[WaitingEvent]:
        rows = self._rows("SELECT number, keys FROM gaia_sessions.inbox ORDER BY number")
        return [(str(number), keys) for number, keys in rows]

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        for name in [name for name, _ in self.waiting()] if names is None else names:
            number = number_in(name)
            rows = self._rows("SELECT event FROM gaia_sessions.inbox WHERE number = %s", (number,)) if number else []
            for (event,) in rows:
                yield name, strict.load_object(event.encode())

    def document(self, scope: Scope) -> Document | None:
        rows = self._rows("SELECT document FROM gaia_sessions.document WHERE key = %s", (digest_of(scope),))
        found = self._document(rows[0][0]) if rows else None
        if isinstance(found, StoreFailure):
            raise found
        return found

    def documents(self) -> Iterator[Document | StoreFailure]:
        return (self._document(data) for (data,) in self._rows("SELECT document FROM gaia_sessions.document"))

    def _document(self, data: str) -> Document | StoreFailure:
        try:
            return documents.decode(data.encode())
        except errors.InvalidInput as error:
            return StoreFailure("read", f"{self.root}, shared state", str(error))


def too_many_above(record: Record, last: str) -> StoreFailure:
    """Returns the error of a session with more sessions above it than are looked at; ``last`` is the last of these."""
    hint, problem = f"to break the chain, type: gaia-sessions rm {last}", f"there are more than {MOST_ABOVE}"
    return StoreFailure("read all sessions above it", record["agent_id"], problem, hint)


def number_in(name: str) -> int | None:
    """Returns the number of the waiting event ``name``; None for a name that no event has."""
    return int(name) if name.isascii() and name.isdecimal() and len(name) < _DIGITS_OF_BIGINT else None


def _counts(record: RecordOrError, *, strict: bool) -> bool:
    return strict or not isinstance(record, SessionsError)


def _usable(record: RecordOrError, *, strict: bool) -> Record:
    """Returns ``record``; with ``strict``, raises what is wrong with it."""
    if isinstance(record, SessionsError):
        raise record
    if strict and has_newer_schema(record):
        raise errors.NewerSchema(record["agent_id"], record["schema"], SCHEMA)
    return record


def _object_in(line: str) -> dict[str, Json] | None:
    try:
        return strict.load_object(line.encode())
    except errors.InvalidInput:  # another program wrote it
        return None


def _joined(pieces: list[tuple[int, bytes]]) -> bytes:
    """Returns the output whose ``pieces`` are stored: its first and its last MiB, and how much is missing between."""
    end = max((start + len(data) for start, data in pieces), default=0)
    whole = b"".join(data for _, data in pieces)
    if end <= 2 * KEPT_BYTES and len(whole) == end:
        return whole
    first = b"".join(data for start, data in pieces if start < KEPT_BYTES)[:KEPT_BYTES]
    last = b"".join(data for start, data in pieces if start >= KEPT_BYTES)[-KEPT_BYTES:]
    return first + note_of_omitted(end - len(first) - len(last)) + last
