"""May a session be resumed? The policy, asked about what is really there.

Owns how missing and corrupt sessions are put before the policy. Takes no lock and writes nothing.
"""

from __future__ import annotations

from gaia_sessions import policy
from gaia_sessions.errors import CorruptSession, NewerSchema, SessionNotFound
from gaia_sessions.ids import check_agent_id
from gaia_sessions.processes import runs_gone
from gaia_sessions.record import check_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.policy import Decision, Limits
    from gaia_sessions.shape import Record
    from gaia_sessions.stores.port import Store


def consider(store: Store, now: datetime, agent_id: str, limits: Limits) -> tuple[Decision, Record | None]:
    """The decision with its reasons, and the record it was made on.

    Missing and corrupt sessions are answered, without one; impossible ids raise ``InvalidId``.
    """
    check_agent_id(agent_id)
    try:
        record = store.read(agent_id)
        check_readable(record)
    except SessionNotFound:
        return policy.decide(agent_id, None, now, limits), None
    except (CorruptSession, NewerSchema) as error:
        return policy.decide(agent_id, None, now, limits, problem=str(error)), None
    return policy.decide(agent_id, record, now, limits, gone=runs_gone(record)), record
