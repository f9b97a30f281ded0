"""The records of sessions and their events, as stored or with the waiting events applied."""

from __future__ import annotations

from itertools import chain

from gaia_sessions.errors import Conflict, SessionNotFound
from gaia_sessions.session.record import moving_of
from gaia_sessions.store import read_if_readable
from gaia_sessions.store.reading import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record

    from .at import Place, Reading, Writing


def get(at: Reading, agent_id: str) -> Record | None:
    """Returns the record as it is stored.

    This record lacks the *waiting events*, which are in ``.inbox`` and not applied yet. ``show`` returns a record that
    includes them.

    Returns:
        The record, or None if there is no such session.

    Example:
        agent_id = sessions.create("reviewer")
        record = sessions.get(agent_id)
        print(record["phase"] if record else "no such session")
    """
    try:
        return at.store.read(agent_id)
    except SessionNotFound:
        return None


def read(place: Place, agent_id: str) -> Record:
    """Returns what ``get`` returns; raises ``SessionNotFound``."""
    with place.store as store:
        return store.read(agent_id)


def has(place: Place, agent_id: str) -> bool:
    """Returns whether there is a session with this ID, readable or not."""
    with place.store as store:
        return store.has(agent_id)


def ids(at: Reading) -> Sequence[str]:
    """Returns the IDs of all sessions, readable or not, with those that waiting events will create."""
    return at.preview().ids()


def as_applied(at: Reading, agent_id: str) -> Record:
    """Returns the record with all waiting events applied."""
    return at.preview().read(agent_id)


def id_of_host_agent(at: Writing, host_session_id: str, host_agent_id: str) -> str:
    """Returns the ID of the session on which an agent of a host works."""
    from gaia_sessions.ingest.join import session_of_agent

    return session_of_agent(at.store, host_session_id, host_agent_id)["agent_id"]


def repair(place: Place, agent_id: str, *, take_back: bool = False) -> str | None:
    """Repairs a ``state.json`` that has [something behind the record](record.md#recovery), and keeps the record.

    Args:
        take_back: ends a [move](many-machines.md#move-a-project-to-the-server-and-back) whose other half is gone: the
            session goes on in this root. Nothing is checked: if the other half exists, both can be changed.

    Returns:
        The path of the old file; None if the record could be read before.

    Raises:
        CorruptSession: the file does not begin with a whole and valid record of this session, or has two records.
        Conflict: ``take_back``, and the session is not being moved.
    """
    with place.store as store:
        if not take_back:
            return store.repair(agent_id)
        with store.open(agent_id) as session:
            if moving_of(store.read(agent_id)) is None:
                raise Conflict(f"session {agent_id!r} is not being moved", "leave out --take-back")
            session.set_moving(None)
        return None


def events(at: Reading, agent_id: str, *, since: int = 0) -> Iterator[Json | SessionsError]:
    """Returns an iterator of [what happened](events.md) to a session, in the order in which it was applied.

    Waiting events are shown as applied. Errors are raised by the call itself, not by the first step of the iteration.

    Args:
        since: returns only the entries after this number.

    Returns:
        Entries ``{at, kind, run?, phase, end?, detail?, revision, evidence, seq?}``, with the [trace](state.md#traces)
        of the session if that can be read. ``seq`` numbers the readable entries from 1; a waiting event has no ``seq``
        yet. An entry that cannot be read is an error object.

    Example:
        agent_id = sessions.create("reviewer")
        sessions.update(agent_id, phase="approval")
        sessions.approve(agent_id)
        print([entry["kind"] for entry in sessions.events(agent_id) if isinstance(entry, dict)])
    """
    from gaia_sessions.store.above import Above
    from gaia_sessions.store.journal import behind, numbered

    sessions = at.plan()
    stored, planned = sessions.entries_by_origin(agent_id, EVENTS)
    entries = behind(chain(numbered(stored), planned), since)
    record = read_if_readable(sessions, agent_id)
    trace = Above(sessions).trace(record) if record else None
    return (dict(entry, **trace) if trace and isinstance(entry, dict) else entry for entry in entries)
