"""``turn``: add a whole turn to the transcript of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.cli.call import ID, declare
from gaia_sessions.cli.option_values import STDIN, read_stdin
from gaia_sessions.cli.render import messages
from gaia_sessions.errors import InvalidInput, UsageError
from gaia_sessions.jsonio.strict import json_type_of, loads
from gaia_sessions.session.transcript import COMMIT_LIMIT

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call
    from gaia_sessions.jsonio.strict import Json

_EXAMPLE = """[{"role": "user", "content": "Go on"}, {"role": "assistant", "content": "Done"}]"""


@declare("turn agent-123 - < messages.json", "turn agent-123 - --number 1 < messages.json")
@ID
@click.argument("source", metavar="-")
@click.option(
    "--number", metavar="N", type=click.IntRange(min=1), help="Number of the turn, so that you can repeat this command."
)
def command(call: Call, agent_id: str, *, source: str, number: int | None) -> None:
    """Add a turn to the transcript: what was sent and answered.

    Standard input is a JSON array of messages. Each message has role and
    content, and can have tool_name, tool_call_id and tokens. All messages
    are written together. With --number you can repeat the command: if the
    turn already has the same messages, nothing changes. Tokens are stored,
    but not charged. A new session gets the phase investigating.

    \b
    [{"role": "user", "content": "How many files are there?"},
     {"role": "assistant", "content": "ls | wc -l", "tool_name": "Bash",
      "tool_call_id": "call_1"},
     {"role": "tool", "content": "42", "tool_call_id": "call_1"},
     {"role": "assistant", "content": "42.", "tokens": 2}]

    Exit codes: 0 the turn is complete, 4 turn N has other messages or is not the next turn, 7 the input is not such an
    array.
    """  # noqa: D301  # where click must not wrap
    if source != STDIN:
        raise UsageError(
            f"the messages come from standard input, not from {source!r}",
            f"type gaia-sessions turn ID {STDIN} < FILE",
        )
    given = _messages()
    session_id = call.session_id(agent_id, writes=True)
    with call.noticing_warnings():
        turn = call.sessions().add_turn(session_id, given, number=number)
    call.notice_if_abandoned(session_id)
    call.print_result(turn, lambda: [messages.turn_line(turn)])


def _messages() -> list[Json]:
    given = loads(read_stdin(f"turn {STDIN}", COMMIT_LIMIT, "the turn"), COMMIT_LIMIT)
    if not isinstance(given, list):
        raise InvalidInput(f"must be an array of messages, not {json_type_of(given)}", hint=f"for example: {_EXAMPLE}")
    return given
