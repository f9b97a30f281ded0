"""Sessions as they will be after the next write, which first applies the events that wait in the inbox.

The event of an agent's start may wait there until the agent stops. So a reader must look at the inbox, too.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError, StoreFailure
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.store import read_if_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.inbox_keys import WaitingEvent
    from gaia_sessions.store.planned import Plan
    from gaia_sessions.store.port import Reader, RecordOrError, StoreReader

    IsLate = Callable[[], bool]


def foreseen(store: StoreReader, now: datetime, config: Config) -> Plan:
    """Returns the sessions of ``store`` with all waiting events applied."""
    return _with_applied(store, _waiting(store), now, config, lambda: False)


def foreseen_by_reader(store: StoreReader, now: datetime, config: Config) -> StoreReader | Plan:
    """Returns what a reader sees: ``store`` itself if no event waits."""
    waiting = _waiting(store)
    return _with_applied(store, waiting, now, config, lambda: False) if waiting else store


def foreseen_by_hook(store: StoreReader, agent_id: str, now: datetime, config: Config, is_late: IsLate) -> Reader:
    """Returns the sessions for a hook that reads one session and those above; of many events, applies only theirs."""
    waiting = _waiting(store)
    if _are_many(waiting):
        waiting = _concerning(_family(store, agent_id), waiting)
    return _with_applied(store, waiting, now, config, is_late) if waiting else store


def open_sessions(
    store: StoreReader, now: datetime, config: Config, is_late: IsLate, host_session_id: str | None
) -> Iterator[tuple[str, RecordOrError]]:
    """Yields the open sessions of one conversation, or of all, for a hook; those with waiting events come last."""
    waiting = _waiting(store)
    if not _are_many(waiting):
        sessions = _with_applied(store, waiting, now, config, is_late) if waiting else store
        yield from sessions.scan(active_only=True, host_session_id=host_session_id)
        return
    from gaia_sessions.store.inbox_keys import all_keys, may_change

    keys = all_keys(waiting)
    concerned: list[Record] = []
    for agent_id, found in store.scan(active_only=True, host_session_id=host_session_id):
        if isinstance(found, SessionsError) or not may_change(found, keys):
            yield agent_id, found
        else:
            concerned.append(found)
    if concerned:
        plan = _with_applied(store, _concerning(concerned, waiting), now, config, is_late)
        yield from ((one["agent_id"], plan.planned(one["agent_id"]) or one) for one in concerned)


def _waiting(store: StoreReader) -> list[WaitingEvent]:
    """Returns the waiting events; none if the system refuses to read them."""
    try:
        return store.waiting()
    except StoreFailure:
        return []


def _are_many(waiting: list[WaitingEvent]) -> bool:
    if not waiting:
        return False
    from gaia_sessions.ingest.deferred import TRY_ALL_LIMIT

    return len(waiting) > TRY_ALL_LIMIT


def _family(store: StoreReader, agent_id: str) -> list[Record]:
    """Returns the record of a session and the records of all sessions above, as far as they can be read."""
    record = read_if_readable(store, agent_id)
    if record is None:
        return []
    try:
        above = store.ancestors(record) if "parent_id" in record else {}
    except StoreFailure:
        above = {}
    return [record, *filter(None, above.values())]


def _concerning(records: Iterable[Record], waiting: list[WaitingEvent]) -> list[WaitingEvent]:
    from gaia_sessions.store.inbox_keys import keys_of_record, matching_events

    readable = (record for record in records if not has_newer_schema(record))
    return matching_events(waiting, {key for record in readable for key in keys_of_record(record)})


def _with_applied(
    store: StoreReader, waiting: list[WaitingEvent], now: datetime, config: Config, should_stop: IsLate
) -> Plan:
    from gaia_sessions.store.planned import Plan

    # ``waiting`` was read before any record, so an event that another process applies meanwhile changes nothing twice.
    plan = Plan(store, waiting)
    if waiting:
        from gaia_sessions.ingest.deferred import apply_deferred

        apply_deferred(plan, now, config, should_stop)  # type: ignore[arg-type]  # a plan has the methods that are called
    return plan
