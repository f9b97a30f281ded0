"""Compaction: one summary replaces the older messages in the memory of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.errors import SessionFinal
from gaia_sessions.session.budget import estimated_tokens, tokens_of, with_charge, with_skill
from gaia_sessions.session.compaction import HEADING, compaction_of, is_due, summary_message, with_compaction
from gaia_sessions.session.transcript import replaced_through
from gaia_sessions.session.usage import with_consumed
from tests.examples import examples
from tests.records import START, WHEN, record_with, unchanged
from tests.session.conversations import conversation
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.transcript import Message


def message(seq: int, role: str = "user", content: str = "", **keys: Any) -> Message:
    return {"seq": seq, "turn": 1, "role": role, "content": content or f"say {seq}", "timestamp": WHEN, **keys}  # type: ignore[typeddict-item]


def talk(number: int, first: int = 1) -> list[Message]:
    roles = ("user", "assistant")
    return [message(first + place, roles[place % 2], tokens=10, charged=True) for place in range(number)]


@table("number", range(5))
def test_with_fewer_than_five_messages_nothing_is_replaced(number: int) -> None:
    assert compaction_of(talk(number), None) is None


@given(st.integers(5, 60))
def test_e15_the_newest_fifth_stays_and_one_summary_replaces_the_rest(number: int) -> None:
    found = compaction_of(talk(number), None)

    assert found is not None
    compaction, tokens = found
    kept = number - compaction["messages"]
    assert kept * 5 >= number
    assert (compaction["through"], tokens) == (number - kept, 10 * (number - kept))
    assert compaction["summary"].startswith(HEADING + "\n")
    assert compaction["summary"].count(HEADING) == 1


def test_e15_a_second_compaction_still_mentions_the_first() -> None:
    first = compaction_of(talk(10), None)
    assert first is not None
    second = compaction_of(talk(10, first=first[0]["through"] + 1), first[0])

    assert second is not None
    assert (second[0]["messages"], second[0]["through"]) == (16, 16)
    assert "say 1\n" in second[0]["summary"]
    assert second[0]["summary"].count(HEADING) == 1


def test_many_compactions_keep_the_first_and_latest_lines_and_one_line_for_the_gap() -> None:
    before, through = None, 0
    for _ in range(20):
        found = compaction_of(talk(10, first=through + 1), before)
        assert found is not None
        before, through = found[0], found[0]["through"]

    assert before is not None
    lines = before["summary"].split("\n")
    assert [line.rpartition(" ")[2] for line in lines[1:8]] == ["1", "2", "3", "4", "5", "...", "127"]
    assert (lines[0], len(lines), before["messages"]) == (HEADING, 41, 160)
    assert lines[-1].endswith("say 160")


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), st.text(max_size=300)), max_size=120)
)
def test_a_summary_is_never_longer_than_the_replaced_messages_and_keeps_its_first_lines(
    said: list[tuple[str, str]],
) -> None:
    messages = [message(seq, role, content or ".") for seq, (role, content) in enumerate(said, 1)]
    before = None
    while found := compaction_of([one for one in messages if before is None or one["seq"] > before["through"]], before):
        after, _ = found
        replaced = [one for one in messages if (before["through"] if before else 0) < one["seq"] <= after["through"]]
        size = sum(estimated_tokens(one["content"]) for one in replaced)
        assert estimated_tokens(after["summary"]) <= size + (estimated_tokens(before["summary"]) if before else 0)
        assert len(after["summary"].split("\n")) <= 41
        if before is not None:
            assert after["summary"].split("\n")[:2] == before["summary"].split("\n")[:2]
        before = after


def test_if_the_summary_would_be_longer_nothing_is_replaced() -> None:
    assert compaction_of([message(seq, content="ok") for seq in range(1, 6)], None) is None


@table("results", [1, 2, 3])
def test_a_result_stays_with_its_call(results: int) -> None:
    calls = [message(seq, "tool", tool_call_id=f"call_{seq}") for seq in range(9, 9 + results)]
    messages = [*talk(7), message(8, "assistant", "{}", tool_name="Bash", tool_call_id="call_9"), *calls]

    found = compaction_of(messages, None)

    assert found is not None
    assert found[0]["through"] == 7


def test_e15_no_call_is_separated_from_its_result_in_any_order_of_results() -> None:
    for seed in range(examples(100)):
        check_compaction(seed)


def check_compaction(seed: int) -> None:
    said = [one for _, messages in conversation(seed).turns for one in messages]
    messages: list[Message] = [{"seq": seq, "turn": 1, **one} for seq, one in enumerate(said, 1)]
    found = compaction_of(messages, None)
    if found is None:
        return
    through = found[0]["through"]
    assert (len(messages) - through) * 5 >= len(messages)
    replaced, kept = ({one.get("tool_call_id") for one in part} for part in (messages[:through], messages[through:]))
    assert replaced & kept <= {None}


def test_if_all_messages_belong_together_nothing_is_replaced() -> None:
    assert compaction_of([message(1, "assistant"), *(message(seq, "tool") for seq in range(2, 10))], None) is None


SUMMARIES = [
    (message(1, "user", "Count  the\nquokkas. " + "x" * 300), "• Request: Count the quokkas. " + "x" * 181),
    (message(1, "assistant", "I did. And more."), "• Answer: I did."),
    (message(1, "assistant", "No end " + "y" * 300), "• Answer: No end " + "y" * 143),
    (message(1, "assistant", "{}", tool_name="Bash"), "• Tool Bash: {}"),
    (message(1, "tool", "z" * 300), "• Tool result: " + "z" * 150),
]


@table(("first", "line"), SUMMARIES)
def test_each_message_becomes_one_short_line_of_the_summary(first: Message, line: str) -> None:
    found = compaction_of([first, *talk(5, first=2)], None)

    assert found is not None
    assert found[0]["summary"].split("\n")[1] == line


def test_the_summary_leaves_system_messages_out() -> None:
    found = compaction_of([message(1, "system", "secret"), *talk(5, first=2)], None)

    assert found is not None
    assert "secret" not in found[0]["summary"]


def test_the_tokens_of_the_summary_replace_those_of_the_messages() -> None:
    record = record_with(charged_tokens=100, last_updated=WHEN)
    found = compaction_of(talk(10), None)
    assert found is not None

    after = unchanged(lambda before: with_compaction(before, *found, START), record)

    assert tokens_of(after) == 20 + -(-len(found[0]["summary"].encode()) // 4)
    assert replaced_through(after) == 8
    [summary] = summary_message(after)
    assert (summary["role"], summary["content"]) == ("system", found[0]["summary"])
    with pytest.raises(SessionFinal):
        with_compaction({**record, "phase": "completed"}, *found, START)


def test_a_compaction_of_uncharged_messages_keeps_the_charges_for_work() -> None:
    uncharged: list[dict[str, Any]] = [{}, {"tokens": 10}]
    for keys in uncharged:
        found = compaction_of([message(seq, **keys) for seq in range(1, 11)], None)
        assert found is not None

        after = with_compaction(record_with(charged_tokens=5000), *found, START)

        assert tokens_of(after) == 5000 + estimated_tokens(found[0]["summary"])


STEPS = st.lists(
    st.tuples(st.sampled_from(["charge", "skill", "consume", "remember", "say", "compact"]), st.integers(0, 10_000)),
    max_size=60,
)


@given(STEPS)
def test_a_compaction_removes_only_the_charges_of_the_messages_it_replaces(
    steps: list[tuple[str, int]],
) -> None:
    record, work, consumed = record_with({"run": 1}), 0, 0
    remembered: dict[int, int] = {}
    messages: list[Message] = []
    for number, (kind, tokens) in enumerate([*steps, ("compact", 0)], 1):
        if kind == "charge":
            record, work = with_charge(record, tokens, START), work + tokens
        elif kind == "skill":
            record, work = with_skill(record, f"skill {number}", tokens, START), work + tokens
        elif kind == "consume":
            consumed += tokens
            record, work = with_consumed(record, 1, {"consumed": {"output_tokens": consumed}}), work + tokens
        elif kind == "remember":
            messages.append(message(number, tokens=tokens, charged=True))
            record, remembered[number] = with_charge(record, tokens, START), tokens
        elif kind == "say":
            messages.append(message(number, tokens=tokens))
        else:
            through = replaced_through(record)
            found = compaction_of([one for one in messages if one["seq"] > through], record.get("compaction"))
            record = with_compaction(record, *found, START) if found else record
        kept = sum(tokens for seq, tokens in remembered.items() if seq > replaced_through(record))
        summary = sum(estimated_tokens(one["content"]) for one in summary_message(record))
        assert tokens_of(record) == work + kept + summary


def test_without_a_compaction_nothing_is_replaced() -> None:
    assert (replaced_through(record_with()), summary_message(record_with())) == (0, [])


@table(("tokens", "due"), [(899, False), (900, True), (1000, True)])
def test_a_compaction_is_due_at_nine_tenths_of_the_budget(tokens: int, due: bool) -> None:  # noqa: FBT001
    assert is_due(tokens, 1000) is due
