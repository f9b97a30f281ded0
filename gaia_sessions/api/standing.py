"""The standing of a session: whether it can be resumed, what is known of its agent, and its state in one word."""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.session import policy
from gaia_sessions.session.ids import check_agent_id, is_agent_id
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.runs import has_ended, latest_run_with_file, run_by_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from gaia_sessions.hosts.evidence import Evidence
    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.policy import Decision, Limits
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.state import State
    from gaia_sessions.store.above import Above
    from gaia_sessions.store.port import Reader, RecordOrError

    from .at import Reading

    FindCancellation = Callable[[Record], Cancellation | None]


class Standing:
    """The decision, the live agent if any, the state, and the open runs whose host is proved gone."""

    __slots__ = ("alive", "dead_runs", "decision", "state")

    def __init__(self, decision: Decision, alive: Liveness | None, state: State, dead_runs: Collection[int]) -> None:
        self.decision = decision
        self.alive = alive
        self.state = state
        self.dead_runs = dead_runs


def should_resume(at: Reading, agent_id: str) -> bool:
    """Returns whether a session can be resumed.

    The result is also False if the ID is impossible, or the session is missing or corrupt. True is no approval: a
    denied session can be resumed too, so that its agent finds another way.

    Example:
        agent_id = sessions.create("reviewer")
        sessions.update(agent_id, phase="planning")
        if sessions.should_resume(agent_id):
            print(sessions.context(agent_id)["turns"])
    """
    return is_agent_id(agent_id) and explain_resume(at, agent_id)["should_resume"]


def explain_resume(at: Reading, agent_id: str) -> Decision:
    """Returns [the decision](phases.md#the-resume-check) about resuming, with its reason and every check.

    A missing or corrupt session gets a decision too.

    Example:
        agent_id = sessions.create("reviewer")
        decision = sessions.explain_resume(agent_id)
        print(decision["should_resume"], decision["reason"])
    """
    from gaia_sessions.store.above import Above

    sessions = at.preview()
    _, stands = find(sessions, Above(sessions), at, agent_id)
    return {**stands.decision, **stands.state}


def find(sessions: Reader, above: Above, at: Reading, agent_id: str) -> tuple[Record | None, Standing]:
    """Returns the record and its standing; without a record, None and the decision without a state."""
    found, now, limits = read_or_error(sessions, agent_id), at.now, at.config.limits
    if isinstance(found, errors.SessionsError):
        return None, Standing(decide(above.cancellation, agent_id, found, now, limits), None, {}, ())
    return found, standing(above.cancellation, found, now, limits)


def standing(find_cancellation: FindCancellation, record: Record, now: datetime, limits: Limits) -> Standing:
    """Returns the standing of the session of ``record``; ``find_cancellation`` is as for ``decide``."""
    if has_newer_schema(record):
        return Standing(decide(find_cancellation, record["agent_id"], record, now, limits), None, {}, ())
    from gaia_sessions.session.state import state_of  # a hook that only decides does not need it

    cancellation, evidence = find_cancellation(record), _evidence_if_any(record)
    decision = policy.decide(record["agent_id"], record, now, limits, cancellation=cancellation, **evidence)
    alive = _liveness_of(record, decision, now, limits)
    return Standing(decision, alive, state_of(record, decision, alive, evidence["dead_runs"]), evidence["dead_runs"])


def read_and_decide(sessions: Reader, now: datetime, agent_id: str, limits: Limits) -> tuple[Decision, Record | None]:
    """Reads the session, and returns the decision with the record; None if it is missing or corrupt."""
    from gaia_sessions.store.above import Above  # a hook that has just written does not need it

    record = read_or_error(sessions, agent_id)
    decision = decide(Above(sessions).cancellation, agent_id, record, now, limits)
    return decision, None if isinstance(record, errors.SessionsError) else record


def read_or_error(sessions: Reader, agent_id: str) -> RecordOrError:
    """Returns the record of the session, or the error if it is missing or corrupt."""
    check_agent_id(agent_id)
    try:
        return sessions.read(agent_id)
    except (errors.SessionNotFound, errors.CorruptSession) as error:
        return error


def decide(
    find_cancellation: FindCancellation, agent_id: str, record: RecordOrError, now: datetime, limits: Limits
) -> Decision:
    """Returns the policy's decision on ``record``, or on the error that reading it raised."""
    if isinstance(record, errors.SessionNotFound):
        return policy.decide_without_record(agent_id, None)
    if not isinstance(record, errors.SessionsError) and has_newer_schema(record):  # we could not resume its work
        from gaia_sessions.session.updates import why_not_writable

        problem = why_not_writable(record)
        return {**policy.decide_without_record(agent_id, str(problem)), "advice": problem.hint}
    if isinstance(record, errors.SessionsError):
        return policy.decide_without_record(agent_id, str(record))
    return decide_on_known(record, find_cancellation(record), now, limits)


def decide_on_known(record: Record, cancellation: Cancellation | None, now: datetime, limits: Limits) -> Decision:
    """Returns the policy's decision on ``record`` with a known ``cancellation``."""
    return policy.decide(record["agent_id"], record, now, limits, cancellation=cancellation, **_evidence_if_any(record))


def _evidence_if_any(record: Record) -> Evidence:
    runs = record.get("runs")
    if not runs or (all(map(has_ended, runs)) and latest_run_with_file(record) is None):
        return {"dead_runs": frozenset(), "written_at": None}  # there is nothing to read
    from gaia_sessions.hosts.evidence import evidence_of

    return evidence_of(record)


def _liveness_of(record: Record, decision: Decision, now: datetime, limits: Limits) -> Liveness | None:
    """Returns what is known of the agent at work on ``record``; None if there is none."""
    numbers = policy.live_runs(decision)
    run = run_by_number(record, numbers[-1]) if numbers else None
    if run is None:
        return None
    from gaia_sessions.hosts import calls_seen
    from gaia_sessions.hosts.evidence import written_at
    from gaia_sessions.session.liveness import liveness  # most sessions have no agent at work

    seen = calls_seen(run) if "waiting" in run else None
    return liveness(record, run, now, limits.quiet, written_at(run), seen)
