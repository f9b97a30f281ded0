"""Requests for permission: which requests a run has, and which results answer them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import permutations
from typing import Any

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.permission_requests import (
    MOST_REQUESTS,
    SeenCall,
    SeenCalls,
    renewed,
    request_at,
    requests_of,
    unanswered,
    with_request,
)
from tests.records import START, WHEN, record_with, unchanged
from tests.table import table

ASKED = START + timedelta(minutes=4)
TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
AT_WORK: Any = {"run": 1, "started_at": WHEN, "host_agent_id": "a"}
OLD: Any = {**AT_WORK, "waiting": {"since": format_time(ASKED), "for": "Bash"}}
"""A run as earlier versions wrote it, without the input of the tool."""

MAKE = request_at(ASKED, "Bash", "make", None)
EDIT = request_at(ASKED + TICK, "Edit", "x", None)
TEST = request_at(ASKED + 2 * TICK, "Bash", "test", None)


def ask(record: Any, *requests: Any, seen: SeenCalls | None = None) -> Any:
    def rule(request: Any, before: Any) -> Any:
        return with_request(before, before["runs"][-1], request, seen)

    for request in requests:
        record = unchanged(partial(rule, request), record)
    return record


def left(record: Any) -> list[Any]:
    return requests_of(record["runs"][-1])


@table("phase", ["initializing", "executing", "validating"])
def test_a_request_makes_the_run_wait_and_keeps_the_phase(phase: str) -> None:
    record = record_with(AT_WORK, phase=phase)
    run = {**AT_WORK, "waiting": {"since": format_time(ASKED), "for": "Bash", "asked": "make"}}
    assert ask(record, MAKE) == {**record, "runs": [run], "last_updated": format_time(ASKED)}


@table("phase", ["completed", "failed", "abandoned"])
def test_a_request_in_a_final_session_is_not_activity(phase: str) -> None:
    record = record_with(AT_WORK, phase=phase)
    assert ask(record, MAKE) == {**record, "runs": [{**AT_WORK, "waiting": MAKE}]}


def test_several_requests_all_count_in_any_order() -> None:
    record = record_with(AT_WORK)
    for order in permutations([MAKE, EDIT, TEST]):
        assert ask(record, *order, *order)["runs"] == [{**AT_WORK, "waiting": {**MAKE, "others": [EDIT, TEST]}}]


def test_only_the_first_requests_up_to_the_limit_are_stored() -> None:
    many = [request_at(ASKED + number * TICK, "Bash", str(number), None) for number in range(MOST_REQUESTS + 5)]
    assert left(ask(record_with(AT_WORK), *many)) == many[:MOST_REQUESTS]


def test_a_request_updates_the_transcript_path_except_for_an_agent_of_a_workflow() -> None:
    before: Any = {**AT_WORK, "transcript_path": "/before/clear.jsonl"}
    of_workflow: Any = {**before, "workflow": {"run_id": "wf_1", "key": "k"}}
    assert renewed(before, "/now.jsonl") == {**before, "transcript_path": "/now.jsonl"}
    assert renewed(before, None) == before
    assert renewed(of_workflow, "/now.jsonl") == of_workflow


@table(
    "run",
    [
        {**AT_WORK, "ended_at": WHEN, "end": "stopped"},
        {**AT_WORK, "end": "stopped", "detail": "stopped without a word"},
        {"run": 1, "claimed_at": WHEN},
        {**AT_WORK, "own_work": {"since": WHEN, "kind": "command", "tasks": ["b1"]}},
    ],
)
def test_a_request_of_a_run_that_is_not_at_work_changes_nothing(run: Any) -> None:
    record = record_with(run)
    assert ask(record, MAKE) is record


@table("run", [OLD, {**AT_WORK, "waiting": MAKE}])
def test_any_request_replaces_a_request_from_a_wrong_clock(run: Any) -> None:
    set_back = ASKED - timedelta(minutes=5) - TICK
    waiting, other = record_with(run, last_updated=format_time(ASKED)), request_at(set_back, "Edit", "y", None)
    assert ask(waiting, other)["runs"][0]["waiting"] == other


def test_the_one_request_of_an_old_record_stays_beside_a_new_one() -> None:
    assert left(ask(record_with(OLD), EDIT)) == [OLD["waiting"], EDIT]


def seen(*calls: tuple[str, str, float | None], rounds: int = 1, strays: tuple[float, ...] = ()) -> SeenCalls:
    """A transcript: calls of one message, shortly before the requests, each with the time of its answer."""
    found = SeenCalls()
    found.rounds = [ASKED - 0.3 * SECOND + 60 * number * SECOND for number in range(rounds)]
    for number, (tool, asked, answered) in enumerate(calls):
        call = found.calls[f"toolu_{number}"] = SeenCall(tool, asked, found.rounds[0], 1)
        call.answered_at = None if answered is None else ASKED + answered * SECOND
    found.other_results = {f"stray_{number}": ASKED + at * SECOND for number, at in enumerate(strays)}
    return found


BOTH = [MAKE, EDIT]
TWO = (("Bash", "make", None), ("Edit", "x", None))


@table(
    ("transcript", "still"),
    [
        (seen(*TWO), BOTH),
        (seen(TWO[0], ("Edit", "x", 5)), [MAKE]),
        (seen(("Bash", "make", 0.2), TWO[1]), [EDIT]),
        (seen(("Bash", "make", 5), ("Edit", "x", 5)), []),
        (seen(*TWO, ("Read", "y", 5)), BOTH),  # a call without a request
        (seen(*TWO, rounds=2), []),  # the agent has made another round
        (seen(("Bash", "make", -60), ("Bash", "make", None), TWO[1]), BOTH),  # the same call a minute before
        (seen(("Bash", "make", 5), ("Bash", "make", None), ("Edit", "x", 5)), [MAKE]),  # the same call twice at once
        (seen(("Bash", "made", 5), TWO[1]), [EDIT]),  # the request has another input
        (seen(("Bash", "made", None), ("Edit", "x", 5)), [MAKE]),
        (seen(strays=(5,)), [MAKE]),  # one of two, and it is unknown which
        (seen(strays=(5, 6)), []),
        (seen(strays=(-5,)), BOTH),
        (seen(rounds=2), []),
        (seen(TWO[0], strays=(5,)), [MAKE]),
    ],
)
def test_a_result_answers_the_request_for_its_own_call(transcript: SeenCalls, still: list[Any]) -> None:
    assert unanswered(BOTH, transcript) == still


def test_a_request_with_a_key_waits_for_the_result_with_that_key() -> None:
    one, other = (request_at(ASKED, "Bash", "make", key) for key in ("toolu_0", "stray_0"))
    assert unanswered([one, other], seen(("Bash", "make", None))) == [one, other]
    assert unanswered([one, other], seen(("Bash", "make", 5))) == [other]
    assert unanswered([one, other], seen(("Bash", "make", None), strays=(5,))) == [one]


def test_a_new_request_drops_the_earlier_ones_that_the_transcript_answers() -> None:
    record = ask(record_with(AT_WORK), MAKE)
    assert left(ask(record, EDIT, seen=seen(*TWO))) == [MAKE, EDIT]
    assert left(ask(record, EDIT, seen=seen(("Bash", "make", 5)))) == [EDIT]
    again = request_at(ASKED + 60 * SECOND, "Bash", "make", None)
    assert left(ask(record, again, seen=seen(("Bash", "make", 5)))) == [again]
    assert left(ask(record, again, seen=seen(TWO[0]))) == [MAKE], "told twice"
