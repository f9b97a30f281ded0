"""The messages of a transcript: their checks, their lines, and the keys of the record that describe them.

The store gives a message its number and turn, under the lock of the session.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.jsonio import strict

from .checks import check_count, check_flag, check_number, check_string, check_time, is_integer, object_with, one_of
from .clock import format_time
from .phases import TURN_TAKEN
from .runs import is_send, without_keys
from .updates import check_open, with_activity, with_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from gaia_sessions.errors import SessionsError

    from . import shapes
    from .schema import Record

    Message = shapes.Message
    NewMessage = shapes.NewMessage
    Kind = TypeVar("Kind", bound=NewMessage)


SYSTEM = "system"
ROLES = (SYSTEM, "user", "assistant", "tool")

LINE_LIMIT = strict.DOCUMENT_LIMIT
"""The most bytes of a message as a line, with the newline."""

EVENT_LINE_LIMIT = 16 << 20
"""The most bytes of a message with an event of an app: such events can contain images."""

COMMIT_LIMIT = 64 << 20
"""The most bytes of lines that one write adds."""

SYSTEM_PROMPT_LIMIT = 16 << 10
"""The most bytes of a system prompt."""

_TURN_OF_SYSTEM_PROMPT = 0
_MESSAGE_KEYS = ("role", "content", "tool_name", "tool_call_id", "tokens")
"""The keys that a caller may give."""

_SPOKEN_KEYS = ("role", "content", "tool_name", "tool_call_id")

_check_role = one_of(ROLES)

# Made by scripts/render_models of shapes.py: never change it by hand.
check_message = object_with(
    {"seq": check_number, "turn": check_count, "role": _check_role, "content": check_string, "timestamp": check_time},
    {
        "tool_name": check_string,
        "tool_call_id": check_string,
        "tokens": check_count,
        "run": check_number,
        "event": check_string,
        "charged": check_flag,
    },
)
# The end of what scripts/render_models makes.


def new_message(
    role: str,
    content: str,
    now: datetime,
    *,
    tool_name: str | None = None,
    tool_call_id: str | None = None,
    tokens: int | None = None,
) -> NewMessage:
    """Makes a message with the time ``now``; arguments that are None are left out."""
    if role not in ROLES:
        raise errors.BadArgument("role", role, "one of " + ", ".join(ROLES))
    optional = {"tool_name": tool_name, "tool_call_id": tool_call_id, "tokens": tokens}
    given = {key: value for key, value in optional.items() if value is not None}
    message: NewMessage = {"role": role, "content": content, "timestamp": format_time(now), **given}  # type: ignore[typeddict-item]  # checked below
    check_message({"seq": 1, "turn": 1, **message}, "")
    return message


def message_of(given: object, place: int, now: datetime) -> NewMessage:
    """Makes a message of ``given``, the item at ``place`` in a caller's list, with the time ``now``."""
    where = f"message {place}"
    if not isinstance(given, dict):
        raise errors.InvalidInput(f"must be an object, not {strict.json_type_of(given)}", where)
    unknown = sorted({*given} - {*_MESSAGE_KEYS})
    if unknown:
        known = ", ".join(_MESSAGE_KEYS)
        raise errors.InvalidInput(f"{unknown[0]!r} is not a key of a message", where, f"the keys are {known}")
    for key in ("role", "content"):
        if key not in given:
            raise errors.InvalidInput(f"{key!r} is missing", where)
    message: NewMessage = {"timestamp": format_time(now), **given}  # type: ignore[typeddict-item]  # checked below
    check_message({"seq": 1, "turn": 1, **message}, where)
    return message


def system_prompt_message(text: str, now: datetime) -> NewMessage:
    """Makes the system prompt, the first message of each generation of a transcript."""
    message = new_message(SYSTEM, text, now)
    size = len(text.encode())
    if size > SYSTEM_PROMPT_LIMIT:
        raise errors.TooLarge("the system prompt", size, SYSTEM_PROMPT_LIMIT)
    if not text.strip():
        raise errors.InvalidInput("the system prompt is blank", hint="say what the agent should do, or leave it out")
    return message


def is_system_prompt(message: Message) -> bool:
    return message["turn"] == _TURN_OF_SYSTEM_PROMPT


def system_prompt(messages: Iterator[Message | SessionsError]) -> Message | None:
    """Returns the first of the ``messages`` of a transcript if it is a system prompt; else None."""
    first = next(messages, None)
    return first if isinstance(first, dict) and is_system_prompt(first) else None


def spoken(message: NewMessage) -> dict[str, str]:
    """Returns the part of ``message`` that an agent gets: ``{role, content, tool_name?, tool_call_id?}``."""
    return {key: message[key] for key in _SPOKEN_KEYS if key in message}  # type: ignore[literal-required]  # its keys


def conversation(earlier: Sequence[dict[str, str]], own: Sequence[Message]) -> list[dict[str, str]]:
    """Returns what an agent gets: the system prompt, ``earlier`` messages, the session's ``own`` messages."""
    first = 1 if own and is_system_prompt(own[0]) else 0
    return [*map(spoken, own[:first]), *earlier, *map(spoken, own[first:])]


def without_place(message: NewMessage) -> NewMessage:
    """Returns ``message`` without its number and its turn."""
    return {key: value for key, value in message.items() if key not in ("seq", "turn")}  # type: ignore[return-value]


def beginning_with(prompt: NewMessage, seq: int) -> tuple[Record, bytes]:
    """Returns the record's keys, and the line, of a transcript with only the system prompt as number ``seq``."""
    _, line = number_messages([without_place(prompt)], seq, _TURN_OF_SYSTEM_PROMPT)
    return with_transcript({}, len(line), seq), line  # type: ignore[typeddict-item]  # a part of a record


def number_messages(messages: Sequence[NewMessage], first_seq: int, turn: int) -> tuple[list[Message], bytes]:
    """Numbers ``messages`` from ``first_seq`` on, and returns them with their lines."""
    stored: list[Message] = [{"seq": seq, "turn": turn, **message} for seq, message in enumerate(messages, first_seq)]
    lines = [_line_of(message) for message in stored]
    size = sum(map(len, lines))
    if size > COMMIT_LIMIT:
        raise errors.TooLarge("one addition to the transcript", size, COMMIT_LIMIT, "add the messages in several parts")
    return stored, b"".join(lines)


def _line_of(message: Message) -> bytes:
    check_message(message, "")
    line = strict.dump_line(message, limit=COMMIT_LIMIT)
    limit = EVENT_LINE_LIMIT if "event" in message else LINE_LIMIT
    if len(line) > limit:
        raise errors.TooLarge("a message of the transcript", len(line), limit)
    return line


def decode_message(line: bytes) -> Message:
    """Reads the message in ``line``; unknown keys stay."""
    message = strict.load_object(line, EVENT_LINE_LIMIT)
    check_message(message, "")
    return message  # type: ignore[return-value]  # just checked


def after(seq: int) -> Callable[[Message | errors.SessionsError], bool]:
    """Returns a test: whether a message has a higher number than ``seq``, or cannot be read."""
    return lambda message: isinstance(message, errors.SessionsError) or message["seq"] > seq


def readable(found: Iterable[Kind | SessionsError]) -> Iterator[Kind]:
    """Yields the messages of ``found`` that can be read."""
    return (message for message in found if not isinstance(message, errors.SessionsError))


def committed_bytes(record: Record) -> int:
    """Returns how many bytes of the transcript are valid; later bytes in the file are not."""
    size: object = record.get("transcript_bytes")
    return size if is_integer(size) and size > 0 else 0


def current_turn(record: Record) -> int:
    """Returns the number of the turn to which new messages belong."""
    return record.get("turns", 0) + 1


def last_seq(record: Record) -> int:
    """Returns the number of the last message that was ever stored; 0 if there was none."""
    return record.get("last_seq", 0)


def replaced_through(record: Record) -> int:
    """Returns the number of the last message that the summary replaces; 0 if there is no summary."""
    compaction = record.get("compaction")
    return compaction["through"] if compaction else 0


def with_transcript(record: Record, size: int, seq: int) -> Record:
    """Notes how many bytes of the transcript are valid, and the number of the last message."""
    return {**record, "transcript_bytes": size, "last_seq": seq}


def begun_anew(record: Record, messages: Iterator[Message | SessionsError]) -> tuple[Record, list[NewMessage]]:
    """Begins a new transcript: archives ``messages``, and returns the record and the system prompt, if any."""
    # If the transcript has only the system prompt, the record stays as it is.
    first = next(messages, None)
    prompt = system_prompt(iter([first])) if first else None
    if first is None or (prompt and prompt["seq"] == last_seq(record)):
        return record, []
    kept: list[Any] = [{**without_place(prompt), "turn": _TURN_OF_SYSTEM_PROMPT}] if prompt else []
    return {**record, "transcripts_archived": generation_of(record) + 1}, kept


def generation_of(record: Record) -> int:
    """Returns the generation of the transcript; the first is 0."""
    return record.get("transcripts_archived", 0)


def with_next_transcript(record: Record, generation: int, seq: int) -> Record:
    """Notes an empty transcript of a new ``generation``."""
    return {**with_transcript(record, 0, seq), "transcripts_archived": generation}


def with_turn(record: Record, number: int | None, now: datetime) -> Record:
    """Counts one more complete turn, as activity; the first turn begins the work of a new session."""
    following = current_turn(record)
    if number not in (None, following):
        raise errors.NotTheNextTurn(record["agent_id"], number, following)
    check_open(record)
    return with_event(with_activity({**record, "turns": following}, now), TURN_TAKEN, now)


def is_same_turn(stored: Sequence[Message], given: Sequence[NewMessage]) -> bool:
    """Whether a stored turn ends with the ``given`` messages; others can be before them."""
    last = stored[len(stored) - len(given) :] if len(given) <= len(stored) else []
    pairs = zip(last, given, strict=len(last) == len(given))
    return bool(last) and all(_is_same(found, message) for found, message in pairs)


def _is_same(stored: Message, given: NewMessage) -> bool:
    names = ("role", "content", "tool_name", "tool_call_id", *(["tokens"] if "tokens" in given else []))
    return all(stored.get(name) == given.get(name) for name in names)


def without_turns(record: Record, now: datetime) -> Record:
    """Removes the count of turns, the summary of older messages, and the last messages of sends."""
    check_open(record)
    rest: Record = {key: value for key, value in record.items() if key != "compaction"}  # type: ignore[assignment]
    if "runs" in record:
        rest["runs"] = [without_keys(run, "last_message") if is_send(run) else run for run in record["runs"]]
    return with_activity({**rest, "turns": 0}, now)


def with_message(record: Record, now: datetime) -> Record:
    """Notes activity, because a message was added."""
    check_open(record)
    return with_activity(record, now)
