"""``tree``: show sessions below their parents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gaia_sessions.api import at, families, records
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, lists
from gaia_sessions.errors import UsageError

from .list import filters, print_that_none_was_found, say_what_is_left_out, select

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("tree --active-only", "tree agent-20260108-180530-abc12345 --json")
@click.argument("agent_id", metavar="[ID]", required=False)
@filters
@lists
def command(call: Call, agent_id: str | None, **options: Any) -> None:  # noqa: ANN401  # those of filters
    """Show sessions below their parents: all sessions, or one session and everything below it.

    Each line has the state and the tokens of a session. The line above a tree has the sums of the whole tree. A removed
    parent is shown as gone, above its children. The command reports parents that form a circle.
    """
    if agent_id is None:
        tree, left_out = select(call, families.arranged, **options)
    elif any(value is not None and value is not False and value != () for value in options.values()):
        raise UsageError("ID cannot be combined with options that filter", "leave out the ID, or leave out the options")
    else:
        session_id = call.session_id(agent_id, stand_ins=True)
        tree, left_out = call.sessions().subtree(session_id), {}
    sessions = call.sessions()
    if call.as_json:
        output.print_json_array(line for _, line in tree if line.get("selected", True))
    elif not tree:
        print_that_none_was_found(sessions)
    elif output.is_stdout_terminal():
        from gaia_sessions.cli.render import tree_table

        output.draw(partial(tree_table.tree_table, tree, at.read(sessions, records.ids)))
    else:
        from gaia_sessions.cli.render import trees

        output.print_lines(trees.plain_tree(tree))
    if tree and not call.as_json:
        say_what_is_left_out(left_out)
        if agent_id is not None:
            call.say_where_agents_are(session_id)
