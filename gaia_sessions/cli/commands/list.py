"""``list``: list sessions."""

from __future__ import annotations

import os

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.option_values import TIME
from gaia_sessions.cli.render import plain
from gaia_sessions.system import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.cli.call import Call
    from gaia_sessions.usecases.tree import TreeLine


@declare(
    "list --active-only",
    "list --tree",
    "list --agent terraform-architect --phase approval",
    "list --since 2h --limit 10 --json",
)
@click.option("--active-only", is_flag=True, help="Only sessions that have not ended.")
@click.option("--agent", "agent_name", metavar="NAME", help="Only sessions of this kind of agent.")
@click.option("--phase", "phases", metavar="PHASE", multiple=True, help="Only sessions in this phase; can be repeated.")
@click.option("--since", type=TIME, help="Only sessions active at or after this time: 2h (ago), yesterday, a date.")
@click.option("--until", type=TIME, help="Only sessions last active at or before this time.")
@click.option("--created-since", type=TIME, help="Only sessions created at or after this time.")
@click.option("--limit", metavar="N", type=click.IntRange(min=0), help="At most N sessions.")
@click.option("--tree", "as_tree", is_flag=True, help="Each session below its parent, the one that started it.")
def command(call: Call, *, as_tree: bool, **wanted: Any) -> None:  # noqa: ANN401  # the arguments of Sessions.list
    """List sessions, the most recently active first.

    It is also called ls and ps.
    """
    sessions = call.sessions()
    lines = sessions.tree(**wanted) if as_tree else ((0, line) for line in sessions.list(**wanted))
    print_sessions(call, sessions, lines)


def print_sessions(call: Call, sessions: Sessions, lines: Iterable[TreeLine]) -> None:
    """Prints ``lines`` as JSON for a program, as a table on a terminal, as plain lines in a pipe."""
    if call.as_json:
        output.print_json_array(line for _, line in lines if line.get("selected", True))
        return
    found = list(lines)
    if not found:
        left_out = len(sessions.ids())
        output.print_line(plain.no_sessions_line(sessions.root, left_out, exists=os.path.exists(sessions.root)))
    elif output.is_stdout_terminal():
        from gaia_sessions.cli.render import tables

        output.draw(tables.session_table(found, utc_now(), sessions.ids()))
    else:
        output.print_lines(plain.list_lines(found, utc_now()))
