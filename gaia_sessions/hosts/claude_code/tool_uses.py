"""The requests of Claude Code's sub-agents to use a tool, and what identifies such a use."""

from __future__ import annotations

from gaia_sessions.hosts.agent_files import transcript_of
from gaia_sessions.hosts.payload import one_line
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.session.host_events import PERMISSION_REQUEST
from gaia_sessions.session.ids import quick_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import HookPayload, Payload
    from gaia_sessions.session.host_events import Event

MAX_TOOL_NAME_LENGTH = 64
_LONGEST_INPUT = 1 << 30
"""Bytes: more than any payload or line of a transcript can become."""


def permission_requests(payload: HookPayload, agent: str) -> list[Event]:
    """Returns the request to use a tool that a person must permit; none if the payload names no tool."""
    name = name_of_tool(payload.text("tool_name"))
    if not name:
        return []
    return [
        payload.event(
            PERMISSION_REQUEST,
            host_agent_id=agent,
            agent_name=payload.key("agent_type"),
            tool_name=name,
            asked=digest_of_use(name, payload.tool_input),
            call=payload.key("tool_use_id"),
            transcript_path=transcript_of(payload.raw.get("transcript_path"), agent),
        )
    ]


def name_of_tool(name: str) -> str:
    """Returns the name of a tool, as events have it."""
    return one_line(name, MAX_TOOL_NAME_LENGTH)


def digest_of_use(tool: str, tool_input: Payload) -> str:
    """Returns a digest that is equal for a request, a use and a call in a transcript that are about the same use."""
    given = dump_line(dict(sorted(tool_input.items())), _LONGEST_INPUT)
    return quick_digest(f"{tool} {given.decode()}")
