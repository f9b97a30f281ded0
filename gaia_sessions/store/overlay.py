"""A store whose writes stay in memory above another store, which is only read.

Owns the changes of a preview: what they hide of the store below, and how both are read as one store. Must never write
to the store below or lock anything in it, so its locks exclude only those who use the same overlay. An overlay is made
for one call: what it has read below of a session or a conversation it does not read again.
"""

from __future__ import annotations

from itertools import groupby

from gaia_sessions.errors import SessionNotFound, SessionsError
from gaia_sessions.session.record import is_child, parent_id_of
from gaia_sessions.session.runs import aliases_of, found_by, is_active, with_alias
from gaia_sessions.session.transcript import generation_of

from . import read_if_readable
from .memory_store import MemoryStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import TypeVar

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope

    from .inbox_keys import WaitingEvent
    from .port import Messages, RecordOrError, StoreReader

    Copied = TypeVar("Copied")


_MOST_LOOKS = 16


class Overlay(MemoryStore):
    """``base`` with changes that nobody else sees; ``inbox`` are the events waiting below that wait here too.

    The records that are kept here are handed out as copies, which a caller may change.
    """

    def __init__(self, base: StoreReader, inbox: Iterable[WaitingEvent]) -> None:
        super().__init__()
        self._base = base
        self._base_inbox = dict(inbox)
        self._names_below = frozenset(self._base_inbox)
        self._changed: dict[str, Record] = {}
        self._changed_ids_by_alias: dict[Alias, set[str]] = {}
        self._changed_ids_below: dict[str | None, dict[str, None]] = {}
        self._ids_in_base: dict[tuple[str, object], list[str]] | None = None
        self._looks = 0
        self._deleted: set[str] = set()
        self._base_records: dict[str, Record] = {}
        self._conversation_scans: dict[tuple[object, ...], list[tuple[str, RecordOrError]]] = {}

    def changed_record(self, agent_id: str) -> Record | None:
        """The record of a session that was created or changed here; None for any other."""
        record = self._changed.get(agent_id)
        return None if record is None else _copy_of(record)

    def read(self, agent_id: str) -> Record:
        changed = self.changed_record(agent_id)
        if changed is not None:
            return changed
        if agent_id in self._deleted:
            raise SessionNotFound(agent_id)
        if agent_id not in self._base_records:
            self._base_records[agent_id] = self._base.read(agent_id)
        return _copy_of(self._base_records[agent_id])

    def has(self, agent_id: str) -> bool:
        return agent_id in self._changed or (agent_id not in self._deleted and self._base.has(agent_id))

    def ids(self) -> list[str]:
        return list({*self._changed, *(agent_id for agent_id in self._base.ids() if not self._hides(agent_id))})

    def _hides(self, agent_id: str) -> bool:
        """Whether what the store below says of this session does not hold here."""
        return agent_id in self._changed or agent_id in self._deleted

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        seen: set[str] = set()  # one that is changed here after it was yielded is not yielded again
        for agent_id, scanned in self._scan_base(
            active_only=active_only, agent_name=agent_name, host_session_id=host_session_id
        ):
            if not self._hides(agent_id):
                seen.add(agent_id)
                yield agent_id, scanned if host_session_id is None else _copy_of(scanned)
        for agent_id in self._changed.keys() - seen:
            record = self._changed.get(agent_id)
            if record is not None and (not active_only or is_active(record, agent_name, host_session_id)):
                yield agent_id, _copy_of(record)

    def _scan_base(
        self, *, active_only: bool, agent_name: str | None, host_session_id: str | None
    ) -> Iterator[tuple[str, RecordOrError]]:
        """Keeps what it found of a conversation: many of its events may wait, and each asks for all of its sessions."""
        if host_session_id is None:
            return self._base.scan(active_only=active_only, agent_name=agent_name)
        if active_only and self._knows_keys():
            records = self._with_key("conversation", host_session_id)
            return (
                (record["agent_id"], record) for record in records if is_active(record, agent_name, host_session_id)
            )
        criteria = (active_only, agent_name, host_session_id)
        if criteria not in self._conversation_scans:
            self._conversation_scans[criteria] = list(
                self._base.scan(active_only=active_only, agent_name=agent_name, host_session_id=host_session_id)
            )
        return iter(self._conversation_scans[criteria])

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        below = [record for record in self._in_base(parent_ids, open_only) if not self._hides(record["agent_id"])]
        changed_ids = {agent_id: None for one in parent_ids for agent_id in self._changed_ids_below.get(one, ())}
        changed = [self._changed[agent_id] for agent_id in changed_ids if agent_id in self._changed]
        records = [record for record in changed if is_child(record, parent_ids, open_only=open_only)]
        return [_copy_of(record) for record in (*below, *records)]

    def _in_base(self, parent_ids: Collection[str], open_only: bool) -> list[Record]:  # noqa: FBT001  # as children takes it
        if not self._knows_keys():
            return self._base.children(parent_ids, open_only=open_only)
        records = (record for one in {*parent_ids} for record in self._with_key("parent", one))
        return [record for record in records if is_child(record, parent_ids, open_only=open_only)]

    def _knows_keys(self) -> bool:
        """Whether it was found who has which key, by one look at all sessions below, since many keys were looked for.

        The base may have no index, and is not written to: then it looks at all of them for each key.
        """
        self._looks += 1
        if self._looks >= _MOST_LOOKS and self._ids_in_base is None:
            ids: dict[tuple[str, object], list[str]] = {}
            for agent_id, record in self._base.scan():
                if not isinstance(record, SessionsError):
                    _, parent_id, conversations, aliases = found_by(record)
                    for key in {("parent", parent_id), *(("conversation", one) for one in conversations), *aliases}:
                        ids.setdefault(key, []).append(agent_id)
            self._ids_in_base = ids
        return self._ids_in_base is not None

    def _with_key(self, kind: str, value: object) -> Iterator[Record]:
        ids = (self._ids_in_base or {}).get((kind, value), ())
        return filter(None, (read_if_readable(self._base, agent_id) for agent_id in ids))

    def document(self, scope: Scope) -> Document | None:
        return super().document(scope) or self._base.document(scope)

    def _mark_of(self, agent_id: str) -> Mark | None:
        own = super()._mark_of(agent_id)
        if own is not None or agent_id in self._deleted:
            return own
        return next((mark for _, mark in self._base.marks([agent_id])), None)

    def having(self, alias: Alias) -> list[Record]:
        in_base = self._with_key(*alias) if self._knows_keys() else self._base.having(alias)
        below = (record for record in in_base if not self._hides(record["agent_id"]))
        changed_ids = self._changed_ids_by_alias.get(alias, ())
        changed = (self._changed[agent_id] for agent_id in changed_ids if agent_id in self._changed)
        return _copy_of(with_alias(alias, (*below, *changed)))

    def _save(self, record: Record, data: bytes, lines: bytes) -> None:
        super()._save(record, data, lines)
        agent_id = record["agent_id"]
        self._changed[agent_id] = _copy_of(record)
        self._changed_ids_below.setdefault(parent_id_of(record), {})[agent_id] = None
        for alias in aliases_of(record):
            self._changed_ids_by_alias.setdefault(alias, set()).add(agent_id)

    def _forget(self, agent_id: str) -> None:
        super()._forget(agent_id)
        self._changed.pop(agent_id, None)
        self._deleted.add(agent_id)

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        if not self.has(agent_id):
            raise SessionNotFound(agent_id)
        below: Iterable[Json | SessionsError] = ()
        if agent_id not in self._deleted and self._base.has(agent_id):
            below = self._base.entries(agent_id, journal)
        return (entry for part in (below, self.own_entries(agent_id, journal)) for entry in part)

    def output_path(self, agent_id: str, number: int) -> str | None:
        return self._base.output_path(agent_id, number)

    def output(self, record: Record, number: int) -> bytes:
        agent_id = record["agent_id"]
        is_below = (agent_id, number) not in self._outputs and agent_id not in self._deleted
        if is_below and self._base.has(agent_id):
            return self._base.output(record, number)
        return super().output(record, number)

    def messages_backwards(self, agent_id: str) -> Messages:
        generation = generation_of(self.read(agent_id))
        below: Messages = iter(())
        is_below = agent_id not in self._deleted and self._base.has(agent_id)
        if is_below and generation_of(self._base.read(agent_id)) == generation:
            below = self._base.messages_backwards(agent_id)
        return (message for part in (self._own_messages_backwards(agent_id), below) for message in part)

    def figures(self) -> Iterator[dict[str, Json] | None]:
        return (line for part in (self._base.figures(), super().figures()) for line in part)

    def waiting(self) -> list[WaitingEvent]:
        return [*self._base_inbox.items(), *super().waiting()]

    def _new_event_name(self) -> str:
        name = super()._new_event_name()
        return self._new_event_name() if name in self._names_below else name

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        wanted = [name for name, _ in self.waiting()] if names is None else names
        for is_below, group in groupby(wanted, self._base_inbox.__contains__):
            if is_below:
                yield from self._base.deferred(name for name in group if name in self._base_inbox)
            else:
                yield from super().deferred(group)

    def dismiss(self, name: str) -> None:
        self._base_inbox.pop(name, None)
        super().dismiss(name)


def _copy_of(value: Copied) -> Copied:
    """A copy of ``value`` that shares no object and no array with it; anything else is immutable."""
    if isinstance(value, dict):
        return {key: _copy_of(item) for key, item in value.items()}  # type: ignore[return-value]  # of the type of value
    if isinstance(value, list):
        return [_copy_of(item) for item in value]  # type: ignore[return-value]  # see above
    return value
