"""Rounds: messages that stay together, because a call and its result are never separated.

A result is a message of a tool. A call is any other message with the ID of a call or the name of a tool.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from .transcript import NewMessage

    Kind = TypeVar("Kind", bound=NewMessage)

_ASSISTANT, _TOOL = "assistant", "tool"


def is_result(message: NewMessage) -> bool:
    return message["role"] == _TOOL


def is_call(message: NewMessage) -> bool:
    return not is_result(message) and ("tool_call_id" in message or "tool_name" in message)


def is_answer(message: NewMessage) -> bool:
    """Whether ``message`` is an agent's text, and not a call of a tool."""
    return message["role"] == _ASSISTANT and not is_call(message)


def is_sent(message: NewMessage) -> bool:
    """Whether somebody sent ``message`` to an agent, so that a turn can begin with it."""
    return not (is_result(message) or is_call(message) or is_answer(message))


def last_answer(messages: Sequence[NewMessage]) -> str:
    """Returns the last answer in ``messages``; empty if there is none."""
    return next((one["content"] for one in reversed(messages) if is_answer(one)), "")


def rounds_of(messages: Sequence[Kind]) -> list[list[Kind]]:
    """Cuts ``messages`` into the shortest pieces in which every call is with its result."""
    # Everything between the first and the last message with one ID stays together. A call stays with the words that its
    # assistant said right before it. A result without an ID belongs to the message before it.
    last_places = {found.get("tool_call_id"): place for place, found in enumerate(messages) if "tool_call_id" in found}
    rounds: list[list[Kind]] = []
    open_until = -1
    for place, message in enumerate(messages):
        if place > open_until and not _goes_on(messages, place):
            rounds.append([])
        rounds[-1].append(message)
        open_until = max(open_until, last_places.get(message.get("tool_call_id"), -1))
    return rounds


def _goes_on(messages: Sequence[NewMessage], place: int) -> bool:
    """Whether the message at ``place`` belongs to the message before it, whatever their IDs."""
    if place == 0:
        return False
    message = messages[place]
    if is_result(message):
        return "tool_call_id" not in message
    return is_call(message) and message["role"] == messages[place - 1]["role"] == _ASSISTANT


def lone_results(messages: Sequence[NewMessage]) -> set[str]:
    """Returns the call IDs of the results in ``messages`` whose calls are not in ``messages``."""
    calls = {found["tool_call_id"] for found in messages if "tool_call_id" in found and not is_result(found)}
    return {found["tool_call_id"] for found in messages if is_result(found) and "tool_call_id" in found} - calls


def without_lone_results(messages: Sequence[Kind]) -> list[Kind]:
    """Returns ``messages`` without the results whose calls are not in ``messages``."""
    lone = lone_results(messages)
    return [found for found in messages if not (is_result(found) and found.get("tool_call_id") in lone)]
