"""Own work: an agent ends its turn, and its host wakes it when its work in the background is over.

Until then the run is open. If no host says for sure that the agent waits, the wait is ``assumed``: perhaps the agent
has ended. Any later event of the agent takes back an end that was only concluded from a wait.
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
    """Notes that the agent of ``run`` waits for ``work``; ``fields`` are what the agent said."""
    fields = with_held_question(record, run, fields)
    if has_ended(run):
        if run.get("end") == ENDED_WITH_HOST and "last_message" not in run:  # the run stays ended
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
    """Takes back the stop that ended ``run``: a hook kept its agent at work."""
    if not may_be_rejudged(record, run):
        return record
    was_marked = run.get("detail") == MARKER_DETAIL  # the phase in the marker of that stop no longer counts
    reopened = with_run(record, without_keys(run, "ended_at", "end", "detail", *["reported"] * was_marked))
    return with_rejudged_end(reopened, phase_before(record), now) if is_final(record["phase"]) else reopened


def with_word_of_host(record: Record, run: Run, interruption: str | None, now: datetime) -> Record:
    """Notes the host's word that the agent of ``run`` only waits, or was stopped for ``interruption``."""
    if interruption is not None:
        fields: Run = {"detail": STOPPED_MEANWHILE, "interruption": interruption}
        return with_end(record, run, KILLED, fields, now) if "own_work" in run else record  # no wait: no news
    if not _waits(run) or "assumed" not in run["own_work"]:
        return record
    known: OwnWork = {key: value for key, value in run["own_work"].items() if key != "assumed"}  # type: ignore[assignment]  # it may be absent
    return with_run(record, {**run, "own_work": known})


def with_agent_woken(record: Record, run: Run, now: datetime, *, decides: bool) -> Record:
    """Notes that the agent of ``run`` starts again after its wait; this alone approves nothing."""
    if seems_over(run):
        if now < parse_time(run["ended_at"]):
            return record
        record = without_concluded_end(record, run, now)
        run = updated_run(record, run)
    if not _waits(run) or _is_older(now, run["own_work"]):  # a start before the wait wakes nobody
        return record
    answered, woken = answer_of(record), without_keys(run, "own_work")
    if answered is None or not waits_with_question(run):
        # decides: the settings let a resume approve a question that nobody answered.
        holds: Run = {} if decides or not waits_with_question(run) else {"unanswered": True}
        return with_activity(with_run(record, {**woken, **holds}), now)
    record = with_activity(with_run(record, without_keys(woken, "reported", "detail", "unanswered")), now)
    if "answers" in record:
        record = {**record, "answers": [_told_to(run, given) for given in record["answers"]]}
    return with_event(record, WORK_RESUMED, now) if answered[0] == "approved" else record


def is_wait_over(run: Run, running: Collection[str], now: datetime) -> bool:
    """Whether the end of the main agent's turn shows that the agent of ``run`` has nothing left to wait for."""
    work = run["own_work"]
    # Only the first tasks are stored. An agent with so many tasks can wait for any task that runs.
    may_wait = len(work["tasks"]) >= MOST_TASKS and running
    return not (_is_older(now, work) or may_wait or any(task in running for task in work["tasks"]))


def with_end_of_wait(record: Record, run: Run, now: datetime, *, may_have_finished: bool) -> Record:
    """Ends ``run``: its agent has nothing left to wait for, and nobody woke the agent."""
    kept: Run = {"own_work": run["own_work"]}
    if run.get("detail") == MARKER_DETAIL:
        kept["detail"] = MARKER_DETAIL
    if may_have_finished and run["own_work"].get("assumed"):  # else it was interrupted
        return _with_answer_kept(record, with_end(record, run, STOPPED, kept, now))
    return with_end(record, run, KILLED, {"detail": UNWOKEN_DETAIL, "interruption": INTERRUPTED, **kept}, now)


def with_last_turn(record: Record, run: Run, now: datetime) -> Record:
    """Ends ``run``: its host says that the agent has finished, so the last words are those before the wait."""
    said: Run = {"detail": MARKER_DETAIL} if run.get("detail") == MARKER_DETAIL else {}
    return _with_answer_kept(record, with_end(record, run, STOPPED, said, now))


def _with_answer_kept(record: Record, ended: Record) -> Record:
    """Keeps the question and the answer of ``record``: the end of a wait asks nothing again."""
    keys = ("question", *ANSWER_WORDS)
    kept = {key: value for key, value in record.items() if key in keys}
    return {**ended, **kept} if kept and ended["phase"] == record["phase"] else ended  # type: ignore[typeddict-item]  # keys of it


def with_open_question(run: Run, fields: Run, why: str) -> Run:
    """Adds the agent's question (``why``) from before its wait to its last words, if nobody answered."""
    if not waits_for_approval(run.get("reported")):
        return fields
    asking: Run = {**fields, "reported": run["reported"], "detail": MARKER_DETAIL}
    if "last_message" in fields and "last_message" in run:
        question = f"{MARKER_OPENING} {run['reported']}] {why}"
        asking["last_message"] = f"{fields['last_message']}\n{question}"[-MAX_MESSAGE_LENGTH:]
    return asking


def _told_to(run: Run, given: GivenAnswer) -> GivenAnswer:
    """Marks the answer ``given`` as told to the agent of ``run``: later runs are not told."""
    return {**given, "after_run": run["run"] - 1} if given.get("after_run") == run["run"] else given


def _waits(run: Run) -> bool:
    return "own_work" in run and not has_ended(run)


def _is_older(now: datetime, work: OwnWork) -> bool:
    """Whether ``now`` is before the wait, unless the wait began in the future."""
    since = parse_time(work["since"])
    return now < since and not is_ahead(since, now)
