"""An agent that ended its turn, and waits for work of its own in the background: its host wakes it when that is over.

Until then its run is open, and no success. Its host reports that turn like the last one, so whether the agent waits is
in the event; where nobody said so for sure, it is assumed, and the agent may have ended for good. Pure.
"""

from __future__ import annotations

from .clock import is_ahead, parse_time
from .events import MAX_MESSAGE_LENGTH
from .phases import is_final, waits_for_approval
from .run_ends import may_be_rejudged, with_end
from .run_reopening import without_concluded_end
from .runs import has_ended, is_latest, updated_run, with_run, with_stated_phase, without_keys
from .schema import ENDED_WITH_HOST, INTERRUPTED, KILLED, MARKER_DETAIL, STOPPED, UNWOKEN_DETAIL
from .updates import phase_before, with_activity, with_rejudged_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from .schema import OwnWork, Record, Run


def with_wait(record: Record, run: Run, work: OwnWork, fields: Run, now: datetime) -> Record:
    """The agent of ``run`` waits for ``work``; ``fields`` are what it said.

    A run that ended with its conversation stays so. One that was taken to be interrupted goes on.
    """
    if has_ended(run):
        if run.get("end") == ENDED_WITH_HOST and "last_message" not in run:
            return with_run(record, {**run, **without_keys(fields, "reported", "detail")})
        if run.get("interruption") != INTERRUPTED:
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
        fields: Run = {"detail": "stopped while it waited", "interruption": interruption}
        return with_end(record, run, KILLED, fields, now) if _waits(run) or was_not_woken(run) else record
    if not _waits(run) or "assumed" not in run["own_work"]:
        return record
    known: OwnWork = {key: value for key, value in run["own_work"].items() if key != "assumed"}  # type: ignore[assignment]  # it may be absent
    return with_run(record, {**run, "own_work": known})


def with_agent_woken(record: Record, run: Run, now: datetime) -> Record:
    """The agent of ``run`` starts once more, which is no approval. A start from before it began to wait is none."""
    if was_not_woken(run):
        return without_concluded_end(record, run, now) if now >= parse_time(run["ended_at"]) else record
    if not _waits(run) or _is_older(now, run["own_work"]):
        return record
    return with_activity(with_run(record, without_keys(run, "own_work")), now)


def with_end_of_wait(record: Record, run: Run, running: Collection[str], now: datetime) -> Record:
    """The main agent's turn ended, and ``running`` is what goes on; the agent of ``run``, which waits, does not.

    If nothing is left for which it waits, nobody wakes it: it was interrupted, or had stopped for good.
    """
    work = run["own_work"]
    if _is_older(now, work) or any(task in running for task in work["tasks"]):
        return record
    if work.get("assumed"):
        return with_end(record, run, STOPPED, {}, now)
    return with_end(record, run, KILLED, {"detail": UNWOKEN_DETAIL, "interruption": INTERRUPTED}, now)


def with_open_question(run: Run, fields: Run) -> Run:
    """What its agent said last, and behind it the question that it asked when it began to wait: nobody answered it."""
    if not waits_for_approval(run.get("reported")):
        return fields
    asking: Run = {**fields, "reported": run["reported"], "detail": MARKER_DETAIL}
    if "last_message" in fields and "last_message" in run:
        question = run["last_message"].rstrip().rpartition("\n")[2]
        asking["last_message"] = f"{fields['last_message']}\n{question}"[-MAX_MESSAGE_LENGTH:]
    return asking


def was_not_woken(run: Run) -> bool:
    """Whether ``run`` was ended because its agent seemed to wait for nothing any more."""
    return run.get("detail") == UNWOKEN_DETAIL and has_ended(run)


def _waits(run: Run) -> bool:
    return "own_work" in run and not has_ended(run)


def _is_older(now: datetime, work: OwnWork) -> bool:
    """Whether what is known of ``now`` is older than the wait, unless that began in the future."""
    since = parse_time(work["since"])
    return now < since and not is_ahead(since, now)
