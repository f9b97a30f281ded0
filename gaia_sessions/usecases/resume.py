"""May a session be resumed? The policy, asked about what is really there.

Owns how missing and corrupt sessions are put before the policy, and that it always knows which hosts are proved to be
gone: nobody else asks it. Takes no lock and writes nothing.
"""

from __future__ import annotations

from gaia_sessions.errors import CorruptSession, NewerSchema, SessionNotFound, SessionsError
from gaia_sessions.session import policy
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.record import SCHEMA, has_newer_schema
from gaia_sessions.system.processes import runs_of_gone_hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.policy import Decision, Limits
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Reader, RecordOrError


def read_and_decide(sessions: Reader, now: datetime, agent_id: str, limits: Limits) -> tuple[Decision, Record | None]:
    """The decision with its reasons, and the record it was made on, as ``sessions`` has it.

    Missing and corrupt sessions are answered, without one; impossible ids raise ``InvalidId``.
    """
    check_agent_id(agent_id)
    found: RecordOrError
    try:
        found = sessions.read(agent_id)
    except (SessionNotFound, CorruptSession) as error:
        found = error
    return decide(agent_id, found, now, limits), None if isinstance(found, SessionsError) else found


def decide(agent_id: str, found: RecordOrError, now: datetime, limits: Limits) -> Decision:
    """The policy's answer on what was ``installed_file`` of the session: its record, or why there is none to be read.

    A record of a later version is as one that cannot be read: nobody here could go on with it.
    """
    if not isinstance(found, SessionsError) and has_newer_schema(found):
        found = NewerSchema(agent_id, found["schema"], SCHEMA)
    if not isinstance(found, SessionsError):
        return policy.decide(agent_id, found, now, limits, dead_runs=runs_of_gone_hosts(found))
    problem = None if isinstance(found, SessionNotFound) else str(found)
    return policy.decide(agent_id, None, now, limits, problem=problem)
