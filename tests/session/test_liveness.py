"""Whether an agent waits, is heard of or is quiet: what marks a run, what clears it, what a sign of life is."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.liveness import FLUSH_TIME, liveness, with_answer, with_request
from gaia_sessions.session.run_ends import with_end, with_silent_stop
from gaia_sessions.session.schema import ENDS
from tests.records import START, WHEN, record_with, unchanged
from tests.table import table

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.schema import Record

ASKED = START + timedelta(minutes=4)
QUIET = timedelta(minutes=10)
TICK = timedelta(microseconds=1)
AT_WORK: Any = {"run": 1, "started_at": WHEN, "host_agent_id": "a"}
WAITING: Any = {**AT_WORK, "waiting": {"since": format_time(ASKED), "for": "Bash"}}


def ask(record: Record, now: datetime = ASKED, tool: str = "Bash") -> Any:
    return unchanged(lambda before: with_request(before, before["runs"][-1], tool, None, now), record)


def answer(record: Record, now: datetime) -> Any:
    return unchanged(lambda before: with_answer(before, before["runs"][-1], now), record)


def state(run: Any, now: datetime, written_at: datetime | None = None, **changes: Any) -> Any:
    record = record_with(run, **{"last_updated": format_time(ASKED), **changes})
    return liveness(record, run, now, QUIET, written_at)


@table("phase", ["initializing", "executing", "validating"])
def test_a_request_marks_the_run_and_moves_no_phase(phase: str) -> None:
    record = record_with(AT_WORK, phase=phase)
    assert ask(record) == {**record, "runs": [WAITING], "last_updated": format_time(ASKED)}


def test_the_latest_of_several_requests_counts_in_whatever_order_they_are_heard() -> None:
    record, later = record_with(AT_WORK), ASKED + TICK
    in_order, swapped = ask(ask(record), later, "Edit"), ask(ask(record, later, "Edit"))
    assert in_order == swapped
    assert in_order["runs"][0]["waiting"] == {"since": format_time(later), "for": "Edit"}


def test_a_request_says_where_the_agent_writes_by_now() -> None:
    record = record_with({**AT_WORK, "transcript_path": "/before/clear.jsonl"})
    [run] = with_request(record, record["runs"][-1], "Bash", "/now.jsonl", ASKED)["runs"]
    assert run == {**WAITING, "transcript_path": "/now.jsonl"}


def test_a_request_of_a_workflows_agent_leaves_its_transcript_among_those_of_the_workflow() -> None:
    at_work: Any = {**AT_WORK, "workflow": {"run_id": "wf_1", "key": "k"}, "transcript_path": "/workflows/wf_1/a.jsonl"}
    [run] = with_request(record_with(at_work), at_work, "Bash", "/a.jsonl", ASKED)["runs"]
    assert run == {**at_work, "waiting": WAITING["waiting"]}


@table(
    "run",
    [
        {**AT_WORK, "ended_at": WHEN, "end": "stopped"},
        {**AT_WORK, "end": "stopped", "detail": "stopped without a word"},
        {"run": 1, "claimed_at": WHEN},
    ],
)
def test_nobody_waits_who_is_not_at_work(run: Any) -> None:
    record = record_with(run)
    assert ask(record) is record


def test_only_news_later_than_the_request_answers_it() -> None:
    record = record_with(WAITING)
    assert [answer(record, ASKED - TICK) is record, answer(record, ASKED) is record] == [True, True]
    later = ASKED + TICK
    assert answer(record, later) == {**record, "runs": [AT_WORK], "last_updated": format_time(later)}


def test_a_request_of_a_clock_that_was_wrong_is_answered_by_any_news_and_replaced_by_any_request() -> None:
    set_back = ASKED - timedelta(minutes=5) - TICK
    waiting = record_with(WAITING, last_updated=format_time(ASKED))

    assert answer(waiting, set_back) == {**waiting, "runs": [AT_WORK], "last_updated": format_time(set_back)}
    assert ask(waiting, set_back, "Edit")["runs"][0]["waiting"] == {"since": format_time(set_back), "for": "Edit"}
    assert answer(waiting, set_back + TICK) is waiting


def test_news_of_who_does_not_wait_changes_nothing() -> None:
    record = record_with(AT_WORK)
    assert answer(record, ASKED) is record


def test_a_final_session_stays_as_it_was_last_active() -> None:
    record = record_with(WAITING, phase="completed", last_updated=WHEN)
    assert answer(record, ASKED + TICK) == {**record, "runs": [AT_WORK]}


@table("end", ENDS)
def test_whatever_ends_a_run_ends_its_wait(end: str) -> None:
    ended = with_end(record_with(WAITING), WAITING, end, {}, ASKED - timedelta(minutes=1))
    assert (ended["runs"][0]["end"], "waiting" in ended["runs"][0]) == (end, False)


def test_a_stop_without_a_word_ends_the_wait() -> None:
    [run] = with_silent_stop(record_with(WAITING), WAITING, ASKED)["runs"]
    assert ("waiting" in run, run["end"]) == (False, "stopped")


def test_who_waits_does_so_however_long_it_takes() -> None:
    assert state(WAITING, ASKED + timedelta(days=1)) == {"state": "waiting", "since": format_time(ASKED), "for": "Bash"}


@table(
    ("written_at", "expected"),
    [
        (ASKED - timedelta(hours=1), "waiting"),
        (ASKED + FLUSH_TIME, "waiting"),
        (ASKED + FLUSH_TIME + TICK, "working"),
        (ASKED + timedelta(hours=2), "waiting"),
    ],
)
def test_a_transcript_written_to_since_the_request_shows_that_it_was_answered(
    written_at: datetime, expected: str
) -> None:
    assert state(WAITING, ASKED + timedelta(minutes=5), written_at)["state"] == expected


@table(
    ("last", "written"), [(timedelta(0), None), (-timedelta(hours=1), timedelta(0)), (timedelta(hours=1), timedelta(0))]
)
def test_the_latest_sign_of_life_decides_whether_an_agent_is_quiet(last: timedelta, written: timedelta | None) -> None:
    written_at = None if written is None else ASKED + written
    changes = {"last_updated": format_time(ASKED + last)}
    seen = [state(AT_WORK, ASKED + QUIET + extra, written_at, **changes) for extra in (timedelta(0), TICK)]
    assert seen == [{"state": "working"}, {"state": "quiet", "since": format_time(ASKED)}]


def test_of_who_is_only_known_from_the_future_nothing_is_said() -> None:
    future = format_time(ASKED + timedelta(days=1))
    assert state({**AT_WORK, "started_at": future}, ASKED, last_updated=future) is None
