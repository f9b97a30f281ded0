"""Adds whole turns to a transcript, and begins a transcript again."""

from __future__ import annotations

from itertools import takewhile

from gaia_sessions.errors import InvalidInput, NotTheNextTurn
from gaia_sessions.session.report import turn_id_of
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.transcript import (
    begun_anew,
    is_same_turn,
    message_of,
    readable,
    with_turn,
    without_turns,
)
from gaia_sessions.store.subagent_events import with_reset_noted

from .preconditions import check_no_send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message
    from gaia_sessions.store.port import Reader

    from .at import Writing

    class TurnName(TypedDict):
        """A turn of the present transcript: its number, and an ID that is unique in the session."""

        turn: int
        turn_id: str

    class Turn(TurnName):
        """A complete turn: ``added`` says whether this call added it, and ``messages`` are its messages as stored."""

        agent_id: str
        added: bool
        messages: list[Message]


def add_turn(at: Writing, agent_id: str, messages: Iterable[object], *, number: int | None = None) -> Turn:
    """Adds a whole [turn](record.md#turns) in one commit: what was sent and what was answered.

    Messages that ``add_message`` added since the last turn belong to this turn too.

    Args:
        messages: each is ``{role, content, tool_name?, tool_call_id?, tokens?}``.
        number: makes the call repeatable: if this turn is complete and ends with ``messages``, nothing changes.

    Raises:
        NotTheNextTurn: ``number`` is not the number of the next turn.
        AgentAtWork: a send to the session has not ended.
        InvalidInput: ``messages`` is empty or has an item that is no message.
        TooLarge: a message has more than 1 MiB, or the turn more than 64 MiB.

    Example:
        agent_id = sessions.create("counter", system_prompt="You count.")
        said = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": "42"}]
        for _ in range(2):  # the second call changes nothing
            print(sessions.add_turn(agent_id, said, number=1)["added"])
    """
    given = [message_of(message, place, at.now) for place, message in enumerate(messages, 1)]
    if not given:
        raise InvalidInput("the turn has no messages", hint="give what was sent and what was answered")
    try:
        with at.store.open(agent_id) as session:
            completed = check_no_send(with_turn(session.record, number, at.now))
            record = session.commit(completed, reserved=RESERVED_BYTES, messages=given)
            added = [*session.added]
    except NotTheNextTurn:
        if number is None:
            raise
        record = at.store.read(agent_id)
        added = _messages_of_turn(at.store, agent_id, number)  # a complete turn never changes
        if not is_same_turn(added, given):
            raise
        return {"agent_id": agent_id, **_named(record, number), "added": False, "messages": added[-len(given) :]}
    return {"agent_id": agent_id, **_named(record, record["turns"]), "added": True, "messages": added}


def reset(at: Writing, agent_id: str, *, forget: bool = False) -> Record:
    """Empties the transcript except for the system prompt. The next turn has number 1 again.

    The messages stay on disk as an [archived transcript](record.md#transcripts).

    Args:
        forget: also clears the used tokens and the todos.

    Returns:
        The record.

    Raises:
        AgentAtWork: a send to the session has not ended.
    """
    from gaia_sessions.session.compaction import without_memory  # few transcripts begin again

    emptied = without_memory if forget else without_turns
    with at.store.open(agent_id) as session:
        before = check_no_send(session.record)
        record, kept = begun_anew(emptied(before, at.now), at.store.messages(agent_id))
        return session.commit(with_reset_noted(before, record, at.now), messages=kept)


def _named(record: Record, number: int) -> TurnName:
    return {"turn": number, "turn_id": turn_id_of(record, {"turn": number})}


def _messages_of_turn(sessions: Reader, agent_id: str, number: int) -> list[Message]:
    """Returns the readable messages of a turn."""
    found = readable(sessions.messages_from_turn(agent_id, number))
    return [*takewhile(lambda message: message["turn"] == number, found)]
