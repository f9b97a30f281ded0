"""Interrupted runs: the phase that an interruption leads to, and which evidence replaces it."""

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
def test_an_interruption_leaves_the_session_in_a_resumable_phase(phase: str, rest: str, interruption: str) -> None:
    record = interrupted(phase, interruption)

    assert (record["phase"], record["resume_ready"], record["error_count"]) == (rest, True, 0)
    assert (record["runs"][0]["end"], record["runs"][0]["interruption"]) == ("killed", interruption)
    assert record["last_updated"] == format_time(NOW)
    assert decide("agent-1", record, LATER, LIMITS)["should_resume"]


@table(
    ("end", "phase"),
    [("stopped", "completed"), ("failed", "failed"), ("returned", "executing"), ("killed", "abandoned")],
)
def test_a_reported_end_replaces_a_presumed_interruption(end: str, phase: str) -> None:
    presumed = interrupted("executing")
    record: Any = unchanged(lambda record: with_end(record, record["runs"][0], end, {}, LATER), presumed)

    assert (record["phase"], record["runs"][0]["end"]) == (phase, end)
    assert "interruption" not in record["runs"][0]


@table("end", ["ended_with_host", "lost", "denied"])
def test_weaker_evidence_leaves_an_interruption_as_it_is(end: str) -> None:
    presumed = interrupted("executing")
    assert with_end(presumed, presumed["runs"][0], end, {}, LATER) is presumed


@table("end", ["stopped", "failed", "returned", "killed"])
def test_a_presumed_interruption_does_not_replace_a_reported_end(end: str) -> None:
    before = record_with(AT_WORK)
    record = with_end(before, before["runs"][0], end, {}, NOW)
    assert with_end(record, record["runs"][0], "killed", INTERRUPTED, LATER) is record


@table("interruption", INTERRUPTIONS[1:])
@table("end", ["stopped", "failed", "returned"])
def test_a_stop_a_failure_or_a_return_does_not_replace_a_reported_interruption(end: str, interruption: str) -> None:
    record = interrupted("executing", interruption)
    assert with_end(record, record["runs"][0], end, {}, LATER) is record


def test_an_event_of_a_live_agent_takes_back_its_presumed_interruption() -> None:
    presumed = interrupted("executing")
    record: Any = with_agent_in_conversation(presumed, presumed["runs"][0], "h", LATER)

    assert record["phase"] == "executing"
    assert record["runs"] == [AT_WORK]


def test_a_final_session_stays_final_when_a_presumed_interruption_is_corrected() -> None:
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
def test_a_session_waits_for_its_usage_limit_and_is_idle_only_after_the_reset(
    after_reset: timedelta, reason: str, idle: float
) -> None:
    decision = decide("agent-1", waiting(), RESET + after_reset, LIMITS)

    assert (decision["reason"], decision["idle_seconds"]) == (reason, idle)
    assert decision.get("paused_until") == (format_time(RESET) if reason == "waiting_for_limit" else None)
    assert decision["until"] == (format_time(RESET + timedelta(minutes=30)) if reason == "session_resumable" else None)


def test_an_agent_start_an_allowed_resume_or_an_end_clears_the_wait_for_the_limit() -> None:
    record = waiting()
    again: Any = {**record, "runs": [*record["runs"], {"run": 2}]}

    assert "paused_until" not in with_start(again, {"run": 2}, {"host_agent_id": "b"}, LATER)
    assert "paused_until" not in with_resume_ready(record, ready=True)
    assert "paused_until" in with_resume_ready(record, ready=False)
    assert "paused_until" not in with_phase(record, "abandoned", LATER)
