"""Which stops are held back because of open todos, how often, and what is counted."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from gaia_sessions.session.held_stops import MOST_HOLDS, may_be_held, open_text, with_hold
from gaia_sessions.session.runs import times_held
from tests.records import START, WHEN, record_with, unchanged
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

NOW = START + timedelta(minutes=4)
TODOS = [{"description": "read", "status": "completed"}, {"description": "write", "status": "pending"}]
AT_WORK = {"run": 1, "host": "claude-code", "host_session_id": "s", "host_agent_id": "a", "started_at": WHEN}
WAITING = {"since": WHEN, "for": "Bash"}
ENDED = {**AT_WORK, "ended_at": WHEN, "end": "stopped"}


def held(one: Record, stop: str) -> Record | None:
    return with_hold(one, one["runs"][-1], stop, 3, NOW)


def record(run: dict[str, Any], *later: dict[str, Any], **changed: Any) -> Record:
    return record_with({**AT_WORK, **run}, *later, **{"todos": TODOS, **changed})


@table(
    ("one", "is_held"),
    [
        (record({}), True),
        (record({"waiting": WAITING}), True),
        (record({}, todos=[{**TODOS[1], "status": "in_progress"}]), True),
        (record({"reported": "executing"}), True),
        (record({}, phase="initializing"), True),
        (record({}, todos=TODOS[:1]), False),
        (record({}, todos=[{**TODOS[1], "status": "cancelled"}]), False),
        (record({}, todos=[]), False),
        (record({}, phase="completed", finalized_at=WHEN), False),
        (record({"reported": "approval"}), False),
        (record({"ended_at": WHEN, "end": "stopped"}), False),
        (record({"end": "stopped"}), False),
        (record({"own_work": {"since": WHEN, "kind": "command", "tasks": ["b"]}}), False),
        (record({"workflow": {"run_id": "wf_1", "key": "k"}}), False),
        (record({"wrapper": {"pid": 1}}), False),
        (record({"wrapper": {"pid": 1}, "turn": 1}), False),
        (record({}, {**AT_WORK, "run": 2}), False),
        (record({"unanswered": True}, phase="approval"), False),
        (record_with({"run": 1, "host_session_id": "s", "claimed_at": WHEN}, todos=TODOS), False),
    ],
)
def test_only_an_agent_at_work_with_open_todos_and_no_question_is_held(one: Record, *, is_held: bool) -> None:
    run = one["runs"][0]
    assert may_be_held(one, run) is is_held
    assert (with_hold(one, run, "0a", MOST_HOLDS, NOW) is not None) is is_held


def test_each_held_stop_counts_once_and_only_up_to_the_limit() -> None:
    one = record({"waiting": WAITING})
    for number, stop in enumerate(("0a", "0b", "0c"), 1):
        one = unchanged(partial(held, stop=stop), one)
        assert one["runs"] == [{**AT_WORK, "held": ["0a", "0b", "0c"][:number]}]
        assert (one["last_updated"], times_held(one)) == ("2026-01-08T18:04:00.000000Z", number)
    assert (held(one, "0d"), held(one, "0b") is one) == (None, True)


def test_a_resumed_run_counts_its_held_stops_from_zero() -> None:
    one = record({**ENDED, "held": ["0a"] * MOST_HOLDS}, {**AT_WORK, "run": 2})
    assert times_held(one) == 0
    assert with_hold(one, one["runs"][1], "0b", MOST_HOLDS, NOW) is not None


@table(
    ("figures", "text"),
    [
        ((2, 3, 0), "2 of 3"),
        ((2, 3, 1), "2 of 3, after 1 reminder"),
        ((2, 3, 8), "2 of 3, after 8 reminders"),
    ],
)
def test_open_todos_and_reminders_are_reported_in_one_phrase(figures: tuple[int, int, int], text: str) -> None:
    assert open_text(*figures) == text
