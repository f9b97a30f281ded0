"""``approve``: approve what a session asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import answering, at
from gaia_sessions.cli.call import ID, IF_REVISION, declare
from gaia_sessions.cli.render import answers

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.schema import AnswerKey


@declare("approve agent-123", "approve agent-123 --note 'only in staging'")
@ID
@click.option("--note", metavar="TEXT", help="Text for the agent that resumes the work.")
@IF_REVISION
def command(call: Call, agent_id: str, *, note: str | None, if_revision: int | None) -> None:
    """Approve what a session asks for.

    The session can then be resumed, even if it had expired. This command only prints how to resume it.
    """
    print_answered(call, agent_id, "approval", note, if_revision)


def print_answered(call: Call, agent_id: str, key: AnswerKey, message: str | None, if_revision: int | None) -> None:
    """Stores the answer ``key`` with its ``message``, and prints how to resume the work."""
    session_id = call.session_id(agent_id, writes=True)
    written = at.write(call.sessions(), answering.answer, session_id, key, message, if_revision, by="command")
    call.print_result(written.record, lambda: answers.answered_lines(written.record, written.decision(), written.now))
