"""Whether an agent waits, works or is quiet: what ends its wait, and what counts as a sign of life."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.liveness import liveness
from gaia_sessions.session.permission_requests import FLUSH_TIME
from gaia_sessions.session.run_ends import with_end, with_silent_stop
from gaia_sessions.session.schema import ENDS
from tests.records import START, WHEN, record_with
from tests.table import table

if TYPE_CHECKING:
    from datetime import datetime


ASKED = START + timedelta(minutes=4)
QUIET = timedelta(minutes=10)
TICK = timedelta(microseconds=1)
AT_WORK: Any = {"run": 1, "started_at": WHEN, "host_agent_id": "a"}
WAITING: Any = {**AT_WORK, "waiting": {"since": format_time(ASKED), "for": "Bash"}}


def state(run: Any, now: datetime, written_at: datetime | None = None, **changes: Any) -> Any:
    record = record_with(run, **{"last_updated": format_time(ASKED), **changes})
    return liveness(record, run, now, QUIET, written_at)


@table("end", ENDS)
def test_every_end_of_a_run_ends_its_wait(end: str) -> None:
    ended = with_end(record_with(WAITING), WAITING, end, {}, ASKED - timedelta(minutes=1))
    assert (ended["runs"][0]["end"], "waiting" in ended["runs"][0]) == (end, False)


def test_a_silent_stop_ends_the_wait() -> None:
    [run] = with_silent_stop(record_with(WAITING), WAITING, ASKED)["runs"]
    assert ("waiting" in run, run["end"]) == (False, "stopped")


def test_a_waiting_agent_keeps_waiting_however_long_it_takes() -> None:
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
def test_a_transcript_written_after_the_request_shows_that_it_was_answered(written_at: datetime, expected: str) -> None:
    assert state(WAITING, ASKED + timedelta(minutes=5), written_at)["state"] == expected


@table(
    ("last", "written"), [(timedelta(0), None), (-timedelta(hours=1), timedelta(0)), (timedelta(hours=1), timedelta(0))]
)
def test_the_latest_sign_of_life_decides_whether_an_agent_is_quiet(last: timedelta, written: timedelta | None) -> None:
    written_at = None if written is None else ASKED + written
    changes = {"last_updated": format_time(ASKED + last)}
    seen = [state(AT_WORK, ASKED + QUIET + extra, written_at, **changes) for extra in (timedelta(0), TICK)]
    assert seen == [{"state": "working"}, {"state": "quiet", "since": format_time(ASKED)}]


def test_an_agent_with_only_future_times_has_no_state() -> None:
    future = format_time(ASKED + timedelta(days=1))
    assert state({**AT_WORK, "started_at": future}, ASKED, last_updated=future) is None
