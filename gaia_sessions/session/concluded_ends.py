"""How the end of a run is taken back, because news shows that its agent is at work after all.

Owns which ends may be: those that were inferred from events that did not come, or from the end of the conversation.
What such an end did to the session is undone with it. Pure.
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
"""The detail of a run that returned and was taken to have failed, because no stop of its agent was reported."""

_END_KEYS = ("ended_at", "end", "detail", "interruption")


def without_concluded_end(record: Record, run: Run, now: datetime) -> Record:
    """Without the end of ``run``, which was only concluded, and with the work where it was before that end moved it.

    Concluded is an end from events that did not come (``denied``, a presumed interruption, a failure because no stop
    was reported, the end of a wait), or from the end of the conversation.
    """
    before = _phase_before_end(record, run)
    reopened = without_keys(run, *_END_KEYS)
    if seems_over(run) and run.get("detail") == MARKER_DETAIL:
        reopened["detail"] = MARKER_DETAIL
    record = with_run(record, reopened)
    return with_rejudged_end(record, before, now) if before else record


def has_concluded_outcome(record: Record, run: Run) -> bool:
    """Whether the session is final only by a conclusion from the end of ``run``, the latest.

    Concluded is that the work is abandoned because its conversation was over, or the process that ran its command
    seemed to be, or failed because no stop was reported, or is completed because its agent was not woken.
    """
    if seems_over(run) and is_success(record["phase"]):
        return _is_ended_by(record, run)
    is_concluded = run.get("end") == ENDED_WITH_HOST or (run.get("end") == LOST and is_own_run(run))
    return _has_failed_without_stop(record, run) or (is_concluded and _is_abandoned_by(record, run))


def seems_over(run: Run) -> bool:
    """Whether ``run`` was ended only because nothing seemed left for which its agent waits."""
    return "own_work" in run and has_ended(run)


def _phase_before_end(record: Record, run: Run) -> str | None:
    """The phase in which the work was before the end of ``run`` moved it; None if that did not."""
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
    """The phase in which ``run``, the latest, carried out its plan until its interruption moved the work; else None."""
    for move in record["history"][-1:]:
        is_by_run = "interruption" in run and is_latest(record, run) and move["timestamp"] == run.get("ended_at")
        if is_by_run and carries_out(move["from_phase"]):
            return move["from_phase"]
    return None


def with_agent_in_conversation(record: Record, run: Run, host_session_id: str, now: datetime) -> Record:
    """The agent of ``run`` is alive in the conversation ``host_session_id``; the record itself if that is known.

    An agent in the background works on when its conversation ends (seen with ``/clear``, ``/resume`` and "Move to
    background" of Claude Code), and its events come in the next one. A run with any other end keeps it.
    """
    if has_ended(run):
        is_presumed = run["end"] == ENDED_WITH_HOST or run.get("interruption") == INTERRUPTED or seems_over(run)
        if not is_presumed or now < parse_time(run["ended_at"]):
            return record
        if is_final(record["phase"]) and not (_is_abandoned_by(record, run) or has_concluded_outcome(record, run)):
            return record  # its end was stated by somebody
        record = without_concluded_end(record, run, now)
    if conversation_of(run) in (None, host_session_id):
        return record
    return with_current_conversation(record, updated_run(record, run), host_session_id)
