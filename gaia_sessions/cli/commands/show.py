"""``show``: one session for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.clock import utc_now
from gaia_sessions.record import check_readable
from gaia_sessions.views import plain

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("show agent-20260108-180530-abc12345")
@click.argument("agent_id", metavar="ID")
def command(call: Call, agent_id: str) -> None:
    """Show one session to a person: timeline, errors, runs."""
    record = call.sessions().store.read(agent_id)
    if call.as_json:
        output.say_json(record)
        return
    check_readable(record)
    if output.is_terminal():
        from gaia_sessions.views import tables

        output.draw(tables.shown(record, utc_now()))
    else:
        output.say_all(plain.shown(record, utc_now()))
