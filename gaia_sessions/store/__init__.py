"""The store: its contract (``port``), the file store, plans. This file has functions that work on any store."""

from __future__ import annotations

from gaia_sessions import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.ids import RandomBytes
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.session.transcript import NewMessage

    from .port import Entry, Reader, ReaderAbove, RecordOrError, Store


MOST_ABOVE = 100
"""A session with more sessions above it is refused. By default, at most 8 can be above a session."""

SECONDS_TO_END = 60.0
"""How long to try to write the end of a run."""


def create_under_new_id(  # noqa: PLR0913  # all that is stored with a new record
    store: Store,
    record: Record,
    now: datetime,
    random_bytes: RandomBytes,
    entry: Entry | None = None,
    *,
    reserved: int = 0,
    system_prompt: NewMessage | None = None,
    documents: Mapping[Scope, Document] | None = None,
) -> Record:
    """Stores ``record`` and returns it, with another generated ID if its ID exists already."""
    while True:
        try:
            store.create(record, entry, reserved=reserved, system_prompt=system_prompt, documents=documents)
        except errors.SessionExists:
            from gaia_sessions.session.ids import new_agent_id

            record = {**record, "agent_id": new_agent_id(now, random_bytes)}
        else:
            return record


def send_lock_key(agent_id: str) -> tuple[str, str]:
    """Returns the key of the lock that a send holds until it ends."""
    return "send", agent_id


def document_lock_key(scope: Scope) -> tuple[str, ...]:
    """Returns the key of the lock that guards the document of ``scope``."""
    return "document", *scope


def cancellation_or_unread(prove: Callable[[], Cancellation | None]) -> Cancellation | None:
    """Returns what ``prove`` returns; if ``prove`` raises ``StoreFailure``, the session counts as cancelled."""
    # For readers only. A writer must let the error pass: each write is refused while a mark cannot be read.
    try:
        return prove()
    except errors.StoreFailure as error:
        from gaia_sessions.session.cancellation import unread_cancellation

        return unread_cancellation(error)


def read_ancestors(sessions: ReaderAbove, record: Record) -> dict[str, Record | None]:
    """Implements a store's ``ancestors``: reads one record after the other."""
    from gaia_sessions.session.lineage import ancestors_of  # a hook that writes a log loads this package too

    above: list[str] = []

    def read(agent_id: str) -> Record | None:
        if len(above) == MOST_ABOVE:
            hint = f"remove parent_id from {above[-1]}/state.json: the chain then ends there, and no session is lost"
            problem = f"there are more than {MOST_ABOVE}"
            raise errors.StoreFailure("read all sessions above it", record["agent_id"], problem, hint)
        above.append(agent_id)
        return read_if_readable(sessions, agent_id)

    return ancestors_of(record, read)


def read_if_readable(sessions: ReaderAbove, agent_id: str) -> Record | None:
    """Returns the record of a session, or None if the record does not exist or cannot be read."""
    try:
        return sessions.read(agent_id)
    except (errors.SessionNotFound, errors.CorruptSession, errors.InvalidId):
        return None


def has_messages(sessions: Reader, record: Record) -> bool:
    """Returns whether the transcript of ``record`` has a message, readable or not."""
    from gaia_sessions.session.transcript import last_seq

    if not last_seq(record):
        return False
    try:
        return next(sessions.messages(record["agent_id"]), None) is not None
    except errors.SessionsError:
        return True


def read_or_corrupt(sessions: ReaderAbove, agent_id: str) -> RecordOrError:
    """Returns the record of a session, or the error that says why it cannot be read."""
    try:
        return sessions.read(agent_id)
    except errors.CorruptSession as error:
        return error
