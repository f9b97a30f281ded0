"""Sessions as the next writer will leave them, who first applies what waits in the inbox.

Owns the rehearsal of what waits, on copies in memory: an agent's start may wait there until its stop, and a host that
is killed says no more. Takes no lock and writes nothing.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.record import has_newer_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.shape import Record
    from gaia_sessions.stores.port import Found, Store
    from gaia_sessions.strictjson import Json


class Preview:
    """What can be read of ``store``, with the events applied that wait when the first session is read."""

    __slots__ = ("_config", "_inbox", "_now", "_store")

    def __init__(self, store: Store, now: datetime, config: Config) -> None:
        self._store = store
        self._now = now
        self._config = config
        self._inbox: Waiting | None = None

    def read(self, agent_id: str) -> Record:
        """As ``Store.read``."""
        inbox = self._waiting()
        record = self._store.read(agent_id)
        if has_newer_schema(record) or not inbox.concerning([record]):
            return record
        found = self._applied({agent_id: record})[agent_id]
        if isinstance(found, SessionsError):
            raise found
        return found

    def scan(
        self, *, active_only: bool = False, agent_name: str | None = None, host_session_id: str | None = None
    ) -> Iterator[tuple[str, Found]]:
        """As ``Store.scan``, by the marks of the records as they are; those that an event concerns come last."""
        inbox = self._waiting()
        concerned: dict[str, Record] = {}
        for agent_id, found in self._store.scan(
            active_only=active_only, agent_name=agent_name, host_session_id=host_session_id
        ):
            if isinstance(found, SessionsError) or has_newer_schema(found) or not inbox.concerning([found]):
                yield agent_id, found
            else:
                concerned[agent_id] = found
        for agent_id, found in self._applied(concerned).items():
            if not isinstance(found, SessionNotFound):
                yield agent_id, found

    def _waiting(self) -> Waiting:
        """Looked up once, before any record is read: applied again, an event changes nothing."""
        if self._inbox is None:
            try:
                self._inbox = Waiting(self._store.waiting())
            except StoreFailure:
                self._inbox = Waiting([])
        return self._inbox

    def _applied(self, records: dict[str, Record]) -> dict[str, Found]:
        names = self._waiting().concerning(records.values())
        events = self._events(names)
        seen: dict[str, Found] = {**records}
        if len(events) < len(names):  # some were applied since they were seen to wait, and are in their records by now
            seen = {agent_id: self._read_again(agent_id) for agent_id in records}
        readable = {agent_id: found for agent_id, found in seen.items() if not isinstance(found, SessionsError)}
        return {**seen, **rehearsed(readable, events, self._now, self._config)}

    def _events(self, names: list[str]) -> list[dict[str, Json]]:
        """Those that can be read; one that cannot is dropped by the next writer, or waits for a later one."""
        try:
            found = list(self._store.deferred(names)) if names else []
        except StoreFailure:
            return []
        return [event for _, event in found if not isinstance(event, SessionsError)]

    def _read_again(self, agent_id: str) -> Found:
        try:
            return self._store.read(agent_id)
        except SessionsError as error:
            return error


class Waiting:
    """The events that wait, sorted once by whom they concern."""

    __slots__ = ("_names", "_of_anybody", "_order")

    def __init__(self, waiting: list[tuple[str, str]]) -> None:
        self._order: dict[str, int] = {}
        self._names: dict[str, list[str]] = {}
        self._of_anybody: list[str] = []
        if not waiting:
            return
        from gaia_sessions.inbox_keys import LENGTH

        for number, (name, told) in enumerate(waiting):
            self._order[name] = number
            if not told:
                self._of_anybody.append(name)
            for place in range(0, len(told), LENGTH):
                self._names.setdefault(told[place : place + LENGTH], []).append(name)

    def concerning(self, records: Iterable[Record]) -> list[str]:
        """The names of the events that may change one of ``records``, in the order in which they wait."""
        if not self._order:  # nearly always, and then no key need be made
            return []
        from gaia_sessions.inbox_keys import keys_of_record

        names = {name for record in records for key in keys_of_record(record) for name in self._names.get(key, ())}
        return sorted(names.union(self._of_anybody), key=self._order.__getitem__)


def rehearsed(
    records: dict[str, Record], events: list[dict[str, Json]], now: datetime, config: Config
) -> dict[str, Record]:
    """``records`` after ``events``, in their order."""
    if not events:
        return records
    from gaia_sessions.stores.memory import Rehearsal

    from .news import apply_deferred

    rehearsal = Rehearsal()
    for record in records.values():
        rehearsal.create(record)
    for event in events:
        rehearsal.defer(event, now)  # type: ignore[arg-type]  # what is no event is dropped there as it is here
    apply_deferred(rehearsal, now, config)
    return {agent_id: rehearsal.read(agent_id) for agent_id in records}
