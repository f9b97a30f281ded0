"""``transcript``: show the messages of a session, or add one."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.option_values import TIME, text_or_stdin
from gaia_sessions.cli.render import messages
from gaia_sessions.cli.render.words import safe
from gaia_sessions.errors import SessionsError, UsageError
from gaia_sessions.session.transcript import LINE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.transcript import NewMessage

_LONGEST_PROBLEM = 2000


@declare(
    "transcript agent-123 --recent 20",
    "transcript agent-123 --since 2h --json",
    "transcript agent-123 --append user 'go on with the plan'",
    "transcript agent-123 --append tool - < output.txt",
)
@ID
@click.option("--recent", metavar="N", type=click.IntRange(min=0), help="Only the last N messages.")
@click.option("--since", type=TIME, help="Only messages made at or after this time: 2h (ago), 18:05, monday, a date.")
@click.option(
    "--append",
    "new",
    nargs=2,
    metavar="ROLE TEXT|-",
    help="Add a message of system, user, assistant or tool; - reads standard input, without its last newline.",
)
def command(
    call: Call, agent_id: str, *, recent: int | None, since: datetime | None, new: tuple[str, str] | None
) -> None:
    """Show the messages of a session in order, or add a message.

    If a session has no messages of its own, this shows the transcripts of the session's agents from the files of the
    client (such as Claude Code).
    """
    if new is None:
        _show(call, agent_id, recent, since)
        return
    if recent is not None or since is not None:
        raise UsageError(
            "--append cannot be combined with --recent or --since", "first add the message, then show the transcript"
        )
    role, text = new
    content = text_or_stdin(text, "--append", LINE_LIMIT, "a message of the transcript")
    session_id = call.session_id(agent_id, writes=True)
    with call.noticing_warnings():
        message = call.sessions().add_message(session_id, role, content)
    call.notice_if_abandoned(session_id)
    call.print_result(message, lambda: [messages.added_line(session_id, message)])


def _show(call: Call, agent_id: str, recent: int | None, since: datetime | None) -> None:
    from gaia_sessions.api import at
    from gaia_sessions.api.transcript_messages import messages_of_agents

    session_id = call.session_id(agent_id)
    sessions = call.sessions()
    paths, of_agents = at.read(sessions, messages_of_agents, session_id, last=recent, since=since)
    found = _readable(of_agents if paths else sessions.messages(session_id, last=recent, since=since))
    first = list(islice(found, 1))
    if paths and first:
        output.print_notice("of_agent", *messages.of_agent_notice(session_id, paths), as_json=call.as_json)
    if call.as_json:
        output.print_json_array(chain(first, found))
        return
    lines = (line for message in chain(first, found) for line in messages.message_lines(message))
    output.print_lines(lines if first else ["No messages"])


def _readable(found: Iterator[NewMessage | SessionsError]) -> Iterator[NewMessage]:
    """Yields the messages that can be read; prints a line on stderr for each of the others."""
    for message in found:
        if isinstance(message, SessionsError):
            output.print_to_stderr(f"skipped: {safe(message, _LONGEST_PROBLEM)}")
        else:
            yield message
