"""Generated conversations: parallel calls, results that come late or never, huge texts; and a source of turns."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from gaia_sessions.session.context import Turn
from gaia_sessions.session.rounds import is_sent
from tests.records import WHEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.context import TurnOf
    from gaia_sessions.session.transcript import NewMessage


def message(role: str, content: str = "", **keys: Any) -> NewMessage:
    return {"role": role, "content": content, "timestamp": WHEN, **keys}  # type: ignore[typeddict-item]


def call(name: str, content: str = "{}") -> NewMessage:
    return message("assistant", content, tool_name="Bash", tool_call_id=name)


def result(name: str, content: str = "done") -> NewMessage:
    return message("tool", content, tool_call_id=name)


def numbered(*turns: list[NewMessage]) -> list[tuple[TurnOf, list[NewMessage]]]:
    return [({"turn": number}, messages) for number, messages in enumerate(turns, 1)]


class Told:
    """A source of ``turns`` that counts the messages that are read."""

    def __init__(
        self,
        turns: list[tuple[TurnOf, list[NewMessage]]],
        system_prompt: str | None = None,
        summary: str | None = None,
        notices: tuple[str, ...] = (),
    ) -> None:
        self.turns = turns
        self.system_prompt = system_prompt
        self.summary = summary
        self.notices = [*notices]
        self.is_cut = False
        self.read = 0

    def newest_first(self, to_read: int) -> Iterator[Turn]:
        for of, messages in reversed(self.turns):
            if to_read <= 0:
                self.is_cut = True
                return
            newest = list(self._newest(messages, to_read))
            to_read -= sum(map(_cost, newest))
            asked = messages[0] if is_sent(messages[0]) else None
            told = [one for one in reversed(newest) if one is not asked]
            yield Turn(of, asked, told, is_whole=len(newest) == len(messages))

    def _newest(self, messages: list[NewMessage], to_read: int) -> Iterator[NewMessage]:
        for found in reversed(messages):
            if to_read > 0:
                self.read += 1
                to_read -= _cost(found)
                yield found


def _cost(found: NewMessage) -> int:
    return len(found["content"]) + 40


def conversation(seed: int) -> Told:
    """One conversation for each ``seed``."""
    chance = Random(seed)
    late: list[str] = []
    turns: list[list[NewMessage]] = []
    for number in range(chance.choice([0, 1, 2, 3, 8, 40])):
        answered = [result(name, "late") for name in late]
        messages, late = _turn(chance, f"{number}-")
        turns.append(answered + messages)
    summary = chance.choice([None, None, "[Previous context compressed]\n• Request: a", "• Answer: é世\n" * 300])
    return Told(numbered(*filter(None, turns)), summary=summary)


def _turn(chance: Random, prefix: str) -> tuple[list[NewMessage], list[str]]:
    """The messages of a turn, and the calls whose results come in the next turn."""
    messages = [message("user", _text(chance))] if chance.random() < 0.9 else []
    waiting: list[str] = []
    for number in range(chance.choice([0, 1, 2, 3, 8, 30])):
        if chance.random() < 0.3:
            messages.append(message("assistant", _text(chance)))
        names = [f"{prefix}{number}-{place}" for place in range(chance.choice([1, 1, 1, 2, 4]))]
        messages += [call(name, _text(chance)) for name in names]
        waiting += [name for name in names if chance.random() < 0.92]
        chance.shuffle(waiting)
        held = waiting[:1] if chance.random() < 0.2 else []
        messages += [result(name, _text(chance)) for name in waiting[len(held) :]]
        waiting = held
        if chance.random() < 0.05:
            messages.append(result(f"unknown {prefix}{number}"))
        if chance.random() < 0.05:
            messages.append(message("tool", _text(chance)))
    is_late = chance.random() < 0.7
    messages += [] if is_late else [result(name, _text(chance)) for name in waiting]
    if chance.random() < 0.85:
        messages.append(message("assistant", _text(chance)))
    return messages, waiting if is_late else []


def _text(chance: Random) -> str:
    length = chance.choice([5000, 60_000]) if chance.random() < 0.05 else chance.choice([0, 1, 5, 20, 60, 200, 800])
    return "".join(chance.choices("abc dé世\n\x1b\u200b ", k=min(length, 400))) * max(1, length // 400)
