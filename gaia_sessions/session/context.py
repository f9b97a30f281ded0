"""The context of work that goes on: what of the turns so far is told within a bound, and how that is printed.

A turn is what was sent and all that is answered to it. The newest ones are told whole, as far as they fit, older ones
as a line each. Pure, and lazy: turns are read from the newest on, and no further than is told of them.
"""

from __future__ import annotations

import sys

from .rounds import is_answer, is_call, is_result, rounds_of, unanswered, without_lone_results
from .transcript import spoken
from .visible import visible, visible_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import NotRequired, Protocol, TypedDict

    from .transcript import NewMessage

    Measure = Callable[[str], int]
    """What a printed line takes of the room."""

    class TurnOf(TypedDict):
        """Which turn a message is of: its number in the session's own transcript, the run that it was, or both.

        turn_id: what no other turn of the session has; told by ``Sessions.context`` alone. session: whose turn it is,
        if it is one of a session that is continued.
        """

        turn_id: NotRequired[str]
        session: NotRequired[str]
        run: NotRequired[int]
        turn: NotRequired[int]

    Said = tuple[TurnOf, NewMessage, bool]
    """A message, which turn it is of, and whether that turn begins with it as far as its file says so."""

    Head = tuple[TurnOf, list[NewMessage]]
    """A turn, and its messages from the first on."""

    class Source(Protocol):
        """What a context is made of. summary: what stands in place of messages that ``newest_first`` does not give."""

        system_prompt: str | None
        summary: str | None
        is_cut: bool
        """Once ``newest_first`` has ended: whether it did so before the beginning of all that was said."""

        def newest_first(self) -> Iterator[Said]:
            """All messages, the newest first; those of one turn follow each other."""

        def beginning(self, turn: TurnOf) -> NewMessage | None:
            """What a turn began with of which only later messages were read, where that can be known."""

        def first(self) -> Head | None:
            """The first of all turns, or what its file has of its beginning."""

    class EarlierTurn(TurnOf):
        """One turn in a line: what it began with, and what was answered last."""

        line: str

    class ContextTurn(TurnOf):
        """What is told of one turn: its messages in their order, and how many rounds are not told.

        A result without its call is not among them, and counts as a round.
        """

        messages: list[NewMessage]
        rounds_left_out: int | None

    class Context(TypedDict):
        """What is told of earlier work, the oldest first.

        notices: what must be known of it, such as a file that is gone. summary: of messages that a compaction replaced.
        earlier: the first and the latest of the turns that are not in ``turns``, each with a ``line``. left_out: that
        there are others. turns: each with its ``messages`` and ``rounds_left_out``: how many calls with their results,
        or other messages, are not told; null if nobody counted them. Each turn has a ``turn_id``, and the number of its
        ``run``, if it was one, or of its ``turn`` in the session's own transcript.
        """

        system_prompt: NotRequired[str]
        notices: list[str]
        summary: NotRequired[str]
        earlier: list[EarlierTurn]
        left_out: bool
        turns: list[ContextTurn]


TURNS = 5
"""So many of the last turns are told whole, unless the caller says otherwise."""

LEAST_TOKENS = 50
"""With fewer it could not even be said that turns are left out."""

_READ_SHARE = 4
_LEAST_READ = 1 << 14
"""So many times the room, or so many characters, are read at most: of what is longer, little can be told."""

_MESSAGE_COST = 40
"""What a message is taken to cost that is read, whatever its length: as many times the least that it takes printed."""

_LONGEST_TEXT, _SHORTEST_TEXT = 400, 60
"""Characters of a message in a turn that does not fit; the latter where even its last round would not."""

_LONGEST_HALF = 70
"""Characters of what was asked, and of what was answered, in the line of a turn."""

_LEAST_CUT = 40
"""So many characters of a text that is cut are told, or none."""

_QUESTION_SHARE, _SUMMARY_SHARE, _NOTICE_SHARE = 4, 3, 2
"""What a long turn began with, the summary, and a notice each take at most this part of the room."""

_SUMMARY_HEADING = "Summary of what was before:"
_EARLIER_HEADING = "Earlier turns:"
_TURNS_LEFT_OUT = "  (other turns are left out)"
_OTHERS_LEFT_OUT = (_EARLIER_HEADING, _TURNS_LEFT_OUT)


def context_of(source: Source, *, turns: int, room: int, measure: Measure, notices: Iterable[str] = ()) -> Context:
    """What is told of ``source`` in at most ``room``, as ``measure`` says what each printed line takes.

    Only the lines of the system prompt do not count. At most so many ``turns`` are told whole.
    """
    return _Fitting(source, turns, room, measure).context(notices)


class _Turn:
    """One turn as far as it was read."""

    __slots__ = ("is_begun", "messages", "of")

    def __init__(self, of: TurnOf, messages: list[NewMessage], *, is_begun: bool) -> None:
        self.of = of
        self.messages = messages
        self.is_begun = is_begun


class _Turns:
    """The turns of a source, the newest first, until so many characters are read."""

    def __init__(self, source: Source, to_read: int) -> None:
        self._source = source
        self._said = source.newest_first()
        self._next = next(self._said, None)
        self._given_back: list[_Turn] = []
        self._to_read = to_read

    def has_more(self) -> bool:
        """Whether there are messages that no turn was made of."""
        return bool(self._given_back) or self._next is not None or self._source.is_cut

    def together(self) -> list[_Turn]:
        """The next turn, the last of the list; before it those whose calls it answers. Empty if there is none."""
        found = list(filter(None, [self._take()]))  # the newest first
        while found and found[-1].is_begun and (lone := unanswered(found[-1].messages)):
            before = self._take()
            if before is None:
                break
            if lone.isdisjoint(message.get("tool_call_id") for message in before.messages if is_call(message)):
                self._given_back.append(before)
                break
            found.append(before)
        return found[::-1]

    def _take(self) -> _Turn | None:
        if self._given_back:
            return self._given_back.pop()
        if self._next is None or self._to_read <= 0:
            return None
        of = self._next[0]
        messages: list[NewMessage] = []
        while self._next is not None and self._next[0] == of:
            if self._to_read <= 0:
                return _Turn(of, messages[::-1], is_begun=False)
            _, message, begins = self._next
            self._to_read -= len(message["content"]) + _MESSAGE_COST
            messages.append(message)
            self._next = next(self._said, None)
            if begins:
                return _Turn(of, messages[::-1], is_begun=True)
        is_begun = self._next is not None or not self._source.is_cut
        return _Turn(of, messages[::-1], is_begun=is_begun)


class _Fitting:
    """One context while it is put together; ``_left`` is what is left of the room."""

    def __init__(self, source: Source, most: int, room: int, measure: Measure) -> None:
        self._source = source
        self._most = most
        self._left = room
        self._measure = measure
        self._kept_free = 0  # of the room, for the lines that say that there are other turns
        self._first_turn: Head | None = None
        self._is_first_known = False
        self._turns = _Turns(source, max(_READ_SHARE * room, _LEAST_READ))
        self._context: Context = {"notices": [], "earlier": [], "left_out": False, "turns": []}
        self._oldest: tuple[TurnOf, NewMessage | None] | None = None  # of those that are told: what it begins with

    def context(self, notices: Iterable[str]) -> Context:
        context = self._context
        if self._source.system_prompt is not None:
            context["system_prompt"] = self._source.system_prompt
        for notice in map(visible_line, notices):  # one may have text of a record, which leaves no fence
            if self._cost(_notice_line(notice)) <= self._left // _NOTICE_SHARE:
                context["notices"].append(notice)
                self._left -= self._cost(_notice_line(notice))
        if self._source.summary:
            self._add_summary(self._source.summary)
        newest = self._turns.together()
        if self._turns.has_more():
            self._kept_free = self._cost(*_OTHERS_LEFT_OUT)
            self._left -= self._kept_free
        if self._add_whole(newest):
            self._add_lines(self._add_older())
        else:
            self._add_shortened(newest)
        context["turns"].reverse()
        return context

    def _cost(self, *lines: str) -> int:
        return sum(map(self._measure, lines))

    def _add_summary(self, summary: str) -> None:
        text = self._cut_to(summary, self._left // _SUMMARY_SHARE, _summary_lines)
        if text:
            self._context["summary"] = text
            self._left -= self._cost(*_summary_lines(text))

    def _add_whole(self, together: list[_Turn]) -> bool:
        """Adds the turns whole before those that are there, if they fit and may be; whether they were."""
        if not together:
            return True
        told = [_told(turn, whole) for turn, whole in zip(_without_lone_results(together), together, strict=True)]
        if len(self._context["turns"]) + len(told) > max(self._most, 1) or not together[0].is_begun:
            return False
        cost = self._cost(*(line for turn in told for line in _turn_lines(turn)))
        if cost > self._left:
            return False
        self._left -= cost
        self._context["turns"] += reversed(told)  # the newest first, until all are there
        self._oldest = together[0].of, together[0].messages[0]
        return True

    def _add_older(self) -> list[_Turn]:
        """Adds older turns as long as they fit whole, and returns those that did not."""
        while together := self._turns.together():
            if not self._add_whole(together):
                return together
        return []

    def _add_lines(self, latest: list[_Turn], most: int = sys.maxsize) -> None:
        """Adds the lines of the turns that are not told: ``latest``, those before them, and the first of all.

        At most so many beside the first.
        """
        self._left += self._kept_free
        if not (latest or self._turns.has_more()):
            return
        head = self._first()
        if head and (head[0], *head[1][:1]) == self._oldest:
            return
        first = self._line_of(_Turn(*head, is_begun=True)) if head else None
        reserved = self._cost(*_OTHERS_LEFT_OUT, *([_earlier_line(first)] if first else []))
        lines: list[EarlierTurn] = []
        is_all = False
        while latest or (latest := self._turns.together()):
            turn = latest.pop()
            line = self._line_of(turn)
            if turn.is_begun and line == first:
                is_all = True
                break
            cost = self._cost(_earlier_line(line))
            if self._left - reserved < cost or len(lines) >= most:
                break
            self._left -= cost
            lines.append(line)
        else:
            is_all = first is None and not self._turns.has_more()
        if first and self._left >= reserved:
            lines.append(first)
        self._context["left_out"] = not is_all and self._left >= self._cost(*_OTHERS_LEFT_OUT)
        self._context["earlier"] = lines[::-1]
        if lines or self._context["left_out"]:
            self._left -= reserved

    def _first(self) -> Head | None:
        """The first of all turns, which is looked for once."""
        if not self._is_first_known:
            self._first_turn, self._is_first_known = self._source.first(), True
        return self._first_turn

    def _line_of(self, turn: _Turn) -> EarlierTurn:
        began = self._beginning_of(turn)
        answers = [message["content"] for message in turn.messages if is_answer(message)]
        asked = _half(began["content"]) if began and not is_answer(began) else "..."
        answered = _half(answers[-1]) if answers else "(no answer)"
        return {**turn.of, "line": f"{asked} -> {answered}"}

    def _beginning_of(self, turn: _Turn) -> NewMessage | None:
        if turn.is_begun:
            return turn.messages[0]
        first = self._first()
        return first[1][0] if first and first[0] == turn.of and first[1] else self._source.beginning(turn.of)

    def _add_shortened(self, together: list[_Turn]) -> None:
        """Adds what fits of the newest turn: its last answer, its beginning, and the rounds from its end on."""
        of = together[-1].of
        messages = [message for turn in _without_lone_results(together) for message in turn.messages]
        lone = sum(len(turn.messages) for turn in together) - len(messages)
        is_begun = together[0].is_begun
        rounds = rounds_of(messages)
        numbers = _numbers(messages)
        least = self._cost(_heading(of), _rounds_line(len(rounds) + lone))
        if self._left < least:
            self._context["left_out"] = self._left + self._kept_free >= self._cost(*_OTHERS_LEFT_OUT)
            return
        self._left -= least
        end: list[NewMessage] = []
        if rounds and is_answer(rounds[-1][-1]) and len(rounds[-1]) == 1:
            end = self._fitting_answer(rounds.pop()[0], is_alone=is_begun and not rounds)
        began = rounds.pop(0)[0] if is_begun and rounds and _is_plain(rounds[0]) else None
        beginning = self._beginning_of(together[0])
        self._oldest = together[0].of, beginning
        if beginning and not is_begun and _is_plain([beginning]) and not is_answer(beginning):
            began = beginning
        start = self._fitting_beginning(began) if began else []
        self._add_lines([], 1)
        latest: list[list[NewMessage]] = []
        while rounds:
            lengths = [_LONGEST_TEXT] if end or latest else [_LONGEST_TEXT, _SHORTEST_TEXT]
            kept = self._fitting_round(rounds[-1], numbers, lengths)
            if kept is None:
                break
            rounds.pop()
            latest.append(kept)
        told = [*start, *(message for kept in reversed(latest) for message in kept), *end]
        left_out = len(rounds) + lone + bool(began and not start) if is_begun else None
        self._context["turns"] = [{**of, "messages": told, "rounds_left_out": left_out}]

    def _fitting_answer(self, answer: NewMessage, *, is_alone: bool) -> list[NewMessage]:
        """The last answer, whole if it fits, else its end, that has the point, beside what was asked."""
        room = self._left
        is_too_long = len(answer["content"]) > room or self._cost(*_text_lines("assistant", answer["content"])) > room
        if is_too_long and not is_alone:
            room -= room // _QUESTION_SHARE
        return self._fitting_text(answer, room, is_end=True)

    def _fitting_beginning(self, began: NewMessage) -> list[NewMessage]:
        room = max(self._left // _QUESTION_SHARE, min(self._left, _LONGEST_TEXT // 2))
        return self._fitting_text(began, room)

    def _fitting_text(self, message: NewMessage, room: int, *, is_end: bool = False) -> list[NewMessage]:
        """``message`` with as much of its text as fits in ``room``; none if that is next to nothing."""

        def lines(text: str) -> list[str]:
            return _text_lines(message["role"], text)

        text = self._cut_to(message["content"], room, lines, is_end=is_end)
        if text is None:
            return []
        self._left -= self._cost(*lines(text))
        return [{**message, "content": text}]

    def _fitting_round(
        self, found: list[NewMessage], numbers: dict[str, int], lengths: Sequence[int]
    ) -> list[NewMessage] | None:
        for longest in lengths:
            shorter: list[NewMessage] = [{**message, "content": cut(message["content"], longest)} for message in found]
            cost = self._cost(*(line for lines in _messages_lines(shorter, numbers) for line in lines))
            if cost <= self._left:
                self._left -= cost
                return shorter
        return None

    def _cut_to(self, text: str, room: int, lines: Callable[[str], list[str]], *, is_end: bool = False) -> str | None:
        """``text`` if its ``lines`` fit in ``room``, else as much of it as does; None if that is next to nothing."""
        if len(text) <= room * 2 and self._cost(*lines(text)) <= room:
            return text
        low, high = 0, min(len(text), room)
        while low < high:
            middle = (low + high + 1) // 2
            if self._cost(*lines(cut(text, middle, is_end=is_end))) <= room:
                low = middle
            else:
                high = middle - 1
        return cut(text, low, is_end=is_end) if low >= _LEAST_CUT else None


def _without_lone_results(together: list[_Turn]) -> list[_Turn]:
    """The turns without results whose calls are in none of them."""
    kept = set(map(id, without_lone_results([message for turn in together for message in turn.messages])))
    return [
        _Turn(turn.of, [message for message in turn.messages if id(message) in kept], is_begun=turn.is_begun)
        for turn in together
    ]


def _half(text: str) -> str:
    """The beginning of ``text`` on a line, which says so if there is more of it."""
    line = visible_line(text, _LONGEST_HALF + 1)
    if len(line) <= _LONGEST_HALF:
        return line
    return f"{line[: _LONGEST_HALF - 4].rpartition(' ')[0] or line[: _LONGEST_HALF - 4]} ..."


def _told(turn: _Turn, whole: _Turn) -> ContextTurn:
    return {**turn.of, "messages": turn.messages, "rounds_left_out": len(whole.messages) - len(turn.messages)}


def _is_plain(found: list[NewMessage]) -> bool:
    return len(found) == 1 and not is_result(found[0]) and not is_call(found[0])


def cut(text: str, longest: int, *, is_end: bool = False) -> str:
    """``text`` with at most ``longest`` characters of its own: its end, or two of its beginning for each of its end."""
    number = len(text) - longest
    if number <= 0:
        return text
    gap = f"[... {number:,} characters left out ...]"
    tail = longest if is_end else longest // 3
    return " ".join(filter(None, (text[: longest - tail], gap, text[len(text) - tail :] if tail else "")))


def context_messages(context: Context) -> list[dict[str, str]]:
    """``context`` as messages: the turns that are told whole as they were, and before them a message about the rest."""
    known: list[dict[str, str]] = []
    if "system_prompt" in context:
        known.append({"role": "system", "content": context["system_prompt"]})
    rest: Context = {**context, "turns": []}
    rest.pop("system_prompt", None)
    lines = context_lines(rest)
    for turn in context["turns"]:
        if turn["rounds_left_out"] != 0:
            lines += [_heading(turn), _rounds_line(turn["rounds_left_out"])]
    if lines:
        known.append({"role": "system", "content": "\n".join(lines)})
    return known + [spoken(message) for turn in context["turns"] for message in turn["messages"]]


def context_lines(context: Context) -> list[str]:
    """The lines in which ``context`` is told."""
    lines = list(map(_notice_line, context["notices"]))
    if "system_prompt" in context:
        lines += ["System prompt:", *_indented(context["system_prompt"])]
    if "summary" in context:
        lines += _summary_lines(context["summary"])
    if context["earlier"] or context["left_out"]:
        lines.append(_EARLIER_HEADING)
        shown = list(map(_earlier_line, context["earlier"]))
        if context["left_out"]:
            shown.insert(1, _TURNS_LEFT_OUT)
        lines += shown
    for turn in context["turns"]:
        lines += _turn_lines(turn)
    return lines


def _notice_line(notice: str) -> str:
    return f"({notice})"


def _summary_lines(summary: str) -> list[str]:
    return [_SUMMARY_HEADING, *_indented(summary)]


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


def _rounds_line(number: int | None) -> str:
    if number == 1:
        return "  (1 round is left out)"
    return f"  ({'' if number is None else f'{number:,} '}rounds are left out)"


def _turn_lines(turn: ContextTurn) -> list[str]:
    """The lines of a turn; what is left out of it stands behind what it began with."""
    messages = turn["messages"]
    numbers = _numbers(messages)
    parts = _messages_lines(messages, numbers)
    if turn["rounds_left_out"] != 0:
        place = 1 if messages and _is_plain(messages[:1]) and not is_answer(messages[0]) else 0
        parts.insert(place, [_rounds_line(turn["rounds_left_out"])])
    return [_heading(turn), *(line for part in parts for line in part)]


def _numbers(messages: Sequence[NewMessage]) -> dict[str, int]:
    """The number by which each call, and its result, is named."""
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
