"""What may go on again, and the commands that continue it: a block of lines for each session.

Owns that wording.
"""

from __future__ import annotations

from gaia_sessions.session import schema
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.phases import waits_for_approval
from gaia_sessions.usecases.revivals import DELEGATION, LINE, MESSAGE, NONE, WORKFLOW

from .words import WHY_STOPPED, Copyable, ago, local_time, remaining_time, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from gaia_sessions.usecases.revivals import Revival

_WHY = {**WHY_STOPPED, schema.STOPPED_BY_USER: "STOPPED BY THE USER"}
_HOW = {
    MESSAGE: "this wakes its agent, which knows all that it did:",
    WORKFLOW: "this runs the workflow again, without what it has finished:",
    DELEGATION: "its agent cannot be woken any more; this begins a new one, with a briefing:",
    LINE: "delegate to {agent} again, with this line in the prompt:",
    NONE: "its files are gone: start the workflow again",
}


def revival_lines(found: Sequence[Revival], now: datetime, host_session: str | None = None) -> Iterator[str]:
    """A block for each of ``found``, or a sentence if there are none; only ``host_session`` was searched, if given."""
    if not found:
        yield from _nothing(host_session)
    for number, revival in enumerate(found):
        if number:
            yield ""
        yield f"{revival['agent_id']}: {safe(revival['agent_name'], 40)}, {safe(revival['purpose'], 80)}"
        yield f"  {_why(revival, now)}"
        yield from _how(revival)


def _nothing(host_session: str | None) -> Iterator[str]:
    """That nothing was found, and where else to look."""
    if host_session is None:
        yield "Nothing to revive: no session that was stopped from outside may be resumed"
        return
    named = safe(host_session, 80)
    yield f"Nothing to revive: no session of conversation {named} that was stopped from outside may be resumed"
    yield "  those of all conversations: gaia-sessions revive"


def _why(revival: Revival, now: datetime) -> str:
    """``investigating, stopped by a usage limit 5 minutes ago, resumable for 25 min``."""
    when = f" {ago(revival['stopped_at'], now)}" if "stopped_at" in revival else ""
    parts = [revival["phase"], _WHY[revival["why"]] + when]
    if revival["until"] is not None:
        parts.append(f"resumable for {remaining_time((parse_time(revival['until']) - now).total_seconds())}")
    if waits_for_approval(revival["phase"]):
        parts.append("to continue it is to approve it")
    return ", ".join(parts)


def _how(revival: Revival) -> Iterator[str]:
    """How to go on, and what to copy for it, alone on its line."""
    if "paused_until" in revival:
        yield f"  waits until the limit is reset: {local_time(revival['paused_until'])}"
        return
    if revival["host_is_alive"] and revival["means"] in (MESSAGE, WORKFLOW):
        yield "  its client still runs: if the conversation is open there, type only the quoted text into it"
    yield "  " + _HOW[revival["means"]].format(agent=safe(revival["agent_name"], 40))
    if revival["command"] is not None:
        yield Copyable(revival["command"])
    elif revival["means"] == LINE:
        yield Copyable(revival["resume_line"])
