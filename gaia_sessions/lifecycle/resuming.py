"""May a session be resumed? The policy, asked about what is really there.

Owns how missing and corrupt sessions are put before the policy, and that what waits in the inbox counts already:
whoever writes next applies it. Takes no lock and writes nothing.
"""

from __future__ import annotations

from gaia_sessions import policy
from gaia_sessions.errors import CorruptSession, NewerSchema, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.ids import check_agent_id
from gaia_sessions.processes import runs_gone
from gaia_sessions.record import check_readable, has_newer_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.inbox_keys import Waiting
    from gaia_sessions.policy import Decision
    from gaia_sessions.shape import Record
    from gaia_sessions.stores.port import Store
    from gaia_sessions.strictjson import Json


def consider(store: Store, now: datetime, agent_id: str, config: Config) -> tuple[Decision, Record | None]:
    """The decision with its reasons, and the record it was made on.

    Missing and corrupt sessions are answered, without one; impossible ids raise ``InvalidId``.
    """
    check_agent_id(agent_id)
    waiting = _waiting(store)
    try:
        record = store.read(agent_id)
        check_readable(record)
        if waiting and not has_newer_schema(record):
            record = _foreseen(store, record, waiting, now, config)
    except SessionNotFound:
        return policy.decide(agent_id, None, now, config.limits), None
    except (CorruptSession, NewerSchema) as error:
        return policy.decide(agent_id, None, now, config.limits, problem=str(error)), None
    return policy.decide(agent_id, record, now, config.limits, gone=runs_gone(record)), record


def _foreseen(store: Store, record: Record, waiting: list[Waiting], now: datetime, config: Config) -> Record:
    """``record`` as the next writer will leave it, who applies what waits in the inbox first.

    A host that is killed right after it started an agent says no more: the start may wait there for long.
    """
    from gaia_sessions.inbox_keys import concerned, keys_of_record

    names = concerned(waiting, keys_of_record(record))
    found = dict(_events(store, names))
    if len(found) < len(names):  # applied since it was seen to wait, and then it is in the record by now
        record = store.read(record["agent_id"])
    events = [event for event in found.values() if not isinstance(event, SessionsError)]
    if not events:
        return record
    from gaia_sessions.stores.memory import MemoryStore

    from .news import apply_deferred

    rehearsal = MemoryStore()
    rehearsal.create(record)
    for event in events:
        rehearsal.defer(event, now)  # type: ignore[arg-type]  # what is no event is dropped there as it is here
    apply_deferred(rehearsal, now, config)
    return rehearsal.read(record["agent_id"])


def _waiting(store: Store) -> list[Waiting]:
    """What waits in the inbox; looked up before the record, since what is applied twice changes nothing."""
    try:
        return store.waiting()
    except StoreFailure:
        return []


def _events(store: Store, names: list[str]) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
    try:
        yield from store.deferred(names)
    except StoreFailure as error:
        yield "", error
