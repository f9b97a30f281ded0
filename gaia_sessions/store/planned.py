"""Sessions as they would be after changes that nobody writes: waiting events, or a dry run.

Ingest, reconcile and cleanup work on a plan as on a store, so the code that foresees is the code that writes. A plan
serves one call: it writes and locks nothing and reads everything once. Nobody changes its records in place.
"""

from __future__ import annotations

from itertools import chain

from gaia_sessions import errors
from gaia_sessions.errors import SessionNotFound, SessionsError
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.index_keys import alias_key, conversation_key, keys_of, open_child_key, parent_key
from gaia_sessions.session.record import is_child
from gaia_sessions.session.runs import is_active, newest_of, with_alias
from gaia_sessions.session.updates import Change, check_writable, with_next_revision

from . import read_ancestors, read_or_corrupt
from .journal import entry_lines
from .reading import EVENTS, unless_refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Self

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Cancellation, Mark
    from gaia_sessions.session.index_keys import IndexKey
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record

    from .inbox_keys import WaitingEvent
    from .port import Entry, IsWanted, MarkRule, Messages, RecordOrError, StoreReader, StoreRule


class Plan:
    """The sessions of ``store``, with planned changes applied. The inbox of this plan is ``waiting``."""

    def __init__(self, store: StoreReader, waiting: Iterable[WaitingEvent] = ()) -> None:
        self._store = store
        self._inbox = dict(waiting)
        self._planned: dict[str, Record] = {}
        self._planned_by_key: dict[IndexKey, dict[str, None]] = {}
        self._not_in_store: set[str] = set()
        self._entries: dict[tuple[str, str], list[Json]] = {}
        self._marks: dict[str, Mark] = {}
        self._stored: dict[str, Record] = {}
        self._stored_by_key: dict[IndexKey, list[str]] = {}

    def planned(self, agent_id: str) -> Record | None:
        """Returns the record of a session that the plan creates or changes; None for any other."""
        return self._planned.get(agent_id)

    def read(self, agent_id: str) -> Record:
        if agent_id in self._planned:
            return self._planned[agent_id]
        if agent_id in self._not_in_store:
            raise SessionNotFound(agent_id)
        if agent_id not in self._stored:
            self._stored[agent_id] = self._store.read(agent_id)
        return self._stored[agent_id]

    def ancestors(self, record: Record) -> dict[str, Record | None]:
        return read_ancestors(self, record)

    def has(self, agent_id: str) -> bool:
        return agent_id in self._planned or (agent_id not in self._not_in_store and self._store.has(agent_id))

    def ids(self) -> list[str]:
        return [*{*self._planned, *self._store.ids()} - (self._not_in_store - self._planned.keys())]

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        if active_only and host_session_id is not None:
            found = self._with_key(
                conversation_key(host_session_id),
                lambda: self._store.scan(active_only=True, host_session_id=host_session_id),
            )
        else:
            found = self._each_once(self._store.scan(active_only=active_only, agent_name=agent_name))
        for agent_id, record in found:
            planned = self._planned.get(agent_id) if active_only else None
            if planned is None or is_active(planned, agent_name, host_session_id):
                yield agent_id, record

    def _each_once(self, stored: Iterable[tuple[str, RecordOrError]]) -> Iterator[tuple[str, RecordOrError]]:
        """Yields what is ``stored`` and not planned, and after that everything that is planned by then."""
        seen: set[str] = set()
        for agent_id, found in stored:
            if agent_id not in self._planned and agent_id not in self._not_in_store:
                seen.add(agent_id)
                yield agent_id, found
        for agent_id in [planned for planned in self._planned if planned not in seen]:
            record = self._planned.get(agent_id)
            if record is not None:
                yield agent_id, record

    def _with_key(
        self, key: IndexKey, look: Callable[[], Iterable[tuple[str, RecordOrError]]]
    ) -> Iterator[tuple[str, RecordOrError]]:
        """Yields each session that may have ``key``, none twice; finds stored ones by ``look``, one time per key."""
        if key not in self._stored_by_key:
            self._stored_by_key[key] = [*self._kept(look())]
        for agent_id in dict.fromkeys((*self._stored_by_key[key], *self._planned_by_key.get(key, ()))):
            try:
                yield agent_id, self.read(agent_id)
            except SessionNotFound:
                continue
            except SessionsError as error:
                yield agent_id, error

    def _kept(self, found: Iterable[tuple[str, RecordOrError]]) -> Iterator[str]:
        for agent_id, record in found:
            if not isinstance(record, SessionsError):
                self._stored.setdefault(agent_id, record)
            yield agent_id

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        parents = dict.fromkeys(map(check_agent_id, parent_ids))
        return [record for parent_id in parents for record in self._children_of(parent_id, open_only=open_only)]

    def _children_of(self, parent_id: str, *, open_only: bool) -> Iterator[Record]:
        key = open_child_key(parent_id) if open_only else parent_key(parent_id)
        for _, found in self._with_key(key, lambda: _by_id(self._store.children([parent_id], open_only=open_only))):
            record = unless_refused(found)
            if not isinstance(record, SessionsError) and is_child(record, [parent_id], open_only=open_only):
                yield record

    def find(self, alias: Alias) -> Record | None:
        return newest_of(self.having(alias))

    def having(self, alias: Alias) -> list[Record]:
        found = self._with_key(alias_key(alias), lambda: _by_id(self._store.having(alias)))
        return with_alias(alias, (record for _, record in found if not isinstance(record, SessionsError)))

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        return iter(()) if self._is_new(agent_id) else self._store.messages(agent_id, is_wanted=is_wanted)

    def messages_backwards(self, agent_id: str) -> Messages:
        return iter(()) if self._is_new(agent_id) else self._store.messages_backwards(agent_id)

    def messages_from_turn(self, agent_id: str, turn: int) -> Messages:
        return iter(()) if self._is_new(agent_id) else self._store.messages_from_turn(agent_id, turn)

    def output(self, record: Record, number: int) -> bytes:
        return b"" if self._is_new(record["agent_id"]) else self._store.output(record, number)

    def output_path(self, agent_id: str, number: int) -> str | None:
        return self._store.output_path(agent_id, number)

    def _is_new(self, agent_id: str) -> bool:
        """Returns whether only the plan has the session; raises ``SessionNotFound`` if the plan removes it."""
        if agent_id not in self._not_in_store:
            return False
        self.read(agent_id)
        return True

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        stored, planned = self.entries_by_origin(agent_id, journal)
        return chain(stored, planned)

    def entries_by_origin(self, agent_id: str, journal: str) -> tuple[Iterator[Json | SessionsError], list[Json]]:
        """Returns the stored and the planned entries separately: a writer may add others between them."""
        stored = iter(()) if self._is_new(agent_id) else self._store.entries(agent_id, journal)
        return stored, [*self._entries.get((agent_id, journal), ())]

    def figures(self) -> Iterator[dict[str, Json] | None]:
        return self._store.figures()

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        asked = [*agent_ids]
        stored = self._store.marks(one for one in asked if one not in self._marks and one not in self._not_in_store)
        marks = {**self._marks, **dict(stored)}
        return [(agent_id, marks[agent_id]) for agent_id in asked if agent_id in marks]

    def mark(self, agent_id: str, rule: MarkRule, *, timeout: float | None = None) -> Mark:  # noqa: ARG002  # no lock
        if not self.has(agent_id):
            raise SessionNotFound(agent_id)
        self._marks[agent_id] = mark = rule(dict(self.marks([agent_id])).get(agent_id))
        return mark

    def cancellation(self, record: Record) -> Cancellation | None:
        """Returns why the session of ``record`` is cancelled, or None."""
        above = self.ancestors(record) if "parent_id" in record else ()
        marks = self.marks([record["agent_id"], *above])
        if not marks:
            return None
        from gaia_sessions.session.cancellation import cancellation_of

        return cancellation_of(record["agent_id"], marks)

    def waiting(self) -> list[WaitingEvent]:
        return [*self._inbox.items()]

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        return self._store.deferred([name for name in (self._inbox if names is None else names) if name in self._inbox])

    def dismiss(self, name: str) -> None:
        self._inbox.pop(name, None)

    def create(self, record: Record, entry: Entry | None = None, *, reserved: int = 0, **_: None) -> None:
        """Stores ``record`` alone: a plan has neither messages nor documents."""
        from gaia_sessions.session.retention import fit_record

        agent_id = check_agent_id(record["agent_id"])
        kept = fit_record(record, reserved)[0]
        if self.has(agent_id):
            raise errors.SessionExists(agent_id)
        self.cancellation(kept)  # raises while a mark cannot be read, as a store refuses the creation
        self._put(kept, [entry] if entry else [])
        self._not_in_store.add(agent_id)

    def open(self, agent_id: str, *, timeout: float | None = None) -> PlannedSession:  # noqa: ARG002  # no lock
        return PlannedSession(self, agent_id)

    def change(self, agent_id: str, rule: StoreRule, *, timeout: float | None = None, reserved: int = 0) -> Record:
        with self.open(agent_id, timeout=timeout) as session:
            return session.commit(rule(session.record), reserved=reserved)

    def commit(self, before: Record, change: Change, reserved: int, proved: Cancellation | None) -> Record:
        """Plans what a store would make of ``change`` of the record ``before``, and returns the new record."""
        from gaia_sessions.session.retention import fit_record

        record, entries = change.record, change.entries
        cancellation = proved or self.cancellation(record)
        if cancellation is not None:
            from .marks import applied

            record, entries = applied(before, record, entries, cancellation)
        record, _ = fit_record(with_next_revision(record), reserved, before)
        self._put(record, entries)
        return record

    def _put(self, record: Record, entries: Sequence[Entry]) -> None:
        self._note(record["agent_id"], EVENTS, entries)
        self._planned[record["agent_id"]] = record
        for key in keys_of(record):
            self._planned_by_key.setdefault(key, {})[record["agent_id"]] = None

    def append(self, agent_id: str, journal: str, entries: list[Json], *, timeout: float | None = None) -> None:  # noqa: ARG002  # no lock
        if not self.has(agent_id):
            raise SessionNotFound(agent_id)
        self._note(agent_id, journal, entries)

    def _note(self, agent_id: str, journal: str, entries: Sequence[Json]) -> None:
        entry_lines(entries)  # raises what a journal would raise
        self._entries.setdefault((agent_id, journal), []).extend(entries)

    def delete_each(
        self,
        agent_ids: Iterable[str],
        should_delete: Callable[[str, RecordOrError], bool],
        *,
        timeout: float | None = 0,  # noqa: ARG002  # no lock
    ) -> Iterator[tuple[str, bool | SessionsError]]:
        for agent_id in agent_ids:
            try:
                is_deleted = should_delete(agent_id, read_or_corrupt(self, agent_id))
            except SessionsError as error:
                yield agent_id, error
                continue
            if is_deleted:
                self._forget(agent_id)
            yield agent_id, is_deleted

    def _forget(self, agent_id: str) -> None:
        self._not_in_store.add(agent_id)
        self._planned.pop(agent_id, None)
        self._marks.pop(agent_id, None)
        for of in [of for of in self._entries if of[0] == agent_id]:
            del self._entries[of]

    def add_figures(self, figures: Sequence[Mapping[str, object]]) -> None:
        """Does nothing: no session is removed."""

    def ensure_index(self) -> None:
        """Does nothing: a plan finds by keys what it has looked at."""

    def sweep(self, now: datetime) -> list[str]:  # noqa: ARG002  # removes nothing
        return []

    def lock_key(self, key: tuple[str, ...], timeout: float | None = None) -> _NoLock:  # noqa: ARG002  # no lock
        return _NoLock()


class PlannedSession:
    """A session of ``plan`` that is open for a ``with`` block."""

    def __init__(self, plan: Plan, agent_id: str) -> None:
        self._plan = plan
        self._agent_id = agent_id
        self._record: Record | None = None

    def __enter__(self) -> Self:
        if not self._plan.has(self._agent_id):
            raise SessionNotFound(self._agent_id)
        return self

    @property
    def record(self) -> Record:
        if self._record is None:
            self._record = self._plan.read(self._agent_id)
            check_writable(self._record)
        return self._record

    def __exit__(self, *_: object) -> None:
        return

    def cancellation(self) -> Cancellation | None:
        return self._plan.cancellation(self.record)

    def commit(self, change: Record | Change, *, reserved: int = 0, proved: Cancellation | None = None) -> Record:
        change = change if isinstance(change, Change) else Change(change)
        if change.record is not self.record:
            self._record = self._plan.commit(self.record, change, reserved, proved)
        return self.record


class _NoLock:
    """A block without a lock: a plan serves one call and one thread."""

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return


def _by_id(records: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    return ((record["agent_id"], record) for record in records)
