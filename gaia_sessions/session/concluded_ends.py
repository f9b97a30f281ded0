"""Takes back the end of a run, if a later event shows that the run's agent is still at work.

Only concluded ends are taken back. We concluded them because events did not come, or the conversation ended.
"""

from __future__ import annotations

from .clock import parse_time
from .phases import AGENT_AT_WORK, carries_out, is_abandoned, is_failure, is_final, is_success, phase_after
from .runs import (
    conversation_of,
    has_ended,
    is_latest,
    is_own_run,
    updated_run,
    with_current_conversation,
    with_run,
    without_keys,
)
from .schema import DENIED, ENDED_WITH_HOST, INTERRUPTED, LOST, MARKER_DETAIL, RUN_RETURNED
from .updates import phase_before, with_rejudged_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from .schema import Record, Run

UNSTOPPED_DETAIL = "returned, and no stop came"
"""The detail of a run that returned without a stop, and so counts as failed."""

_END_KEYS = ("ended_at", "end", "detail", "interruption")


def without_concluded_end(record: Record, run: Run, now: datetime) -> Record:
    """Removes the concluded end of ``run``, and undoes what that end did to the phase."""
    before = _phase_before_end(record, run)
    reopened = without_keys(run, *_END_KEYS)
    if seems_over(run) and run.get("detail") == MARKER_DETAIL:
        reopened["detail"] = MARKER_DETAIL
    record = with_run(record, reopened)
    return with_rejudged_end(record, before, now) if before else record


def has_concluded_outcome(record: Record, run: Run) -> bool:
    """Whether the session is final only because of the concluded end of ``run``, its latest run."""
    if seems_over(run) and is_success(record["phase"]):
        return _is_ended_by(record, run)
    is_concluded = run.get("end") == ENDED_WITH_HOST or (run.get("end") == LOST and is_own_run(run))
    return _has_failed_without_stop(record, run) or (is_concluded and _is_abandoned_by(record, run))


def seems_over(run: Run) -> bool:
    """Whether ``run`` ended only because its agent seemed to have nothing left to wait for."""
    return "own_work" in run and has_ended(run)


def _phase_before_end(record: Record, run: Run) -> str | None:
    """Returns the phase that the end of ``run`` replaced; None if that end did not change the phase."""
    if run.get("interruption") == INTERRUPTED:
        return interrupted_phase(record, run)
    if run["end"] == DENIED:
        return phase_after(AGENT_AT_WORK, record["phase"]) if _is_abandoned_by(record, run) else None
    return phase_before(record) if has_concluded_outcome(record, run) else None


def _has_failed_without_stop(record: Record, run: Run) -> bool:
    if (run.get("end"), run.get("detail")) != (RUN_RETURNED, UNSTOPPED_DETAIL) or not is_latest(record, run):
        return False
    is_unconfirmed = [move["timestamp"] for move in record["history"][-1:]] == [record.get("finalized_at")]
    return is_failure(record["phase"]) and is_unconfirmed


def _is_abandoned_by(record: Record, run: Run) -> bool:
    return is_abandoned(record["phase"]) and _is_ended_by(record, run)


def _is_ended_by(record: Record, run: Run) -> bool:
    return record.get("finalized_at") == run["ended_at"] and is_latest(record, run)


def interrupted_phase(record: Record, run: Run) -> str | None:
    """Returns the phase in which the interruption of the latest ``run`` left work half done; None if it left none."""
    for move in record["history"][-1:]:
        is_by_run = "interruption" in run and is_latest(record, run) and move["timestamp"] == run.get("ended_at")
        if is_by_run and carries_out(move["from_phase"]):
            return move["from_phase"]
    return None


def with_agent_in_conversation(record: Record, run: Run, host_session_id: str, now: datetime) -> Record:
    """Notes that the agent of ``run`` is alive in the conversation ``host_session_id``."""
    # An agent in the background works on when its conversation ends (Claude Code: ``/clear``, ``/resume``, "Move to
    # background"), and its events come in the next conversation.
    if has_ended(run):
        is_presumed = run["end"] == ENDED_WITH_HOST or run.get("interruption") == INTERRUPTED or seems_over(run)
        if not is_presumed or now < parse_time(run["ended_at"]):
            return record
        if is_final(record["phase"]) and not (_is_abandoned_by(record, run) or has_concluded_outcome(record, run)):
            return record  # somebody stated its end
        record = without_concluded_end(record, run, now)
    if conversation_of(run) in (None, host_session_id):
        return record
    return with_current_conversation(record, updated_run(record, run), host_session_id)
