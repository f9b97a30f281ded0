"""Whom a piece of news concerns, looked up in the records where the news itself does not say.

Owns which records are asked: those of the sessions that it names, and of the agents that a turn or a conversation
which ends is about. Asked only where more waits in the inbox than one call tries.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.runs import conversation_of
from gaia_sessions.store import inbox_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store


def keys_in_records(store: Store, events: list[Event]) -> set[str]:
    """The keys of every waiting event that may change a record which one of ``events`` is about."""
    return {
        key
        for event in events
        for record in _records_of_event(store, event)
        for key in inbox_keys.keys_of_record(record)
    }


def _records_of_event(store: Store, event: Event) -> Iterator[Record]:
    if event["kind"] in inbox_keys.CONVERSATION_KINDS:
        yield from _records_of_conversation(store, event["host_session_id"])
    for agent_id in dict.fromkeys(inbox_keys.sessions_named_in(event)):
        try:
            record = store.read(agent_id) if is_agent_id(agent_id) else None
        except SessionsError:  # there is nothing that could be changed
            continue
        if record is not None and not has_newer_schema(record):
            yield record


def _records_of_conversation(store: Store, host_session_id: str) -> Iterator[Record]:
    for _, record in store.scan(active_only=True, host_session_id=host_session_id):
        if isinstance(record, SessionsError) or has_newer_schema(record):
            continue
        if any(conversation_of(run) == host_session_id for run in record.get("runs", ())):
            yield record
