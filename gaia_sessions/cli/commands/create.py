"""``create``: begin a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.metadata import METADATA, PAIRS, collected

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare(
    "create --agent terraform-architect --purpose approval_workflow",
    "create --agent scribe -m task_id=T001",
    'create --id agent-123 --metadata \'{"tags": ["infra"]}\'',
)
@click.option("--agent", metavar="NAME", default="unknown", help="The kind of agent.  [default: unknown]")
@click.option("--purpose", metavar="TEXT", default="general", help="What the work is for.  [default: general]")
@click.option("--id", "agent_id", metavar="ID", help="An id of your own.  [default: one is made]")
@METADATA
@PAIRS
def command(
    call: Call, agent: str, purpose: str, agent_id: str | None, metadata: str | None, pairs: tuple[str, ...]
) -> None:
    """Begin a session; prints its id."""
    made = call.sessions().create(agent, purpose, collected(metadata, pairs), agent_id)
    if call.as_json:
        output.say_json({"agent_id": made})
    else:
        output.say(made)
