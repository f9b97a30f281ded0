"""``rm``: remove the named sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at, records, removal
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render import plain
from gaia_sessions.errors import DurabilityUnknown, SessionNotFound, UsageError

if TYPE_CHECKING:
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.cli.call import Call


@declare("rm --force agent-123", "finalize agent-123 completed && gaia-sessions rm agent-123")
@click.argument("agent_ids", metavar="ID...", nargs=-1, required=True)
@click.option("-f", "--force", is_flag=True, help="Also remove sessions that are open, being moved, or unreadable.")
def command(call: Call, agent_ids: tuple[str, ...], *, force: bool) -> int:
    """Remove sessions that you name, for good and with their transcripts.

    If one of these sessions must stay, none is removed. A session above an open session cannot be removed, unless you
    name the open session too.
    """
    found = [call.find(agent_id, writes=True) for agent_id in agent_ids]
    try:
        sessions = _only_root(found)
        with call.noticing_warnings():
            removed, failed = at.write(sessions, removal.remove_named, [agent_id for _, agent_id in found], force=force)
    except SessionNotFound as missing:
        call.explain_missing(missing)
        missing.hint = f"nothing was removed; {missing.hint}"
        raise
    call.print_result({"removed": removed}, lambda: plain.removed_lines(removed))
    reasons = [f"{'' if isinstance(error, DurabilityUnknown) else 'not removed: '}{error}" for error in failed]
    return output.print_failures(reasons, *[type(error) for error in failed[:1]], as_json=call.as_json)


def _only_root(found: list[tuple[Sessions, str]]) -> Sessions:
    """Returns the root that has all sessions; raises ``UsageError`` if they are in two: they are removed together."""
    first, first_id = found[0]
    for sessions, agent_id in found:
        if sessions is not first:
            _check_all_there(found)
            message = f"{first_id} is in {first.root}, but {agent_id} is in {sessions.root}"
            raise UsageError(message, "nothing was removed; remove the sessions of each root with a command of its own")
    return first


def _check_all_there(found: list[tuple[Sessions, str]]) -> None:
    """Raises ``SessionNotFound`` for an ID that no root has."""
    for sessions, agent_id in found:
        if not records.has(sessions, agent_id):
            raise SessionNotFound(agent_id)
