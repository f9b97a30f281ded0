from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.ids import quick_digest
from gaia_sessions.session.phases import APPROVAL, EXECUTING, INVESTIGATING, OPEN, PHASES, PLANNING, is_final
from gaia_sessions.session.record import encode
from gaia_sessions.session.runs import with_run
from gaia_sessions.session.tool_inference import (
    MAX_RECENT_CALLS,
    MAX_TOOL_NAMES,
    with_permission_request,
    with_tool_use,
)
from tests.records import WHEN, moved, record_with, unchanged
from tests.session.test_runs import LATER
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import Record

WORKING: dict[str, Any] = {"run": 1, "host": "claude-code", "host_session_id": "h", "host_agent_id": "a"}


def tell(record: Record, *, writes: bool = False, call: str = "c1", name: str = "Bash") -> Any:
    return unchanged(lambda before: with_tool_use(before, before["runs"][-1], call, name, LATER, writes=writes), record)


def ask(record: Record) -> Any:
    return unchanged(lambda before: with_permission_request(before, before["runs"][-1], LATER), record)


def test_a_call_is_counted_and_is_activity_and_nothing_else() -> None:
    record = record_with(WORKING)
    told = tell(record, name="Read")
    assert told == {**record, "last_updated": WHEN, "tools": {"counts": {"Read": 1}, "recent": [quick_digest("c1")]}}


def test_calls_are_counted_by_the_name_of_their_tool() -> None:
    record = record_with(WORKING)
    for call, name in [("c1", "Read"), ("c2", "Bash"), ("c3", "Read")]:
        record = tell(record, call=call, name=name)
    assert record["tools"] == {
        "counts": {"Read": 2, "Bash": 1},
        "recent": [quick_digest("c1"), quick_digest("c2"), quick_digest("c3")],
    }


def test_a_sign_of_life_mends_activity_that_lies_in_the_future() -> None:
    record = {**record_with(WORKING), "last_updated": format_time(LATER + timedelta(days=1))}
    assert tell(record)["last_updated"] == format_time(LATER)  # type: ignore[arg-type]
    ahead = {**record_with(WORKING), "last_updated": format_time(LATER + timedelta(minutes=4))}
    assert tell(ahead)["last_updated"] == ahead["last_updated"]  # type: ignore[arg-type]


def test_the_same_call_told_again_changes_nothing() -> None:
    record = tell(record_with(WORKING), writes=True)
    assert tell(record, writes=True) is record


def test_only_the_latest_calls_are_remembered_and_all_are_counted() -> None:
    record = record_with(WORKING)
    for number in range(MAX_RECENT_CALLS + 5):
        record = tell(record, call=f"c{number}")
    assert record["tools"] == {
        "counts": {"Bash": MAX_RECENT_CALLS + 5},
        "recent": [quick_digest(f"c{number}") for number in range(5, MAX_RECENT_CALLS + 5)],
    }


def test_of_sixty_calls_told_twice_in_any_order_each_counts_once_and_the_record_stays_small() -> None:
    record = record_with(WORKING)
    calls = [f"toolu_01{number:022d}" for number in range(MAX_RECENT_CALLS)]
    for call in [*calls[:60], *reversed(calls[:60]), *calls, *calls]:
        record = tell(record, call=call)
    assert record["tools"]["counts"] == {"Bash": MAX_RECENT_CALLS}
    assert len(encode(record)) < 5000


@table("one", ["c1", "x" * 200, "é", ""])
@table("other", ["c2", "x" * 199 + "y", "y" + "x" * 199, "è"])
def test_calls_that_differ_in_anything_are_two(one: str, other: str) -> None:
    assert quick_digest(one) != quick_digest(other)
    assert {len(quick_digest(one)), len(quick_digest(other))} == {8}


@table("writes", [True, False])
def test_only_the_agent_itself_says_that_it_has_heard_of_a_denial(writes: bool) -> None:  # noqa: FBT001
    denial = {"message": "no", "timestamp": WHEN}
    record: Any = {**ask(record_with(WORKING, phase=PLANNING)), "denial": denial}
    told = tell(record, writes=writes)
    assert (told["phase"], told["denial"], told["tools"]["counts"]) == (APPROVAL, denial, {"Bash": 1})


def test_names_beyond_the_most_are_counted_together_and_known_ones_go_on() -> None:
    record = record_with(WORKING)
    for number in range(MAX_TOOL_NAMES + 5):
        record = tell(record, call=f"c{number}", name=f"tool{number}")
    record = tell(record, call="again", name="tool0")
    assert record["tools"]["counts"] == {
        **{f"tool{number}": 1 + (number == 0) for number in range(MAX_TOOL_NAMES - 1)},
        "other": 6,
    }


@table("phase", ["initializing", INVESTIGATING, PLANNING])
def test_a_first_edit_or_command_that_does_not_only_read_begins_the_execution(phase: str) -> None:
    record = record_with(WORKING, phase=phase, resume_ready=True)
    assert tell(record, writes=True) == {
        **record,
        "last_updated": WHEN,
        "tools": {"counts": {"Bash": 1}, "recent": [quick_digest("c1")]},
        "phase": EXECUTING,
        "resume_ready": False,
        "history": [moved(phase, EXECUTING)],
        "runs": [{**WORKING, "inferred": EXECUTING}],
    }


@table("phase", [EXECUTING, "validating", APPROVAL])
@table("writes", [True, False])
def test_from_these_phases_no_tool_leads_away(phase: str, writes: bool) -> None:  # noqa: FBT001
    record = record_with(WORKING, phase=phase)
    told = tell(record, writes=writes)
    assert (told["phase"], told["history"], told["runs"]) == (phase, [], [WORKING])


@table("phase", [phase for phase in OPEN if phase != APPROVAL])
def test_a_request_for_permission_is_an_approval(phase: str) -> None:
    record = record_with(WORKING, phase=phase)
    assert ask(record) == {
        **record,
        "last_updated": WHEN,
        "phase": APPROVAL,
        "resume_ready": True,
        "history": [moved(phase, APPROVAL)],
        "runs": [{**WORKING, "inferred": APPROVAL}],
    }


@table(
    ("phase", "writes", "then"),
    [
        ("initializing", False, INVESTIGATING),
        (INVESTIGATING, False, INVESTIGATING),
        (PLANNING, False, PLANNING),
        (EXECUTING, False, EXECUTING),
        ("validating", False, "validating"),
        *((phase, True, EXECUTING) for phase in OPEN if phase != APPROVAL),
    ],
)
def test_the_tool_used_after_a_request_answers_it(phase: str, writes: bool, then: str) -> None:  # noqa: FBT001
    told = tell(ask(record_with(WORKING, phase=phase)), writes=writes)
    assert (told["phase"], told["runs"][0]["inferred"]) == (then, then)
    assert told["history"] == [moved(phase, APPROVAL), moved(APPROVAL, then)]


@table("phase", OPEN)
@table("tell_of", [lambda record: tell(record, writes=True), ask])
def test_what_the_agent_itself_reported_stands(phase: str, tell_of: Callable[[Record], Any]) -> None:
    run = {**WORKING, "reported": phase}
    told = tell_of(record_with(run, phase=phase))
    assert (told["phase"], told["history"], told["runs"]) == (phase, [], [run])


def test_an_approval_that_was_inferred_gives_way_to_a_report() -> None:
    waiting = ask(record_with(WORKING))
    run: Any = {**waiting["runs"][0], "reported": APPROVAL}
    told = tell(with_run(waiting, run), writes=True)
    assert (told["phase"], told["runs"]) == (APPROVAL, [run])


def test_an_approval_of_an_earlier_run_is_not_answered_by_a_tool() -> None:
    earlier = {**WORKING, "inferred": APPROVAL, "ended_at": WHEN, "end": "stopped"}
    told = tell(record_with(earlier, {**WORKING, "run": 2}, phase=APPROVAL), writes=True)
    assert told["phase"] == APPROVAL


@table(
    ("runs", "phase"),
    [
        ([{**WORKING, "ended_at": WHEN, "end": "stopped"}], INVESTIGATING),  # it ended
        ([{"run": 1, "claimed_at": WHEN}], INVESTIGATING),  # it did not begin
        *(([WORKING], phase) for phase in PHASES if is_final(phase)),
    ],
)
@table("tell_of", [lambda record: tell(record, writes=True), ask])
def test_where_nobody_is_at_work_nothing_changes(
    runs: list[dict[str, Any]], phase: str, tell_of: Callable[[Record], Any]
) -> None:
    record = record_with(*runs, phase=phase)
    assert tell_of(record) is record


def test_news_of_a_run_that_is_not_the_latest_changes_nothing() -> None:
    record = record_with(WORKING, {**WORKING, "run": 2})
    assert with_tool_use(record, record["runs"][0], "c1", "Bash", LATER, writes=True) is record


def test_a_history_that_somebody_took_away_is_no_obstacle() -> None:
    record = record_with({**WORKING, "inferred": APPROVAL}, phase=APPROVAL)
    assert tell(record)["phase"] == INVESTIGATING
