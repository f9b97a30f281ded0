"""The messages of a transcript as plain text, for pipes, agents and people alike.

Owns that wording: a line about each message, and its whole text below, indented.
"""

from __future__ import annotations

import shlex

from gaia_sessions.errors import plural

from .words import local_time, prose, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gaia_sessions.api.turns import Turn
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage


def message_lines(message: NewMessage) -> Iterator[str]:
    """One message: its number and turn, which those of a host have not, its time, role and tool, and its text."""
    facts = [f"{local_time(message['timestamp'])}  {message['role']}"]
    if "seq" in message:
        facts = [f"{message['seq']}  {facts[0]}", f"turn {message['turn']}"]  # type: ignore[typeddict-item]  # it is stored
    facts += [safe(message[key], 100) for key in ("tool_name", "tool_call_id") if key in message]
    if "tokens" in message:
        facts.append(plural(message["tokens"], "token"))
    yield ", ".join(facts)
    yield from prose(message["content"], 2)


def of_agent_notice(agent_id: str, paths: Sequence[str]) -> tuple[str, str]:
    """That the messages are those of a host, from these files, and a hint."""
    places = ", ".join(map(shlex.quote, paths))
    return (
        f"{agent_id} has no messages of its own; these are what its client keeps in {places}",
        f"`gaia-sessions report {agent_id}` prints the result alone",
    )


def turn_line(turn: Turn) -> str:
    """That a turn is complete, and whether it was before."""
    said = f"is complete with {plural(len(turn['messages']), 'message')}"
    return f"{turn['agent_id']}: turn {turn['turn']} {said}{'' if turn['added'] else ', as it was before'}"


def reset_line(record: Record) -> str:
    """That the transcript was begun anew."""
    return f"{record['agent_id']}: the transcript begins anew, with no turns"


def added_line(agent_id: str, message: Message) -> str:
    """That a message was added, and which number it has."""
    return f"{agent_id}: message {message['seq']} of {message['role']}, turn {message['turn']}"
