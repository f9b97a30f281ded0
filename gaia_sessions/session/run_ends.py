"""How a run ends, and what each end does to the session.

Evidence comes in any order, and repeatedly: stronger evidence replaces weaker. In a session that has ended, evidence
corrects the end of the run, and the outcome only if the outcome was provisional. A run of ours is ended only by its
wrapper, or by the proof that its wrapper is gone.
"""

from __future__ import annotations

from .clock import format_time, is_ahead, parse_time
from .phases import (
    AGENT_FAILED,
    AGENT_INTERRUPTED,
    AGENT_STOPPED,
    AGENT_STOPPED_TO_ASK,
    COMMAND_FAILED,
    HOST_OVER,
    SEND_RETURNED,
    WORK_GIVEN_UP,
    is_final,
    is_resumable,
    phase_after,
    waits_for_approval,
)
from .runs import (
    crash_text,
    has_ended,
    holds_question,
    is_latest,
    is_own_run,
    is_send,
    started_or_claimed_at,
    updated_run,
    with_presumed_start,
    with_run,
    without_keys,
)
from .schema import (
    DENIED,
    ENDED_WITH_HOST,
    ENDS,
    INTERRUPTED,
    KILLED,
    LOST,
    MARKER_DETAIL,
    OUT_OF_TOKENS,
    RUN_FAILED,
    RUN_RETURNED,
    STOPPED,
    TIMED_OUT,
)
from .updates import (
    with_activity,
    with_error,
    with_event,
    with_phase,
    with_rejudged_end,
    without_answer,
    without_question,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from .schema import Record, Run

    Effect = Callable[[Record, Run, datetime], Record]
    ReportedEnd = tuple[str, Run]
    """One of ``ENDS``, and the other fields of the run."""

SILENT_STOP_DETAIL = "stopped without a word"

_LIMITS_IN_WORDS = {TIMED_OUT: "it reached its time limit", OUT_OF_TOKENS: "it used up its tokens"}

_OUTDATED_KEYS = ("detail", "interruption", "waiting", "own_work")
"""Keys from an earlier end, or from the time when the agent was at work."""

_RANK_OF_PRESUMED = ENDS.index(RUN_RETURNED) + 0.5

_INFERRED_ENDS = frozenset([ENDED_WITH_HOST, LOST])
"""Ends that follow from the end of a host: an agent that was delegated and not refused worked until that moment."""


def is_silent_stop(run: Run) -> bool:
    """Whether the agent of ``run`` stopped without a last message, so that the return of its delegation decides."""
    return run.get("end") == STOPPED and not has_ended(run)


def is_stronger_evidence(run: Run, end: str, interruption: str | None = None) -> bool:
    """Whether ``end`` is stronger evidence than the end of ``run``, or ``run`` has no end."""
    if not has_ended(run):
        return True
    known = _RANK_OF_PRESUMED if "own_work" in run else _rank(run["end"], run.get("interruption"))
    return _rank(end, interruption) < known


def _rank(end: str, interruption: str | None) -> float:
    """Returns the rank of an end in ``ENDS``; a presumed interruption is weaker than any report about the agent."""
    if interruption == INTERRUPTED:
        return _RANK_OF_PRESUMED
    # Any other interruption is weaker than the report that somebody gave up the work.
    return ENDS.index(end) + (0.5 if interruption else 0)


def has_created(record: Record, run: Run) -> bool:
    """Whether ``run``, which never began, is the delegation that created the session."""
    # The first delegation may also resume a session that a person created.
    return run["run"] == 1 and not is_resumable(record["phase"])


def is_before(moment: str | None, run: Run) -> bool:
    """Whether ``moment`` is before the start of ``run``: an agent that wakes writes to the same transcript."""
    return moment is not None and "started_at" in run and parse_time(moment) < parse_time(run["started_at"])


def with_end(
    record: Record, run: Run, end: str, fields: Run, now: datetime, written_at: datetime | None = None
) -> Record:
    """Ends ``run`` with ``end``, unless the run has stronger evidence or is a run of ours."""
    if is_own_run(run) and end != LOST:
        return record
    return with_end_by_wrapper(record, run, end, fields, now, written_at)


def with_end_by_wrapper(
    record: Record, run: Run, end: str, fields: Run, now: datetime, written_at: datetime | None = None
) -> Record:
    """Does the same as ``with_end`` for any run; for a run of ours, only ``own_runs`` is allowed to call this."""
    if not is_stronger_evidence(run, end, fields.get("interruption")):
        return record
    if end == STOPPED:
        fields = with_held_question(record, run, fields)
    if has_ended(run):
        from .concluded_ends import has_concluded_outcome, without_concluded_end  # few runs need it

        is_concluded = has_concluded_outcome(record, run)
        if is_final(record["phase"]) and not is_concluded:
            return with_run(record, _with_corrected_end(run, end, fields))
        if is_concluded or run.get("interruption") == INTERRUPTED:
            record = without_concluded_end(record, run, now)
            run = updated_run(record, run)
        if is_concluded:  # no later end of a turn settles the return
            record = with_end_by_wrapper(record, run, end, fields, now)
            return with_settled_return(record, updated_run(record, run), now)
    if end in _INFERRED_ENDS:
        record = with_presumed_start(record, run, _last_activity(record, run, now))
        run = updated_run(record, run)
        record = _with_last_write(record, run, now, written_at)
    ended_at = format_time(now)
    ended_run: Run = {**without_keys(run, *_OUTDATED_KEYS), **fields, "ended_at": ended_at, "end": end}
    record = with_run(record, ended_run)
    if not is_latest(record, ended_run) or is_final(record["phase"]):
        return record
    return (_EFFECTS_OF_SEND if is_send(ended_run) else _EFFECTS)[end](record, ended_run, now)


def with_end_of_gone_host(record: Record, run: Run, now: datetime, written_at: datetime | None) -> Record:
    """Ends ``run`` as lost, because the process of its host is gone."""
    return with_end(record, run, LOST, {"detail": crash_text(run)}, now, written_at)


def with_earlier_runs_lost(record: Record, detail: str, now: datetime) -> Record:
    """Ends as lost every run that has no end, except the latest run."""
    # Each step sees a record with only two runs, one run and the latest: a record can have thousands.
    *earlier, latest = record["runs"]

    def as_lost(run: Run) -> Run:
        return with_end({**record, "runs": [run, latest]}, run, LOST, {"detail": detail}, now)["runs"][0]

    return {**record, "runs": [*(run if has_ended(run) else as_lost(run) for run in earlier), latest]}


def with_failure_detail(record: Record, run: Run, detail: str) -> Record:
    """Notes the agent's own description of its failure; the error is not counted again."""
    previous_detail = run.get("detail")
    if run.get("end") != RUN_FAILED or previous_detail == detail:
        return record
    record = with_run(record, {**run, "detail": detail})
    last = record["last_error"]
    if last is None or last["message"] != previous_detail or is_final(record["phase"]):
        return record
    return {**record, "last_error": {**last, "message": detail}}


def with_silent_stop(record: Record, run: Run, now: datetime) -> Record:
    """Notes a stop without a last message: the run stays open until its delegation returns."""
    if run.get("end") == RUN_RETURNED:
        return with_end(record, run, STOPPED, {}, now)
    if has_ended(run) or is_silent_stop(run):
        return record
    return with_run(record, {**without_keys(run, "waiting"), "end": STOPPED, "detail": SILENT_STOP_DETAIL})


def marker_fields(marked_phase: str | None) -> Run:
    """Returns the fields of a run that the marker of its stop sets."""
    return {} if marked_phase is None else {"reported": marked_phase, "detail": MARKER_DETAIL}


def with_settled_return(record: Record, run: Run, now: datetime) -> Record:
    """Ends the session as failed if ``run`` returned without a stop and the phase is not resumable."""
    if run.get("end") != RUN_RETURNED or not is_latest(record, run):
        return record
    if phase_after(AGENT_FAILED, record["phase"]) == record["phase"]:
        return record
    from .concluded_ends import UNSTOPPED_DETAIL

    record = with_run(record, {"detail": UNSTOPPED_DETAIL, **run})
    return with_event(with_activity(record, now), AGENT_FAILED, now)


def may_be_rejudged(record: Record, run: Run) -> bool:
    """Whether ``run`` is the latest and stopped, and the session is open or ended only by that stop."""
    if not is_latest(record, run) or run.get("end") != STOPPED or not has_ended(run):
        return False
    is_from_run = record.get("finalized_at") == run["ended_at"] and record["phase"] == _phase_after_stop(record, run)
    return is_from_run or not is_final(record["phase"])


def with_later_stop(record: Record, run: Run, fields: Run, now: datetime) -> Record:
    """Replaces the first stop of ``run`` by a second stop: a hook kept the agent at work in between."""
    # A phase from the marker of the first stop no longer counts. A phase reported by command does.
    earlier = without_keys(run, "reported", "detail") if run.get("detail") == MARKER_DETAIL else run
    fields = with_held_question(record, earlier, fields)
    ended_run: Run = {**earlier, **fields, "ended_at": format_time(now), "end": STOPPED}
    record = with_rejudged_end(_asking_anew(record, ended_run), _phase_after_stop(record, ended_run), now)
    return with_activity(with_run(record, ended_run), now)


def with_held_question(record: Record, run: Run, fields: Run) -> Run:
    """Adds the phase ``approval`` to ``fields`` if the agent was woken without an answer and asks nothing new."""
    if not (holds_question(record) and is_latest(record, run)):
        return fields
    if waits_for_approval(fields.get("reported", run.get("reported"))):
        return fields
    said = without_keys(fields, "detail") if fields.get("detail") == MARKER_DETAIL else fields
    return {**said, "reported": record["phase"]}


def _last_activity(record: Record, run: Run, now: datetime) -> datetime:
    """Returns the latest known activity of ``run``: its start or delegation, or a later change of the record."""
    run_began, active = started_or_claimed_at(run) or now, parse_time(record["last_updated"])
    return min(max(run_began, active), now)


def _with_last_write(record: Record, run: Run, now: datetime, written_at: datetime | None) -> Record:
    if written_at is None or is_ahead(written_at, now):
        return record
    is_open_work = not is_final(record["phase"]) and is_latest(record, run)
    return with_activity(record, now, min(written_at, now)) if is_open_work else record


def _with_corrected_end(run: Run, end: str, fields: Run) -> Run:
    kept: Run = {key: fields[key] for key in ("detail", "interruption") if key in fields}  # type: ignore[assignment]
    return {**without_keys(run, "detail", "interruption"), **kept, "end": end}


def _phase_after_stop(record: Record, run: Run) -> str:
    """Returns the phase that the marker names; without a marker, the last phase reported in the run decides."""
    reported = run.get("reported")
    if run.get("detail") == MARKER_DETAIL and reported is not None:
        return reported
    return phase_after(AGENT_STOPPED_TO_ASK if waits_for_approval(reported) else AGENT_STOPPED, record["phase"])


def _apply_stop(record: Record, run: Run, now: datetime) -> Record:
    phase = _phase_after_stop(record, run)
    return with_phase(with_activity(_asking_anew(record, run), now), phase, now)


def _asking_anew(record: Record, run: Run) -> Record:
    """Removes the old answer; after a marker, also the old question."""
    return without_question(record) if run.get("detail") == MARKER_DETAIL else without_answer(record)


def _apply_kill(record: Record, run: Run, now: datetime) -> Record:
    """Gives up the work; if the run was only interrupted, keeps the session resumable."""
    record = with_activity(record, now)
    if "interruption" not in run:
        return with_event(record, WORK_GIVEN_UP, now)
    return {**with_event(record, AGENT_INTERRUPTED, now), "resume_ready": True}


def _apply_failure(record: Record, run: Run, now: datetime) -> Record:
    detail = run.get("detail", "it failed")
    record = with_activity(with_error(record, _LIMITS_IN_WORDS.get(detail, detail), now), now)
    if not is_own_run(run):
        return with_event(record, AGENT_FAILED, now)
    reported = run.get("reported", "")
    if detail in _LIMITS_IN_WORDS and is_resumable(reported):
        return with_phase(without_answer(record), reported, now)
    return with_event(record, COMMAND_FAILED, now)


def _apply_lost_host(record: Record, _run: Run, now: datetime) -> Record:
    # The end of a host is not activity.
    return with_event(record, HOST_OVER, now)


def _apply_denial(record: Record, run: Run, now: datetime) -> Record:
    """Gives up the work if this delegation created the session; else only the run ends."""
    return with_event(record, WORK_GIVEN_UP, now) if has_created(record, run) else record


_EFFECTS: dict[str, Effect] = {
    KILLED: _apply_kill,
    RUN_FAILED: _apply_failure,
    STOPPED: _apply_stop,
    RUN_RETURNED: lambda record, _run, now: with_activity(record, now),
    ENDED_WITH_HOST: _apply_lost_host,
    LOST: _apply_lost_host,
    DENIED: _apply_denial,
}


def _apply_return_of_send(record: Record, run: Run, now: datetime) -> Record:
    """Removes the question and its answer: the send answered the question."""
    record = with_activity(record, now)
    if run.get("detail") == MARKER_DETAIL:
        return with_phase(without_question(record), run["reported"], now)
    return record if "reported" in run else with_event(without_answer(record), SEND_RETURNED, now)


def _apply_failure_of_send(record: Record, run: Run, now: datetime) -> Record:
    detail = run.get("detail", "it failed")
    return _apply_end_of_send(with_error(record, _LIMITS_IN_WORDS.get(detail, detail), now), run, now)


def _apply_end_of_send(record: Record, _run: Run, now: datetime) -> Record:
    """Notes the end of a send, which never ends the session."""
    return with_event(with_activity(record, now), AGENT_INTERRUPTED, now)


_EFFECTS_OF_SEND: dict[str, Effect] = {
    KILLED: _apply_end_of_send,
    RUN_FAILED: _apply_failure_of_send,
    RUN_RETURNED: _apply_return_of_send,
    LOST: lambda record, _run, now: with_event(record, AGENT_INTERRUPTED, now),
}
"""A send has no other ends."""
