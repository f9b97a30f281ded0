"""The token budget of a session: charges, skills, consumption reported by hosts, and when the limit is reached."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.config import Config
from gaia_sessions.errors import BadArgument, InvalidInput, SessionFinal
from gaia_sessions.jsonio.strict import dumps
from gaia_sessions.session.budget import (
    MAX_NAME_LENGTH,
    MOST_TOKENS,
    check_skill_name,
    check_tokens,
    elapsed_seconds,
    max_tokens_of_memory,
    reported_tokens,
    tokens_of,
    usage_of,
    with_charge,
    with_skill,
    with_total,
)
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.updates import with_phase
from gaia_sessions.session.usage import with_consumed
from tests.records import START, WHEN, record_with, unchanged
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.budget import DefaultBudgets
    from gaia_sessions.session.schema import Record

LATER = START + timedelta(minutes=3)
DEFAULTS = Config({}).budgets
MOST = (1 << 63) - 1


def final(**keys: Any) -> Record:
    return with_phase(record_with(**keys), "completed", LATER)


def test_e1_a_memory_holds_64000_tokens_for_a_sub_agent_and_otherwise_200000_by_default() -> None:
    alone, child = record_with(), record_with(parent_id="agent-0")
    delegated = record_with({"run": 1, "host": "claude-code"})

    def most(record: Record, defaults: DefaultBudgets = DEFAULTS) -> int:
        return max_tokens_of_memory(record, defaults)

    assert [most(alone), most(child), most(delegated)] == [200_000, 64_000, 64_000]
    assert [most({**record, "max_tokens": 7}) for record in (alone, child, delegated)] == [7, 7, 7]
    other = Config({"max_tokens": 20, "sub_agent_max_tokens": 10}).budgets
    assert [most(alone, other), most(child, other), most(delegated, other)] == [20, 10, 10]
    assert most({**alone, "max_tokens": 0}) == 0


OF_HOST: dict[str, Any] = {"run": 1, "host": "claude-code"}
HELD = {**OF_HOST, "enforced": True}
OF_COMMAND = {"run": 2, "wrapper": {"pid": 1, "boot_id": "b", "start_time": 1, "machine": "m"}}
NEVER_BEGAN = {"run": 2, "end": "denied", "ended_at": WHEN}


@table(
    ("runs", "own", "limit", "held"),
    [
        ([], None, 500, None),
        ([], 7, 500, 7),
        ([OF_HOST], None, 500, None),
        ([OF_HOST], 7, 500, None),
        ([HELD], None, None, None),
        ([HELD], None, 500, 500),
        ([HELD], 7, 500, 7),
        ([HELD], 7, None, 7),
        ([OF_HOST, OF_COMMAND], 7, 500, 7),
        ([OF_HOST, OF_COMMAND], None, 500, None),
        ([{**OF_COMMAND, "run": 1}, {**OF_HOST, "run": 2}], 7, 500, None),
        ([HELD, {**OF_HOST, **NEVER_BEGAN}], None, 500, 500),
    ],
)
def test_a_max_tokens_that_nobody_enforces_is_no_budget_and_is_never_reached(
    runs: list[dict[str, Any]], own: int | None, limit: int | None, held: int | None
) -> None:
    own_keys: dict[str, Any] = {} if own is None else {"max_tokens": own}
    parents: list[dict[str, Any]] = [{}, {"parent_id": "agent-0"}]
    for parent in parents:
        usage = usage_of(record_with(*runs, charged_tokens=10**6, **own_keys, **parent), START, limit)
        assert (usage["max_tokens"], usage["limit_reached"]) == (held, held is not None)


@table(("tokens", "reached"), [(63_999, False), (64_000, True), (64_001, True)])
def test_e11_l8_a_limit_of_64000_tokens_is_reached_at_64000_and_not_at_63999(tokens: int, reached: bool) -> None:  # noqa: FBT001
    child = record_with(parent_id="agent-0", max_tokens=64_000)

    usage = usage_of(with_charge(child, tokens, START), START, None)

    assert (usage["tokens"], usage["max_tokens"], usage["limit_reached"]) == (tokens, 64_000, reached)


def test_charges_are_still_added_beyond_the_limit() -> None:
    record = record_with(max_tokens=5)
    for _ in range(3):
        record = with_charge(record, 3, START)

    assert usage_of(record, START, None) == {
        "agent_id": "agent-1",
        "tokens": 9,
        "max_tokens": 5,
        "limit_reached": True,
        "elapsed_secs": 0,
        "skill_tokens": 0,
    }


def test_charges_skills_and_consumed_tokens_count_once_and_cache_reads_do_not_count() -> None:
    consumed: dict[str, Any] = {"input_tokens": 100, "cache_creation_tokens": 20, "output_tokens": 3}
    consumed |= {"cache_read_tokens": 5000, "total_tokens": 5123, "tool_uses": 9, "duration_ms": 70}
    last_request = {"input_tokens": 40, "total_tokens": 999}
    record = record_with({"run": 1, "usage": last_request}, {"run": 2})
    record = with_consumed(record, 1, {"consumed": consumed})  # type: ignore[typeddict-item]  # keys of a usage
    record = with_consumed(record, 1, {"consumed": consumed})  # type: ignore[typeddict-item]  # see above
    record = with_consumed(record, 2, {"consumed": {"input_tokens": 7, "total_tokens": 7}})
    record = with_skill(with_charge(record, 1000, START), "terraform", 300, START)

    assert tokens_of(record) == 123 + 7 + 1000 + 300


@table(
    ("usage", "tokens"),
    [
        ({"input_tokens": 100, "cache_read_tokens": 80, "output_tokens": 20, "total_tokens": 120}, 40),
        ({"total_tokens": 9}, 9),
        ({"input_tokens": 5, "cache_read_tokens": 80, "output_tokens": 2}, 7),
        ({"cache_read_tokens": 80, "total_tokens": 9}, 0),
        ({"tool_uses": 3}, 0),
    ],
)
def test_usage_counts_without_cache_reads_however_the_host_adds_it_up(usage: dict[str, int], tokens: int) -> None:
    assert tokens_of(record_with(usage=usage)) == tokens


def test_a_stated_total_replaces_the_sum_and_later_use_adds_to_it() -> None:
    record = record_with({"run": 1})
    record = with_skill(with_charge(record, 500, START), "terraform", 300, START)
    record = with_consumed(record, 1, {"consumed": {"output_tokens": 1000}})

    record = unchanged(lambda one: with_total(one, 700, START), record)
    assert (tokens_of(record), record["charged_tokens"], record["skills"]) == (700, 500, {"terraform": 300})
    record = with_consumed(record, 1, {"consumed": {"output_tokens": 1250}})
    assert tokens_of(record) == 950
    record = with_skill(with_charge(record, 10, START), "aws", 40, START)
    assert tokens_of(record) == 1000
    assert tokens_of(with_total(record, 0, START)) == 0
    assert tokens_of(with_charge(with_total(record, 0, START), 1, START)) == 1


STEPS = st.tuples(st.sampled_from(["charge", "total", "skill", "consume"]), st.integers(0, 10_000))


@given(st.lists(STEPS, max_size=30))
def test_the_sum_is_always_the_last_stated_total_plus_everything_added_since(steps: list[tuple[str, int]]) -> None:
    record, expected, consumed = record_with({"run": 1}), 0, 0
    for number, (kind, tokens) in enumerate(steps):
        if kind == "charge":
            record, expected = with_charge(record, tokens, START), expected + tokens
        elif kind == "total":
            record, expected = with_total(record, tokens, START), tokens
        elif kind == "skill":
            record, expected = with_skill(record, f"skill {number}", tokens, START), expected + tokens
        else:
            consumed += tokens
            record = with_consumed(record, 1, {"consumed": {"output_tokens": consumed, "total_tokens": consumed}})
            expected += tokens
        assert tokens_of(record) == expected


@table(
    ("keys", "tokens"),
    [
        ({}, None),
        ({"usage": {}}, None),
        ({"usage": {"tool_uses": 3, "duration_ms": 9}, "max_tokens": 5}, None),
        ({"usage": {"total_tokens": 0}}, 0),
        ({"charged_tokens": 0}, 0),
        ({"token_correction": 0}, 0),
        ({"charged_tokens": 7, "skills": {"aws": 3}, "usage": {"output_tokens": 5}}, 15),
    ],
)
def test_unreported_tokens_are_none_and_not_0(keys: Any, tokens: int | None) -> None:
    assert reported_tokens({**record_with(), **keys}) == tokens


def test_e8_a_skill_counts_once_and_charging_it_again_changes_nothing() -> None:
    first = unchanged(lambda record: with_skill(record, "s", 100, LATER), record_with())
    assert (first["skills"], tokens_of(first)) == ({"s": 100}, 100)
    assert with_skill(first, "s", 500, LATER) is first
    both = with_skill(first, "t", 30, LATER)
    assert (list(both["skills"].items()), usage_of(both, LATER, None)["skill_tokens"]) == (
        [("s", 100), ("t", 30)],
        130,
    )


def test_e13_elapsed_time_is_whole_seconds_never_negative_and_stops_at_the_end() -> None:
    record = record_with()
    times = [START - timedelta(hours=1), START, START + timedelta(seconds=1.9), START + timedelta(days=2)]
    assert [elapsed_seconds(record, now) for now in times] == [0, 0, 1, 172_800]
    assert [elapsed_seconds(final(), now) for now in times] == [180, 180, 180, 180]
    imported = record_with(phase="failed", last_updated=format_time(START + timedelta(seconds=9)))
    assert elapsed_seconds(imported, LATER) == 9


CHANGES: list[Callable[[Record], Record]] = [
    lambda record: with_charge(record, 1, LATER),
    lambda record: with_charge(record, 0, LATER),
    lambda record: with_total(record, 1, LATER),
    lambda record: with_skill(record, "s", 1, LATER),
]


@table("change", CHANGES)
def test_every_charge_is_activity_and_a_final_session_refuses_it(change: Callable[[Record], Record]) -> None:
    assert unchanged(change, record_with())["last_updated"] == format_time(LATER)
    with pytest.raises(SessionFinal):
        change(final())


def test_a_final_session_accepts_a_total_or_skill_that_it_already_has() -> None:
    ended = final(charged_tokens=5, skills={"s": 5})

    assert with_total(ended, 10, LATER) is ended
    assert with_skill(ended, "s", 7, LATER) is ended


@table("tokens", [-1, MOST_TOKENS + 1, 10**5000, 1.0, "5", None, True])
def test_a_number_of_tokens_out_of_range_or_of_another_type_is_refused(tokens: object) -> None:
    with pytest.raises(BadArgument) as refused:
        check_tokens("tokens", tokens)
    assert refused.value.hint == "must be a whole number from 0 to 1,000,000,000,000"


def test_sums_stop_at_the_largest_number_that_a_record_can_hold() -> None:
    record = with_charge(record_with(charged_tokens=MOST, usage={"total_tokens": MOST}, skills={"s": MOST}), 1, START)
    stated = with_total(record, 3, START)

    for one in (record, stated):
        usage = usage_of(one, START, None)
        assert (usage["tokens"], usage["skill_tokens"], dumps(one) != b"", dumps(usage) != b"") == (
            MOST,
            MOST,
            True,
            True,
        )


@table("name", ["", "  ", "a\nb", "a\x1b[2J", " a", "a\u202eb", "a\udcff", "x" * 201, 5, None])
def test_an_invalid_skill_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_skill_name(name)
    assert refused.value.where == "name"


@table("name", ["terraform", "a b", "навык", "x" * MAX_NAME_LENGTH])
def test_any_line_of_text_up_to_the_limit_is_a_skill_name(name: str) -> None:
    assert check_skill_name(name) == name
