"""The one policy on whether work may be resumed, as a table of conditions.

Owns the conditions, their order and the advice for each. Pure: ``now``, the limits and the runs of hosts that are gone
are arguments. Must never touch a file, a clock or a process.
"""

from __future__ import annotations

from .clock import FUTURE_TOLERANCE, format_time, parse_time, seconds_between, timedelta
from .phases import RESUMABLE, is_final, is_resumable
from .runs import is_claimed, is_live

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import NotRequired, TypedDict

    from .schema import Denial, Record

    class CheckResult(TypedDict):
        name: str
        ok: bool
        actual: object
        limit: object

    class Decision(TypedDict):
        should_resume: bool
        reason: str
        agent_id: str
        phase: str | None
        idle_seconds: float | None
        until: str | None
        checks: list[CheckResult]
        advice: str
        denial: NotRequired[Denial]

    class ResumeSummary(TypedDict):
        """A decision in short. until: when the session can no longer be resumed; None if it cannot be resumed now."""

        should_resume: bool
        reason: str
        until: str | None

    CheckValues = tuple[bool, object, object]
    PolicyCheck = Callable[["ResumeCase"], CheckValues]

RESUMABLE_REASON = "session_resumable"
_LIVE_RUN_CHECK = "no_live_run"

_IDLE = timedelta(minutes=30)


class Limits:
    """The idle time and the number of errors under which work may be resumed; both must be strictly under the limit."""

    __slots__ = ("idle", "max_errors")

    def __init__(self, idle: timedelta = _IDLE, max_errors: int = 3) -> None:
        self.idle = idle
        self.max_errors = max_errors


class ResumeCase:
    """What the decision is about. dead_runs: the numbers of the runs whose host is proved to be gone."""

    __slots__ = ("dead_runs", "limits", "now", "record")

    def __init__(self, record: Record, now: datetime, limits: Limits, dead_runs: frozenset[int]) -> None:
        self.record = record
        self.now = now
        self.limits = limits
        self.dead_runs = dead_runs


def decide(
    agent_id: str,
    record: Record | None,
    now: datetime,
    limits: Limits,
    *,
    dead_runs: frozenset[int],
    problem: str | None = None,
) -> Decision:
    """The decision on ``record``; None stands for a missing record, or for one unreadable because of ``problem``.

    ``dead_runs`` are the numbers of runs whose host is proved to be gone: they count as ended. ``checks`` has every
    condition in the order of the policy, ``reason`` is that of the first that fails. ``until`` is when the session can
    no longer be resumed if nothing happens before. Work with a ``denial`` may be resumed, but not as planned.
    """
    results = _check_results(ResumeCase(record, now, limits, dead_runs) if record else None, problem)
    reason = next((reason for (reason, result) in results if not result["ok"]), RESUMABLE_REASON)
    should_resume = reason == RESUMABLE_REASON
    last_updated = parse_time(record["last_updated"]) if record else None
    decision: Decision = {
        "should_resume": should_resume,
        "reason": reason,
        "agent_id": agent_id,
        "phase": record["phase"] if record else None,
        "idle_seconds": seconds_between(last_updated, now) if last_updated else None,
        "until": format_time(last_updated + limits.idle) if last_updated and should_resume else None,
        "checks": [result for _, result in results],
        "advice": _advice(reason, agent_id, record),
    }
    return {**decision, "denial": record["denial"]} if record and "denial" in record else decision


def _advice(reason: str, agent_id: str, record: Record | None) -> str:
    if record and is_final(record["phase"]):
        return ADVICE_WHEN_FINAL
    if record and "denial" in record and reason == RESUMABLE_REASON:
        return f"go on another way: what it waited for was denied: {record['denial']['message']}"
    return ADVICE[reason].replace("{id}", agent_id)


def resume_summary(decision: Decision) -> ResumeSummary:
    """``decision`` in the short form of summaries."""
    return {"should_resume": decision["should_resume"], "reason": decision["reason"], "until": decision["until"]}


def is_running(decision: Decision) -> bool:
    """Whether the session exists and an agent is at work on it, whatever its phase."""
    return decision["phase"] is not None and any(
        check["name"] == _LIVE_RUN_CHECK and not check["ok"] for check in decision["checks"]
    )


def _check_results(case: ResumeCase | None, problem: str | None) -> list[tuple[str, CheckResult]]:
    exists = case is not None or problem is not None
    results = [
        _check_result("not_found", "exists", (exists, exists, True)),
        _check_result("corrupt", "readable", (problem is None, problem, None)),
    ]
    for reason, name, check in _CHECKS:
        results.append(_check_result(reason, name, check(case) if case else (False, None, None)))
    return results


def _check_result(reason: str, name: str, values: CheckValues) -> tuple[str, CheckResult]:
    ok, actual, limit = values
    return reason, {"name": name, "ok": ok, "actual": actual, "limit": limit}


def _check_phase(case: ResumeCase) -> CheckValues:
    phase = case.record["phase"]
    return is_resumable(phase), phase, list(RESUMABLE)


def _check_live_runs(case: ResumeCase) -> CheckValues:
    live = [run["run"] for run in case.record.get("runs", ()) if is_live(run) and run["run"] not in case.dead_runs]
    return not live, live, []


def _check_claims(case: ResumeCase) -> CheckValues:
    runs = case.record.get("runs", ())
    claimed = [run["run"] for run in runs if is_claimed(run, case.now) and run["run"] not in case.dead_runs]
    return not claimed, claimed, []


def _check_resume_ready(case: ResumeCase) -> CheckValues:
    ready = case.record["resume_ready"]
    return ready, ready, True


def _check_clock(case: ResumeCase) -> CheckValues:
    ahead = (parse_time(case.record["last_updated"]) - case.now).total_seconds()
    limit = FUTURE_TOLERANCE.total_seconds()
    return ahead <= limit, max(0.0, ahead), limit


def _check_idle(case: ResumeCase) -> CheckValues:
    idle = seconds_between(parse_time(case.record["last_updated"]), case.now)
    limit = case.limits.idle.total_seconds()
    return idle < limit, idle, limit


def _check_errors(case: ResumeCase) -> CheckValues:
    count = case.record["error_count"]
    return count < case.limits.max_errors, count, case.limits.max_errors


_CHECKS: tuple[tuple[str, str, PolicyCheck], ...] = (
    ("phase_not_resumable", "phase", _check_phase),
    ("running", _LIVE_RUN_CHECK, _check_live_runs),
    ("claimed", "not_claimed", _check_claims),
    ("not_ready", "resume_ready", _check_resume_ready),
    ("clock_skew", "clock", _check_clock),
    ("expired", "idle_seconds", _check_idle),
    ("too_many_errors", "error_count", _check_errors),
)

ADVICE = {
    RESUMABLE_REASON: "resume it with its metadata and history as context",
    "not_found": "start new work",
    "corrupt": "start new work, and fix or remove the file",
    "phase_not_resumable": "resume only from investigating, planning or approval; otherwise start new work",
    "running": "leave it alone: its agent may still be at work",
    "claimed": "leave it alone: somebody is about to resume it",
    "not_ready": "start new work, or allow resuming again: gaia-sessions update {id} --resume-ready",
    "clock_skew": "once the clock is right, an update sets the last activity: gaia-sessions update {id}",
    "expired": "start new work: this one has been idle for too long",
    "too_many_errors": "look at last_error and start new work: this one keeps failing",
}
"""What to do for each reason, in the order of the policy; ``{id}`` stands for the session's id."""

ADVICE_WHEN_FINAL = "start new work: this session has ended"
"""What to do if the phase is final."""
