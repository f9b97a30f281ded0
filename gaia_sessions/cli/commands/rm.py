"""``rm``: remove the named sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at, removal
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render import plain
from gaia_sessions.errors import DurabilityUnknown, SessionNotFound

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("rm --force agent-123", "finalize agent-123 completed && gaia-sessions rm agent-123")
@click.argument("agent_ids", metavar="ID...", nargs=-1, required=True)
@click.option("-f", "--force", is_flag=True, help="Also remove sessions that have not ended, or that cannot be read.")
def command(call: Call, agent_ids: tuple[str, ...], *, force: bool) -> int:
    """Remove sessions that you name, for good and with their transcripts.

    If one of these sessions must stay, none is removed. A session above an open session cannot be removed, unless you
    name the open session too.
    """
    ids = [call.session_id(agent_id, writes=True) for agent_id in agent_ids]
    try:
        with call.noticing_warnings():
            removed, failed = at.write(call.sessions(), removal.remove_named, ids, force=force)
    except SessionNotFound as missing:
        call.explain_missing(missing)
        missing.hint = f"nothing was removed; {missing.hint}"
        raise
    call.print_result({"removed": removed}, lambda: plain.removed_lines(removed))
    reasons = [f"{'' if isinstance(error, DurabilityUnknown) else 'not removed: '}{error}" for error in failed]
    return output.print_failures(reasons, *[type(error) for error in failed[:1]], as_json=call.as_json)
