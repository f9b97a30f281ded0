"""The context of a resumed session: its size limit, its turns, and that every result stays with its call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.session.context import LEAST_TOKENS, context_lines, context_of, cut
from gaia_sessions.session.rounds import is_call, is_result, is_sent
from tests.session.conversations import Told, call, conversation, message, numbered, result
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.context import Context, ContextTurn
    from gaia_sessions.session.transcript import NewMessage

BYTES_PER_TOKEN = 4
RESERVED = 44
"""Bytes of the lines that say that turns are left out."""

LIMITS = (200, 250, 400, 700, 1000, 2000, 5000, 20_000)
ROUNDS = [one for name in "abcdefgh" for one in (call(name), result(name, f"result of {name} " + "x" * 300))]


def size_of(line: str) -> int:
    return len(line.encode()) + 1


def told(source: Told, room: int = 8000, turns: int = 5) -> Context:
    return context_of(source, turns=turns, room=room, measure=size_of)


def printed(*turns: list[NewMessage], room: int = 8000) -> list[str]:
    return context_lines(told(Told(numbered(*turns)), room))


def calls_in(messages: list[NewMessage]) -> set[str]:
    return {one["tool_call_id"] for one in messages if is_call(one)}


def results_in(messages: list[NewMessage]) -> set[str]:
    return {one["tool_call_id"] for one in messages if is_result(one) and "tool_call_id" in one}


def check(source: Told, tokens: int) -> None:
    room = tokens * BYTES_PER_TOKEN
    context = told(source, room)
    lines = context_lines(context)
    assert sum(map(size_of, lines)) <= room

    kept = [one for turn in context["turns"] for one in turn["messages"]]
    said = [one for _, messages in source.turns for one in messages]
    assert results_in(kept) <= calls_in(kept)
    assert calls_in(kept) & results_in(said) == results_in(kept)
    if not source.turns:
        assert not kept
        return

    newest_of, newest = next(one for one in reversed(source.turns) if not all(map(is_result, one[1])))
    assert context["turns"][-1]["turn"] == newest_of["turn"]
    check_question(newest[0], context["turns"][-1])
    order = {id(one): place for place, one in enumerate(said)}
    places = [order[id(one)] for one in kept if id(one) in order]
    assert places == sorted(places)
    check_order(kept, said)
    check_whole(source, context, room)


def check_question(first: NewMessage, newest: ContextTurn) -> None:
    """The question of the newest turn is shown: whole, or its beginning and its end."""
    if not is_sent(first):
        return
    shown = newest["messages"][0]
    assert (shown["role"], shown["timestamp"]) == (first["role"], first["timestamp"])
    beginning, gap, end = shown["content"].partition("[... ")
    assert first["content"].startswith(beginning.removesuffix(" "))
    assert first["content"].endswith(end.partition("left out ...]")[2].removeprefix(" "))
    assert not gap or not newest["is_whole"]


def check_order(kept: list[NewMessage], said: list[NewMessage]) -> None:
    """The order holds also for shortened messages: each call has its own ID."""
    order = [(one["role"], one["tool_call_id"]) for one in said if "tool_call_id" in one]
    places = [order.index((one["role"], one["tool_call_id"])) for one in kept if "tool_call_id" in one]
    assert places == sorted(places)


def check_whole(source: Told, context: Context, room: int) -> None:
    """As many turns are whole as fit: one more would exceed the room."""
    number = len(context["turns"])
    if number in (5, len(source.turns)) or not context["turns"][-1]["is_whole"]:
        return
    alone = Told(source.turns[-number - 1 :])
    if alone.turns[0][1] and not unanswered_in(alone.turns[0][1]):
        others = context_lines({**context, "turns": [], "earlier": []})
        whole = context_lines(told(alone, 10**9, turns=number + 1))
        assert sum(map(size_of, [*others, *whole])) > room - RESERVED


def unanswered_in(messages: list[NewMessage]) -> set[str]:
    return results_in(messages) - calls_in(messages)


SEEDS = [
    range(6),
    pytest.param(range(6, 60), marks=pytest.mark.slow),
    *(pytest.param(range(first, first + 250), marks=pytest.mark.thorough) for first in range(0, 2000, 250)),
]


@pytest.mark.parametrize("seeds", SEEDS)
def test_a_context_fits_its_limit_and_keeps_every_call_with_its_result(seeds: range) -> None:
    for seed in seeds:
        source = conversation(seed)
        for tokens in LIMITS:
            check(source, tokens)


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 10), marks=pytest.mark.slow)])
def test_a_context_fits_even_the_smallest_room(seeds: range) -> None:
    for seed in seeds:
        source = conversation(seed)
        for room in range(0, 800, 7):
            lines = context_lines(told(source, room))
            assert sum(map(size_of, lines)) <= room


def test_turns_that_fit_are_shown_whole() -> None:
    assert printed(
        [message("user", "Look\nat it"), call("x", '{"a":1}'), result("x"), message("assistant", "Done")]
    ) == [
        "Turn 1:",
        "  user: Look",
        "    at it",
        '  call 1, Bash: {"a":1}',
        "  result 1: done",
        "  assistant: Done",
    ]


def test_an_empty_conversation_has_an_empty_context() -> None:
    assert printed() == []


def test_turns_older_than_those_asked_for_become_one_line_each() -> None:
    turns = [[message("user", f"ask {number}"), message("assistant", f"answer {number}")] for number in range(1, 8)]
    assert context_lines(told(Told(numbered(*turns)), turns=2))[:6] == [
        "Earlier turns:",
        "  turn 1: ask 1 -> answer 1",
        "  turn 2: ask 2 -> answer 2",
        "  turn 3: ask 3 -> answer 3",
        "  turn 4: ask 4 -> answer 4",
        "  turn 5: ask 5 -> answer 5",
    ]


def test_the_line_of_a_turn_says_if_it_is_cut() -> None:
    turns = [
        [message("user", "May " + "I " * 60), message("assistant", "Yes, " + "all " * 30 + "but one")],
        [call("x")],
    ]
    [_, line, *_] = context_lines(told(Told(numbered(*turns)), turns=1))
    assert line == f"  turn 1: May {'I ' * 31}... -> Yes, {'all ' * 15}..."
    assert len(line.partition(" -> ")[2]) <= 70


def test_if_every_older_turn_has_a_line_no_turn_is_reported_as_left_out() -> None:
    short = [[message("user", f"ask {number}"), message("assistant", "yes")] for number in (1, 2)]
    lines = printed(*short, [message("user", "Look"), *ROUNDS], room=900)
    assert lines[:4] == ["Earlier turns:", "  turn 1: ask 1 -> yes", "  turn 2: ask 2 -> yes", "Turn 3:"]


@table("room", range(200, 1200, 50))
def test_the_context_says_that_older_turns_are_left_out(room: int) -> None:
    turns = [[message("user", "x" * 400), message("assistant", "y" * 400)] for _ in range(30)]
    context = told(Told(numbered(*turns), summary="z" * 100, notices=("a file is gone",)), room)
    assert (context["left_out"], "  (older turns are left out)" in context_lines(context)) == (True, True)


def test_if_not_all_lines_of_older_turns_fit_the_latest_stay() -> None:
    turns = [[message("user", f"ask {number}"), message("assistant", f"answer {number}")] for number in range(1, 100)]
    source = Told(numbered(*turns))
    assert context_lines(told(source, 300, turns=1)) == [
        "Earlier turns:",
        "  (older turns are left out)",
        *(f"  turn {number}: ask {number} -> answer {number}" for number in range(93, 99)),
        "Turn 99:",
        "  user: ask 99",
        "  assistant: answer 99",
    ]
    assert source.read < 20


@table("text", ["words " * 99, "世界 " * 99, "\U0001f600" * 39, "1\n" * 99, "\x1b[31m" * 99, "\r\n\0" * 99])
def test_the_question_of_the_newest_turn_is_shown_even_in_the_least_room(text: str) -> None:
    turns = numbered([message("user", "Before")], [message("user", text), *ROUNDS])
    for tokens in range(LEAST_TOKENS, 2000, 7):
        context = told(Told(turns), tokens * BYTES_PER_TOKEN)
        check_question(turns[-1][1][0], context["turns"][-1])
        assert sum(map(size_of, context_lines(context))) <= tokens * BYTES_PER_TOKEN


def test_a_turn_that_does_not_fit_shows_its_question_and_its_last_rounds() -> None:
    lines = printed([message("user", "Look"), *ROUNDS, message("assistant", "Done")], room=1000)
    assert lines == [
        "Turn 1:",
        "  user: Look",
        "  (a part of it is left out)",
        "  call 1, Bash: {}",
        "  result 1: result of g " + "x" * 300,
        "  call 2, Bash: {}",
        "  result 2: result of h " + "x" * 300,
        "  assistant: Done",
    ]


def test_older_turns_get_a_line_beside_a_turn_that_does_not_fit() -> None:
    short = [[message("user", f"ask {number}"), message("assistant", "yes")] for number in range(1, 17)]
    lines = printed(*short, [message("user", "Look"), *ROUNDS], room=1000)
    first = next(number for number in range(16, 0, -1) if f"  turn {number}: ask {number} -> yes" not in lines)
    assert 1 <= first < 16
    latest = [f"  turn {number}: ask {number} -> yes" for number in range(first + 1, 17)]
    assert lines[: len(latest) + 3] == ["Earlier turns:", "  (older turns are left out)", *latest, "Turn 17:"]


def test_a_last_round_that_does_not_fit_is_shortened_and_not_left_out() -> None:
    lines = printed([message("user", "Look"), *(call(name, name * 500) for name in "abc")], room=400)
    assert [line[:32] for line in lines] == [
        "Turn 1:",
        "  user: Look",
        "  (a part of it is left out)",
        *(f"  call {number}, Bash, no result: {name * 5}" for number, name in enumerate("abc", 1)),
    ]


@table("length", [10_000, 100_000, 1_000_000])
def test_a_question_that_exceeds_its_share_shows_its_beginning_and_its_end(length: int) -> None:
    asked = "\n".join(f"line {number}" for number in range(length // 8))
    lines = printed([message("user", asked), *ROUNDS, message("assistant", "Done")], room=4000)
    gap = next(place for place, line in enumerate(lines) if "characters left out ...]" in line)
    shown = [line.removeprefix("  user: ").strip() for line in lines[1 : lines.index("  (a part of it is left out)")]]
    assert "\n".join(shown[: gap - 1]) == asked[: len("\n".join(shown[: gap - 1]))]
    assert asked.endswith("\n" + "\n".join(shown[gap:]))
    assert lines[-1] == "  assistant: Done"
    assert 1000 - 100 < sum(map(size_of, lines[1 : len(shown) + 1])) < sum(map(size_of, lines)) <= 4000


def test_a_long_question_has_the_room_that_a_short_answer_leaves() -> None:
    asked = "What of it?\n" * 1000
    lines = printed([message("user", asked), message("assistant", "Done")], room=8000)
    assert lines[-1] == "  assistant: Done"
    assert 7500 < sum(map(size_of, lines)) <= 8000


@table("sent", ["\0" * 300, "\u200b" * 3000, "é世" * 5000, "\n" * 3000 + "Look"])
@table("room", [200, 400, 1600, 8000])
def test_a_question_of_any_characters_is_shown(sent: str, room: int) -> None:
    context = told(Told(numbered([message("user", sent), message("assistant", "x" * 9000)])), room)
    assert context["turns"][0]["messages"][0]["role"] == "user"
    assert sum(map(size_of, context_lines(context))) <= room


@table("room", [200, 240, 400, 1000])
def test_the_question_is_shown_however_many_notices_there_are(room: int) -> None:
    notices = tuple(f"the file of run {number} is gone, and nothing else is known of it" for number in range(9))
    said = numbered([message("user", "Look at it"), message("assistant", "x" * 900)])
    lines = context_lines(told(Told(said, notices=notices), room))
    assert "  user: Look at it" in lines
    assert sum(map(size_of, lines)) <= room


def test_an_answer_that_does_not_fit_shows_its_beginning_and_its_end() -> None:
    answer = "beginning " + "x" * 2000 + " end"
    lines = printed([message("user", "Look"), message("assistant", answer)], room=800)
    assert lines[:3] == ["Turn 1:", "  user: Look", "  (a part of it is left out)"]
    assert lines[3].startswith("  assistant: beginning x")
    assert lines[3].endswith("x end")


CUTS = [
    ("abc", 3, "abc"),
    ("a\nb\n" * 30, 120, "a\nb\n" * 30),
    ("x" * 100, 40, f"{'x' * 20} [... 60 characters left out ...] {'x' * 20}"),
    ("word\n" * 40, 52, "word\n" * 5 + "[... 149 characters left out ...]" + "\nword" * 5 + "\n"),
    ("x" * 70, 40, "x" * 70),
]


@table(("text", "longest", "shown"), CUTS)
def test_a_text_is_cut_at_line_ends_and_only_if_that_makes_it_shorter(text: str, longest: int, shown: str) -> None:
    assert cut(text, longest) == shown


@given(st.text(alphabet="ab \n", max_size=400), st.integers(0, 400))
def test_a_cut_text_keeps_its_beginning_and_its_end_within_the_limit(text: str, longest: int) -> None:
    shown = cut(text, longest)
    before, gap, behind = shown.partition("[... ")
    number, _, behind = behind.partition(" characters left out ...]")
    if not gap:
        assert shown == text
        return
    head = before if text.startswith(before) else before.removesuffix(" ")
    tail = behind if text.endswith(behind) else behind.removeprefix(" ")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) <= longest + 2
    assert len(shown) < len(text)
    assert abs(len(text) - len(head) - len(tail) - int(number)) <= 2


def test_a_result_in_the_next_turn_is_shown_with_its_call() -> None:
    before = [message("user", "May I?"), call("x")]
    assert printed(before, [result("x", "yes"), message("assistant", "Done")]) == [
        "Turn 1:",
        "  user: May I?",
        "  call 1, Bash: {}",
        "  result 1: yes",
        "Turn 2:",
        "  assistant: Done",
    ]
    assert printed(before, [result("x", "yes")]) == ["Turn 1:", *printed(before, [result("x", "yes")])[1:]]
    long = [result("x", "y" * 3000), message("assistant", "Done")]
    assert printed(before, long, room=800) == [
        "Earlier turns:",
        "  turn 1: May I? -> (no answer)",
        "Turn 2:",
        "  assistant: Done",
    ]


def test_a_result_without_its_call_is_left_out_and_a_call_without_its_result_is_not() -> None:
    assert printed([message("user", "Look"), result("unknown"), call("x")]) == [
        "Turn 1:",
        "  user: Look",
        "  (a part of it is left out)",
        "  call 1, Bash, no result: {}",
    ]


def test_no_text_can_look_like_a_heading_or_control_the_terminal() -> None:
    lines = printed([message("user", "a\nTurn 9:\nEarlier turns:\x1b[2J"), message("assistant", "b")])
    assert lines == ["Turn 1:", "  user: a", "    Turn 9:", "    Earlier turns: [2J", "  assistant: b"]


def test_a_turn_of_a_run_is_named_after_the_run() -> None:
    source = Told([({"run": 3}, [message("assistant", "Done")])])
    assert context_lines(told(source)) == ["Run 3:", "  assistant: Done"]


def test_notices_and_the_summary_come_first_and_the_system_prompt_takes_no_room() -> None:
    said = numbered([message("user", "a"), message("assistant", "b")])
    lines = context_lines(told(Told(said, "Be brief.\n" * 100, "• Request: c", ("a file is gone",)), 200))
    assert lines[:2] == ["(a file is gone)", "System prompt:"]
    assert lines[103:] == ["Summary of older messages:", "  • Request: c", "Turn 1:", "  user: a", "  assistant: b"]


def test_only_a_few_messages_are_read_of_a_turn_that_cannot_fit() -> None:
    source = Told(numbered([message("user", "a"), *(message("assistant", "x" * 100) for _ in range(10_000))]))
    lines = context_lines(told(source, 1000))
    assert source.read < 200
    assert lines[:3] == ["Turn 1:", "  user: a", "  (a part of it is left out)"]


@table("room", [60, 8000])
def test_the_context_says_that_results_without_their_calls_are_left_out(room: int) -> None:
    assert printed([result("x")], room=room) == ["Turn 1:", "  (a part of it is left out)"]
    assert printed([result("x"), result("y")], room=room) == ["Turn 1:", "  (a part of it is left out)"]
    turn = [message("user", "Look"), result("x"), message("assistant", "Done")]
    assert printed(turn) == ["Turn 1:", "  user: Look", "  (a part of it is left out)", "  assistant: Done"]
