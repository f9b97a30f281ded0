"""A delegation begins: its session, made once however often the host tells of it.

Owns the join of a delegation by its exact key. Look-up and creation run under a lock on that key, so the
same delegation told twice, or twice at once, is one session.
"""

from __future__ import annotations

from gaia_sessions import runs
from gaia_sessions.errors import CorruptSession, SessionNotFound
from gaia_sessions.ids import new_agent_id
from gaia_sessions.record import new_record

from .beginning import create_under_new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.events import Event
    from gaia_sessions.shape import Run
    from gaia_sessions.stores.port import Store

    from .beginning import Chance

_KEYS_OF_RUN = (
    "host",
    "host_session_id",
    "tool_use_id",
    "parent_host_agent_id",
    "background",
)


def delegate(store: Store, event: Event, now: datetime, chance: Chance, timeout: float) -> tuple[str, str]:
    """What was done, ``created`` or ``known``, and the id of the session of this delegation.

    Raises ``LockTimeout`` after ``timeout`` seconds of somebody else being at it.
    """
    key = (event["host_session_id"], event["tool_use_id"])
    with store.exclusive(("delegation", *key), timeout):
        known = session_of_delegation(store, *key)
        if known:
            return "known", known
        record = new_record(new_agent_id(now, chance(4)), event["agent_name"], event["purpose"], {}, now)
        keys: Run = {name: event[name] for name in _KEYS_OF_RUN if name in event}  # type: ignore[literal-required, assignment]
        aliases = (runs.delegation_alias(*key),)
        kept = create_under_new_id(store, runs.delegated(record, keys, now), now, chance, aliases)
        return "created", kept["agent_id"]


def session_of_delegation(store: Store, host_session_id: str, tool_use_id: str) -> str | None:
    """The id of the session that has a run for exactly this delegation: the alias hints, the record decides."""
    agent_id = store.find(runs.delegation_alias(host_session_id, tool_use_id))
    if agent_id is None:
        return None
    try:
        record = store.read(agent_id)
    except (SessionNotFound, CorruptSession):  # there is nothing to join
        return None
    return agent_id if runs.run_of_delegation(record, host_session_id, tool_use_id) else None
