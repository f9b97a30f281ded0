"""``reset``: start a new transcript for a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.render import messages

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("reset agent-123")
@ID
def command(call: Call, agent_id: str) -> None:
    """Start a new transcript for a session, with its system prompt and no turns.

    The earlier messages stay on disk. Tokens, todos and the phase do not change.
    """
    session_id = call.session_id(agent_id, writes=True)
    record = call.sessions().reset(session_id)
    call.notice_if_abandoned(session_id)
    call.print_result(record, lambda: [messages.reset_line(record)])
