"""What stays in a record: the newest runs, the latest message whole, and room for the end of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import InvalidInput, TooLarge
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.record import decode, encode
from gaia_sessions.session.retention import MAX_RUNS, RESERVED_BYTES, ROOM_FOR_ENDS, fit_record, trim_record
from gaia_sessions.session.updates import MAX_ANSWERS, MAX_HISTORY
from tests.records import WHEN, moved, record_with, unchanged
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

LIMIT = DOCUMENT_LIMIT
ENDED = {"ended_at": WHEN, "end": "stopped"}


def ended_run(number: int, **known: Any) -> dict[str, Any]:
    return {"run": number, **ENDED, **known}


def filled(record: Any, size: int) -> Any:
    """``record`` with so much metadata that it has ``size`` bytes."""
    record = {**record, "metadata": {"fill": ""}}
    return {**record, "metadata": {"fill": "x" * (size - len(encode(record)))}}


def test_the_newest_50_runs_and_earlier_runs_at_work_stay_in_the_record() -> None:
    open_runs = [{"run": 3, "started_at": WHEN}, {"run": 4, "claimed_at": WHEN}]
    runs = [ended_run(1), ended_run(2), *open_runs, *(ended_run(number) for number in range(5, 61))]
    record = record_with(*runs)

    kept = unchanged(trim_record, record)

    assert kept == {**record, "runs": [open_runs[0], *runs[10:]], "runs_dropped": 9}
    assert (len(kept["runs"]), MAX_RUNS) == (51, 50)
    assert trim_record(kept) is kept


def test_runs_that_are_dropped_later_are_added_to_the_count() -> None:
    record: Any = {**record_with(), "runs": [ended_run(number) for number in range(8, 60)], "runs_dropped": 7}

    assert trim_record(record) == {**record, "runs": record["runs"][2:], "runs_dropped": 9}


def test_a_record_with_50_runs_stays_as_it_is() -> None:
    record = record_with(*(ended_run(number) for number in range(1, 51)))
    assert trim_record(record) is record


def test_only_the_latest_message_stays_whole_and_earlier_ones_keep_their_end() -> None:
    said = [f"{number} {'x' * 4000} {number}" for number in range(3)]
    record = record_with(
        ended_run(1, last_message=said[0]),
        ended_run(2, last_message="short"),
        ended_run(3, last_message=said[1]),
        ended_run(4, last_message=said[2]),
        {"run": 5, "started_at": WHEN},
    )

    kept = unchanged(trim_record, record)

    messages = [run.get("last_message") for run in kept["runs"]]
    assert messages == [said[0][-200:], "short", said[1][-200:], said[2], None]
    assert trim_record(kept) is kept


@table("key", ["last_message", "detail"])
def test_earlier_texts_are_shortened_to_200_characters(key: str) -> None:
    record = record_with(*(ended_run(number, **{key: f"{'a' * 300}{'z' * 300}"}) for number in (1, 2)))
    first, last = trim_record(record)["runs"]
    assert (first, last) == (
        {**record["runs"][0], key: {"last_message": "z", "detail": "a"}[key] * 200},
        record["runs"][1],
    )


def test_notes_of_earlier_answers_are_shortened_to_200_characters() -> None:
    given: Any = [
        {"answer": "approval", "timestamp": WHEN, "by": "approve"} | said for said in ({}, LONG_SAID, LONG_SAID)
    ]
    record: Any = {**record_with(), "answers": given}
    assert trim_record(record)["answers"] == [given[0], {**given[1], "message": "y" * 200}, given[2]]


def test_an_answer_that_no_run_has_received_stays_whole() -> None:
    given: Any = [
        {"answer": "approved", "timestamp": WHEN, "by": "approve", "after_run": after, **LONG_SAID}
        for after in (0, 1, 1)
    ]
    record: Any = {**record_with({"run": 1, "started_at": WHEN}), "answers": given}
    kept = trim_record(record)
    assert kept["answers"] == [{**given[0], "message": "y" * 200}, *given[1:]]
    assert trim_record(kept) is kept


def test_fifty_full_runs_and_their_answers_fit_into_the_room_for_ends() -> None:
    figures = dict.fromkeys(["input_tokens", "output_tokens", "cache_read_input_tokens", "total_tokens"], 10**9)
    told: Any = {
        **dict.fromkeys(("host_session_id", "host_agent_id", "tool_use_id", "parent_host_agent_id"), "h" * 36),
        **dict.fromkeys(("transcript_path", "output_path"), "/p" * 150),
        **dict.fromkeys(("claimed_at", "started_at", "warned_at"), WHEN),
        "usage": figures,
        "consumed": figures,
        "worktree": {"path": "/w" * 100, "branch": "b" * 100},
        "conversation": CONVERSATION,
        **dict.fromkeys(("last_message", "detail"), "t" * MAX_MESSAGE_LENGTH),
    }
    given = {"answer": "approval", "timestamp": WHEN, "by": "approve", "message": "y" * MAX_MESSAGE_LENGTH}
    record: Any = record_with(
        *(ended_run(number, **told) for number in range(1, 60)),
        answers=[given] * MAX_ANSWERS,
        approval=given,
        last_error={"message": "e" * MAX_MESSAGE_LENGTH, "timestamp": WHEN},
        history=[moved("planning", "approval")] * MAX_HISTORY,
        summary="s" * MAX_MESSAGE_LENGTH,
    )
    assert len(encode(trim_record(record))) < ROOM_FOR_ENDS


def test_a_record_of_a_later_version_is_stored_as_it_is() -> None:
    newer: Any = {"agent_id": "agent-1", "schema": 2, "runs": "something of later"}
    assert fit_record(newer) == (newer, encode(newer))
    with pytest.raises(TooLarge):
        fit_record(newer | {"runs": "x" * LIMIT})


def test_runs_may_skip_the_numbers_of_dropped_runs() -> None:
    record: Any = {**record_with(), "runs": [ended_run(3), ended_run(60), ended_run(61)], "runs_dropped": 58}
    assert decode(encode(record), "agent-1") == record


@table(
    ("numbers", "dropped", "wrong", "place"),
    [
        ([1, 3], 0, "must be 2", 1),  # one is missing
        ([2], 0, "must be 1", 0),  # the first is missing
        ([1, 1], 1, "must be 3", 1),  # the same number twice
        ([3, 2, 6], 3, "must be from 4 to 5", 1),  # not ascending
        ([5, 6], 3, "must be from 1 to 4", 0),  # more than were dropped
        ([1, 2], 3, "must be 5", 1),  # fewer than were dropped
        ([0, 5], 3, "must be a whole number from 1", 0),  # 0 is not a number of a run
    ],
)
def test_a_record_whose_runs_are_not_numbered_in_order_is_refused(
    numbers: list[int], dropped: int, wrong: str, place: int
) -> None:
    record: Any = {**record_with(), "runs": [{"run": number} for number in numbers], "runs_dropped": dropped}
    with pytest.raises(InvalidInput, match=wrong) as refused:
        decode(encode(record), "agent-1")
    assert refused.value.where == f"runs[{place}].run"


def test_a_record_that_fits_is_not_shortened_whatever_is_in_it() -> None:
    run = ended_run(2, last_message="m" * MAX_MESSAGE_LENGTH, detail="d" * MAX_MESSAGE_LENGTH)
    record = filled(record_with(ended_run(1, last_message="e"), run), LIMIT)

    assert unchanged(fit_record, record) == (record, encode(record))


LONG_SAID = {"message": "y" * 4000}
CONVERSATION = {"preset": "claude", "id": "c" * 36, "cwd": "/w" * 50, "generation": 0, "seq": 1}


def test_a_record_that_is_too_large_loses_parts_in_order_but_never_metadata() -> None:
    full = record_with(
        ended_run(1, last_message="e" * 200, transcript_path="/t" * 50),
        {"run": 2, "started_at": WHEN},
        {"run": 3, "claimed_at": WHEN, "host_session_id": "h" * 36},
        ended_run(4, last_message="m" * 4000, detail="d" * 4000, transcript_path="/t" * 50, conversation=CONVERSATION),
        last_error={"message": "d" * 4000, "timestamp": WHEN},
        error_count=1,
        answers=[{"answer": "approval", "timestamp": WHEN, "message": "yes", "by": "approve"}],
    )
    seen = []
    fill, over = filled(full, LIMIT)["metadata"]["fill"], 1
    for _ in range(3):
        record: Any = {**full, "metadata": {"fill": fill + "x" * over}}
        kept, data = fit_record(record)
        assert (len(data) <= LIMIT, data) == (True, encode(kept))
        assert kept["metadata"] == record["metadata"]
        seen.append(described(kept))
        over += LIMIT - len(data) + 1  # one byte more than fits in this form
    with pytest.raises(TooLarge):
        fit_record({**full, "metadata": {"fill": fill + "x" * over}})

    assert seen == [
        ((1, 2, 3, 4), 40, 40, 40, True, True),
        ((2, 4), 40, 40, 40, False, True),
        ((2, 4), 40, 40, 40, False, False),
    ]


def described(record: Record) -> tuple[object, ...]:
    """Which runs are in the record, and how much of the removable parts."""
    runs: list[Any] = record["runs"]
    last = record["last_error"]
    assert last
    return (
        tuple(run["run"] for run in runs),
        len(runs[-1]["last_message"]),
        len(runs[-1]["detail"]),
        len(last["message"]),
        "answers" in record,
        "transcript_path" in runs[-1] and "conversation" in runs[-1],
    )


def test_an_error_reported_by_command_is_not_shortened() -> None:
    told = {"message": "e" * 4000, "timestamp": WHEN}
    record = record_with(ended_run(1, detail="d" * 4000), last_error=told, error_count=1)
    kept, _ = fit_record(filled(record, LIMIT) | {"summary": "s" * 3000})
    assert (kept["last_error"], len(kept["runs"][0]["detail"])) == (told, 40)


def test_a_record_that_cannot_be_shortened_enough_is_refused() -> None:
    with pytest.raises(TooLarge):
        fit_record(filled(record_with(), LIMIT + 1))


def test_an_update_must_leave_room_for_the_end_and_nothing_is_shortened_for_it() -> None:
    record = filled(record_with(ended_run(1, last_message="m" * 4000)), LIMIT - RESERVED_BYTES)
    assert fit_record(record, RESERVED_BYTES) == (record, encode(record))

    larger = record | {"purpose": record["purpose"] + "x"}
    with pytest.raises(TooLarge) as refused:
        fit_record(larger, RESERVED_BYTES, record)
    assert (refused.value.size, refused.value.limit) == (LIMIT - RESERVED_BYTES + 1, LIMIT - RESERVED_BYTES)


def test_a_change_that_does_not_enlarge_a_record_is_accepted_even_without_room() -> None:
    record = filled(record_with(), LIMIT)
    same, smaller = record | {"revision": 2}, filled(record_with(), LIMIT - 1)

    assert fit_record(same, RESERVED_BYTES, record) == (same, encode(same))
    assert fit_record(smaller, RESERVED_BYTES, record) == (smaller, encode(smaller))
    with pytest.raises(TooLarge):
        fit_record(record, RESERVED_BYTES, smaller)
