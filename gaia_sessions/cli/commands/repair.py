"""``repair``: remove text that follows a record in its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render import plain

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("repair agent-123")
@click.argument("agent_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--take-back", is_flag=True, help="End a move by `store copy` whose other half is gone.")
def command(call: Call, agent_ids: tuple[str, ...], *, take_back: bool) -> None:
    """Remove text that follows the record in its file, such as the end of a longer record.

    The old file is stored beside the new file. A file is changed only if it begins with a whole record of that session.
    `doctor` says which sessions can be repaired.
    """
    found = [call.find(agent_id, writes=True) for agent_id in agent_ids]
    repaired = [
        {"agent_id": agent_id, "kept_aside": sessions.repair(agent_id, take_back=take_back)}
        for sessions, agent_id in found
    ]
    lines = plain.taken_back_lines if take_back else plain.repaired_lines
    call.print_result({"repaired": repaired}, lambda: lines(repaired))
