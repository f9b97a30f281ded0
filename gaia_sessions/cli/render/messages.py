"""The messages of a transcript as plain text: a line about each message, and its whole text below, indented."""

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
    """Yields the time, role, tool and text of a message, and its number and turn; messages of hosts have neither."""
    facts = [f"{local_time(message['timestamp'])}  {message['role']}"]
    if "seq" in message:
        facts = [f"{message['seq']}  {facts[0]}", f"turn {message['turn']}"]  # type: ignore[typeddict-item]  # it is stored
    facts += [safe(message[key], 100) for key in ("tool_name", "tool_call_id") if key in message]
    if "tokens" in message:
        facts.append(plural(message["tokens"], "token"))
    yield ", ".join(facts)
    yield from prose(message["content"], 2)


def of_agent_notice(agent_id: str, paths: Sequence[str]) -> tuple[str, str]:
    """Returns a notice that the messages come from these files of a host, and a hint."""
    places = ", ".join(map(shlex.quote, paths))
    return (
        f"{agent_id} has no stored messages; these come from the files of its client: {places}",
        f"`gaia-sessions report {agent_id}` prints only the result",
    )


def turn_line(turn: Turn) -> str:
    said = f"{'is' if turn['added'] else 'was already'} complete, {plural(len(turn['messages']), 'message')}"
    return f"{turn['agent_id']}: turn {turn['turn']} {said}"


def reset_line(record: Record) -> str:
    return f"{record['agent_id']}: a new transcript begins, with no turns"


def added_line(agent_id: str, message: Message) -> str:
    return f"{agent_id}: message {message['seq']} of {message['role']}, turn {message['turn']}"
