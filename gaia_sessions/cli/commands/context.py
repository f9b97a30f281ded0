"""``context``: what an agent is told of earlier turns when it resumes."""

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
    help="Show at most N turns whole.",
)
@click.option(
    "--max-tokens",
    metavar="N",
    type=click.IntRange(min=LEAST_TOKENS),
    help="Print at most N tokens, of four bytes each.",
)
def command(call: Call, agent_id: str, *, turns: int, max_tokens: int | None) -> None:
    """Show what a resumed agent is told of earlier turns.

    The last turns are shown whole as far as they fit, and older turns with one line each. If the newest turn does not
    fit, only its beginning and its end are shown, and long texts are cut. No call of a tool is shown without the result
    of the call. The messages come from the files of the client. If the client has none, they come from the session's
    transcript.

    An agent of `send` is told this only with --pruned; otherwise the agent gets the whole conversation.

    Without --max-tokens, this prints as much as fits into a briefing. The system prompt comes first and does not count.
    """
    session_id = call.session_id(agent_id)
    context = call.sessions().context(session_id, turns=turns, max_tokens=max_tokens)
    if call.as_json:
        output.print_json(context)
        return
    output.print_lines(context_lines(context) or ["No turns"])
