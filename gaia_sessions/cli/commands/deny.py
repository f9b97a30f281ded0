"""``deny``: deny what a session asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import ID, IF_REVISION, declare

from .approve import print_answered

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("deny agent-123", "deny agent-123 --reason 'too expensive'")
@ID
@click.option("--reason", "--note", "reason", metavar="TEXT", help="The reason, for the agent that resumes the work.")
@IF_REVISION
def command(call: Call, agent_id: str, *, reason: str | None, if_revision: int | None) -> None:
    """Deny what a session asks for.

    The session can still be resumed, to find another way. The output says how to resume it.
    """
    print_answered(call, agent_id, "denial", reason, if_revision)
