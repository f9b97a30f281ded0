"""What may go on again, and the commands that continue it: a block of lines for each session.

Owns that wording.
"""

from __future__ import annotations

import shlex

from gaia_sessions.api.resumptions import DELEGATION, LINE, MESSAGE, RUN, WORKFLOW
from gaia_sessions.errors import plural
from gaia_sessions.session import schema
from gaia_sessions.session.runs import crash_text

from .plain import agent_and_purpose
from .words import WHY_STOPPED, Command, Copyable, Hint, Prose, ago, local_time, safe, time_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.api.resumptions import Resumption

_WHY = {
    **WHY_STOPPED,
    schema.STOPPED_BY_USER: "STOPPED BY THE USER",
    schema.RUN_RETURNED: "its agent came back without saying that it was done",
}
"""What stopped it; of an agent that failed, its client says that."""
_LONGEST_DETAIL = 200
_HOW = {
    MESSAGE: "this wakes its agent, which knows all that it did:",
    WORKFLOW: "this runs the workflow again, without what it has finished:",
    DELEGATION: "its agent cannot be woken any more; this begins a new one, with a briefing:",
    LINE: "delegate to {agent} again, with this line in the prompt:",
    RUN: "with a command of yours, which is given what was said so far:",
}
_HOW_TO_BEGIN = "its agent never started; this delegates the work again:"


def resumption_lines(
    found: Sequence[Resumption], left_out: Mapping[str, int], now: datetime, host_session: str | None = None
) -> Iterator[str]:
    """A block for each of ``found``, or a sentence if there are none; then how many of which state were left out.

    Only ``host_session`` was searched, if given.
    """
    if not found:
        yield from _nothing(host_session)
    for number, one in enumerate(found):
        if number:
            yield ""
        yield Prose(agent_and_purpose(one["agent_name"], one["purpose"]), 2)
        yield f"  {_why(one, now)}"
        yield from _how(one)
        yield f"  {one['agent_id']}"
    if left_out and host_session is None:
        if found:
            yield ""
        command = ["gaia-sessions", "list", "--state", ",".join(left_out)]
        stopped = plural(sum(left_out.values()), "session")
        yield Hint(f"{stopped} that stopped may not be resumed for now: {shlex.join(command)}")
        yield Hint("  why not, and what to type for one that is still wanted: gaia-sessions should-resume ID")


def _nothing(host_session: str | None) -> Iterator[str]:
    """That nothing was found, and where else to look."""
    if host_session is None:
        yield "Nothing to resume: no work that broke off, or was answered, may be resumed"
        yield Hint("  who waits for an answer: gaia-sessions pending")
        return
    named = safe(host_session, 80)
    yield f"Nothing to resume: no work of conversation {named} that broke off, or was answered, may be resumed"
    yield Hint("  those of all conversations: gaia-sessions resume")


def _why(one: Resumption, now: datetime) -> str:
    """``interrupted 5 minutes ago, resumable for 25 minutes: stopped by a usage limit``."""
    text = one["state"]
    if "state_since" in one:
        text += f" {ago(one['state_since'], now)}"
    if one["until"] is not None:
        text += f", resumable for {time_left(one['until'], now)}"
    lost = safe(crash_text(one)) if one["why"] == schema.LOST else None
    detail = one.get("detail", "")
    cause = lost or _WHY.get(one["why"]) or safe(detail if detail != schema.MARKER_DETAIL else "", _LONGEST_DETAIL)
    return f"{text}: {cause}" if cause and cause != one["state"] else text


def _how(one: Resumption) -> Iterator[str]:
    """How to go on, and what to copy for it, alone on its line."""
    if "paused_until" in one:
        yield f"  waits until the limit is reset: {local_time(one['paused_until'])}"
        return
    if "problem" in one:
        yield f"  {one['problem']}"
        return
    if one["host_is_alive"] and one["means"] in (MESSAGE, WORKFLOW):
        yield "  its client still runs: if the conversation is open there, type only the quoted text into it"
    how = _HOW_TO_BEGIN if one["means"] == DELEGATION and "claimed_at" in one else _HOW[one["means"]]
    yield "  " + how.format(agent=safe(one["agent_name"]))
    if one["command"] is not None:
        yield Copyable(one["command"])
    elif one["means"] in (LINE, RUN):
        yield Command(one["run_command"]) if "run_command" in one else Copyable(one["resume_line"])
