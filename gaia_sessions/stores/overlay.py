"""What would be written to a store, kept in memory instead: the store itself is only read.

Owns what a rehearsal changed. Records are never changed in place, so it hands out those that it keeps.
"""

from __future__ import annotations

from gaia_sessions.changes import check_writable, written
from gaia_sessions.errors import SessionExists
from gaia_sessions.record import is_open
from gaia_sessions.retention import fitted
from gaia_sessions.runs import aliases_of, conversations_of, newest_with

from .journal import EVENTS
from .memory import MemoryStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.inbox_keys import Waiting
    from gaia_sessions.runs import Alias
    from gaia_sessions.shape import Record
    from gaia_sessions.strictjson import Json

    from .port import Entry, Found, Rule, Store


class Overlay(MemoryStore):
    """``base`` with changes above it that nobody else sees; ``inbox`` are the events of it that may be applied."""

    def __init__(self, base: Store, inbox: list[Waiting]) -> None:
        super().__init__()
        self.base = base
        self.inbox = dict(inbox)
        self.changed: dict[str, Record] = {}
        self._by_alias: dict[Alias, set[str]] = {}
        self._below: dict[Alias, str | None] = {}
        self._seen: dict[str, Record] = {}
        self._conversations: dict[tuple[str, bool], list[tuple[str, Found]]] = {}
        self._added: dict[str, list[Json]] = {}

    def read(self, agent_id: str) -> Record:
        if agent_id not in self.changed and agent_id not in self._seen:
            self._seen[agent_id] = self.base.read(agent_id)
        return self.changed[agent_id] if agent_id in self.changed else self._seen[agent_id]

    def has(self, agent_id: str) -> bool:
        return agent_id in self.changed or self.base.has(agent_id)

    def ids(self) -> list[str]:
        return list({*self.changed, *self.base.ids()})

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, Found]]:
        changed = dict(self.changed)
        if host_session_id is None:
            found = self.base.scan(active_only=active_only, agent_name=agent_name)
        else:
            found = self._in_conversation(host_session_id, active_only=active_only)
        yield from ((agent_id, record) for agent_id, record in found if agent_id not in changed)
        for agent_id, record in changed.items():
            if not active_only or (is_open(record) and host_session_id in (None, *conversations_of(record))):
                yield agent_id, record

    def _in_conversation(self, host_session_id: str, *, active_only: bool) -> Iterator[tuple[str, Found]]:
        """Kept, since many events of one conversation may wait, and each asks for all of its sessions."""
        asked = (host_session_id, active_only)
        if asked not in self._conversations:
            found = self.base.scan(active_only=active_only, host_session_id=host_session_id)
            self._conversations[asked] = list(found)
        return iter(self._conversations[asked])

    def find(self, alias: Alias) -> str | None:
        changed = [self.changed[agent_id] for agent_id in self._by_alias.get(alias, ())]
        having = [record for record in changed if alias in aliases_of(record)]
        if alias not in self._below:
            self._below[alias] = self.base.find(alias)
        below = self._below[alias]
        if below is None or below in self.changed:
            return newest_with(alias, having)
        return newest_with(alias, [*having, self.read(below)]) if having else below

    def create(self, record: Record, entry: Entry | None = None, spare: int = 0) -> None:
        agent_id = record["agent_id"]
        if self.has(agent_id):
            raise SessionExists(agent_id)
        kept, _ = fitted(record, spare)
        self._keep(record, kept, entry)

    def change(
        self,
        agent_id: str,
        rule: Rule,
        *,
        timeout: float | None = None,  # noqa: ARG002  # nobody else is here
        entry: Entry | None = None,
        spare: int = 0,
    ) -> Record:
        record = self.read(agent_id)
        check_writable(record)
        changed = rule(record)
        if changed is record:
            return record
        changed = written(changed)
        kept, _ = fitted(changed, spare, record)
        self._keep(changed, kept, entry)
        return kept

    def _keep(self, record: Record, kept: Record, entry: Entry | None) -> None:
        told = entry(record) if entry else None
        if told is not None:
            self._added.setdefault(kept["agent_id"], []).append(told)
        self.changed[kept["agent_id"]] = kept
        for alias in aliases_of(kept):
            self._by_alias.setdefault(alias, set()).add(kept["agent_id"])

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        below = self.base.entries(agent_id, journal) if self.base.has(agent_id) else iter(())
        return iter([*below, *(self._added.get(agent_id, ()) if journal == EVENTS else ())])

    def waiting(self) -> list[Waiting]:
        return list(self.inbox.items())

    def deferred(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
        asked = [name for name in (self.inbox if names is None else names) if name in self.inbox]
        return self.base.deferred(asked) if asked else iter(())

    def dismiss(self, name: str) -> None:
        self.inbox.pop(name, None)
