"""``resume``: the commands by which hosts continue what was stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render import resumptions
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("resume", "resume --host-session 0b7e3c1a-5a0e-4c57-9d0c-2f6f0d1d8a55", "resume --json")
@click.option(
    "--host-session",
    metavar="ID",
    help="Only what belongs to this conversation: its ID in Claude Code or another client.",
)
def command(call: Call, *, host_session: str | None) -> None:
    """Print the commands that continue what stopped before it was done: by an error, Esc, a limit, an overload, a lost
    connection, or a crash of its client. The cheapest way comes first.

    Nothing is started. What still waits for a limit is listed with the time of its reset, and what the user stopped
    comes last.
    """
    found, left_out = call.sessions().resumptions(host_session)
    if call.as_json:
        output.print_json_array(found)
    elif found or left_out or not call.says_there_is_no_root():
        output.print_lines(resumptions.resumption_lines(found, left_out, utc_now(), host_session))
