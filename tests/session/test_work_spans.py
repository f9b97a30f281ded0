"""When a session worked: which times in its record are work, and how much of a span they fill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.work_spans import may_overlap, overlap_of
from tests.records import moved, record_with
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.session.schema import Record, Run

NOON = datetime(2026, 1, 8, 12, tzinfo=UTC)


def at(minute: float) -> str:
    """A time so many minutes after noon, when the session is created."""
    return format_time(NOON + timedelta(minutes=minute))


def span(start: float, end: float) -> tuple[datetime, datetime]:
    return NOON + timedelta(minutes=start), NOON + timedelta(minutes=end)


def run(
    number: int, start: float | None, end: float | None = None, how: str = "stopped", **more: Any
) -> dict[str, Any]:
    begun = {} if start is None else {"started_at": at(start)}
    ended = {} if end is None else {"ended_at": at(end), "end": how}
    return {"run": number, **begun, **ended, **more}


def record(*runs: dict[str, Any], **changed: Any) -> Record:
    return record_with(*runs, **{"created_at": at(0), "last_updated": at(0), **changed})


def overlap(
    document: Record,
    start: float,
    end: float,
    *,
    now: float = 600,
    live: Mapping[int, float] | None = None,
    written: Mapping[int, float] | None = None,
) -> Any:
    """The minutes, the share, and whether they may be more; None for no overlap."""
    at_work = {number: NOON + timedelta(minutes=minute) for number, minute in (live or {}).items()}
    wrote = {number: NOON + timedelta(minutes=minute) for number, minute in (written or {}).items()}
    moment, asked = NOON + timedelta(minutes=now), span(start, end)

    def written_at(run: Run) -> datetime | None:
        return wrote.get(run["run"])

    found = overlap_of(document, asked, moment, at_work, written_at)
    assert found is None or may_overlap(document, asked, moment), "what may not overlap is not looked at"
    if found is None:
        return None
    minutes: Any = (found["seconds"] / 60, found["share"])
    return (*minutes, "at least") if "at_least" in found else minutes


TWO = [run(1, 10, 20), run(2, 40, 60)]
CLAIM = {"claimed_at": at(10)}


@table(
    ("runs", "asked", "found"),
    [
        (TWO, (0, 100), (30, 0.3)),
        (TWO, (10, 20), (10, 1.0)),
        (TWO, (12, 16), (4, 1.0)),
        (TWO, (15, 45), (10, 1 / 3)),
        (TWO, (20, 40), None),  # the session waited for an approval in between
        (TWO, (60, 90), None),
        (TWO, (0, 10), None),
        (TWO, (0, 10.01), (0.01, 0.01 / 10.01)),
        (TWO, (10, 10), (0, 1.0)),
        (TWO, (15, 15), (0, 1.0)),
        (TWO, (20, 20), None),
        (TWO, (30, 30), None),
        ([run(1, 10, 30), run(2, 20, 40), run(3, 22, 25)], (0, 100), (30, 0.3)),
        ([run(1, 10, 10)], (0, 10), None),
        ([run(1, 10, 10)], (10, 20), (0, 0.0)),
        ([run(1, 10, 10)], (10, 10), (0, 1.0)),
        ([run(1, 30, 10)], (0, 20), None),  # a clock was set back
        ([run(1, 30, 10)], (20, 40), (0, 0.0)),
        ([run(1, 20, 30), run(2, 5, 10)], (0, 40), (15, 0.375)),
        ([run(1, None, 20, **CLAIM)], (0, 40), (10, 0.25)),
        ([run(1, 15, 20, **CLAIM)], (0, 40), (5, 0.125)),
        ([run(1, None, 20, "denied", **CLAIM)], (0, 40), None),
        ([run(1, None, 20, "lost", **CLAIM)], (0, 40), None),
        ([run(1, None, 20, "ended_with_host", **CLAIM)], (0, 40), None),
        ([run(1, None, 20, "killed", **CLAIM)], (0, 40), None),
        ([run(1, None, 20, "returned", **CLAIM)], (0, 40), (10, 0.25)),
        ([run(1, None, None, **CLAIM)], (0, 40), None),  # it has not started yet
        ([run(1, None, 20)], (0, 40), None),  # its start is unknown
    ],
)
def test_a_session_works_from_the_start_of_each_run_to_its_end(runs: Any, asked: Any, found: Any) -> None:
    assert overlap(record(*runs), *asked) == found


OPEN = run(1, 10)
LOST = run(1, 10, 200, "lost")


@table(
    ("runs", "more", "found"),
    [
        ([OPEN], {"live": {1: 90}, "now": 90}, 80),
        ([OPEN], {"live": {1: 40}, "now": 90}, 30),  # quiet since minute 40
        ([OPEN], {"now": 90}, 0),
        ([OPEN], {"now": 90, "last_updated": at(30)}, 20),
        ([OPEN], {"now": 90, "written": {1: 50}, "last_updated": at(30)}, 40),
        ([OPEN], {"now": 90, "written": {1: 95}, "last_updated": at(30)}, 20),  # in the future
        ([OPEN], {"now": 5, "live": {1: 5}}, None),  # the run began in the future
        ([run(1, None, None, unannounced=True, **CLAIM)], {"live": {1: 20}, "now": 20}, 10),
        ([LOST], {}, 0),
        ([LOST], {"last_updated": at(30)}, 20),
        ([LOST], {"written": {1: 50}}, 40),
        ([LOST], {"written": {1: 300}}, 0),
        ([LOST], {"last_updated": at(230), "history": [moved("planning", "executing", at(25))]}, 15),
        ([LOST], {"history": [moved("planning", "executing", at(25)), moved("executing", "abandoned", at(200))]}, 15),
        ([LOST, run(2, 300, 310)], {"written": {1: 50}, "last_updated": at(310)}, 40),
        ([run(1, 10, 200, "ended_with_host")], {"last_updated": at(30)}, 90),
    ],
)
def test_a_run_whose_end_nobody_saw_lasts_to_its_last_sign_of_life(runs: Any, more: Any, found: Any) -> None:
    asked = {key: more[key] for key in more.keys() & {"live", "written", "now"}}
    kept = {key: more[key] for key in more.keys() - asked.keys()}
    expected = None if found is None else (found, found / 100)
    assert overlap(record(*runs, **kept), 0, 100, **asked) == expected


MOVES = [
    moved("initializing", "planning", at(10)),
    moved("planning", "approval", at(20)),
    moved("approval", "executing", at(50)),
    moved("executing", "completed", at(60)),
]


@table(
    ("changed", "asked", "found"),
    [
        ({"last_updated": at(40)}, (0, 80), (40, 0.5)),
        ({"last_updated": at(40)}, (40, 80), None),
        ({}, (0, 80), (0, 0.0)),
        ({}, (-10, 0), None),
        ({"history": MOVES, "phase": "completed", "finalized_at": at(60)}, (0, 100), (30, 0.3)),
        ({"history": MOVES, "phase": "completed", "finalized_at": at(60)}, (20, 50), None),
        ({"history": MOVES, "phase": "completed", "finalized_at": at(60)}, (60, 70), None),
        ({"history": MOVES[:3], "phase": "executing", "last_updated": at(58)}, (0, 100), (28, 0.28)),
        ({"history": MOVES[:2], "phase": "approval", "last_updated": at(58)}, (0, 100), (20, 0.2)),
        ({"history": MOVES[:2], "phase": "approval", "last_updated": at(58)}, (20, 100), None),
        ({"phase": "approval", "last_updated": at(58)}, (0, 100), (0, 0.0)),
        ({"phase": "completed", "last_updated": at(40)}, (0, 100), (40, 0.4)),  # the users' own program wrote it
        ({"created_at": at(30), "last_updated": at(20)}, (0, 100), (0, 0.0)),  # a clock was set back
    ],
)
def test_a_session_without_runs_works_from_its_creation_except_during_approvals(
    changed: Any, asked: Any, found: Any
) -> None:
    assert overlap(record(**changed), *asked) == found


SENDS: Any = {"runs": [run(8, 70, 80), run(9, 90, 100)], "runs_dropped": 7}
WITH_FIRST = {"runs": [run(1, 10, 60), *SENDS["runs"]], "runs_dropped": 6}
MOVED = {"history": [moved("planning", "executing", at(70))], "history_dropped": 7, "last_updated": at(100)}


@table(
    ("changed", "asked", "found"),
    [
        (SENDS, (0, 200), (20, 0.1, "at least")),
        (SENDS, (20, 40), (0, 0.0, "at least")),
        (SENDS, (20, 20), (0, 0.0, "at least")),
        (SENDS, (70, 110), (20, 0.5)),
        (SENDS, (80, 90), None),
        (SENDS, (-20, 0), None),
        (WITH_FIRST, (20, 40), (20, 1.0)),
        (WITH_FIRST, (20, 80), (50, 5 / 6, "at least")),
        ({"runs": [run(5, None, 80, claimed_at=at(60))], "runs_dropped": 4}, (50, 70), (10, 0.5, "at least")),
        (MOVED, (0, 140), (30, 30 / 140, "at least")),
        (MOVED, (0, 70), (0, 0.0, "at least")),
        (MOVED, (70, 100), (30, 1.0)),
    ],
)
def test_dropped_runs_and_moves_do_not_count_and_make_the_result_a_minimum(
    changed: Any, asked: Any, found: Any
) -> None:
    assert overlap(record(**changed), *asked) == found


MINUTE = st.integers(-5, 105)


@given(st.lists(st.tuples(MINUTE, st.none() | MINUTE), max_size=5), MINUTE, st.integers(0, 50), st.integers(0, 100))
def test_the_share_is_the_part_of_the_span_in_which_the_session_worked(
    runs: list[tuple[int, int | None]], start: int, length: int, now: int
) -> None:
    """Counted minute by minute. The share is from 0 to 1."""
    first = run(1, 500, 500)  # so that the session always has a run
    document = record(first, *(run(number, *times) for number, times in enumerate(runs, 2)))
    live = {number: now for number, (_, end) in enumerate(runs, 2) if end is None}

    found = overlap(document, start, start + length, now=now, live=live)

    ends = [(begun, now if end is None else end) for begun, end in runs]
    worked = sum(any(begun <= minute < end for begun, end in ends) for minute in range(start, start + length))
    assert worked == (found[0] if found else 0)
    if found and length:
        assert found[1] == worked / length
