"""Sessions that an app keeps for its users: created, found, read, and extended by one event at a time.

Each event is one message, committed together with the state that it changes.
"""

from __future__ import annotations

from gaia_sessions.errors import (
    CorruptSession,
    InvalidInput,
    SessionExists,
    SessionNotFound,
    SessionsError,
    StoreFailure,
)
from gaia_sessions.session.app_sessions import Seen, agent_id_of, app_id_of, check_names, is_same, with_app_event
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.requests import NewSession
from gaia_sessions.session.retention import RESERVED_BYTES, ROOM_FOR_ENDS
from gaia_sessions.session.shared_keys import Delta, merged, scopes_of, with_keys
from gaia_sessions.session.transcript import last_seq
from gaia_sessions.store.above import Above

from . import removal
from .creating import store_new
from .keys import changed_documents, locked_documents
from .preconditions import refuse_if_cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from gaia_sessions.session.app_sessions import AppEvent
    from gaia_sessions.session.ids import RandomBytes
    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope, Values
    from gaia_sessions.session.transcript import Message
    from gaia_sessions.store.port import Store, StoreReader


def create(
    store: Store, now: datetime, random_bytes: RandomBytes, app: str, user: str, app_id: str | None, delta: Delta | None
) -> Record:
    """Creates the session that the app calls ``app_id``; for None, the app's ID is the generated one."""
    check_names(app, user, app_id)
    agent_id = None if app_id is None else agent_id_of(app, user, app_id)
    if app_id is not None and find(store, app, user, app_id) is not None:
        raise SessionExists(app_id)
    new = NewSession(app, "general", agent_id=agent_id, app=app, user=user, app_id=app_id, delta=delta)
    return store_new(store, now, random_bytes, new)


def find(reader: StoreReader, app: str, user: str, app_id: str) -> Record | None:
    """Returns the session that the app calls ``app_id``; None if this user has none."""
    try:
        check_names(app, user, app_id)
    except InvalidInput:
        return None
    for agent_id in (*([app_id] if is_agent_id(app_id) else []), agent_id_of(app, user, app_id)):
        try:
            record = reader.read(agent_id)
        except SessionNotFound:
            continue
        if (record.get("app"), record.get("user"), app_id_of(record)) == (app, user, app_id):
            return record
    return None


def remove(store: Store, now: datetime, limits: Limits, app: str, user: str, app_id: str) -> None:
    """Removes the session that the app calls ``app_id``, if it exists, even if it cannot be read."""
    try:
        record = find(store, app, user, app_id)
        agent_id = None if record is None else record["agent_id"]
    except CorruptSession as error:
        agent_id = agent_id_of(app, user, app_id)
        if error.agent_id != agent_id:  # the owner of that session is unknown
            raise
    if agent_id is not None:
        leaving = removal.Leaving(store, now, limits)
        for _, outcome in removal.remove_each(store, [agent_id], lambda *_: True, leaving, None):
            if isinstance(outcome, SessionsError) and not isinstance(outcome, SessionNotFound):
                raise outcome


def going_on(reader: StoreReader, app: str, user: str | None) -> Iterator[Record]:
    """Returns the open sessions of the app, of one user or of all, without those that cannot be read."""
    above = Above(reader)
    return (record for record in reader.open_of_app(app, user) if above.cancellation(record) is None)


def values_of(
    reader: StoreReader, record: Record, known: dict[Scope, Document | None] | None = None
) -> tuple[Values, Seen]:
    """Returns the state that a session sees, and what was seen; ``known`` collects the documents that were read."""
    known = {} if known is None else known
    scopes = scopes_of(record)
    for scope in scopes:
        if scope not in known:
            known[scope] = reader.document(scope)
    documents = {scope: known[scope] for scope in scopes}
    return merged(record, documents), Seen.of(record, documents.values())


def messages_of(reader: StoreReader, record: Record, last: int | None = None) -> list[Message]:
    """Returns the events of the session up to ``record``: the ``last`` ones, or all."""
    found: list[Message] = []
    for message in reader.messages_backwards(record["agent_id"]):
        if last is not None and len(found) >= last:
            break
        if "event" in (readable := _readable(message)) and readable["seq"] <= last_seq(record):
            found.append(readable)
    if not is_same(record, reader.read(record["agent_id"])):  # removed or reset while we read
        raise SessionNotFound(record["agent_id"])
    return found[::-1]


def _readable(message: Message | SessionsError) -> Message:
    """Returns the ``message``; a lost or damaged message raises ``StoreFailure``."""
    if isinstance(message, InvalidInput):
        raise StoreFailure("read", message.where, message.problem, "restore the file, or delete the session")
    if isinstance(message, SessionsError):
        raise message
    return message


def append(
    store: Store, now: datetime, record: Record, seen: Seen, event: AppEvent, delta: Delta, types: Mapping[str, str]
) -> Seen:
    """Adds ``event`` and the ``delta`` of its state if nothing changed since ``seen``; returns what is seen now."""
    agent_id, parts, scopes = record["agent_id"], delta.parts(record), scopes_of(record)

    for message in store.messages_backwards(agent_id):
        _readable(message)  # a new message after lost messages would hide the loss
        break

    with locked_documents(store, scopes, parts) as documents:
        seen.check_shared(agent_id, documents, parts)
        shared = changed_documents(documents, parts)
        refuse_if_cancelled(store, record)
        with store.open(agent_id) as session:
            seen.check(session.record)
            changed = with_keys(with_app_event(session.record, event, now), parts.get((), Delta()), types)
            added = [event.in_turn(record.get("turns", 0))]
            reserved = ROOM_FOR_ENDS if () in parts else RESERVED_BYTES
            changed = session.commit(changed, reserved=reserved, messages=added, documents=shared)
    return seen.after(changed, {**documents, **shared}, parts)
