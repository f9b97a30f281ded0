"""``ensure``: print the ID of the open session of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.option_values import keys_of, with_owner
from gaia_sessions.cli.typed_ids import explain
from gaia_sessions.errors import SessionNotFound

from .create import AGENT, PURPOSE

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("ensure --agent root", "ensure --id agent-123")
@click.option("--id", "agent_id", metavar="ID", help="The session to use, if it is open.  [default: create a session]")
@AGENT
@PURPOSE
@with_owner
def command(
    call: Call, *, agent_id: str | None, agent: str, purpose: str, app: str | None, user: str | None, state: str | None
) -> None:
    """Print the ID of the open session of a conversation.

    If the session of --id is open, this prints its ID. If that session has ended, or if you omit --id, this creates a
    session. The other options describe the new session.

    Exit codes: 0 the ID is printed, 3 there is no such session.
    """
    sessions = call.sessions()
    try:
        found = sessions.ensure(
            agent_id,  # the ID as typed: a part of an ID can mean another session
            agent_name=agent,
            purpose=purpose,
            app=app,
            user=user,
            state=keys_of(state),
        )
    except SessionNotFound as missing:
        explain(missing, [sessions])  # no other root is searched
        raise
    is_begun = found != agent_id
    if agent_id is not None and is_begun:
        message = f"{agent_id} has ended: {found} continues it"
        output.print_aside("session_begun", message, as_json=call.as_json)
    call.print_result({"agent_id": found, "begun": is_begun}, lambda: [found])
