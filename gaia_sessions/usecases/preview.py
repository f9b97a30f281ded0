"""Sessions as the next writer will leave them, who first applies what waits in the inbox.

Owns the rehearsal of that: an agent's start may wait there until its stop, and a host that is killed says no more.
Takes no lock and writes nothing.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError, StoreFailure
from gaia_sessions.session.record import has_newer_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.inbox_keys import Waiting
    from gaia_sessions.store.overlay import Overlay
    from gaia_sessions.store.port import Found, Reader, Store


class Preview:
    """What can be read of ``store``, with the events applied that wait when the first session is read.

    With ``is_late``, of a hook, only those of many that concern the sessions which are read, until it is late.
    """

    __slots__ = ("_config", "_is_late", "_now", "_store", "_waiting", "_whole")

    def __init__(self, store: Store, now: datetime, config: Config, is_late: Callable[[], bool] | None = None) -> None:
        self._store = store
        self._now = now
        self._config = config
        self._is_late = is_late
        self._waiting: list[Waiting] | None = None
        self._whole: Reader | None = None

    def read(self, agent_id: str) -> Record:
        """As ``Store.read``."""
        if self._is_whole():
            return self._sessions().read(agent_id)
        record = self._store.read(agent_id)
        inbox = self._concerning([record])
        return self._rehearsed(inbox).read(agent_id) if inbox else record

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, Found]]:
        """As ``Store.scan``; sessions that an event changes come last."""
        if self._is_whole():
            yield from self._sessions().scan(
                active_only=active_only, agent_name=agent_name, host_session_id=host_session_id
            )
            return
        from gaia_sessions.store import inbox_keys

        known = inbox_keys.all_keys(self._waiting or ())
        concerned: list[Record] = []
        for agent_id, found in self._store.scan(
            active_only=active_only, agent_name=agent_name, host_session_id=host_session_id
        ):
            if isinstance(found, SessionsError) or not inbox_keys.may_change(found, known):
                yield agent_id, found
            else:
                concerned.append(found)
        if concerned:
            sessions = self._rehearsed(self._concerning(concerned))
            yield from ((record["agent_id"], sessions.changed.get(record["agent_id"], record)) for record in concerned)

    def _is_whole(self) -> bool:
        """Whether all that waits is applied. Looked up before any record: applied again, an event changes nothing."""
        if self._waiting is None:
            try:
                self._waiting = self._store.waiting()
            except StoreFailure:
                self._waiting = []
        if self._is_late is None or not self._waiting:
            return True
        from gaia_sessions.ingest.dispatch import FEW

        return len(self._waiting) <= FEW

    def _sessions(self) -> Reader:
        if self._whole is None:
            self._whole = self._rehearsed(self._waiting) if self._waiting else self._store
        return self._whole

    def _concerning(self, records: Iterable[Record]) -> list[Waiting]:
        from gaia_sessions.store import inbox_keys

        readable = (record for record in records if not has_newer_schema(record))
        keys = {key for record in readable for key in inbox_keys.keys_of_record(record)}
        return inbox_keys.concerned(self._waiting or (), keys)

    def _rehearsed(self, inbox: list[Waiting]) -> Overlay:
        from gaia_sessions.ingest.dispatch import apply_deferred
        from gaia_sessions.store.overlay import Overlay

        sessions = Overlay(self._store, inbox)
        apply_deferred(sessions, self._now, self._config, *([self._is_late] if self._is_late else []))
        return sessions
