"""``get``: a session's record as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("get agent-20260108-180530-abc12345")
@click.argument("agent_id", metavar="ID")
def command(call: Call, agent_id: str) -> None:
    """Print a session's record as JSON."""
    output.say_json(call.sessions().store.read(agent_id))
