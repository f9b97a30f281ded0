"""``pending``: show who waits for a person, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, lists
from gaia_sessions.cli.render import answers
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("pending", "pending --json")
@click.option("--app", metavar="A", help="Only sessions of this app.")
@lists
def command(call: Call, *, app: str | None) -> None:
    """Show who waits for a person, and for what.

    The output has each whole question, and how to answer it. The session that has waited longest comes first. Expired
    questions are listed too. If a client asks for a permission, answer in that client.
    """
    found = call.sessions().pending(app)
    if call.as_json:
        output.print_json_array(found)
    elif found or not call.says_there_is_no_root():
        output.print_lines(answers.pending_lines(found, utc_now(), call.place_searched()))
