"""A store whose writes stay in memory above another store, which is only read.

Owns the changes of a preview. Must never write to the store below it. Records are never changed in place, so the ones
it keeps may be returned themselves.
"""

from __future__ import annotations

from gaia_sessions.session.record import is_open
from gaia_sessions.session.runs import aliases_of, newest_session_with, open_conversations

from .memory import MemoryStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.runs import Alias
    from gaia_sessions.session.schema import Record

    from .inbox_keys import WaitingEvent
    from .port import RecordOrError, Store


class Overlay(MemoryStore):
    """``base`` with changes that nobody else sees; ``inbox`` are the waiting events that may be applied."""

    def __init__(self, base: Store, inbox: list[WaitingEvent]) -> None:
        super().__init__()
        self.base = base
        self.inbox = dict(inbox)
        self.changed: dict[str, Record] = {}
        self._by_alias: dict[Alias, set[str]] = {}
        self._base_ids: dict[Alias, str | None] = {}
        self._base_records: dict[str, Record] = {}
        self._conversation_scans: dict[tuple[str, bool], list[tuple[str, RecordOrError]]] = {}

    def read(self, agent_id: str) -> Record:
        if agent_id not in self.changed and agent_id not in self._base_records:
            self._base_records[agent_id] = self.base.read(agent_id)
        return self.changed[agent_id] if agent_id in self.changed else self._base_records[agent_id]

    def has(self, agent_id: str) -> bool:
        return agent_id in self.changed or self.base.has(agent_id)

    def ids(self) -> list[str]:
        return list({*self.changed, *self.base.ids()})

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, RecordOrError]]:
        changed = dict(self.changed)
        if host_session_id is None:
            found = self.base.scan(active_only=active_only, agent_name=agent_name)
        else:
            found = self._scan_conversation(host_session_id, active_only=active_only)
        yield from ((agent_id, record) for agent_id, record in found if agent_id not in changed)
        for agent_id, record in changed.items():
            if not active_only or (is_open(record) and host_session_id in (None, *open_conversations(record))):
                yield agent_id, record

    def _scan_conversation(self, host_session_id: str, *, active_only: bool) -> Iterator[tuple[str, RecordOrError]]:
        """Cached, because many events of one conversation may wait, and each asks for all of its sessions."""
        scan_key = (host_session_id, active_only)
        if scan_key not in self._conversation_scans:
            found = self.base.scan(active_only=active_only, host_session_id=host_session_id)
            self._conversation_scans[scan_key] = list(found)
        return iter(self._conversation_scans[scan_key])

    def find(self, alias: Alias) -> str | None:
        changed = [self.changed[agent_id] for agent_id in self._by_alias.get(alias, ())]
        matches = [record for record in changed if alias in aliases_of(record)]
        if alias not in self._base_ids:
            self._base_ids[alias] = self.base.find(alias)
        base_id = self._base_ids[alias]
        if base_id is None or base_id in self.changed:
            return newest_session_with(alias, matches)
        return newest_session_with(alias, [*matches, self.read(base_id)]) if matches else base_id

    def _save(self, record: Record, data: bytes, lines: list[bytes]) -> None:
        super()._save(record, data, lines)
        self.changed[record["agent_id"]] = record
        for alias in aliases_of(record):
            self._by_alias.setdefault(alias, set()).add(record["agent_id"])

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        base_entries = self.base.entries(agent_id, journal) if self.base.has(agent_id) else ()
        return iter([*base_entries, *super().entries(agent_id, journal)])

    def waiting(self) -> list[WaitingEvent]:
        return list(self.inbox.items())

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        inbox_names = [name for name in (self.inbox if names is None else names) if name in self.inbox]
        return self.base.deferred(inbox_names) if inbox_names else iter(())

    def dismiss(self, name: str) -> None:
        self.inbox.pop(name, None)
