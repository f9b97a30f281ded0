"""How the policy's answer is said: a sentence, a line for each check that failed, and what to do.

Owns the sentence for each check. Decides nothing: ``policy`` does. Every sentence ends in the reason's code, which the
README and ``--json`` use too.
"""

from __future__ import annotations

from gaia_sessions.session.phases import is_final

from .words import Copied, plural, safe, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.session.policy import Decision, Finding

    Sentence = Callable[[str, Finding], str]

_LONGEST = 500


def decided(decision: Decision, *, verbose: bool = False) -> Iterator[str]:
    """Yes or no, and why; of the checks those that failed, or with ``verbose`` all; at the end what to do."""
    first, *others = _failed(decision)
    yield f"{'yes' if decision['should_resume'] else 'no'}: {first}"
    if verbose and decision["phase"]:
        yield from (f"  {_checked(check)}" for check in decision["checks"])
    else:
        yield from (f"  {other}" for other in others)
    yield f"  {safe(decision['advice'], _LONGEST)}"
    if decision["should_resume"]:
        yield "  where the hooks are installed, this line in a sub-agent's prompt resumes it:"
        yield Copied(f"[gaia-sessions: resume {decision['agent_id']}]", before="    ")


def impossible(code: str) -> str:
    """The answer for an ID that no session can have."""
    return f"no: no session can have this ID ({code})"


def _failed(decision: Decision) -> list[str]:
    """A sentence for each check that failed; if none did, one for why the work may be resumed.

    Nothing can be said of the phase or the age of a session that is missing or cannot be read. In a phase from which
    work is not resumed, resuming is always off: nobody switched it off.
    """
    failed = [check for check in decision["checks"] if not check["ok"]]
    if decision["should_resume"]:
        return [_resumable(decision)]
    if not decision["phase"]:
        failed = failed[:1]
    if failed[0]["name"] == "phase":
        failed = [check for check in failed if check["name"] != "resume_ready"]
    subjects = [decision["agent_id"], *["it"] * len(failed)]
    return [_sentence(subject, check) for subject, check in zip(subjects, failed, strict=False)]


def _resumable(decision: Decision) -> str:
    check = next(check for check in decision["checks"] if check["name"] == "idle_seconds")
    return f"{decision['agent_id']} is in {decision['phase']} and {_idle(check)} ({decision['reason']})"


def _sentence(subject: str, check: Finding) -> str:
    code, sentence = _SENTENCES[check["name"]]
    return f"{safe(sentence(subject, check), _LONGEST)} ({code})"


def _phase(subject: str, check: Finding) -> str:
    if is_final(str(check["actual"])):
        return f"{subject} has ended: it is {check['actual']}"
    return f"{subject} is in {check['actual']}, from where work is not resumed"


def _running(subject: str, check: Finding) -> str:
    numbers = _all(check["actual"])
    return (
        f"{subject} has {'a run that has' if len(numbers) == 1 else 'runs that have'} not ended: {', '.join(numbers)}"
    )


def _claimed(subject: str, check: Finding) -> str:
    return f"{subject} was just delegated, and run {' and '.join(_all(check['actual']))} is about to start"


def _clock(subject: str, check: Finding) -> str:
    ahead, limit = span(_number(check["actual"])), span(_number(check["limit"]))
    return f"the last activity of {subject} is {ahead} in the future; the limit is {limit}"


def _idle(check: Finding) -> str:
    return f"has been idle for {span(_number(check['actual']))}; the limit is {span(_number(check['limit']))}"


def _errors(subject: str, check: Finding) -> str:
    count, limit = int(_number(check["actual"])), int(_number(check["limit"]))
    return f"{subject} has had {plural(count, 'error')}; the limit is {limit}"


_SENTENCES: dict[str, tuple[str, Sentence]] = {
    "exists": ("not_found", lambda subject, _: f"there is no session {subject}"),
    "readable": ("corrupt", lambda subject, check: f"{subject} cannot be read: {check['actual']}"),
    "phase": ("phase_not_resumable", _phase),
    "no_live_run": ("running", _running),
    "not_claimed": ("claimed", _claimed),
    "resume_ready": ("not_ready", lambda subject, _: f"resuming {subject} is switched off"),
    "clock": ("clock_skew", _clock),
    "idle_seconds": ("expired", lambda subject, check: f"{subject} {_idle(check)}"),
    "error_count": ("too_many_errors", _errors),
}
"""What is said when the check of that name fails, and the code of the reason that it is."""


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0


def _all(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _checked(check: Finding) -> str:
    """``ok  idle_seconds: 12, limit 1800``; what says no more than its verdict is left out."""
    verdict = "ok" if check["ok"] else "NO"
    told = [_shown(check["actual"])] if _tells(check["actual"]) else []
    told += [f"limit {_shown(check['limit'])}"] if _tells(check["limit"]) else []
    return f"{verdict}  {check['name']}{': ' if told else ''}{', '.join(told)}"


def _tells(value: object) -> bool:
    return value is not None and value is not True and value != []


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(safe(item) for item in value)
    return f"{value:.0f}" if isinstance(value, float) else safe(value)
