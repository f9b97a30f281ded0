"""Compaction: a summary that replaces the older messages of a memory.

The transcript does not change. The record says which message is the last that the summary replaces.
"""

from __future__ import annotations

from .budget import estimated_tokens, tokens_of, with_total
from .rounds import rounds_of
from .todos import with_todos
from .transcript import without_turns
from .updates import check_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from .schema import Compaction, Record
    from .transcript import Message

FEWEST_MESSAGES = 5
"""With fewer messages there is nothing to gain."""

KEPT_SHARE = 5
"""The newest messages stay: one fifth of all."""

HEADING = "[Previous context compressed]"
THRESHOLD_PERCENT = 90
"""A compaction is due if this share of the budget is used."""

_GAP = "• ..."
_MOST_LINES, _FIRST_LINES = 41, 5
"""Lines of a summary, and how many of them are from its beginning."""

_LONGEST_REQUEST, _LONGEST_ANSWER = 200, 150
_SENTENCE_ENDS = (". ", "! ", "? ", "\n")
_TOOL, _USER, _ASSISTANT = "tool", "user", "assistant"


def is_due(tokens: int, max_tokens: int) -> bool:
    """Whether a compaction is due, because most of the budget is used."""
    return tokens * 100 >= max_tokens * THRESHOLD_PERCENT


def compaction_of(messages: Sequence[Message], before: Compaction | None) -> tuple[Compaction, int] | None:
    """Returns a summary of the older ``messages`` and the tokens that it frees; None if nothing is gained."""
    first_kept = _first_kept(messages)
    if len(messages) < FEWEST_MESSAGES or first_kept == 0:
        return None
    replaced = messages[:first_kept]
    lines = [*_earlier_lines(before), *filter(None, map(_line_of, replaced))]
    of_before = estimated_tokens(before["summary"]) if before else 0
    summary = _summary_of(lines, of_before + sum(map(_size, replaced)))
    if summary is None:
        return None
    number = (before["messages"] if before else 0) + len(replaced)
    # Only charged tokens are freed: most charges are for work that no message has.
    tokens = sum(message.get("tokens", 0) for message in replaced if message.get("charged"))
    compaction: Compaction = {"summary": summary, "through": replaced[-1]["seq"], "messages": number}
    return compaction, tokens + of_before


def _size(message: Message) -> int:
    """Returns the tokens of ``message``."""
    return message.get("tokens") or estimated_tokens(message["content"])


def _summary_of(lines: list[str], most_tokens: int) -> str | None:
    """Joins the first and the latest of ``lines`` within ``most_tokens``; None if not even two fit."""
    for number in range(min(len(lines), _MOST_LINES - 1), min(len(lines), 2) - 1, -1):
        kept = lines
        if number < len(lines):
            first = min(_FIRST_LINES, number // 2)
            others = [line for line in lines if line != _GAP]
            kept = [*others[:first], _GAP, *others[len(others) - (number - first - 1) :]]
        summary = "\n".join([HEADING, *kept])
        if estimated_tokens(summary) <= most_tokens:
            return summary
    return None


def _first_kept(messages: Sequence[Message]) -> int:
    """Returns the index of the first message that stays."""
    most = len(messages) - -(-len(messages) // KEPT_SHARE)
    place = 0
    for found in rounds_of(messages):  # whole rounds: no call loses its result
        if place + len(found) > most:
            break
        place += len(found)
    return place


def _earlier_lines(before: Compaction | None) -> list[str]:
    return before["summary"].split("\n")[1:] if before else []


def _line_of(message: Message) -> str:
    content = " ".join(message["content"].split())
    if message["role"] == _USER:
        return f"• Request: {content[:_LONGEST_REQUEST]}"
    if message["role"] == _TOOL or "tool_name" in message:
        return f"• Tool {message.get('tool_name', 'result')}: {content[:_LONGEST_ANSWER]}"
    return f"• Answer: {_first_sentence(message['content'])[:_LONGEST_ANSWER]}" if message["role"] == _ASSISTANT else ""


def _first_sentence(text: str) -> str:
    ends = [place for end in _SENTENCE_ENDS if (place := text.find(end)) >= 0]
    return " ".join(text[: min(ends) + 1].split()) if ends else " ".join(text.split())


def with_compaction(record: Record, compaction: Compaction, tokens: int, now: datetime) -> Record:
    """Adds ``compaction``, which frees ``tokens``; this counts as activity."""
    check_open(record)
    # A stated total may be smaller than what was charged for the messages.
    total = max(0, tokens_of(record) - tokens) + estimated_tokens(compaction["summary"])
    return with_total({**record, "compaction": compaction}, total, now)


def without_memory(record: Record, now: datetime) -> Record:
    """Removes tokens, turns, todos and compaction, for an empty transcript; loaded skills stay."""
    return with_total(with_todos(without_turns(record, now), [], now), 0, now)


def summary_message(record: Record) -> list[Message]:
    """Returns the summary as a message of the system; empty if there is no summary."""
    compaction = record.get("compaction")
    if not compaction:
        return []
    return [
        {
            "seq": compaction["through"],
            "turn": 1,
            "role": "system",
            "content": compaction["summary"],
            "timestamp": record["last_updated"],
        }
    ]
