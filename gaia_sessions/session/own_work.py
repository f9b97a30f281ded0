"""An agent that ended its turn, and waits for work of its own in the background: its host wakes it when that is over.

Until then its run is open, and no success. Its host reports that turn like the last one, so whether the agent waits is
in the event; where nobody said so for sure, it is assumed, and the agent may have ended for good. An end that is only
concluded of the wait leaves that in the run, and gives way to whatever is heard of the agent later. Pure.
"""

from __future__ import annotations

from .clock import is_ahead, parse_time
from .concluded_ends import seems_over, without_concluded_end
from .host_events import MAX_MESSAGE_LENGTH, MOST_TASKS
from .ids import MARKER_OPENING
from .phases import WORK_RESUMED, is_final, waits_for_approval
from .record import ANSWER_WORDS, answer_of
from .run_ends import may_be_rejudged, with_end, with_held_question
from .runs import (
    has_ended,
    is_latest,
    updated_run,
    waits_with_question,
    with_run,
    with_stated_phase,
    without_keys,
)
from .schema import ENDED_WITH_HOST, INTERRUPTED, KILLED, MARKER_DETAIL, STOPPED, STOPPED_MEANWHILE, UNWOKEN_DETAIL
from .updates import phase_before, with_activity, with_event, with_rejudged_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from .schema import GivenAnswer, OwnWork, Record, Run


def with_wait(record: Record, run: Run, work: OwnWork, fields: Run, now: datetime) -> Record:
    """The agent of ``run`` waits for ``work``; ``fields`` are what it said.

    A run that ended with its conversation stays so. One that was taken to be interrupted goes on.
    """
    fields = with_held_question(record, run, fields)
    if has_ended(run):
        if run.get("end") == ENDED_WITH_HOST and "last_message" not in run:
            return with_run(record, {**run, **without_keys(fields, "reported", "detail")})
        if run.get("interruption") != INTERRUPTED and not seems_over(run):
            return record
        record = without_concluded_end(record, run, now)
        run = updated_run(record, run)
    known = run.get("own_work")
    if known and (_is_older(now, known) or (known["tasks"] == work["tasks"] and fields.items() <= run.items())):
        return record
    waiting: Run = {**without_keys(run, "waiting", "detail", "end"), **fields, "own_work": work}
    record = with_run(record, waiting)
    if is_final(record["phase"]):
        return record
    record = with_activity(record, now)
    if "reported" not in fields or not is_latest(record, waiting):
        return record
    return with_stated_phase(record, fields["reported"], now)


def without_stop(record: Record, run: Run, now: datetime) -> Record:
    """Without the stop that ended ``run``: a hook kept its agent going, so that it was not the last.

    A phase that the marker of that stop named no longer counts; the work rests where it was, unless it was over.
    """
    if not may_be_rejudged(record, run):
        return record
    was_marked = run.get("detail") == MARKER_DETAIL
    reopened = with_run(record, without_keys(run, "ended_at", "end", "detail", *["reported"] * was_marked))
    return with_rejudged_end(reopened, phase_before(record), now) if is_final(record["phase"]) else reopened


def with_word_of_host(record: Record, run: Run, interruption: str | None, now: datetime) -> Record:
    """The host says that the agent of ``run`` only waits, or that it was stopped meanwhile, for ``interruption``.

    Of one that was woken since, or had ended before, that is no news.
    """
    if interruption is not None:
        fields: Run = {"detail": STOPPED_MEANWHILE, "interruption": interruption}
        return with_end(record, run, KILLED, fields, now) if "own_work" in run else record
    if not _waits(run) or "assumed" not in run["own_work"]:
        return record
    known: OwnWork = {key: value for key, value in run["own_work"].items() if key != "assumed"}  # type: ignore[assignment]  # it may be absent
    return with_run(record, {**run, "own_work": known})


def with_agent_woken(record: Record, run: Run, now: datetime, *, decides: bool) -> Record:
    """The agent of ``run`` starts once more, which is no approval; it goes on with what was answered meanwhile.

    A start from before it began to wait is none. decides: false if only an answer that is recorded approves.
    """
    if seems_over(run):
        if now < parse_time(run["ended_at"]):
            return record
        record = without_concluded_end(record, run, now)
        run = updated_run(record, run)
    if not _waits(run) or _is_older(now, run["own_work"]):
        return record
    answered, woken = answer_of(record), without_keys(run, "own_work")
    if answered is None or not waits_with_question(run):
        holds: Run = {} if decides or not waits_with_question(run) else {"unanswered": True}
        return with_activity(with_run(record, {**woken, **holds}), now)
    record = with_activity(with_run(record, without_keys(woken, "reported", "detail", "unanswered")), now)
    if "answers" in record:
        record = {**record, "answers": [_told_to(run, given) for given in record["answers"]]}
    return with_event(record, WORK_RESUMED, now) if answered[0] == "approved" else record


def is_wait_over(run: Run, running: Collection[str], now: datetime) -> bool:
    """Whether nothing is left for which the agent of ``run`` waits, as a turn of the main agent tells.

    That ended ``now`` while ``running`` went on, and the agent did not. Of many tasks only the first are known, so that
    it may wait for any.
    """
    work = run["own_work"]
    may_wait = len(work["tasks"]) >= MOST_TASKS and running
    return not (_is_older(now, work) or may_wait or any(task in running for task in work["tasks"]))


def with_end_of_wait(record: Record, run: Run, now: datetime, *, may_have_finished: bool) -> Record:
    """The agent of ``run`` has nothing left to wait for, and nobody woke it: it was interrupted.

    Or it had stopped for good, if the wait was only assumed; may_have_finished: false if that cannot be told.
    """
    kept: Run = {"own_work": run["own_work"]}
    if run.get("detail") == MARKER_DETAIL:
        kept["detail"] = MARKER_DETAIL
    if may_have_finished and run["own_work"].get("assumed"):
        return _with_answer_kept(record, with_end(record, run, STOPPED, kept, now))
    return with_end(record, run, KILLED, {"detail": UNWOKEN_DETAIL, "interruption": INTERRUPTED, **kept}, now)


def with_last_turn(record: Record, run: Run, now: datetime) -> Record:
    """Its host says that the agent of ``run`` has finished, so what it said when it began to wait was its last word."""
    said: Run = {"detail": MARKER_DETAIL} if run.get("detail") == MARKER_DETAIL else {}
    return _with_answer_kept(record, with_end(record, run, STOPPED, said, now))


def _with_answer_kept(record: Record, ended: Record) -> Record:
    """``ended`` with what ``record`` has of a question and its answer: a wait that ends asks nothing anew."""
    keys = ("question", *ANSWER_WORDS)
    kept = {key: value for key, value in record.items() if key in keys}
    return {**ended, **kept} if kept and ended["phase"] == record["phase"] else ended  # type: ignore[typeddict-item]  # keys of it


def with_open_question(run: Run, fields: Run, why: str) -> Run:
    """What its agent said last, and behind it ``why`` it asked when it began to wait: nobody answered that."""
    if not waits_for_approval(run.get("reported")):
        return fields
    asking: Run = {**fields, "reported": run["reported"], "detail": MARKER_DETAIL}
    if "last_message" in fields and "last_message" in run:
        question = f"{MARKER_OPENING} {run['reported']}] {why}"
        asking["last_message"] = f"{fields['last_message']}\n{question}"[-MAX_MESSAGE_LENGTH:]
    return asking


def _told_to(run: Run, given: GivenAnswer) -> GivenAnswer:
    """``given`` as it is once the agent of ``run``, which waited for it, was told: whoever begins later need not be."""
    return {**given, "after_run": run["run"] - 1} if given.get("after_run") == run["run"] else given


def _waits(run: Run) -> bool:
    return "own_work" in run and not has_ended(run)


def _is_older(now: datetime, work: OwnWork) -> bool:
    """Whether what is known of ``now`` is older than the wait, unless that began in the future."""
    since = parse_time(work["since"])
    return now < since and not is_ahead(since, now)
