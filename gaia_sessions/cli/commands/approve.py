"""``approve``: approve what a session waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import ID, IF_REVISION, declare
from gaia_sessions.cli.render import answers
from gaia_sessions.session.requests import Answer

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("approve agent-123", "approve agent-123 --note 'only in staging'")
@ID
@click.option("--note", metavar="TEXT", help="What to say with it to whoever goes on with the work.")
@IF_REVISION
def command(call: Call, agent_id: str, *, note: str | None, if_revision: int | None) -> None:
    """Approve what a session in phase approval is waiting for.

    It may be resumed from then on, also if it has waited for too long. Nothing is resumed: the answer says how.
    """
    print_answered(call, agent_id, Answer("approval", note, if_revision))


def print_answered(call: Call, agent_id: str, answer: Answer) -> None:
    """Gives ``answer`` to the session, and prints how the work goes on."""
    sessions = call.sessions()
    written = sessions.answered(call.session_id(agent_id, writes=True), answer)
    call.print_result(
        written.record, lambda: answers.answered_lines(written.record, sessions.decide(written), written.now)
    )
