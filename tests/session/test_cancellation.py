"""Cancellation: marks, and a cancelled session whose outcome no later report changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.session.cancellation import cancellation_of, read_mark, with_cancellation, with_mark
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import MOVES, PHASES, is_final
from gaia_sessions.session.record import decode, encode
from gaia_sessions.session.run_ends import with_end
from gaia_sessions.session.schema import ENDS
from gaia_sessions.session.updates import with_phase
from tests.records import START, WHEN, moved, record_with
from tests.table import table

CANCELLED: Any = {"at": WHEN}
LATER = START + timedelta(hours=1)
LIVE: dict[str, Any] = {"run": 1, "started_at": WHEN}


def test_e6_a_mark_keeps_its_first_reason_and_time_and_only_its_scope_grows() -> None:
    first = with_mark(None, START, "first", below=False)
    assert first == {"at": format_time(START), "reason": "first", "below": False}
    assert with_mark(first, LATER, "second", below=False) is first
    wider: Any = with_mark(first, LATER, "second", below=True)
    assert wider == {**dict(first), "below": True}
    assert with_mark(wider, LATER, None, below=False) is wider
    assert with_mark(None, START, None, below=True) == {"at": format_time(START), "below": True}


@table(
    "value",
    [
        {},
        {"below": True},
        {"at": WHEN},
        {"at": "soon", "below": False},
        {"at": WHEN, "below": 0},
        {"at": WHEN, "below": False, "reason": 3},
    ],
)
def test_an_unreadable_mark_cancels_its_session_and_all_sessions_below(value: dict[str, Any]) -> None:
    assert read_mark(value) == {"below": True}
    assert cancellation_of("b", [("a", read_mark(value))]) == {"by": "a"}


def test_the_earliest_mark_that_applies_gives_the_reason() -> None:
    early, late = format_time(START), format_time(LATER)
    own: Any = {"at": late, "reason": "own", "below": False}
    above: Any = {"at": early, "reason": "above", "below": True}
    assert cancellation_of("b", [("b", own), ("a", above)]) == {"at": early, "reason": "above", "by": "a"}
    alone: Any = {**above, "below": False}
    assert cancellation_of("b", [("b", own), ("a", alone)]) == {"at": late, "reason": "own"}
    assert cancellation_of("b", [("a", alone)]) is None
    assert cancellation_of("b", []) is None


@table("end", ENDS)
@table("phase", [phase for phase in PHASES if not is_final(phase)])
def test_any_end_of_the_last_run_abandons_a_cancelled_session_and_stays_in_the_run(end: str, phase: str) -> None:
    before = record_with(LIVE, phase=phase)
    changed = with_end(before, before["runs"][0], end, {"detail": "why"}, LATER)

    after = with_cancellation(before, changed, CANCELLED)

    assert (after["phase"], after["resume_ready"]) == ("abandoned", False)
    assert after["runs"] == changed["runs"]
    assert after["history"][-1]["to_phase"] == "abandoned"
    assert all(move["to_phase"] in MOVES[move["from_phase"]] for move in after["history"])
    assert after["finalized_at"] == changed.get("finalized_at", format_time(LATER))
    assert decode(encode(after), "agent-1") == after


def test_an_update_of_a_cancelled_session_stays_as_it_is_while_a_run_is_live() -> None:
    before = record_with(LIVE)
    changed = with_phase(before, "executing", LATER)
    assert with_cancellation(before, changed, CANCELLED) is changed


def test_without_a_run_the_first_write_abandons_the_session_at_its_cancellation_or_later_activity() -> None:
    before = record_with()
    assert with_cancellation(before, {**before, "metadata": {"a": 1}}, CANCELLED) == {
        **with_phase(before, "abandoned", START + timedelta(minutes=4)),
        "metadata": {"a": 1},
    }
    later: Any = {**before, "last_updated": format_time(LATER)}
    assert with_cancellation(before, later, CANCELLED)["finalized_at"] == format_time(LATER)
    assert with_cancellation(before, {**before, "metadata": {}}, {})["finalized_at"] == before["last_updated"]


@table("outcome", ["completed", "failed"])
def test_l21_a_finish_after_the_cancellation_does_not_change_the_outcome(outcome: str) -> None:
    """L21: the summary is stored."""
    before = record_with(phase="executing")
    after = with_cancellation(before, with_phase(before, outcome, LATER, "all done"), CANCELLED)
    assert (after["phase"], after["summary"]) == ("abandoned", "all done")
    assert after["history"] == [moved("executing", "abandoned", format_time(LATER))]


@table("outcome", ["completed", "failed", "abandoned"])
def test_a_final_session_keeps_its_outcome_whatever_is_reported_afterwards(outcome: str) -> None:
    before = with_phase(record_with({**LIVE, "ended_at": WHEN, "end": "stopped"}), outcome, START, "done")
    reopened: Any = {**record_with(phase="approval"), "runs": [{**LIVE, "ended_at": WHEN, "end": "killed"}]}

    after = with_cancellation(before, reopened, CANCELLED)

    assert after == {**before, "runs": reopened["runs"]}
    assert decode(encode(after), "agent-1") == after


@given(st.sampled_from(PHASES), st.sampled_from(PHASES), st.booleans())
def test_a_cancellation_leaves_a_readable_record_and_reopens_no_session(one: str, other: str, live: bool) -> None:  # noqa: FBT001
    def made(phase: str) -> Any:
        runs = [LIVE] if live else []
        record = record_with(*runs, phase="planning")
        return with_phase(record, phase, LATER) if is_final(phase) else {**record, "phase": phase}

    after = with_cancellation(made(one), made(other), CANCELLED)

    assert decode(encode(after), "agent-1") == after
    assert after["phase"] == (one if is_final(one) else "abandoned" if is_final(other) or not live else other)
