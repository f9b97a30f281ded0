"""What waits for a person, and what was answered: the question, and below it what to type."""

from __future__ import annotations

from gaia_sessions.hosts.marker import without_marker
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.ids import resume_line
from gaia_sessions.session.policy import is_running
from gaia_sessions.session.record import NOT_APPROVED_REASON
from gaia_sessions.session.runs import waits_with_question

from .decisions import app_lines
from .plain import agent_and_purpose
from .words import GIVE, Command, Copyable, Hint, Prose, ago, client_text, prose, resume_text, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from gaia_sessions.api.pending_work import Pending
    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.schema import GivenAnswer, Record

_INDENT = 4

_WAYS = {
    "command": "by a command",
    "python": "by a program in Python",
    "resume_line": "by a resume line",
    "message": "by a message to its agent",
    "workflow": "by its client, which resumed the workflow",
    "run": "by `gaia-sessions run`",
    "update": "by an update of its phase",
    "send": "by a send to its agent",
}

_TOLD_LATER = "the agent gets the answer when its background work has ended"


def answered_lines(record: Record, decision: Decision, now: datetime) -> Iterator[str]:
    """Yields what was answered, and how a person resumes the work."""
    agent_id, word = record["agent_id"], "denied" if "denial" in record else "approved"
    stands = resume_text(decision, record["phase"], now)
    if is_running(decision) and any(map(waits_with_question, record["runs"][-1:])):
        yield f"{agent_id}: {word}; {_TOLD_LATER}"
        return
    if not decision["should_resume"]:
        yield f"{agent_id}: {word}, but it cannot be resumed now: {stands}"
        yield f"  {decision['advice']}"
        return
    if "app" in decision:
        yield f"{agent_id}: {word}"
        yield from app_lines(decision, "  ")
        return
    yield f"{agent_id}: {word}, {stands}"
    what = "to let it find another way" if "denial" in record else "to resume it"
    if "run_command" in decision:
        yield f"{what}, type:"
        yield Command(decision["run_command"])
        return
    yield f"{what}, {GIVE}:"
    yield Copyable(resume_line(agent_id))


def given_text(given: GivenAnswer, now: datetime) -> str:
    """Returns when and how an answer was given, and the note of the answer."""
    how = _WAYS.get(given["by"], given["by"])
    if "shell" in given:
        how += f" in a shell of {client_text({'host': given['shell']})}'s agent"
    said = f": {given['message']}" if given.get("message") else ""
    return ", ".join(filter(None, [ago(given["timestamp"], now), how])) + said


def pending_lines(found: Sequence[Pending], now: datetime, where: str = "") -> Iterator[str]:
    """Yields a block for each session in ``found``; a sentence if nobody waits ``where`` this looked."""
    if not found:
        yield f"Nobody waits for you{where}"
        yield Hint("  to see what can be resumed: gaia-sessions resume")
    for number, one in enumerate(found):
        if number:
            yield ""
        yield Prose(agent_and_purpose(one["agent_name"], one["purpose"]), 2)
        yield from [f"  of app {safe(one['app'], 80)}"] if "app" in one else ()
        yield from _permission(one, now) if "tool" in one else _question(one, now)


def _permission(one: Pending, now: datetime) -> Iterator[str]:
    yield f"  asked {ago(one['state_since'], now)} to use {safe(one.get('tool'), 80)}"
    yield f"  answer in {client_text(one)}"
    yield f"  {one['agent_id']}"


def _question(one: Pending, now: datetime) -> Iterator[str]:
    """Yields the whole question, and how to answer the question."""
    message = one.get("last_message", "")
    said = without_marker(message)
    if "question" in one:
        yield f"  asked {ago(one['state_since'], now)}:"
        yield from prose(one["question"], _INDENT)
    else:
        unknown = "" if message else " (its question was not recorded)"
        yield f"  stopped {ago(one['state_since'], now)}, waits for approval{unknown}"
    if said:
        yield "  it said:" if len(message) != MAX_MESSAGE_LENGTH else "  it said at the end:"
        yield from prose(said, _INDENT)
    yield from _ways(one, now)


def _ways(one: Pending, now: datetime) -> Iterator[str]:
    agent_id, resume = one["agent_id"], one["resume"]
    if "awaits" in one:
        yield f"  the agent waits for its background {safe(one['awaits'], 30)}, then gets the answer; to approve:"
        yield Command(f"gaia-sessions approve {agent_id}")
        yield "  to deny (--reason adds a reason):"
        yield Command(f"gaia-sessions deny {agent_id}")
        return
    by_app = "app" in one and not {"run_command", "resume_line"} & one.keys()
    resuming = Command(one["run_command"]) if "run_command" in one else Copyable(one.get("resume_line", ""))
    if resume["should_resume"] and by_app:
        yield f"  {resume_text(resume, one['phase'], now)}; to approve:"
    elif resume["should_resume"]:
        how = "to approve and resume it, type" if "run_command" in one else f"to approve and resume it, {GIVE}"
        yield f"  {resume_text(resume, one['phase'], now)}; {how}:"
        yield resuming
        yield "  to approve now and resume later (--note adds a note):"
    elif resume["reason"] == NOT_APPROVED_REASON:
        yield "  to approve it, so that it can be resumed:"
    elif "expired_at" in one:
        yield f"  expired {ago(one['expired_at'], now)}; to approve it, which makes it resumable:"
    else:
        yield f"  cannot be resumed now: {resume_text(resume, one['phase'], now)}; to approve it anyway:"
    yield Command(f"gaia-sessions approve {agent_id}")
    if by_app:
        yield f"  then {safe(one['app'], 80)} resumes the session with the app's next event"
    if "run_command" in one and not resume["should_resume"]:
        yield "  then, to resume it, type:"
        yield resuming
    yield "  to deny (--reason adds a reason):"
    yield Command(f"gaia-sessions deny {agent_id}")
