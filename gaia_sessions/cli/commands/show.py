"""``show``: show one session to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at, showing
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render import one_session
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("show", "show agent-20260108-180530-abc12345 --verbose")
@click.argument("agent_id", metavar="[ID]", default="latest")
@click.option("--verbose", is_flag=True, help="Also show the phase changes, and all keys of the record and its runs.")
def command(call: Call, agent_id: str, *, verbose: bool) -> None:
    """Show one session: state, question, errors, runs.

    Without an ID, this shows the latest session. A run is one execution of its agent.
    """
    session_id = call.session_id(agent_id)
    sessions = call.sessions()
    if call.as_json:
        output.print_json(sessions.show(session_id))
    else:
        output.print_lines(
            one_session.session_lines(at.read(sessions, showing.view, session_id), utc_now(), verbose=verbose)
        )
        call.say_where_agents_are(session_id)
