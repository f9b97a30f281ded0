"""``context``: what an agent that goes on is told of the turns so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.session.context import LEAST_TOKENS, TURNS, context_lines

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("context agent-123", "context agent-123 --turns 2 --max-tokens 4000 --json")
@ID
@click.option(
    "--turns",
    metavar="N",
    type=click.IntRange(min=1),
    default=TURNS,
    show_default=True,
    help="At most so many turns are told whole.",
)
@click.option(
    "--max-tokens",
    metavar="N",
    type=click.IntRange(min=LEAST_TOKENS),
    help="How many tokens it may have, of four bytes each.",
)
def command(call: Call, agent_id: str, *, turns: int, max_tokens: int | None) -> None:
    """Show what an agent that goes on is told of the turns so far.

    The last turns whole, as far as they fit, and older ones as a line each.
    If the newest does not fit, you see its beginning and its end, with long
    texts cut, and no call without its result. They come from the files of a client such as Claude Code where they are
    there, else from the session's transcript.

    Without --max-tokens it is as much as a briefing has room for. The system prompt comes on top.
    """
    context = call.sessions().context(call.session_id(agent_id), turns=turns, max_tokens=max_tokens)
    if call.as_json:
        output.print_json(context)
        return
    output.print_lines(context_lines(context) or ["No turns"])
