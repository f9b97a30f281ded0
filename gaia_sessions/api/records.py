"""The records of sessions, and what happened to them, as stored or as the waiting events will leave them."""

from __future__ import annotations

from itertools import chain

from gaia_sessions.errors import SessionNotFound
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
    """The record as it is stored; None if there is no such session.

    What waits in the inbox is not counted: ``show`` does that.
    """
    try:
        return at.store.read(agent_id)
    except SessionNotFound:
        return None


def read(place: Place, agent_id: str) -> Record:
    """What ``get`` returns. Raises ``SessionNotFound``."""
    with place.store as store:
        return store.read(agent_id)


def has(place: Place, agent_id: str) -> bool:
    """Whether there is a session with this id, readable or not."""
    with place.store as store:
        return store.has(agent_id)


def ids(at: Reading) -> Sequence[str]:
    """The ids of all sessions, readable or not, in no order; those that waiting events begin too."""
    return at.preview().ids()


def as_applied(at: Reading, agent_id: str) -> Record:
    """The record as it will be once the waiting events are applied. Raises ``SessionNotFound``, ``CorruptSession``."""
    return at.preview().read(agent_id)


def id_of_host_agent(at: Writing, host_session_id: str, host_agent_id: str) -> str:
    """The id of the session that an agent of a host works on. Raises ``SessionNotFound``."""
    from gaia_sessions.ingest.join import session_of_agent

    return session_of_agent(at.store, host_session_id, host_agent_id)["agent_id"]


def repair(place: Place, agent_id: str) -> str | None:
    """Keeps the record of a session whose `state.json` has [something behind it](record.md#recovery).

    Returns where that file is kept as it was, None if the record can be read. Raises ``CorruptSession`` if the file
    does not begin with a whole and valid record of that session, or has two.
    """
    with place.store as store:
        return store.repair(agent_id)


def events(at: Reading, agent_id: str, *, since: int = 0) -> Iterator[Json | SessionsError]:
    """An iterator of what happened to a session, in the order in which it was applied.

    Events that wait in the inbox are shown as applied, although nothing is written.

    Each entry is ``{at, kind, run?, phase, end?, detail?, revision, evidence, seq?}`` and the
    [trace](state.md#traces) of its session, if that can be read. ``seq`` is its place among those that can be read,
    from 1; one that waits has none yet. An error stands in place of one that cannot be read. With ``since`` there
    are only those behind that place. What the call raises it raises before the first step of the iteration.
    """
    from gaia_sessions.store.above import Above
    from gaia_sessions.store.journal import behind, numbered

    sessions = at.plan()
    stored, planned = sessions.entries_by_origin(agent_id, EVENTS)
    entries = behind(chain(numbered(stored), planned), since)
    record = read_if_readable(sessions, agent_id)
    trace = Above(sessions).trace(record) if record else None
    return (dict(entry, **trace) if trace and isinstance(entry, dict) else entry for entry in entries)
