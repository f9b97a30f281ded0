"""The policy's decision in words: a sentence, a line for each failed check, and what to do.

A sentence ends with the code of its reason, as in ``docs/phases.md`` and in ``--json``.
"""

from __future__ import annotations

from gaia_sessions.errors import plural
from gaia_sessions.session.ids import resume_line, run_command, send_command
from gaia_sessions.session.phases import is_final, is_new, is_resumable, waits_for_approval
from gaia_sessions.session.policy import is_only_expired

from .words import Command, Copyable, duration, local_time, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.errors import InvalidId
    from gaia_sessions.session.policy import CheckResult, Decision

    Sentence = Callable[[str, CheckResult], str]

_LONGEST = 500


def decision_lines(decision: Decision, *, verbose: bool = False) -> Iterator[str]:
    """Yields yes or no, and why; the failed checks, or with ``verbose`` all checks; then what to do."""
    first, *others = failed_sentences(decision) or [_resumable_sentence(decision)]
    yield f"{'yes' if decision['should_resume'] else 'no'}: {first}"
    yield from (f"  {line}" for line in _why_cancelled(decision))
    if verbose and decision["phase"]:
        yield from (f"  {_check_line(check)}" for check in decision["checks"])
    else:
        yield from (f"  {other}" for other in others)
    if not decision["should_resume"] or {"approval", "denial"} & decision.keys():
        yield f"  {safe(decision['advice'], _LONGEST)}"
    if "app" in decision:
        yield from app_lines(decision, "  ")
    elif "run_command" in decision:
        yield from command_lines(decision, "  ")
    elif decision["should_resume"]:
        yield "  to resume it, put this line in the prompt of a sub-agent (needs the hooks):"
        yield Copyable(resume_line(decision["agent_id"]), before="    ")


def app_lines(decision: Decision, indent: str = "") -> Iterator[str]:
    """Yields a sentence: the app resumes the session; nothing if the session has ended."""
    if not is_final(decision["phase"] or "") and "cancellation" not in decision:
        yield f"{indent}{safe(decision['app'])} resumes the session with the app's next event"


def command_lines(decision: Decision, indent: str = "") -> Iterator[str]:
    """Yields what to type to resume or continue the work of a command; nothing for the work of agents."""
    if "run_command" not in decision:
        return
    if is_of_conversation(decision):
        if may_be_asked(decision):
            has_ended = is_final(decision["phase"] or "")
            yield f"{indent}to {'continue it in a new session' if has_ended else 'send the next message'}, type:"
            yield Command(decision["run_command"], before=f"{indent}  ")
        return
    if approves(decision):
        yield f"{indent}to approve and resume it, type:"
    elif decision["should_resume"]:
        yield f"{indent}to resume it, type:"
    elif needs_new_session(decision):
        yield f"{indent}to continue it in a new session, type:"
    elif is_only_expired(decision):
        yield f"{indent}then, to resume it, type:"
    else:
        return
    yield Command(decision["run_command"], before=f"{indent}  ")


def approves(decision: Decision) -> bool:
    """Returns whether a resume would approve a question that nobody has answered."""
    is_answered = not decision.keys().isdisjoint(("approval", "denial"))
    return decision["should_resume"] and waits_for_approval(decision["phase"]) and not is_answered


def is_of_conversation(decision: Decision) -> bool:
    """Returns whether the session is a conversation, to which a person sends messages."""
    agent_id = decision["agent_id"]
    return decision.get("run_command") in (send_command(agent_id), send_command(agent_id, ended=True))


def may_be_asked(decision: Decision) -> bool:
    """Returns whether a person can send to this agent now, in this session or in a new session that continues it."""
    refusing = ("no_live_run", "not_claimed", "resume_ready")
    is_refused = any(not check["ok"] for check in decision["checks"] if check["name"] in refusing)
    phase = decision["phase"] or ""
    return is_final(phase) or is_new(phase) or (is_resumable(phase) and not is_refused)


def needs_new_session(decision: Decision) -> bool:
    """Returns whether only a new session can continue the work: this session has ended, or its wrapper is gone."""
    return decision.get("run_command") == run_command(decision["agent_id"], ended=True)


def invalid_id_decision(agent_id: str, error: InvalidId) -> Decision:
    """Returns the decision for an ID that no session can have."""
    return {
        "should_resume": False,
        "reason": error.code,
        "agent_id": agent_id,
        "phase": None,
        "idle_seconds": None,
        "until": None,
        "checks": [],
        "advice": error.hint,
    }


def invalid_id_line(code: str) -> str:
    return f"no: this cannot be the ID of a session ({code})"


def failed_sentences(decision: Decision, subject: str | None = None) -> list[str]:
    """Returns a sentence for each failed check; the first sentence names the session: ``subject``, or the ID."""
    failed = [check for check in decision["checks"] if not check["ok"]]
    if not decision["phase"]:  # missing or unreadable: the other checks mean nothing
        failed = failed[:1]
    if failed and failed[0]["name"] == "phase":  # resume_ready is off in every such phase
        failed = [check for check in failed if check["name"] != "resume_ready"]
        at_work = {"no_live_run", "not_claimed"} & {check["name"] for check in failed}
        if is_new(str(decision["phase"])) and at_work:  # an agent that is starting or at work says more than the phase
            del failed[0]
    subjects = [subject or decision["agent_id"], *["it"] * len(failed)]
    return [_sentence(subject, check) for subject, check in zip(subjects, failed, strict=False)]


def _resumable_sentence(decision: Decision) -> str:
    check = next(check for check in decision["checks"] if check["name"] == "idle_seconds")
    return f"{decision['agent_id']} is in {decision['phase']} and {_idle(check)}"


def _why_cancelled(decision: Decision) -> Iterator[str]:
    cancellation = decision.get("cancellation", {})
    if "by" in cancellation:
        yield f"together with everything below {safe(cancellation['by'])}"
    if "reason" in cancellation:
        yield f"reason: {safe(cancellation['reason'], _LONGEST)}"


def _sentence(subject: str, check: CheckResult) -> str:
    code, sentence = _SENTENCES[check["name"]]
    return f"{safe(sentence(subject, check), _LONGEST)} ({code})"


def _cancelled(subject: str, check: CheckResult) -> str:
    return f"{subject} was cancelled" + (
        f" at {local_time(check['actual'])}" if isinstance(check["actual"], str) else ""
    )


def _phase(subject: str, check: CheckResult) -> str:
    if is_final(str(check["actual"])):
        return f"{subject} has ended in phase {check['actual']}"
    if is_new(str(check["actual"])):
        return f"{subject} has not started yet"
    return f"{subject} is in {check['actual']}, which is not resumable"


def _running(subject: str, check: CheckResult) -> str:
    numbers = _as_texts(check["actual"])
    runs = f"run {numbers[0]} has" if len(numbers) == 1 else f"runs {', '.join(numbers)} have"
    return f"{subject} may still be at work: {runs} not ended"


def _claimed(subject: str, check: CheckResult) -> str:
    numbers = _as_texts(check["actual"])
    return f"{subject} is just starting run{'s' * (len(numbers) > 1)} {' and '.join(numbers)}"


def _clock(subject: str, check: CheckResult) -> str:
    ahead, limit = (duration(_as_number(check[key]), 2) for key in ("actual", "limit"))
    return f"the last activity of {subject} is {ahead} in the future; the limit is {limit}"


def _limit_reset(subject: str, check: CheckResult) -> str:
    return f"{subject} waits until its usage limit is reset at {local_time(str(check['actual']))}"


def _idle(check: CheckResult) -> str:
    actual, limit = (duration(_as_number(check[key]), 2) for key in ("actual", "limit"))
    return f"has been idle for {actual}; the limit is {limit}"


def _errors(subject: str, check: CheckResult) -> str:
    count, limit = int(_as_number(check["actual"])), int(_as_number(check["limit"]))
    return f"{subject} has had {plural(count, 'error')}; the limit is {limit}"


_SENTENCES: dict[str, tuple[str, Sentence]] = {
    "exists": ("not_found", lambda subject, _: f"there is no session {subject}"),
    "readable": ("corrupt", lambda subject, check: f"{subject} cannot be read: {check['actual']}"),
    "not_cancelled": ("cancelled", _cancelled),
    "phase": ("phase_not_resumable", _phase),
    "no_live_run": ("running", _running),
    "not_claimed": ("claimed", _claimed),
    "answered": ("not_approved", lambda subject, _: f"{subject} waits for approval, and only a person can approve"),
    "resume_ready": ("not_ready", lambda subject, _: f"resuming is off for {subject}"),
    "clock": ("clock_skew", _clock),
    "limit_reset": ("waiting_for_limit", _limit_reset),
    "idle_seconds": ("expired", lambda subject, check: f"{subject} {_idle(check)}"),
    "error_count": ("too_many_errors", _errors),
}
"""By check: the code of its reason, and the sentence to print if it fails."""


def _as_number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0


def _as_texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _check_line(check: CheckResult) -> str:
    """Returns ``ok  idle_seconds: 12, limit 1800``, without values that add nothing."""
    outcome = "ok" if check["ok"] else "NO"
    values = [_value_text(check["actual"])] if _is_worth_showing(check["actual"]) else []
    values += [f"limit {_value_text(check['limit'])}"] if _is_worth_showing(check["limit"]) else []
    return f"{outcome}  {check['name']}{': ' if values else ''}{', '.join(values)}"


def _is_worth_showing(value: object) -> bool:
    return value is not None and value is not True and value != []


def _value_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(safe(item) for item in value)
    return f"{value:.0f}" if isinstance(value, float) else safe(value)
