"""A store in memory, with which the contract tests compare the file store.

It implements every method of the port in the simplest way, for one process and one thread. Nothing is durable.
"""

from __future__ import annotations

import json
import os
from itertools import takewhile

from gaia_sessions import errors
from gaia_sessions.jsonio import strict
from gaia_sessions.session.cancellation import cancellation_of
from gaia_sessions.session.ids import check_agent_id, is_agent_id
from gaia_sessions.session.record import decode, is_child, is_open_of_app
from gaia_sessions.session.retention import fit_record
from gaia_sessions.session.runs import is_active, newest_of, with_alias
from gaia_sessions.session.transcript import (
    beginning_with,
    committed_bytes,
    current_turn,
    decode_message,
    generation_of,
    last_seq,
    number_messages,
    with_next_transcript,
    with_transcript,
)
from gaia_sessions.session.updates import Change, check_writable, with_next_revision
from gaia_sessions.store import documents as files
from gaia_sessions.store import marks, read_ancestors, read_or_corrupt
from gaia_sessions.store.inbox_keys import keys_of_event
from gaia_sessions.store.journal import entry_lines
from gaia_sessions.store.reading import EVENTS
from gaia_sessions.system.processes import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Self

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Cancellation, Mark
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import HostProcess, Moving, Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.session.transcript import Message, NewMessage
    from gaia_sessions.store.inbox_keys import WaitingEvent
    from gaia_sessions.store.output_file import Kept
    from gaia_sessions.store.port import (
        Entry,
        ImportSource,
        IsWanted,
        MarkRule,
        Messages,
        Output,
        RecordOrError,
        Result,
        StoreRule,
    )


class MemoryStore:
    """Stores records as bytes, so that a change of a returned record does not change the stored one."""

    root = ""
    durable = keeps_figures = True

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._journals: dict[str, dict[str, list[bytes]]] = {}
        self._marks: dict[str, bytes] = {}
        self._transcripts: dict[str, bytes] = {}
        self._outputs: dict[tuple[str, int], Kept] = {}
        self._documents: dict[Scope, bytes] = {}
        self._figures: list[bytes] = []
        self._inbox: dict[str, tuple[str, bytes]] = {}
        self._held_keys: set[tuple[str, ...]] = set()
        self._deferred_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        return

    def repeated(self, act: Callable[[], Result]) -> Result:
        return act()

    def sync(self) -> None:
        return

    def take_in(self, record: Record, source: ImportSource, *, reserved: int = 0) -> None:
        raise NotImplementedError  # no test imports into memory

    def put(self, agent_id: str, files: Mapping[str, bytes]) -> None:
        raise NotImplementedError  # no test copies into memory

    def files(self, agent_id: str) -> dict[str, bytes]:
        raise NotImplementedError

    def documents(self) -> Iterator[Document | errors.StoreFailure]:
        raise NotImplementedError

    def remove_document(self, scope: Scope) -> None:
        raise NotImplementedError

    def repair(self, agent_id: str) -> None:
        self.read(agent_id)  # a readable record needs no repair

    def read(self, agent_id: str) -> Record:
        if check_agent_id(agent_id) not in self._records:
            raise errors.SessionNotFound(agent_id)
        return decode(self._records[agent_id], agent_id)

    def ancestors(self, record: Record) -> dict[str, Record | None]:
        return read_ancestors(self, record)

    def has(self, agent_id: str) -> bool:
        return check_agent_id(agent_id) in self._records

    def ids(self) -> list[str]:
        return list(self._records)

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        for agent_id in list(self._records):
            if agent_id not in self._records:
                continue
            record = self.read(agent_id)
            if not active_only or is_active(record, agent_name, host_session_id):
                yield agent_id, record

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        wanted = frozenset(map(check_agent_id, parent_ids))
        records = map(self.read, list(self._records))
        return [record for record in records if is_child(record, wanted, open_only=open_only)]

    def create(
        self,
        record: Record,
        entry: Entry | None = None,
        *,
        reserved: int = 0,
        system_prompt: NewMessage | None = None,
        documents: Mapping[Scope, Document] | None = None,
    ) -> None:
        agent_id, line = check_agent_id(record["agent_id"]), b""
        encoded = {scope: files.encode(document) for scope, document in (documents or {}).items()}
        if system_prompt is not None:
            committed, line = beginning_with(system_prompt, 1)
            record = {**record, **committed}
        kept, data = fit_record(record, reserved)
        if self.has(agent_id):
            raise errors.SessionExists(agent_id)
        self.cancellation(kept)  # raises if the mark cannot be read
        self._save(kept, data, entry_lines([entry] if entry else ()))
        self._transcripts[agent_id] = line
        self._documents |= encoded

    def open(self, agent_id: str, *, timeout: float | None = None) -> MemorySession:  # noqa: ARG002  # one process holds no lock
        return MemorySession(self, agent_id)

    def change(self, agent_id: str, rule: StoreRule, *, timeout: float | None = None, reserved: int = 0) -> Record:
        with self.open(agent_id, timeout=timeout) as session:
            return session.commit(rule(session.record), reserved=reserved)

    def cancellation(self, record: Record) -> Cancellation | None:
        """The cancellation of the session of ``record``, or None."""
        agent_id = record["agent_id"]
        return cancellation_of(agent_id, self.marks([agent_id, *self.ancestors(record)]))

    def commit(
        self,
        before: Record,
        change: Change,
        reserved: int,
        proved: Cancellation | None,
        messages: Sequence[NewMessage],
        documents: Mapping[Scope, Document],
    ) -> tuple[Record, list[Message]]:
        """Stores the changed record, messages and documents. Returns the stored record and messages."""
        agent_id, record, entries = before["agent_id"], change.record, change.entries
        kept, size = self._transcripts.get(agent_id, b""), committed_bytes(before)
        if generation_of(record) != generation_of(before):
            record, kept, size = with_next_transcript(record, generation_of(before) + 1, last_seq(before)), b"", 0
        stored, lines = number_messages(messages, last_seq(before) + 1, current_turn(before))
        if stored:
            record = with_transcript(record, size + len(lines), stored[-1]["seq"])
        cancellation = proved or self.cancellation(record)
        if cancellation is not None:
            record, entries = marks.applied(before, record, entries, cancellation)
        journal = entry_lines(entries)
        encoded = {scope: files.encode(document) for scope, document in documents.items()}
        record, data = fit_record(with_next_revision(record), reserved, before)
        self._save(record, data, journal)
        self._transcripts[agent_id] = kept + lines
        self._documents |= encoded
        return record, stored

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        return reversed(list(takewhile(is_wanted or (lambda _: True), self.messages_backwards(agent_id))))

    def messages_backwards(self, agent_id: str) -> Messages:
        self.read(agent_id)
        return map(decode_message, reversed(self._transcripts.get(agent_id, b"").splitlines()))

    def messages_from_turn(self, agent_id: str, turn: int) -> Messages:
        return (found for found in self.messages(agent_id) if isinstance(found, dict) and found["turn"] >= turn)

    def output_path(self, agent_id: str, number: int) -> str | None:  # noqa: ARG002  # it is not a file
        check_agent_id(agent_id)
        return None

    def open_output(self, record: Record, number: int) -> Output:
        from gaia_sessions.store.output_file import Kept

        self._check_there(record)
        kept = self._outputs[record["agent_id"], number] = Kept()
        return kept

    def output(self, record: Record, number: int) -> bytes:
        self._check_there(record)
        return bytes(self._outputs.get((record["agent_id"], number), b""))

    def _check_there(self, record: Record) -> None:
        if self.read(record["agent_id"])["created_at"] != record["created_at"]:
            raise errors.SessionNotFound(record["agent_id"])

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        found = ((agent_id, self._mark_of(agent_id)) for agent_id in agent_ids if is_agent_id(agent_id))
        return [(agent_id, mark) for agent_id, mark in found if mark is not None]

    def _mark_of(self, agent_id: str) -> Mark | None:
        data = self._marks.get(agent_id)
        return None if data is None else marks.decode(data)

    def mark(
        self,
        agent_id: str,
        rule: MarkRule,
        *,
        timeout: float | None = None,  # noqa: ARG002  # one process holds no lock
    ) -> Mark:
        if not self.has(agent_id):
            raise errors.SessionNotFound(agent_id)
        mark = rule(self._mark_of(agent_id))
        self._marks[agent_id] = strict.dumps(mark)
        return mark

    def _save(self, record: Record, data: bytes, lines: bytes) -> None:
        self._records[record["agent_id"]] = data
        self._journal(record["agent_id"], EVENTS).extend(lines.splitlines())

    def _journal(self, agent_id: str, name: str) -> list[bytes]:
        return self._journals.setdefault(agent_id, {}).setdefault(name, [])

    def find(self, alias: Alias, *, strict: bool = False) -> Record | None:  # noqa: ARG002  # every record can be read
        return newest_of(self.having(alias))

    def having(self, alias: Alias) -> list[Record]:
        return with_alias(alias, map(self.read, list(self._records)))

    def open_of_app(self, app: str, user: str | None = None) -> Iterator[Record]:
        for _, record in self.scan(active_only=True):
            if not isinstance(record, errors.SessionsError) and is_open_of_app(record, app, user):
                yield record

    def delete_each(
        self,
        agent_ids: Iterable[str],
        should_delete: Callable[[str, RecordOrError], bool],
        *,
        timeout: float | None = 0,  # noqa: ARG002  # one process holds no lock
    ) -> Iterator[tuple[str, bool | SessionsError]]:
        for agent_id in agent_ids:
            try:
                is_deleted = should_delete(agent_id, read_or_corrupt(self, agent_id))
            except errors.SessionsError as error:
                yield agent_id, error
                continue
            if is_deleted:
                self._forget(agent_id)
            yield agent_id, is_deleted

    def _forget(self, agent_id: str) -> None:
        self._records.pop(agent_id, None)
        self._transcripts.pop(agent_id, None)
        self._marks.pop(agent_id, None)
        self._journals.pop(agent_id, None)
        for run in [run for run in self._outputs if run[0] == agent_id]:
            del self._outputs[run]

    def figures(self) -> Iterator[dict[str, Json] | None]:
        return map(strict.load_object, self._figures)

    def add_figures(self, figures: Sequence[Mapping[str, object]]) -> None:
        self._figures += map(strict.dump_line, figures)

    def ensure_index(self) -> None:
        return

    def sweep(self, now: datetime) -> list[str]:  # noqa: ARG002  # there are no leftovers
        return []

    def keep_days(self) -> None:
        return

    def lock_key(self, key: tuple[str, ...], timeout: float | None = None) -> MemoryKeyLock:
        return MemoryKeyLock(self._held_keys, key, timeout or 0)

    def lease(self, sends_to: str | None = None) -> MemoryKeyLock:
        return self.lock_key(("send", sends_to) if sends_to else ("command",))

    def append(
        self,
        agent_id: str,
        journal: str,
        entries: list[Json],
        *,
        timeout: float | None = None,  # noqa: ARG002  # one process holds no lock
    ) -> None:
        if not self.has(agent_id):
            raise errors.SessionNotFound(agent_id)
        lines = [strict.dump_line(entry) for entry in entries]
        self._journal(agent_id, journal).extend(lines)

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        if not self.has(agent_id):
            raise errors.SessionNotFound(agent_id)
        return (json.loads(line) for line in self._journals.get(agent_id, {}).get(journal, ()))

    def defer(self, event: Event, now: datetime) -> str:  # noqa: ARG002  # order of arrival is order of time
        data = strict.dumps(event)
        self._deferred_count += 1
        name = f"{self._deferred_count:09}"
        self._inbox[name] = keys_of_event(event), data
        return name

    def waiting(self) -> list[WaitingEvent]:
        return [(name, keys) for name, (keys, _) in self._inbox.items()]

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        for name in list(self._inbox) if names is None else names:
            if name in self._inbox:
                yield name, strict.load_object(self._inbox[name][1])

    def document(self, scope: Scope) -> Document | None:
        return files.decode(self._documents[scope]) if scope in self._documents else None

    def add_document(self, document: Document) -> None:
        scope = (*document["scope"],)
        if self.document(scope) is None:
            self._documents[scope] = files.encode(document)

    def dismiss(self, name: str) -> None:
        self._inbox.pop(name, None)


class MemorySession:
    """A session that is open for a ``with`` block."""

    def __init__(self, store: MemoryStore, agent_id: str) -> None:
        self._store = store
        self._agent_id = agent_id
        self.added: Sequence[Message] = ()

    def __enter__(self) -> Self:
        self.record = self._store.read(self._agent_id)
        check_writable(self.record)
        return self

    def __exit__(self, *_: object) -> None:
        return

    def cancellation(self) -> Cancellation | None:
        return self._store.cancellation(self.record)

    def commit(
        self,
        change: Record | Change,
        *,
        reserved: int = 0,
        proved: Cancellation | None = None,
        messages: Sequence[NewMessage] = (),
        documents: Mapping[Scope, Document] | None = None,
    ) -> Record:
        change = change if isinstance(change, Change) else Change(change)
        self.added = ()
        if change.record is not self.record or messages or documents:
            self.record, self.added = self._store.commit(
                self.record, change, reserved, proved, messages, documents or {}
            )
        return self.record

    def set_moving(self, moving: Moving | None) -> None:
        raise NotImplementedError


class MemoryKeyLock:
    """Holds a key lock for a ``with`` block."""

    is_over = False
    silent_until = None
    patience = 0.0

    def __init__(self, held_keys: set[tuple[str, ...]], key: tuple[str, ...], timeout: float) -> None:
        self._held_keys = held_keys
        self._key = key
        self._timeout = timeout
        self.is_held = False

    def holder(self) -> HostProcess:
        """Returns this process: no other process can use this store."""
        return describe(os.getpid()) or {}

    def __enter__(self) -> None:
        if self.is_held:
            return
        if self._key in self._held_keys:
            raise errors.LockTimeout(str(self._key), self._timeout, None)
        self._held_keys.add(self._key)
        self.is_held = True

    def __exit__(self, *_: object) -> None:
        if self.is_held:
            self._held_keys.discard(self._key)
        self.is_held = False
