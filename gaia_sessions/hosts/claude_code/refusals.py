"""Claude Code: delegations that were refused. Imported only for a batch of tools with a delegation.

Owns how a refusal is told from what a delegation returned: its response is a bare text.
"""

from __future__ import annotations

from gaia_sessions.hosts.payload import key_in, one_line
from gaia_sessions.session import events
from gaia_sessions.session.events import MAX_MESSAGE_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import HookPayload, Payload
    from gaia_sessions.session.events import Event


def refusal_events(payload: HookPayload, delegations: list[Payload]) -> list[Event]:
    """An event for each of the ``delegations`` of a batch that was refused."""
    return [event for call in delegations for event in _refusal_of(payload, call)]


def _refusal_of(payload: HookPayload, call: Payload) -> list[Event]:
    tool_use_id, response = key_in(call, "tool_use_id"), call.get("tool_response")
    if not tool_use_id or not isinstance(response, str):
        return []
    from gaia_sessions.hosts.agent_files import agent_of

    agent = agent_of(payload.raw.get("transcript_path"), tool_use_id)
    error = one_line(response, MAX_MESSAGE_LENGTH)
    return [payload.event(events.DELEGATION_CLOSED, tool_use_id=tool_use_id, host_agent_id=agent, error=error)]
