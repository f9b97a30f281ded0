"""``get``: print the record of a session as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.api import records
from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("get agent-20260108-180530-abc12345")
@ID
def command(call: Call, agent_id: str) -> None:
    """Print the record of a session as JSON, as it is stored."""
    session_id = call.session_id(agent_id)
    output.print_json(records.read(call.sessions(), session_id))
