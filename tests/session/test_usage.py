"""What agents used: each run counts once in the sum of its record, even if it is counted again or dropped."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from gaia_sessions.jsonio.strict import dumps
from gaia_sessions.session.record import new_record
from gaia_sessions.session.retention import MAX_RUNS, trim_record
from gaia_sessions.session.usage import (
    add_usage,
    span_of,
    uncounted_runs,
    with_consumed,
    with_reported_usage,
    with_total_tokens,
)
from tests.table import table

NOW = datetime(2026, 1, 8, 18, 5, tzinfo=UTC)
ENDED = "2026-01-08T18:05:00.000000Z"
STARTED = "2026-01-08T18:00:00.000000Z"


def record_of(*runs: dict[str, Any], **keys: Any) -> Any:
    made = new_record("agent-1", "Explore", "general", {}, NOW)
    return {**made, "runs": [{"run": number, **run} for number, run in enumerate(runs, 1)], **keys}


def test_each_run_counts_once_in_the_sum_however_often_it_is_counted() -> None:
    record = record_of({}, {})
    for number, counted in [(1, 5), (2, 7), (1, 5), (2, 9), (1, 6)]:
        record = with_consumed(record, number, {"consumed": {"output_tokens": counted, "tool_uses": 1}})

    assert record["usage"] == {"output_tokens": 15, "tool_uses": 2}
    assert [run["consumed"]["output_tokens"] for run in record["runs"]] == [6, 9]


def test_counting_known_usage_again_leaves_the_record_unchanged() -> None:
    record = with_consumed(record_of({}), 1, {"consumed": {"output_tokens": 5}, "model": "m-1"})

    assert with_consumed(record, 1, {"consumed": {"output_tokens": 5}, "model": "m-1"}) is record
    assert with_consumed(record, 2, {"consumed": {"output_tokens": 5}}) is record


def test_the_sum_stays_right_when_runs_are_dropped() -> None:
    record = record_of(*({"ended_at": ENDED, "end": "stopped"} for _ in range(MAX_RUNS + 10)))
    for run in list(record["runs"]):
        record = with_consumed(record, run["run"], {"consumed": {"output_tokens": 2}})
    trimmed = trim_record(record)

    assert (len(trimmed["runs"]), trimmed["runs_dropped"]) == (MAX_RUNS, 10)
    assert trimmed["usage"] == {"output_tokens": 2 * (MAX_RUNS + 10)}
    again = with_consumed(trimmed, MAX_RUNS + 10, {"consumed": {"output_tokens": 3}})
    assert again["usage"] == {"output_tokens": 2 * (MAX_RUNS + 10) + 1}
    assert with_consumed(trimmed, 1, {"consumed": {"output_tokens": 9}}) is trimmed


def test_the_model_that_the_host_reported_takes_precedence_over_any_other() -> None:
    reported = with_reported_usage(record_of({}), {"run": 1}, {"model": "m-1[1m]"})
    counted = with_consumed(record_of({}), 1, {"consumed": {"output_tokens": 5}, "model": "m-1"})

    assert with_consumed(reported, 1, {"consumed": {}, "model": "m-1"})["runs"][0]["model"] == "m-1[1m]"
    assert counted["runs"][0]["model"] == "m-1"
    assert with_reported_usage(counted, {"run": 1}, {"model": "m-1[1m]"})["runs"][0]["model"] == "m-1[1m]"


def test_a_later_report_replaces_an_earlier_one_whole_and_adds_nothing_to_the_sum() -> None:
    first = with_reported_usage(record_of({}), {"run": 1}, {"usage": {"output_tokens": 5, "total_tokens": 8}})
    second = with_reported_usage(first, first["runs"][0], {"usage": {"total_tokens": 9}})

    assert second["runs"][0]["usage"] == {"total_tokens": 9}
    assert "usage" not in second
    assert with_reported_usage(second, second["runs"][0], {"usage": {"total_tokens": 9}}) is second


def test_a_sum_that_the_host_made_itself_counts_as_consumed() -> None:
    record = with_reported_usage(
        record_of({}), {"run": 1}, {"usage": {"total_tokens": 9}, "consumed": {"total_tokens": 9}}
    )

    assert (record["usage"], record["runs"][0]["consumed"]) == ({"total_tokens": 9}, {"total_tokens": 9})


def test_a_figure_that_nobody_reported_is_absent() -> None:
    assert add_usage({"input_tokens": 1}, {"output_tokens": 2}, {}) == {"input_tokens": 1, "output_tokens": 2}
    assert add_usage({}, {}, {"output_tokens": 2}) == {}
    assert add_usage({"output_tokens": 1}, {}, {"output_tokens": 2}) == {"output_tokens": 0}
    assert with_total_tokens({}) == {}
    assert with_total_tokens({"input_tokens": 1, "tool_uses": 5}) == {
        "input_tokens": 1,
        "tool_uses": 5,
        "total_tokens": 1,
    }


def test_a_sum_stops_at_the_largest_number_that_can_be_written() -> None:
    most = (1 << 63) - 1
    record = record_of({}, usage={"input_tokens": most})

    summed = with_reported_usage(record, {"run": 1}, {"consumed": {"input_tokens": 5, "output_tokens": 5}})

    assert (summed["usage"], dumps(summed) != b"") == ({"input_tokens": most, "output_tokens": 5}, True)
    assert with_total_tokens({"input_tokens": most, "output_tokens": 1})["total_tokens"] == most


def test_only_ended_runs_without_a_count_are_uncounted_runs() -> None:
    ended = {"ended_at": ENDED, "end": "stopped"}
    record = record_of({**ended, "consumed": {}}, ended, {"end": "stopped"}, {})

    assert [run["run"] for run in uncounted_runs(record)] == [2]


@table(
    ("number", "keys", "span"),
    [(1, {}, (None, ENDED)), (2, {}, (STARTED, ENDED)), (1, {"continues": "agent-0"}, (STARTED, ENDED))],
)
def test_a_run_that_may_share_its_transcript_with_an_earlier_one_counts_from_its_start(
    number: int, keys: dict[str, Any], span: tuple[str | None, str]
) -> None:
    run = {"started_at": STARTED, "ended_at": ENDED, "end": "stopped"}
    record = record_of(*(run for _ in range(number)), **keys)

    assert span_of(record, record["runs"][-1]) == span
