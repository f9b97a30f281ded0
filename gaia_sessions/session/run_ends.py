"""How runs end: the table of ends, and what each does to the session.

Owns the order of strength among pieces of evidence. They come in any order and twice: the stronger
replaces the weaker while the session is open; afterwards it may still correct what the run says of its
end, never the outcome. The one exception is a provisional end, which a later stop of the same agent
re-judges. News of a run that is not the latest closes that run and says nothing about the work. Pure.
"""

from __future__ import annotations

from .clock import read_time, write_time
from .phases import ABANDONED, APPROVAL, COMPLETED, FAILED, INVESTIGATING, is_final, is_resumable
from .runs import (
    began_at,
    conversation_of,
    has_ended,
    is_latest,
    presumed_begun,
    run_now,
    with_current_conversation,
    with_run,
    without,
)
from .schema import DENIED, ENDED_WITH_HOST, ENDS, KILLED, LOST, RETURNED, SAID_SO, STOPPED
from .schema import FAILED as RUN_FAILED
from .updates import active_at, finalized, in_phase, rejudged, undecided, with_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from .schema import Record, Run

    Effect = Callable[[Record, Run, datetime], Record]

SILENT = "stopped without a word"

_WITHOUT_A_WORD = frozenset([ENDED_WITH_HOST, LOST])
"""Ends that are concluded from the host's: who was delegated there, and not refused, was at work until then."""


def is_silent(run: Run) -> bool:
    """Whether its agent stopped without a last message: what became of the delegation decides."""
    return run.get("end") == STOPPED and not has_ended(run)


def is_news(run: Run, end: str) -> bool:
    """Whether ``end`` is stronger evidence than all there was."""
    return not has_ended(run) or ENDS.index(end) < ENDS.index(run["end"])


def ended(record: Record, run: Run, end: str, told: Run, now: datetime) -> Record:
    """``run`` ended with ``end``, one of ``ENDS``; ``told`` is what else the evidence says of the run.

    ``record`` itself if there was evidence as strong before.
    """
    if not is_news(run, end):
        return record
    if run.get("end") == ENDED_WITH_HOST and _abandoned_it(record, run):
        reconsidered = reopened(record, run, now)
        return _ended_anew(reconsidered, run_now(reconsidered, run), end, told, now)
    if is_final(record["phase"]) and has_ended(run):
        return with_run(record, _corrected(run, end, told))
    if end in _WITHOUT_A_WORD:
        record = presumed_begun(record, run, _last_heard(record, run, now))
        run = run_now(record, run)
    closed: Run = {**without(run, "detail"), **told, "ended_at": write_time(now), "end": end}
    record = with_run(record, closed)
    if is_final(record["phase"]):
        return record
    return _EFFECTS[end](record, closed, now) if is_latest(record, closed) else record


def reworded(record: Record, run: Run, detail: str) -> Record:
    """The agent's own words for its failure, in the place of what others said of it; counted once all the same."""
    told = run.get("detail")
    if run.get("end") != RUN_FAILED or told == detail:
        return record
    record = with_run(record, {**run, "detail": detail})
    last = record["last_error"]
    if last is None or last["message"] != told or is_final(record["phase"]):
        return record
    return {**record, "last_error": {**last, "message": detail}}


def stopped_silently(record: Record, run: Run, now: datetime) -> Record:
    """The agent of ``run`` stopped and said nothing: the run stays open until its delegation returns, if it has not."""
    if run.get("end") == RETURNED:
        return ended(record, run, STOPPED, {}, now)
    if has_ended(run) or is_silent(run):
        return record
    return with_run(record, {**run, "end": STOPPED, "detail": SILENT})


def said(marked: str | None) -> Run:
    """What the marker of a stop, if there was one, tells of the run."""
    return {} if marked is None else {"reported": marked, "detail": SAID_SO}


def undenied(record: Record, run: Run, now: datetime) -> Record:
    """A denied run whose agent turns out to be at work was not denied; nor is its session abandoned for that.

    That a delegation never started is only concluded from hearing nothing, so it gives way to any sign of life.
    """
    return _unended(record, run, INVESTIGATING, now) if run.get("end") == DENIED else record


def reopened(record: Record, run: Run, now: datetime) -> Record:
    """A run that ended only because its conversation did has not, if something is heard of its agent after that.

    Nor is its session abandoned for that: it stands where it stood before.
    """
    if run.get("end") != ENDED_WITH_HOST:
        return record
    before = record["history"][-1]["from_phase"] if record["history"] else INVESTIGATING
    return _unended(record, run, before, now)


def heard_in(record: Record, run: Run, host_session_id: str, now: datetime) -> Record:
    """The agent of ``run`` is alive in the conversation ``host_session_id``; the record itself if that is known.

    An agent in the background works on when its conversation ends (seen with ``/clear``, ``/resume`` and "Move to
    background" of Claude Code), and its news comes in the next one. A run that ended in any other way stays so.
    """
    if has_ended(run) and (run["end"] != ENDED_WITH_HOST or now < read_time(run["ended_at"])):
        return record
    if has_ended(run) and is_final(record["phase"]) and not _abandoned_it(record, run):
        return record  # somebody said how the work ended
    record = reopened(record, run, now)
    if conversation_of(run) in (None, host_session_id):
        return record
    return with_current_conversation(record, run_now(record, run), host_session_id)


def _unended(record: Record, run: Run, phase: str, now: datetime) -> Record:
    """``run`` without its end; if that end abandoned the session, it is in ``phase`` again."""
    abandoned = _abandoned_it(record, run)
    record = with_run(record, without(run, "ended_at", "end", "detail"))
    return rejudged(record, phase, now) if abandoned else record


def is_concluded(record: Record) -> bool:
    """Whether the session is final only because the conversation of its latest run ended: nobody has said so."""
    return any(run.get("end") == ENDED_WITH_HOST and _abandoned_it(record, run) for run in record.get("runs", [])[-1:])


def _abandoned_it(record: Record, run: Run) -> bool:
    """Whether the session is final because of the end of ``run``, the latest."""
    made_by_it = record.get("finalized_at") == run["ended_at"] and is_latest(record, run)
    return record["phase"] == ABANDONED and made_by_it


def settled(record: Record, run: Run, now: datetime) -> Record:
    """No stop will come for ``run``, which returned: in a resumable phase the work rests, in any other it failed."""
    if run.get("end") != RETURNED or not is_latest(record, run):
        return record
    if is_final(record["phase"]) or is_resumable(record["phase"]):
        return record
    return finalized(active_at(record, now), FAILED, None, now)


def may_be_rejudged(record: Record, run: Run) -> bool:
    """Whether ``run`` is the latest and stopped, and, if the session is final, that stop made it so."""
    if not is_latest(record, run) or run.get("end") != STOPPED or not has_ended(run):
        return False
    made_by_it = record.get("finalized_at") == run["ended_at"] and record["phase"] == _phase_after_stop(run)
    return made_by_it or not is_final(record["phase"])


def restopped(record: Record, run: Run, told: Run, now: datetime) -> Record:
    """The same run stopped again, because somebody kept its agent going after the first stop: judged afresh.

    A phase reported by the marker of the first stop no longer counts; one reported by command does.
    """
    earlier = without(run, "reported", "detail") if run.get("detail") == SAID_SO else run
    closed: Run = {**earlier, **told, "ended_at": write_time(now), "end": STOPPED}
    return active_at(with_run(rejudged(undecided(record), _phase_after_stop(closed), now), closed), now)


def _ended_anew(record: Record, run: Run, end: str, told: Run, now: datetime) -> Record:
    """The true end of a run whose conversation had ended before: there will be no turn's end that settles it."""
    record = ended(record, run, end, told, now)
    return settled(record, run_now(record, run), now)


def _last_heard(record: Record, run: Run, now: datetime) -> datetime:
    """The latest that anything is known of the work at ``run``: its delegation, or what was written since."""
    began, active = began_at(run) or now, read_time(record["last_updated"])
    return min(max(began, active), now)


def _corrected(run: Run, end: str, told: Run) -> Run:
    detail: Run = {"detail": told["detail"]} if "detail" in told else {}
    return {**without(run, "detail"), **detail, "end": end}


def _phase_after_stop(run: Run) -> str:
    """A pause is said by the marker, or was reported; anything but a marked failure is the end of the work."""
    reported = run.get("reported")
    if run.get("detail") == SAID_SO and reported is not None:
        return reported
    return APPROVAL if reported == APPROVAL else COMPLETED


def _stop(record: Record, run: Run, now: datetime) -> Record:
    phase = _phase_after_stop(run)
    record = active_at(undecided(record), now)
    return finalized(record, phase, None, now) if is_final(phase) else in_phase(record, phase, now)


def _abandon(record: Record, _run: Run, now: datetime) -> Record:
    return finalized(active_at(record, now), ABANDONED, None, now)


def _fail(record: Record, run: Run, now: datetime) -> Record:
    record = active_at(with_error(record, run.get("detail", "it failed"), now), now)
    return record if is_resumable(record["phase"]) else finalized(record, FAILED, None, now)


def _rest_or_abandon(record: Record, _run: Run, now: datetime) -> Record:
    """Nothing was heard of the agent itself: that is no activity of the work."""
    return record if is_resumable(record["phase"]) else finalized(record, ABANDONED, None, now)


def _return(record: Record, _run: Run, now: datetime) -> Record:
    return active_at(record, now)


def _deny(record: Record, run: Run, now: datetime) -> Record:
    """The delegation came to nothing: with it goes the session it made, and nothing else changes."""
    return finalized(record, ABANDONED, None, now) if run["run"] == 1 else record


_EFFECTS: dict[str, Effect] = {
    KILLED: _abandon,
    RUN_FAILED: _fail,
    STOPPED: _stop,
    RETURNED: _return,
    ENDED_WITH_HOST: _rest_or_abandon,
    LOST: _rest_or_abandon,
    DENIED: _deny,
}
