"""The prompt of a delegation that goes on with earlier work, and what is added to it.

Owns what that is: the briefing, our words to the agent where it hears them in no other way, and the command to
report with where that is allowed. No other prompt is touched: of two hooks that rewrite one the last wins whole.
"""

from __future__ import annotations

from gaia_sessions.hosts.marker import NOTE
from gaia_sessions.hosts.registry import CLAUDE_CODE
from gaia_sessions.session import events

from .messages import briefing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from .replies import Answer, Answering


def rewritten(asked: Answering, host: ModuleType) -> Answer | None:
    """The whole delegation again with our words at the end of its prompt, as ``host`` is told that."""
    resumed, given = asked.done.resumed, asked.payload.get("tool_input")
    if resumed is None or not isinstance(given, dict):
        return None
    parts = [given.get(host.PROMPT), briefing(resumed, asked.done.reason)]
    parts += [NOTE] if _is_noted(asked, host) else []
    parts += how_to_report(asked)
    told: Answer = host.rewritten(given, "\n\n".join(part for part in parts if isinstance(part, str)))
    return told


def how_to_report(asked: Answering) -> list[str]:
    """The command to report with, where it is allowed; a start rarely knows its session, but its agent's own id."""
    if not asked.config.report_command or asked.config.note == "off" or asked.event["host"] != CLAUDE_CODE:
        return []
    from . import reporting

    if asked.done.agent_id is not None:
        return reporting.how_to_report(asked.done.agent_id)
    return reporting.how_to_report("--host-agent", asked.event["host_session_id"], asked.event["host_agent_id"])


def _is_noted(asked: Answering, host: ModuleType) -> bool:
    """At the start it cannot be told yet which agent goes on with something, and some hosts have no other way."""
    return asked.config.note == "resume" or (asked.config.note == "all" and events.START not in host.OBEYS)
