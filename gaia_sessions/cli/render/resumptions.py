"""How to resume work, or why the work cannot be resumed: a block for each session, with the command to copy."""

from __future__ import annotations

import shlex

from gaia_sessions.api.resuming import DELEGATION, LINE, MESSAGE, NONE, RUN, WORKFLOW, denial_text
from gaia_sessions.errors import plural
from gaia_sessions.session import schema
from gaia_sessions.session.ids import send_command
from gaia_sessions.session.runs import crash_text
from gaia_sessions.session.state import BY_HAND, DENIED, WAITING

from .decisions import decision_lines, invalid_id_line
from .plain import agent_and_purpose
from .words import WHY_STOPPED, Command, Copyable, Hint, Prose, ago, local_time, safe, time_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.api.resuming import Resumption
    from gaia_sessions.session.policy import Decision

_WHY = {
    **WHY_STOPPED,
    schema.STOPPED_BY_USER: "STOPPED BY THE USER",
    schema.RUN_RETURNED: "its agent returned without saying that it was done",
}
"""What stopped the work, in words; if the agent failed, the words come from the client."""
_LONGEST_DETAIL = 200
_HOW = {
    MESSAGE: "type this; it wakes the agent, which remembers its work:",
    WORKFLOW: "type this; it runs the workflow again, without its finished parts:",
    DELEGATION: "type this; a new agent gets a briefing (the old one cannot be woken):",
    LINE: "delegate to {agent} again, with this line in the prompt:",
    RUN: "type this; what was said so far is passed on:",
}
_WHAT_FOR = {WAITING: "to approve and resume it, ", DENIED: "to let it find another way, "}
_SINCE = {WAITING: "asked", BY_HAND: "reached {phase}"}
"""States that need another word before a time."""
_HOW_TO_BEGIN = "type this; it delegates the work again (its agent never started):"


def resumption_lines(
    found: Sequence[Resumption],
    left_out: Mapping[str, int],
    now: datetime,
    host_session: str | None = None,
    where: str = "",
) -> Iterator[str]:
    """Yields a block for each of ``found``, or that there are none in ``host_session``; then how many were left out."""
    if not found:
        yield from _nothing(host_session, where)
    yield from answer_lines(found, now)
    if left_out and host_session is None:
        if found:
            yield ""
        command = ["gaia-sessions", "list", "--state", ",".join(left_out)]
        stopped = plural(sum(left_out.values()), "session")
        yield Hint(f"{stopped} that stopped cannot be resumed now; to see which: {shlex.join(command)}")
        yield Hint("  to see why, or to resume an expired session: gaia-sessions resume ID")


def answer_lines(answers: Sequence[Resumption | Decision], now: datetime) -> Iterator[str]:
    """Yields a block for each of ``answers``: how to resume the work, or why it cannot be resumed."""
    for number, one in enumerate(answers):
        if number:
            yield ""
        yield from _block(one, now) if "means" in one else _refusal(one)


def _block(one: Resumption, now: datetime) -> Iterator[str]:
    yield Prose(agent_and_purpose(one["agent_name"], one["purpose"]), 2)
    yield f"  {_why(one, now)}"
    if "had_expired" in one:
        yield "  it had expired; its idle time counts again from now"
    yield from _how(one)
    yield f"  {one['agent_id']}"


def _refusal(decision: Decision) -> Iterator[str]:
    if not decision["checks"]:
        yield f"{invalid_id_line(decision['reason'])}: {safe(decision['agent_id'])}"
        yield f"  {safe(decision['advice'])}"
        return
    first, *others = decision_lines(decision)
    yield first
    if "denial" in decision:
        yield f"  {safe(denial_text(decision['denial']), _LONGEST_DETAIL)}"
    yield from others


def _nothing(host_session: str | None, where: str) -> Iterator[str]:
    """Yields a sentence: nothing was found; then where else to look."""
    if host_session is None:
        yield f"Nothing to resume{where}: no work that stopped or was answered can be resumed now"
        yield Hint("  to see who waits for you: gaia-sessions pending")
        return
    named = safe(host_session, 80)
    yield f"Nothing to resume{where}: no work of conversation {named} that stopped or was answered can be resumed now"
    yield Hint("  to see all conversations: gaia-sessions resume")


def _why(one: Resumption, now: datetime) -> str:
    """Returns ``interrupted 5 minutes ago, resumable for 25 minutes: stopped by a usage limit``."""
    text = _SINCE.get(one["state"], one["state"]).format(phase=one["phase"])
    if "state_since" in one:
        text += f" {ago(one['state_since'], now)}"
    if one["until"] is not None:
        text += f", resumable for {time_left(one['until'], now)}"
    lost = safe(crash_text(one)) if one["why"] == schema.LOST else None
    detail = one.get("detail", "")
    cause = lost or _WHY.get(one["why"]) or safe(detail if detail != schema.MARKER_DETAIL else "", _LONGEST_DETAIL)
    return f"{text}: {cause}" if cause and cause != one["state"] else text


def _how(one: Resumption) -> Iterator[str]:
    """Yields how to resume the work; the text to copy has a line of its own."""
    if "paused_until" in one:
        yield f"  waits until its usage limit is reset: {local_time(one['paused_until'])}"
        return
    if "problem" in one:
        yield f"  {safe(one['problem'], _LONGEST_DETAIL)}"
    if one["means"] == NONE:
        return
    if one["host_is_alive"] and one["means"] in (MESSAGE, WORKFLOW):
        yield "  its client still runs; if the conversation is open there, type only the quoted text there"
    how = _HOW_TO_BEGIN if one["means"] == DELEGATION and "claimed_at" in one else _HOW[one["means"]]
    yield "  " + _what_for(one) + how.format(agent=safe(one["agent_name"]))
    if one["command"] is not None:
        yield Copyable(one["command"])
    elif one["means"] in (LINE, RUN):
        yield Command(one["run_command"]) if "run_command" in one else Copyable(one["resume_line"])
    if one["state"] == WAITING:
        yield Hint("  `gaia-sessions pending` shows its question, and how to deny it")


def _what_for(one: Resumption) -> str:
    is_answered_by_text = one.get("run_command") == send_command(one["agent_id"])
    if one["state"] == WAITING and is_answered_by_text:
        return "to answer it, "
    return _WHAT_FOR.get(one["state"], "to resume it, ")
