"""The messages of a transcript as plain text, for pipes, agents and people alike.

Owns that wording: a line about each message, and its whole text below, indented.
"""

from __future__ import annotations

from gaia_sessions.errors import plural

from .words import local_time, safe, safe_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.transcript import Message


def message_lines(message: Message) -> Iterator[str]:
    """One message: its number, time, role, turn and tool, and its text."""
    facts = [f"{message['seq']}  {local_time(message['timestamp'])}  {message['role']}", f"turn {message['turn']}"]
    facts += [safe(message[key], 100) for key in ("tool_name", "tool_call_id") if key in message]
    if "tokens" in message:
        facts.append(plural(message["tokens"], "token"))
    yield ", ".join(facts)
    yield from (f"  {line}".rstrip() for line in safe_lines(message["content"]))


def added_line(agent_id: str, message: Message) -> str:
    """That a message was added, and which number it has."""
    return f"{agent_id}: message {message['seq']} of {message['role']}, turn {message['turn']}"
