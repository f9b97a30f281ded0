"""``tree``: sessions below their parents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import declare

from .list import print_tree

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("tree", "tree agent-20260108-180530-abc12345 --json")
@click.argument("agent_id", metavar="[ID]", required=False)
def command(call: Call, agent_id: str | None) -> None:
    """Show sessions below their parents: all of them, or one and all below it.

    Each with its state and its tokens; above a tree, the sums of all in it. A
    parent that is gone stands above its children; parents that form a circle
    are reported.
    """
    sessions = call.sessions()
    print_tree(call, sessions, sessions.tree() if agent_id is None else sessions.subtree(call.session_id(agent_id)))
