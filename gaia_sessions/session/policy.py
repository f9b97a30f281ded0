"""Whether a session may be resumed: a table of checks, and the advice for each.

The first check that fails gives the reason.
"""

from __future__ import annotations

from .clock import FUTURE_TOLERANCE, format_time, is_ahead, parse_time, seconds_between
from .ids import run_command, send_command
from .phases import HOST_OVER, RESUMABLE, is_final, is_new, is_resumable, phase_after, waits_for_approval
from .record import NOT_APPROVED_REASON, is_asking
from .runs import has_ended, is_claimed, is_conversation, is_live, is_work_of_command, standing_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta
    from typing import NotRequired, TypedDict, final

    from .cancellation import Cancellation
    from .schema import Answer, Record

    CheckValues = tuple[bool, object, object]
    PolicyCheck = Callable[["ResumeCase"], CheckValues]

    class CheckResult(TypedDict):
        """One check of the resume decision.

        Keys:
            actual, limit: the found value, and the value to compare it with.
        """

        name: str
        ok: bool
        actual: object
        limit: object

    @final
    class Decision(TypedDict):
        """Whether a session can be resumed.

        Keys:
            reason: the first check that fails, or ``session_resumable``.
            until: when the session expires; None if the session cannot be resumed now.
            last_activity: when the agent last wrote to its transcript, if that was after ``last_updated``.
            paused_until: when the limit that the session waits for is reset.
            run_command: what a person types to resume a command or a conversation; on a server, any session. Absent for
                agents of hosts on files, and if the session is cancelled, or has ended while its run goes on.
            answer: ``approved`` or ``denied``.
            approval, denial: the answer, ``{message, timestamp}``; ``message`` is empty without a note.
            app: the only app that can resume the session.
            state, state_since: the state of the session, and since when, if known.
        """

        should_resume: bool
        reason: str
        agent_id: str
        phase: str | None
        idle_seconds: float | None
        until: str | None
        checks: list[CheckResult]
        advice: str
        last_activity: NotRequired[str]
        cancellation: NotRequired[Cancellation]
        answer: NotRequired[str]
        approval: NotRequired[Answer]
        denial: NotRequired[Answer]
        paused_until: NotRequired[str]
        run_command: NotRequired[str]
        app: NotRequired[str]
        state: NotRequired[str]
        state_since: NotRequired[str]

    class ResumeSummary(TypedDict):
        """A short ``Decision``."""

        should_resume: bool
        reason: str
        until: str | None
        paused_until: NotRequired[str]


RESUMABLE_REASON = "session_resumable"
CANCELLED_REASON = "cancelled"
_EXPIRED_REASON = "expired"
_LIVE_RUN_CHECK = "no_live_run"
_CLAIM_CHECK = "not_claimed"
_IDLE_CHECK = "idle_seconds"


class Limits:
    """The limits of the resume check: the idle time and the number of errors must be below them."""

    __slots__ = ("explicit_approvals", "has_hooks", "idle", "max_errors", "quiet")

    def __init__(
        self,
        idle: timedelta,
        max_errors: int,
        quiet: timedelta,
        *,
        explicit_approvals: bool = False,
        has_hooks: bool = True,
    ) -> None:
        self.idle = idle
        self.has_hooks = has_hooks  # if false, as on a server, only a command can resume a session
        self.explicit_approvals = explicit_approvals  # if true, resuming a session does not approve its question
        self.max_errors = max_errors
        self.quiet = quiet  # decides nothing: after this time without activity, an agent at work is called quiet


class ResumeCase:
    """What the checks look at."""

    __slots__ = ("cancellation", "dead_runs", "idle_seconds", "limits", "now", "phase", "record", "updated")

    def __init__(
        self,
        record: Record,
        now: datetime,
        limits: Limits,
        dead_runs: frozenset[int],
        cancellation: Cancellation | None,
        updated: datetime,
        idle_since: datetime,
    ) -> None:
        self.record = record
        self.phase = _phase_after_loss(record, dead_runs)
        self.now = now
        self.limits = limits
        self.dead_runs = dead_runs  # the numbers of the runs whose process is proved to be gone
        self.cancellation = cancellation
        self.updated = updated
        self.idle_seconds = seconds_between(idle_since, now)


def decide(
    agent_id: str,
    record: Record,
    now: datetime,
    limits: Limits,
    *,
    dead_runs: frozenset[int],
    cancellation: Cancellation | None,
    written_at: datetime | None,
) -> Decision:
    """Decides whether ``record`` can be resumed; ``dead_runs`` count as ended."""
    updated = parse_time(record["last_updated"])
    active = _last_activity(updated, now, written_at)
    idle_since = _resting_since(record, active)
    case = ResumeCase(record, now, limits, dead_runs, cancellation, updated, idle_since)
    results = _check_results(case, None)
    failing = [reason for reason, result in results if not result["ok"]]
    answered = standing_answer(record)
    reason = failing[0] if failing else RESUMABLE_REASON
    decision: Decision = {
        "should_resume": reason == RESUMABLE_REASON,
        "reason": reason,
        "agent_id": agent_id,
        "phase": record["phase"],
        "idle_seconds": case.idle_seconds,
        "until": format_time(idle_since + limits.idle) if reason == RESUMABLE_REASON else None,
        "checks": [result for _, result in results],
        "advice": _advice(failing or [reason], agent_id, record, answered),
    }
    if active > updated:
        decision["last_activity"] = format_time(active)
    if cancellation is not None:
        decision["cancellation"] = cancellation
    if answered:
        decision["answer"] = answered[0]
        decision["approval" if answered[0] == "approved" else "denial"] = answered[1]
    if is_waiting_for_limit(record, now):
        decision["paused_until"] = record["paused_until"]
    return {**decision, **_how_it_goes_on(decision, case)}  # type: ignore[typeddict-item]  # keys of a decision


def _how_it_goes_on(decision: Decision, case: ResumeCase) -> Mapping[str, str]:
    """Returns the keys that say who resumes or continues the work if no delegation does."""
    agent_id, record = decision["agent_id"], case.record
    if "app_session" in record and "app" in record:
        return {"app": record["app"]}
    if case.cancellation is not None:
        return {}
    if is_conversation(record):
        command = send_command(agent_id, ended=is_final(record["phase"]))
    elif is_work_of_command(record) or not case.limits.has_hooks:
        command = run_command(agent_id, ended=is_final(case.phase))
    else:
        return {}
    if is_final(record["phase"]) and is_running(decision):  # no command may continue it now
        return {"advice": ADVICE_WHEN_STILL_AT_WORK}
    return {"run_command": command}


def decide_without_record(agent_id: str, problem: str | None) -> Decision:
    """Returns the decision on a session that is missing (``problem`` is None), or that cannot be read."""
    reason = "not_found" if problem is None else "corrupt"
    return {
        "should_resume": False,
        "reason": reason,
        "agent_id": agent_id,
        "phase": None,
        "idle_seconds": None,
        "until": None,
        "checks": [result for _, result in _check_results(None, problem)],
        "advice": ADVICE[reason],
    }


def _phase_after_loss(record: Record, dead_runs: frozenset[int]) -> str:
    is_lost = any(run["run"] in dead_runs and not has_ended(run) for run in record.get("runs", ())[-1:])
    return phase_after(HOST_OVER, record["phase"]) if is_lost else record["phase"]


def resting_since(record: Record, now: datetime, written_at: datetime | None) -> datetime:
    """Returns the time from which idle time counts: the last activity, or the reset of the usage limit."""
    return _resting_since(record, _last_activity(parse_time(record["last_updated"]), now, written_at))


def _last_activity(updated: datetime, now: datetime, written_at: datetime | None) -> datetime:
    """Returns the time of the last activity; a write to the transcript counts, unless its time is in the future."""
    return max(updated, written_at) if written_at and not is_ahead(written_at, now) else updated


def _resting_since(record: Record, active: datetime) -> datetime:
    return max(active, parse_time(record["paused_until"])) if "paused_until" in record else active


def is_waiting_for_limit(record: Record, now: datetime) -> bool:
    """Whether the session still waits for the reset of a usage limit."""
    return "paused_until" in record and now < parse_time(record["paused_until"])


def _advice(reasons: list[str], agent_id: str, record: Record, answer: tuple[str, Answer] | None) -> str:
    reason = reasons[0]
    if is_final(record["phase"]) and reason != CANCELLED_REASON:
        return ADVICE_WHEN_FINAL
    if is_new(record["phase"]) and reason == "phase_not_resumable":
        return next((ADVICE[reason] for reason in reasons if reason in ("running", "claimed")), ADVICE_WHEN_NEW)
    if reason == _EXPIRED_REASON:
        reason = reasons[-1]  # an update helps only if nothing else is wrong
        if reason == _EXPIRED_REASON and waits_for_approval(record["phase"]) and answer is None:
            return ADVICE_WHEN_ASKED.replace("{id}", agent_id)
    if reason == RESUMABLE_REASON and answer is not None:
        word, said = answer
        return ADVICE_WHEN_ANSWERED[word] + (f": {said['message']}" if said["message"] else "")
    return ADVICE[reason].replace("{id}", agent_id)


def resume_summary(decision: Decision) -> ResumeSummary:
    """Returns ``decision`` in the short form of summaries."""
    summary: ResumeSummary = {
        "should_resume": decision["should_resume"],
        "reason": decision["reason"],
        "until": decision["until"],
    }
    return {**summary, "paused_until": decision["paused_until"]} if "paused_until" in decision else summary


def may_go_on(decision: Decision) -> bool:
    """Whether the session can be resumed, now or when a usage limit is reset."""
    return decision["should_resume"] or decision["reason"] == "waiting_for_limit"


def is_only_expired(decision: Decision) -> bool:
    """Whether idle time is the only reason against a resume."""
    return [check["name"] for check in decision["checks"] if not check["ok"]] == [_IDLE_CHECK]


def is_running(decision: Decision) -> bool:
    """Whether an agent is at work on the session, whatever its phase."""
    return bool(live_runs(decision))


def live_runs(decision: Decision) -> list[int]:
    """Returns the numbers of the runs whose agents are at work, as far as is known."""
    return _runs_found(decision, _LIVE_RUN_CHECK)


def claimed_runs(decision: Decision) -> list[int]:
    """Returns the numbers of the runs that were just delegated and have not started."""
    return _runs_found(decision, _CLAIM_CHECK)


def _runs_found(decision: Decision, name: str) -> list[int]:
    found = decision["checks"][_PLACES[name]]["actual"]
    return found if isinstance(found, list) else []


def _check_results(case: ResumeCase | None, problem: str | None) -> list[tuple[str, CheckResult]]:
    exists = case is not None or problem is not None
    results: list[tuple[str, CheckResult]] = [
        ("not_found", {"name": "exists", "ok": exists, "actual": exists, "limit": True}),
        ("corrupt", {"name": "readable", "ok": exists and problem is None, "actual": problem, "limit": None}),
    ]
    for reason, name, check in _CHECKS:
        ok, actual, limit = check(case) if case else (False, None, None)
        results.append((reason, {"name": name, "ok": ok, "actual": actual, "limit": limit}))
    return results


def _check_not_cancelled(case: ResumeCase) -> CheckValues:
    found = case.cancellation
    return found is None, None if found is None else found.get("at"), None


def _check_phase(case: ResumeCase) -> CheckValues:
    is_ok = is_resumable(case.phase)
    return is_ok, case.phase if is_ok else case.record["phase"], list(RESUMABLE)


def _check_live_runs(case: ResumeCase) -> CheckValues:
    live = [run["run"] for run in case.record.get("runs", ()) if is_live(run) and run["run"] not in case.dead_runs]
    return not live, live, []


def _check_claims(case: ResumeCase) -> CheckValues:
    runs = case.record.get("runs", ())
    claimed = [run["run"] for run in runs if is_claimed(run, case.now) and run["run"] not in case.dead_runs]
    return not claimed, claimed, []


def _check_answered(case: ResumeCase) -> CheckValues:
    return not (case.limits.explicit_approvals and is_asking(case.record)), None, None


def _check_resume_ready(case: ResumeCase) -> CheckValues:
    is_lost_before_start = case.phase != case.record["phase"] and is_new(case.record["phase"])
    ready = case.record["resume_ready"] or (is_lost_before_start and is_resumable(case.phase))
    return ready, ready, True


def _check_clock(case: ResumeCase) -> CheckValues:
    ahead = (case.updated - case.now).total_seconds()
    limit = FUTURE_TOLERANCE.total_seconds()
    return ahead <= limit, max(0.0, ahead), limit


def _check_reset(case: ResumeCase) -> CheckValues:
    return not is_waiting_for_limit(case.record, case.now), case.record.get("paused_until"), None


def _check_idle(case: ResumeCase) -> CheckValues:
    limit = case.limits.idle.total_seconds()
    return case.idle_seconds < limit, case.idle_seconds, limit


def _check_errors(case: ResumeCase) -> CheckValues:
    count = case.record["error_count"]
    return count < case.limits.max_errors, count, case.limits.max_errors


_CHECKS: tuple[tuple[str, str, PolicyCheck], ...] = (
    (CANCELLED_REASON, "not_cancelled", _check_not_cancelled),
    ("phase_not_resumable", "phase", _check_phase),
    ("running", _LIVE_RUN_CHECK, _check_live_runs),
    ("claimed", _CLAIM_CHECK, _check_claims),
    (NOT_APPROVED_REASON, "answered", _check_answered),
    ("not_ready", "resume_ready", _check_resume_ready),
    ("clock_skew", "clock", _check_clock),
    ("waiting_for_limit", "limit_reset", _check_reset),
    (_EXPIRED_REASON, _IDLE_CHECK, _check_idle),
    ("too_many_errors", "error_count", _check_errors),
)

_PLACES = {name: place for place, (_, name, _) in enumerate(_CHECKS, 2)}
"""The index of each check in a decision; the checks ``exists`` and ``readable`` are before them."""

ADVICE = {
    RESUMABLE_REASON: "resume it with its metadata and history as context",
    "not_found": "start new work",
    "corrupt": "start new work, and fix or remove the file",
    CANCELLED_REASON: "leave it: a cancelled session cannot be resumed or continued; what it has stored is kept",
    "phase_not_resumable": "start new work: only investigating, planning and approval can be resumed",
    "running": "do not resume it: its agent may still be at work",
    "claimed": "wait: an agent is about to start working on it",
    NOT_APPROVED_REASON: "to make it resumable, a person types this in a terminal: gaia-sessions approve {id}",
    "not_ready": "start new work, or allow resuming again: gaia-sessions update {id} --resume-ready",
    "clock_skew": "when the clock is right, type: gaia-sessions update {id}",
    "waiting_for_limit": (
        "wait until the limit is reset; if the limit is already reset, type: gaia-sessions update {id} --resume-ready"
    ),
    _EXPIRED_REASON: "to make it resumable again, type: gaia-sessions update {id}",
    "too_many_errors": (
        "this session keeps failing (see its last error); to end it, so that you can continue it in a new session, "
        "type: gaia-sessions finalize {id} failed"
    ),
}
"""What to do for each reason, in the order of the policy; ``{id}`` becomes the ID of the session."""

ADVICE_WHEN_ASKED = "to make it resumable, type this (or deny instead of approve): gaia-sessions approve {id}"
"""What to do if the session waited too long for an approval."""

ADVICE_WHEN_ANSWERED = {
    "approved": "resume it: its question was approved",
    "denied": "resume it, and choose another way: its question was denied",
}
"""What to do if the session can be resumed and its question was answered."""

ADVICE_WHEN_NEW = "start the work: there is nothing to resume yet"

ADVICE_WHEN_STILL_AT_WORK = "wait until its run has ended: then you can continue it in a new session"
"""What to do if the session has ended, but its command may still be at work."""

ADVICE_WHEN_FINAL = "start new work: this session has ended"
