"""What an agent is told of earlier turns in a limited room, and how this is printed.

The newest turns are told whole if they fit, older turns as a line each.
Turns are read one at a time, the newest first, until the room is full.
"""

from __future__ import annotations

from itertools import chain

from .rounds import is_call, is_result, is_sent, last_answer, lone_results, rounds_of, without_lone_results
from .transcript import spoken
from .visible import visible, visible_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import NotRequired, Protocol, TypedDict

    from .transcript import NewMessage

    Measure = Callable[[str], int]
    """How much room a printed line takes."""

    class TurnOf(TypedDict):
        """Which turn it is: its number in the session's own transcript, its run, or both."""

        turn_id: NotRequired[str]  # unique in the session; only ``Sessions.context`` sets it
        session: NotRequired[str]  # the continued session, if the turn is from one
        run: NotRequired[int]
        turn: NotRequired[int]

    class Source(Protocol):
        """What a context is made of."""

        system_prompt: str | None
        notices: list[str]
        summary: str | None  # replaces messages that ``newest_first`` does not give
        is_cut: bool  # after ``newest_first`` has ended: whether older turns are left

        def newest_first(self, to_read: int) -> Iterator[Turn]:
            """Yields turns, the newest first, until about ``to_read`` characters are read."""

    class EarlierTurn(TurnOf):
        """A turn in one line: what began it, and what was answered last."""

        line: str

    class ContextTurn(TurnOf):
        """What is told of a turn: its messages in order, without results that have no call."""

        messages: list[NewMessage]
        is_whole: bool

    class Context(TypedDict):
        """What an agent is told of earlier work, the oldest first.

        Each turn has a ``turn_id``, and either ``run`` (the number of a run) or ``turn`` (the number of a turn in the
        session's own transcript).

        Keys:
            notices: hints, for example that a file is gone.
            summary: in place of messages that were compacted.
            earlier: the latest turns before ``turns``, each as a ``line``.
            left_out: whether there are still older turns.
            turns: each with ``messages`` and ``is_whole``. If ``is_whole`` is False, ``messages`` has the first and the
                last messages, and texts can be cut.
        """

        system_prompt: NotRequired[str]
        notices: list[str]
        summary: NotRequired[str]
        earlier: list[EarlierTurn]
        left_out: bool
        turns: list[ContextTurn]


TURNS = 5
"""How many of the latest turns are told whole by default."""

LEAST_TOKENS = 50
"""The smallest room: fewer tokens cannot hold even the notice that turns are left out."""

_READ_SHARE = 4
_LEAST_READ = 1 << 14
"""The characters that are read: so many times the room, or so many if that is more."""

_LONGEST_TEXT = 400
"""The most characters of a message in a turn that does not fit; the last round can have more."""

_LONGEST_HALF = 70
"""The most characters of the question, and of the answer, in the line of a turn."""

_LEAST_CUT = 40
"""A text for which fewer characters have room is left out, unless it began the turn."""

_SENT_SHARE, _SUMMARY_SHARE, _NOTICE_SHARE = 4, 3, 2
"""The room is divided by these numbers: for the message that began a turn, for a summary, for all notices."""

_SUMMARY_HEADING = "Summary of older messages:"
_EARLIER_HEADING = "Earlier turns:"
_TURNS_LEFT_OUT = "  (older turns are left out)"
_PART_LEFT_OUT = "  (a part of it is left out)"


class Turn:
    """A turn with the messages that were read: all of them if it ``is_whole``, else the newest."""

    __slots__ = ("asked", "is_whole", "messages", "of")

    def __init__(self, of: TurnOf, asked: NewMessage | None, messages: list[NewMessage], *, is_whole: bool) -> None:
        self.of = of
        self.asked = asked  # None if the turn begins with something else, or if its beginning is unknown
        self.messages = messages
        self.is_whole = is_whole


def context_of(source: Source, *, turns: int, room: int, measure: Measure) -> Context:
    """Returns what is told of ``source`` in ``room``, with at most ``turns`` whole turns."""
    left = _Room(room, measure)
    context: Context = {"notices": [], "earlier": [], "left_out": False, "turns": []}
    if source.system_prompt is not None:  # it takes no room
        context["system_prompt"] = source.system_prompt
    notices = map(visible_line, source.notices)  # text of a record in a notice must not leave the fence
    least = room - room // _NOTICE_SHARE
    context["notices"] = [one for one in notices if left.take([_notice_line(one)], left.size - least)]
    if source.summary:
        whole: NewMessage = {"role": "system", "content": source.summary, "timestamp": ""}
        for summary in left.fitted([whole], _lines_of_summary, left.size // _SUMMARY_SHARE):
            context["summary"] = summary["content"]
    found = _with_late_results(source.newest_first(max(_READ_SHARE * room, _LEAST_READ)))
    newest, older = next(found, None), next(found, None)
    has_earlier = bool(older or source.is_cut) and left.take([_EARLIER_HEADING, _TURNS_LEFT_OUT])
    told = (left.whole(newest) or left.shortened(newest)) if newest else None
    context["turns"] = [told] if told else []
    most = turns if told and told["is_whole"] else 0
    while older and len(context["turns"]) < most and (told := left.whole(older)):
        context["turns"].append(told)
        older = next(found, None)
    while older and has_earlier and left.take([_earlier_line(line := _line_of(older))]):
        context["earlier"].append(line)
        older = next(found, None)
    context["left_out"] = has_earlier and bool(older or source.is_cut)
    context["turns"].reverse()
    context["earlier"].reverse()
    return context


def _with_late_results(turns: Iterator[Turn]) -> Iterator[Turn]:
    """Moves each result to the turn of its call, if the call is in the turn before, and drops results without calls."""
    turn = next(turns, None)
    while turn is not None:
        lone = lone_results(turn.messages)
        before = next(turns, None) if lone else None
        if lone:
            called = {one.get("tool_call_id") for one in before.messages if is_call(one)} if before else set()
            late = [one for one in turn.messages if is_result(one) and one.get("tool_call_id") in lone & called]
            is_whole = turn.is_whole and lone <= called
            turn = Turn(turn.of, turn.asked, without_lone_results(turn.messages), is_whole=is_whole)
            if before and late:
                before = Turn(before.of, before.asked, [*before.messages, *late], is_whole=before.is_whole)
        if turn.asked or turn.messages or not turn.is_whole:
            yield turn
        turn = before if lone else next(turns, None)


class _Room:
    """The room that is left in one context."""

    def __init__(self, size: int, measure: Measure) -> None:
        self.size = size
        self._measure = measure

    def _cost(self, lines: Iterable[str]) -> int:
        return sum(map(self._measure, lines))

    def take(self, lines: Iterable[str], most: int | None = None) -> bool:
        """Takes the room that ``lines`` need; returns False if it is more than ``most`` (default: the room left)."""
        cost = self._cost(lines)
        if cost > (self.size if most is None else most):
            return False
        self.size -= cost
        return True

    def fitted(
        self,
        messages: list[NewMessage],
        lines: Callable[[list[NewMessage]], Iterable[str]],
        most: int,
        least: int = _LEAST_CUT,
    ) -> list[NewMessage]:
        """Cuts ``messages`` so that their ``lines`` fit in ``most``; empty if fewer than ``least`` characters fit."""
        longest = min(2 * most, max(len(message["content"]) for message in messages))
        while True:
            shorter = _shorter(messages, longest)
            cost = self._cost(lines(shorter))
            if cost <= most:
                self.size -= cost
                return shorter
            longest = min(longest * most // cost, longest - longest // 16) - 1
            if longest < least:
                return []

    def whole(self, turn: Turn) -> ContextTurn | None:
        """Returns ``turn`` with all its messages; None if some were not read, or if they do not fit."""
        if not turn.is_whole:
            return None
        messages = [*([turn.asked] if turn.asked else []), *turn.messages]
        told: ContextTurn = {**turn.of, "messages": messages, "is_whole": True}
        return told if self.take(_turn_lines(told)) else None

    def shortened(self, turn: Turn) -> ContextTurn | None:
        """Returns the parts of ``turn`` that fit: its last rounds, and the message that began it."""
        if not self.take([_heading(turn.of), _PART_LEFT_OUT]):
            return None
        numbers = _numbers(turn.messages)

        def lines(messages: list[NewMessage]) -> Iterable[str]:
            return chain(*_messages_lines(messages, numbers))

        share = max(self.size // _SENT_SHARE, min(self.size // 2, _LONGEST_TEXT))
        kept = share if turn.asked else 0  # what began the turn always has a share
        if turn.asked and len(turn.asked["content"]) < share:
            kept = min(share, self._cost(lines([turn.asked])))
        self.size -= kept
        rounds = rounds_of(turn.messages)
        latest = [self.fitted(rounds.pop(), lines, self.size)] if rounds else []
        while rounds and latest[-1] and self.take(lines(shorter := _shorter(rounds.pop(), _LONGEST_TEXT))):
            latest.append(shorter)
        self.size += kept
        asked = self.fitted([turn.asked], lines, self.size, least=1) if turn.asked else []
        return {**turn.of, "messages": [*asked, *chain(*reversed(latest))], "is_whole": False}


def _shorter(messages: list[NewMessage], longest: int) -> list[NewMessage]:
    return [{**message, "content": cut(message["content"], longest)} for message in messages]


def _line_of(turn: Turn) -> EarlierTurn:
    answer = last_answer(turn.messages)
    asked = _half(turn.asked["content"]) if turn.asked else "..."
    return {**turn.of, "line": f"{asked} -> {_half(answer) if answer else '(no answer)'}"}


def _half(text: str) -> str:
    """Returns the beginning of ``text`` as one line, with an ellipsis if more follows."""
    line = visible_line(text, _LONGEST_HALF + 1)
    if len(line) <= _LONGEST_HALF:
        return line
    return f"{line[: _LONGEST_HALF - 4].rpartition(' ')[0] or line[: _LONGEST_HALF - 4]} ..."


def cut(text: str, longest: int) -> str:
    """Cuts the middle of ``text`` to leave ``longest`` characters, at line ends if they are near."""
    if len(text) <= longest:
        return text
    half = longest // 2
    start, end = longest - half, len(text) - half
    start = text.rfind("\n", start // 2, start) + 1 or start
    end = max(end, text.find("\n", end, end + half // 2))
    gap = f"[... {end - start:,} characters left out ...]"
    if end - start <= len(gap) + 2:  # the spaces beside it
        return text
    head, tail = text[:start], text[end:]
    return "".join((head, "" if head.endswith("\n") else " ", gap, "" if tail.startswith("\n") else " ", tail))


def context_messages(context: Context) -> list[dict[str, str]]:
    """Returns ``context`` as messages: the whole turns as they were, and before them a message for the rest."""
    known: list[dict[str, str]] = []
    if "system_prompt" in context:
        known.append({"role": "system", "content": context["system_prompt"]})
    rest: Context = {**context, "turns": []}
    rest.pop("system_prompt", None)
    lines = context_lines(rest)
    for turn in context["turns"]:
        if not turn["is_whole"]:
            lines += [_heading(turn), _PART_LEFT_OUT]
    if lines:
        known.append({"role": "system", "content": "\n".join(lines)})
    return known + [spoken(message) for turn in context["turns"] for message in turn["messages"]]


def context_lines(context: Context) -> list[str]:
    """Returns ``context`` as printed lines."""
    lines = list(map(_notice_line, context["notices"]))
    if "system_prompt" in context:
        lines += ["System prompt:", *_indented(context["system_prompt"])]
    if "summary" in context:
        lines += _summary_lines(context["summary"])
    if context["earlier"] or context["left_out"]:
        lines += [_EARLIER_HEADING, *([_TURNS_LEFT_OUT] if context["left_out"] else [])]
        lines += map(_earlier_line, context["earlier"])
    for turn in context["turns"]:
        lines += _turn_lines(turn)
    return lines


def _notice_line(notice: str) -> str:
    return f"({notice})"


def _summary_lines(summary: str) -> list[str]:
    return [_SUMMARY_HEADING, *_indented(summary)]


def _lines_of_summary(messages: list[NewMessage]) -> list[str]:
    return _summary_lines(messages[0]["content"])


def _indented(text: str) -> list[str]:
    return [f"  {line}".rstrip() for line in visible(text).split("\n")]


def _name(of: TurnOf) -> str:
    name = f"run {of['run']}" if "run" in of else f"turn {of['turn']}"
    return f"{name} of {of['session']}" if "session" in of else name


def _heading(of: TurnOf) -> str:
    name = _name(of)
    return f"{name[0].upper()}{name[1:]}:"


def _earlier_line(turn: EarlierTurn) -> str:
    return f"  {_name(turn)}: {turn['line']}"


def _turn_lines(turn: ContextTurn) -> list[str]:
    """Returns the lines of a turn; the notice of a missing part follows the message that began the turn."""
    messages = turn["messages"]
    asked = 1 if messages and is_sent(messages[0]) else 0
    part_left_out = [] if turn["is_whole"] else [_PART_LEFT_OUT]
    lines = _messages_lines(messages, _numbers(messages))
    return [_heading(turn), *chain(*lines[:asked]), *part_left_out, *chain(*lines[asked:])]


def _numbers(messages: Sequence[NewMessage]) -> dict[str, int]:
    """Returns a number for each ID of a call; the call and its result are printed with this number."""
    ids = dict.fromkeys(message["tool_call_id"] for message in messages if "tool_call_id" in message)
    return {call: number for number, call in enumerate(ids, 1)}


def _messages_lines(messages: Sequence[NewMessage], numbers: dict[str, int]) -> list[list[str]]:
    results = {message.get("tool_call_id") for message in messages if is_result(message)}
    return [_message_lines(message, numbers, results) for message in messages]


def _message_lines(message: NewMessage, numbers: dict[str, int], results: Collection[str | None]) -> list[str]:
    call = message.get("tool_call_id")
    number = f" {numbers[call]}" if call is not None else ""
    tool = f" {visible_line(message['tool_name'], 60)}" if "tool_name" in message else ""
    if is_result(message):
        return _text_lines(f"result{number}" + (f" of{tool}" if tool and not number else ""), message["content"])
    if not is_call(message):
        return _text_lines(message["role"], message["content"])
    label = f"call{number}" + (f",{tool}" if tool else "") + ("" if call is None or call in results else ", no result")
    return _text_lines(label, message["content"])


def _text_lines(label: str, text: str) -> list[str]:
    first, *others = visible(text).strip("\n").split("\n")
    return [f"  {label}: {first}".rstrip(), *(f"    {line}".rstrip() for line in others)]
