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
    from gaia_sessions.hosts.protocol import HostModule

    from .replies import Reply, ReplyContext


def rewritten_delegation(context: ReplyContext, host: HostModule) -> Reply | None:
    """The whole delegation again with our words at the end of its prompt, as ``host`` is told that."""
    resumed, tool_input = context.result.resumed, context.payload.get("tool_input")
    if resumed is None or not isinstance(tool_input, dict) or host.rewrite_prompt is None:
        return None
    note = [NOTE] if _includes_note(context, host) else []
    parts = [briefing(resumed, context.result.reason), *note, *report_instructions(context)]
    return host.rewrite_prompt(tool_input, "\n\n".join(parts))


def report_instructions(context: ReplyContext) -> list[str]:
    """The command to report with, where it is allowed; a start rarely knows its session, but its agent's own id."""
    if not context.config.report_command or context.config.note == "off" or context.event["host"] != CLAUDE_CODE:
        return []
    from . import reporting

    if context.result.agent_id is not None:
        return reporting.instructions_for_session(context.result.agent_id)
    return reporting.instructions_for_session(
        "--host-agent", context.event["host_session_id"], context.event["host_agent_id"]
    )


def _includes_note(context: ReplyContext, host: HostModule) -> bool:
    """At the start it cannot be told yet which agent goes on with something, and some hosts have no other way."""
    return context.config.note == "resume" or (
        context.config.note == "all" and events.START not in host.SUPPORTED_REPLIES
    )
