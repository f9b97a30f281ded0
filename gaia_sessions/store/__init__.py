"""Where records are stored: the port, the file store, and what is planned above it.

``atomic`` is the only code that writes a file, ``locks`` the only code that locks. Owns what stands between a pure rule
and the port of any store: an id that is free for a new record, and how the sessions above one are read.
"""

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
"""How many sessions above one are read for a write of it, and for whoever needs all: 8 are there by default at most."""


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
    """Stores ``record`` and returns it; in the rare case that its generated id is taken, under another one."""
    while True:
        try:
            store.create(record, entry, reserved=reserved, system_prompt=system_prompt, documents=documents)
        except errors.SessionExists:
            from gaia_sessions.session.ids import new_agent_id

            record = {**record, "agent_id": new_agent_id(now, random_bytes)}
        else:
            return record


def send_lock_key(agent_id: str) -> tuple[str, str]:
    """The key of the lock that a send holds for as long as it lasts."""
    return "send", agent_id


def document_lock_key(scope: Scope) -> tuple[str, ...]:
    """The key of the lock under which the document of ``scope`` is changed."""
    return "document", *scope


def cancellation_or_unread(prove: Callable[[], Cancellation | None]) -> Cancellation | None:
    """What ``prove`` returns. While it raises ``StoreFailure``, the session counts as cancelled: for those who look."""
    try:
        return prove()
    except errors.StoreFailure as error:
        from gaia_sessions.session.cancellation import unread_cancellation

        return unread_cancellation(error)


def read_ancestors(sessions: ReaderAbove, record: Record) -> dict[str, Record | None]:
    """What a store's ``ancestors`` returns that reads one record after the other."""
    from gaia_sessions.session.lineage import ancestors_of  # a hook that writes a log loads this package too

    above: list[str] = []

    def read(agent_id: str) -> Record | None:
        if len(above) == MOST_ABOVE:
            hint = f"take parent_id out of {above[-1]}/state.json: then nothing is above that session, and none is lost"
            problem = f"there are more than {MOST_ABOVE}"
            raise errors.StoreFailure("read all sessions above it", record["agent_id"], problem, hint)
        above.append(agent_id)
        return read_if_readable(sessions, agent_id)

    return ancestors_of(record, read)


def read_if_readable(sessions: ReaderAbove, agent_id: str) -> Record | None:
    """The record of a session; None if there is none, or nobody can read it. Raises ``StoreFailure``."""
    try:
        return sessions.read(agent_id)
    except (errors.SessionNotFound, errors.CorruptSession, errors.InvalidId):
        return None


def has_messages(sessions: Reader, record: Record) -> bool:
    """Whether there is a message in the transcript of ``record``, or what cannot be read in the place of one."""
    from gaia_sessions.session.transcript import last_seq

    if not last_seq(record):
        return False
    try:
        return next(sessions.messages(record["agent_id"]), None) is not None
    except errors.SessionsError:
        return True


def read_or_corrupt(sessions: ReaderAbove, agent_id: str) -> RecordOrError:
    """The record of a session, or why it is none. Raises ``SessionNotFound``, ``StoreFailure``, ``InvalidId``."""
    try:
        return sessions.read(agent_id)
    except errors.CorruptSession as error:
        return error
