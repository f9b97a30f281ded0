"""Runs that were killed although nobody gave up their work: where the session rests, and what replaces the end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.concluded_ends import with_agent_in_conversation
from gaia_sessions.session.run_ends import with_end
from gaia_sessions.session.runs import with_start
from gaia_sessions.session.schema import INTERRUPTIONS
from gaia_sessions.session.updates import with_phase, with_resume_ready
from tests.records import LIMITS, START, record_with, unchanged
from tests.session.test_policy import decide
from tests.table import table

NOW = START + timedelta(minutes=5)
LATER = START + timedelta(minutes=6)
AT_WORK: dict[str, Any] = {"run": 1, "host_session_id": "h", "host_agent_id": "a", "started_at": format_time(START)}
INTERRUPTED: Any = {"detail": "interrupted", "interruption": "interrupted"}


def interrupted(phase: str, interruption: str = "interrupted") -> Any:
    record = record_with(AT_WORK, phase=phase)
    fields: Any = {**INTERRUPTED, "interruption": interruption}
    return unchanged(lambda record: with_end(record, record["runs"][0], "killed", fields, NOW), record)


@table("interruption", INTERRUPTIONS)
@table(
    ("phase", "rest"),
    [
        ("initializing", "investigating"),
        ("investigating", "investigating"),
        ("planning", "planning"),
        ("approval", "approval"),
        ("executing", "planning"),
        ("validating", "planning"),
    ],
)
def test_interrupted_work_rests_in_a_phase_in_which_it_may_be_resumed(phase: str, rest: str, interruption: str) -> None:
    record = interrupted(phase, interruption)

    assert (record["phase"], record["resume_ready"], record["error_count"]) == (rest, True, 0)
    assert (record["runs"][0]["end"], record["runs"][0]["interruption"]) == ("killed", interruption)
    assert record["last_updated"] == format_time(NOW)
    assert decide("agent-1", record, LATER, LIMITS)["should_resume"]


@table(
    ("end", "phase"),
    [("stopped", "completed"), ("failed", "failed"), ("returned", "executing"), ("killed", "abandoned")],
)
def test_a_report_replaces_a_presumed_interruption_as_if_that_had_not_been(end: str, phase: str) -> None:
    presumed = interrupted("executing")
    record: Any = unchanged(lambda record: with_end(record, record["runs"][0], end, {}, LATER), presumed)

    assert (record["phase"], record["runs"][0]["end"]) == (phase, end)
    assert "interruption" not in record["runs"][0]


@table("end", ["ended_with_host", "lost", "denied"])
def test_weaker_evidence_leaves_an_interruption_as_it_is(end: str) -> None:
    presumed = interrupted("executing")
    assert with_end(presumed, presumed["runs"][0], end, {}, LATER) is presumed


@table("end", ["stopped", "failed", "returned", "killed"])
def test_a_presumed_interruption_replaces_no_report(end: str) -> None:
    before = record_with(AT_WORK)
    record = with_end(before, before["runs"][0], end, {}, NOW)
    assert with_end(record, record["runs"][0], "killed", INTERRUPTED, LATER) is record


@table("interruption", INTERRUPTIONS[1:])
@table("end", ["stopped", "failed", "returned"])
def test_a_reported_interruption_is_outweighed_by_nothing(end: str, interruption: str) -> None:
    record = interrupted("executing", interruption)
    assert with_end(record, record["runs"][0], end, {}, LATER) is record


def test_an_agent_that_is_named_as_alive_was_not_interrupted() -> None:
    presumed = interrupted("executing")
    record: Any = with_agent_in_conversation(presumed, presumed["runs"][0], "h", LATER)

    assert record["phase"] == "executing"
    assert record["runs"] == [AT_WORK]


def test_what_is_final_stays_so_when_a_presumed_interruption_is_corrected() -> None:
    presumed = interrupted("planning")
    final = with_phase(presumed, "completed", NOW)
    record: Any = with_end(final, final["runs"][0], "failed", {}, LATER)

    assert (record["phase"], record["runs"][0]["end"]) == ("completed", "failed")


RESET = START + timedelta(hours=5)


def waiting() -> Any:
    return {**interrupted("executing", "usage_limit"), "paused_until": format_time(RESET)}


@table(
    ("after_reset", "reason", "idle"),
    [
        (timedelta(seconds=-1), "waiting_for_limit", 0.0),
        (timedelta(0), "session_resumable", 0.0),
        (timedelta(minutes=29), "session_resumable", 1740.0),
        (timedelta(minutes=30), "expired", 1800.0),
    ],
)
def test_work_waits_for_its_limit_and_is_idle_from_the_reset_on(
    after_reset: timedelta, reason: str, idle: float
) -> None:
    decision = decide("agent-1", waiting(), RESET + after_reset, LIMITS)

    assert (decision["reason"], decision["idle_seconds"]) == (reason, idle)
    assert decision.get("paused_until") == (format_time(RESET) if reason == "waiting_for_limit" else None)
    assert decision["until"] == (format_time(RESET + timedelta(minutes=30)) if reason == "session_resumable" else None)


def test_the_start_of_its_agent_a_statement_and_an_end_take_the_limit_away() -> None:
    record = waiting()
    again: Any = {**record, "runs": [*record["runs"], {"run": 2}]}

    assert "paused_until" not in with_start(again, {"run": 2}, {"host_agent_id": "b"}, LATER)
    assert "paused_until" not in with_resume_ready(record, ready=True)
    assert "paused_until" in with_resume_ready(record, ready=False)
    assert "paused_until" not in with_phase(record, "abandoned", LATER)
