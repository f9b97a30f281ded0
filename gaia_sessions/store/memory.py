"""A store in memory: the base of ``Overlay``, and the reference with which the contract tests compare the file store.

Owns the simplest implementation of every method of the port, for one process and one thread. Nothing in it is durable.
"""

from __future__ import annotations

import json

from gaia_sessions import errors
from gaia_sessions.jsonio import strict
from gaia_sessions.session.ids import check_agent_id, is_agent_id
from gaia_sessions.session.record import decode, is_child, is_open
from gaia_sessions.session.retention import fit_record
from gaia_sessions.session.runs import newest_session_with, open_conversations
from gaia_sessions.session.updates import check_writable, with_next_revision

from . import ids_up_to_root, marks
from .inbox_keys import keys_of_event
from .journal import entry_line
from .memory_transcripts import MemoryTranscripts
from .reading import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record

    from .inbox_keys import WaitingEvent
    from .port import Entry, MarkRule, RecordOrError, StoreRule


class MemoryStore(MemoryTranscripts):
    """Keeps records as bytes, so that a stored record cannot be changed through a value that was returned."""

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[str, bytes] = {}
        self._journals: dict[tuple[str, str], list[bytes]] = {}
        self._marks: dict[str, bytes] = {}
        self._inbox: dict[str, tuple[str, bytes]] = {}
        self._held_keys: set[tuple[str, ...]] = set()
        self._deferred_count = 0

    def read(self, agent_id: str) -> Record:
        if check_agent_id(agent_id) not in self._records:
            raise errors.SessionNotFound(agent_id)
        return decode(self._records[agent_id], agent_id)

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

    def create(self, record: Record, entry: Entry | None = None, *, reserved: int = 0) -> None:
        agent_id = check_agent_id(record["agent_id"])
        kept, data = fit_record(record, reserved)
        if self.has(agent_id):
            raise errors.SessionExists(agent_id)
        self.marks(ids_up_to_root(self, kept)[1:])  # refused while they cannot be read
        self._save(kept, data, _lines_of(entry))

    def change(
        self,
        agent_id: str,
        rule: StoreRule,
        *,
        timeout: float | None = None,  # noqa: ARG002  # one process holds no lock
        reserved: int = 0,
    ) -> Record:
        return self._change(agent_id, rule, reserved, lambda _, changed: changed)

    def _change(
        self, agent_id: str, rule: StoreRule, reserved: int, adapt: Callable[[Record, Record], Record]
    ) -> Record:
        """Applies ``rule``, and then ``adapt`` to the record before it and the one that it returned."""
        record = self.read(agent_id)
        check_writable(record)
        result = rule(record)
        changed, entry = result if isinstance(result, tuple) else (result, None)
        changed = adapt(record, changed)
        if changed is record:
            return record
        found = self.marks(ids_up_to_root(self, changed))
        changed, entry = marks.applied(record, changed, entry, found) if found else (changed, entry)
        lines = _lines_of(entry)
        changed, data = fit_record(with_next_revision(changed), reserved, record)
        self._save(changed, data, lines)
        return changed

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

    def _save(self, record: Record, data: bytes, lines: list[bytes]) -> None:
        self._records[record["agent_id"]] = data
        self._journals.setdefault((record["agent_id"], EVENTS), []).extend(lines)

    def find(self, alias: Alias) -> str | None:
        return newest_session_with(alias, map(self.read, list(self._records)))

    def delete(self, agent_id: str, should_delete: Callable[[RecordOrError], bool]) -> bool:
        if not should_delete(self.read(agent_id)):
            return False
        self._forget(agent_id)
        return True

    def _forget(self, agent_id: str) -> None:
        self._records.pop(agent_id, None)
        self._transcripts.pop(agent_id, None)
        self._marks.pop(agent_id, None)
        for key in [key for key in self._journals if key[0] == agent_id]:
            del self._journals[key]

    def ensure_index(self) -> None:
        return

    def purge_trash(self) -> None:
        return

    def sweep(self, now: datetime, active: Iterable[str]) -> list[str]:  # noqa: ARG002  # nothing is ever left over
        return []

    def lock_key(self, key: tuple[str, ...], timeout: float | None = None) -> MemoryKeyLock:
        return MemoryKeyLock(self._held_keys, key, timeout or 0)

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
        self._journals.setdefault((agent_id, journal), []).extend(lines)

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        if not self.has(agent_id):
            raise errors.SessionNotFound(agent_id)
        return self.own_entries(agent_id, journal)

    def own_entries(self, agent_id: str, journal: str) -> Iterator[Json]:
        """The entries that were written to this very store."""
        return (json.loads(line) for line in self._journals.get((agent_id, journal), []))

    def defer(self, event: Event, now: datetime) -> str:  # noqa: ARG002  # order of arrival is order of time
        data, name = strict.dumps(event), self._new_event_name()
        self._inbox[name] = keys_of_event(event), data
        return name

    def _new_event_name(self) -> str:
        self._deferred_count += 1
        return f"{self._deferred_count:09}"

    def waiting(self) -> list[WaitingEvent]:
        return [(name, keys) for name, (keys, _) in self._inbox.items()]

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        for name in list(self._inbox) if names is None else names:
            if name in self._inbox:
                yield name, strict.load_object(self._inbox[name][1])

    def dismiss(self, name: str) -> None:
        self._inbox.pop(name, None)


def is_active(record: Record, agent_name: str | None, host_session_id: str | None) -> bool:
    """Whether ``record`` is not final, and of this name and this conversation, each unless it is None."""
    has_name = agent_name in (None, record.get("agent_name"))  # a later version's record may have none
    return has_name and is_open(record) and host_session_id in (None, *open_conversations(record))


def _lines_of(entry: Entry | None) -> list[bytes]:
    line = entry_line(entry)
    return [line] if line else []


class MemoryKeyLock:
    """Holds the key for the length of a ``with`` block."""

    def __init__(self, held_keys: set[tuple[str, ...]], key: tuple[str, ...], timeout: float) -> None:
        self._held_keys = held_keys
        self._key = key
        self._timeout = timeout

    def __enter__(self) -> None:
        if self._key in self._held_keys:
            raise errors.LockTimeout(str(self._key), self._timeout, None)
        self._held_keys.add(self._key)

    def __exit__(self, *_: object) -> None:
        self._held_keys.discard(self._key)
