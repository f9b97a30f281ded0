"""Whether a session may be resumed, and whether the agent at work on it is heard of.

Owns how missing and corrupt sessions, and those of a newer schema, are presented to the policy. Takes no lock.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.session import policy
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.record import SCHEMA, has_newer_schema
from gaia_sessions.session.runs import run_by_number
from gaia_sessions.system import evidence_of, written_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.policy import Decision, Limits
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Reader, RecordOrError

    FindCancellation = Callable[[Record], Cancellation | None]


def read_and_decide(sessions: Reader, now: datetime, agent_id: str, limits: Limits) -> tuple[Decision, Record | None]:
    """Reads the session and returns the decision with the record it was made on.

    The record is None for missing and corrupt sessions. Raises ``InvalidId`` for an impossible id.
    """
    from gaia_sessions.store.above import Above  # a hook that has just written knows whether it is cancelled

    check_agent_id(agent_id)
    found: RecordOrError
    try:
        found = sessions.read(agent_id)
    except (errors.SessionNotFound, errors.CorruptSession) as error:
        found = error
    decision = decide(Above(sessions).cancellation, agent_id, found, now, limits)
    return decision, None if isinstance(found, errors.SessionsError) else found


def decide(
    find_cancellation: FindCancellation, agent_id: str, found: RecordOrError, now: datetime, limits: Limits
) -> Decision:
    """The policy's decision on ``found``, the session's record or the error that reading it raised.

    ``find_cancellation`` says whether the session is cancelled; where there are many it is that of ``Above``. A record
    of a newer schema counts as unreadable, because this version could not continue its work.
    """
    if isinstance(found, errors.SessionNotFound):
        return policy.decide_without_record(agent_id, None)
    if not isinstance(found, errors.SessionsError) and has_newer_schema(found):
        found = errors.NewerSchema(agent_id, found["schema"], SCHEMA)
    if isinstance(found, errors.SessionsError):
        return policy.decide_without_record(agent_id, str(found))
    return decide_on_known(found, find_cancellation(found), now, limits)


def decide_on_known(record: Record, cancellation: Cancellation | None, now: datetime, limits: Limits) -> Decision:
    """The policy's decision on ``record``, of which it is known whether the session is cancelled."""
    return policy.decide(record["agent_id"], record, now, limits, cancellation=cancellation, **evidence_of(record))


def liveness_of(record: Record, decision: Decision, now: datetime, limits: Limits) -> Liveness | None:
    """What is known of the agent at work on ``record``; None if there is none by the ``decision`` about it."""
    from gaia_sessions.session.liveness import liveness  # a hook that only decides does not need it

    numbers = policy.live_runs(decision)
    run = run_by_number(record, numbers[-1]) if numbers else None
    return liveness(record, run, now, limits.quiet, written_at(run.get("transcript_path"))) if run else None
