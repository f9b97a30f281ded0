"""The runs of commands: when and how one begins, and what each end does to the run and the session."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.errors import RunNotAllowed
from gaia_sessions.session import own_runs, policy
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.own_runs import (
    CANCELLED,
    CAUSES,
    EXITED,
    LEASE_LOST,
    NOT_STARTED,
    OUT_OF_TOKENS,
    SIGNALLED,
    TIMED_OUT,
    RunEnd,
    check_may_be_continued,
    check_may_begin,
    exit_text,
    is_superseded,
    with_run_begun,
    with_run_ended,
)
from gaia_sessions.session.phases import MARKER_PHASES, OPEN, OUTCOMES, PHASES, RESUMABLE, is_final
from gaia_sessions.session.record import decode, encode
from gaia_sessions.session.run_ends import with_end
from gaia_sessions.session.schema import ENDS, LOST
from tests.records import LIMITS, START, WHEN, moved, record_with, unchanged
from tests.session.test_policy import decide
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

WRAPPER = {"pid": 42, "started": "7", "boot_id": "b", "pid_ns": "pid:[1]"}
FIELDS: Any = {"wrapper": WRAPPER, "timeout_secs": 600, "hard_timeout_secs": 630.5}
LATER = START + timedelta(minutes=30)
AT_WORK: dict[str, Any] = {"run": 1, **FIELDS, "started_at": WHEN}


def ended(record: Record, end: RunEnd, marker: str | None = None) -> tuple[Record, dict[str, Any]]:
    """The record after that end of its last run, which can be stored, and the new keys of the run."""
    run = record["runs"][-1]
    after = unchanged(lambda record: with_run_ended(record, run, end, marker, LATER)[0], record)
    assert decode(encode(after), "agent-1") == after
    return after, {key: value for key, value in after["runs"][-1].items() if key not in run}


@table("phase", ["initializing", *RESUMABLE])
def test_the_start_of_a_command_moves_the_session_to_executing(phase: str) -> None:
    answer: Any = {"approval": {"message": "yes", "timestamp": WHEN}} if phase == "approval" else {}
    record = record_with(phase=phase, paused_until=WHEN, **answer)

    begun = unchanged(lambda record: with_run_begun(record, FIELDS, LATER), record)

    move = moved(phase, "executing", format_time(LATER))
    expected = {**record_with(phase="executing"), "last_updated": format_time(LATER), "history": [move]}
    assert begun == {**expected, "runs": [{"run": 1, **FIELDS, "started_at": format_time(LATER)}]}
    assert decode(encode(begun), "agent-1") == begun


BY_MARKER = {"detail": "said so in its last line"}
BY_SIGNAL = {"detail": "stopped by a signal", "interruption": "stopped_by_user"}

# cause, exit code, marker, phase that the agent reported by command: end, other keys of the run, phase
OF_EACH_CAUSE = [
    (EXITED, 0, None, None, "stopped", {}, "completed"),
    (EXITED, 0, "approval", None, "stopped", {"reported": "approval", **BY_MARKER}, "approval"),
    (EXITED, 0, "planning", "approval", "stopped", BY_MARKER, "planning"),
    (EXITED, 0, "failed", None, "stopped", {"reported": "failed", **BY_MARKER}, "failed"),
    (EXITED, 0, None, "approval", "stopped", {}, "approval"),
    (EXITED, 0, None, "planning", "stopped", {}, "completed"),
    (EXITED, 3, None, None, "failed", {"detail": "exit code 3"}, "failed"),
    (EXITED, 3, "approval", None, "failed", {"detail": "exit code 3"}, "failed"),
    (EXITED, 3, None, "approval", "failed", {"detail": "exit code 3"}, "failed"),
    (EXITED, 137, None, None, "failed", {"detail": "killed by signal 9 (SIGKILL)"}, "failed"),
    (NOT_STARTED, None, None, None, "failed", {"detail": "no such file"}, "failed"),
    (TIMED_OUT, 0, None, None, "failed", {"detail": "timeout"}, "failed"),
    (TIMED_OUT, 137, None, "approval", "failed", {"detail": "timeout"}, "approval"),
    (TIMED_OUT, 143, "planning", None, "failed", {"reported": "planning", "detail": "timeout"}, "planning"),
    (TIMED_OUT, 143, "failed", "planning", "failed", {"detail": "timeout"}, "failed"),
    (OUT_OF_TOKENS, 143, None, None, "failed", {"detail": "max_tokens"}, "failed"),
    (OUT_OF_TOKENS, 0, None, "investigating", "failed", {"detail": "max_tokens"}, "investigating"),
    (SIGNALLED, 130, None, None, "killed", BY_SIGNAL, "planning"),
    (SIGNALLED, 0, "failed", "approval", "killed", BY_SIGNAL, "approval"),
    (CANCELLED, 143, "approval", None, "killed", {"detail": "cancelled"}, "abandoned"),
]  # fmt: skip


@table(("cause", "code", "marker", "reported", "end", "besides", "phase"), OF_EACH_CAUSE)
def test_every_end_of_a_command_closes_the_run_and_sets_the_phase(
    cause: str, code: int | None, marker: str | None, reported: str | None, end: str, besides: Any, phase: str
) -> None:
    run = {**AT_WORK, "reported": reported} if reported else AT_WORK
    record = record_with(run, phase=reported or "executing", resume_ready=bool(reported))

    after, gained = ended(record, RunEnd(cause, code, "All of it.", "no such file" if code is None else None), marker)

    at = format_time(LATER)
    exit_code = {} if code is None else {"exit_code": code}
    changed = {key: value for key, value in besides.items() if key not in run}
    assert gained == {"end": end, "ended_at": at, "last_message": "All of it.", **exit_code, **changed}
    assert (after["phase"], after["error_count"]) == (phase, int(end == "failed"))
    limits = {"timeout": "it reached its time limit", "max_tokens": "it used up its tokens"}
    error = limits.get(besides.get("detail"), besides.get("detail"))
    assert after["last_error"] == ({"message": error, "timestamp": at} if end == "failed" else None)
    assert after["resume_ready"] is (phase in RESUMABLE)
    assert after.get("finalized_at") == (at if is_final(phase) else None)


def test_only_the_last_4000_characters_of_a_message_are_stored() -> None:
    _, gained = ended(record_with(AT_WORK, phase="executing"), RunEnd(EXITED, 0, "a" * 4000 + "b" * 10))
    assert gained["last_message"] == "a" * 3990 + "b" * 10


@table("outcome", OUTCOMES)
@table("cause", CAUSES)
def test_a_final_session_keeps_its_outcome_when_its_command_ends(outcome: str, cause: str) -> None:
    record = record_with(AT_WORK, phase=outcome, finalized_at=WHEN, duration_seconds=240, summary="done")

    after, gained = ended(record, RunEnd(cause, 3, "x"))

    assert {**after, "runs": record["runs"]} == {**record, "turns": 1}
    assert gained["ended_at"] == format_time(LATER)


def test_an_end_of_an_earlier_run_closes_only_that_run() -> None:
    record = record_with(AT_WORK, {"run": 2, "started_at": WHEN}, phase="planning")

    after = with_run_ended(record, record["runs"][0], RunEnd(EXITED, 3), None, LATER)[0]

    assert {**after, "runs": record["runs"]} == record
    assert after["runs"][0]["end"] == "failed"


@table("end", ENDS)
def test_only_its_wrapper_ends_a_run_unless_the_run_is_lost(end: str) -> None:
    record = record_with(AT_WORK, phase="executing")

    after = with_end(record, record["runs"][0], end, {"detail": "x"}, LATER)

    assert (after is not record) is (end == LOST)


@table("reported", [None, "planning"])
@table("cause", CAUSES)
def test_a_wrapper_can_still_end_a_run_that_was_judged_to_be_lost(cause: str, reported: str | None) -> None:
    run = {**AT_WORK, "reported": reported} if reported else AT_WORK
    record = record_with(run, phase=reported or "executing")
    lost = with_end(record, run, LOST, {"detail": "gone"}, START + timedelta(minutes=10))  # type: ignore[arg-type]
    end = RunEnd(cause, 3, "x")

    after = with_run_ended(lost, lost["runs"][-1], end, None, LATER)[0]

    expected, _ = ended(record, end)
    assert after["runs"] == expected["runs"]
    assert (after["phase"], after["error_count"]) == (expected["phase"], expected["error_count"])


@table("first", CAUSES)
@table("second", CAUSES)
def test_a_second_end_does_not_change_the_outcome(first: str, second: str) -> None:
    once, _ = ended(record_with(AT_WORK, phase="executing"), RunEnd(first, 0, "x"))
    again = with_run_ended(once, once["runs"][-1], RunEnd(second, 0, "y"), None, LATER)[0]
    assert again["phase"] == once["phase"] or not is_final(once["phase"])


def test_characters_that_no_record_can_hold_are_replaced_in_message_and_detail() -> None:
    _, gained = ended(record_with(AT_WORK, phase="executing"), RunEnd(NOT_STARTED, None, "a\0b\ud800c", "no \udcff"))
    assert (gained["last_message"], gained["detail"]) == ("a?b?c", "no ?")


def test_the_reason_why_a_program_did_not_start_is_stored_whole() -> None:
    why = f"cannot be started: /{'a' * 5000}: File name too long"
    _, gained = ended(record_with(AT_WORK, phase="executing"), RunEnd(NOT_STARTED, None, detail=why))
    assert gained["detail"] == why


def test_an_exit_code_above_128_is_named_as_its_signal_if_there_is_one() -> None:
    said = [exit_text(code) for code in (1, 127, 128, 130, 137, 143, 200, 255)]
    assert said == [
        "exit code 1", "exit code 127", "exit code 128", "killed by signal 2 (SIGINT)", "killed by signal 9 (SIGKILL)",
        "killed by signal 15 (SIGTERM)", "exit code 200", "exit code 255",
    ]  # fmt: skip


PAUSED = {"run": 1, "started_at": WHEN, "ended_at": WHEN, "end": "stopped"}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"phase": "completed"}, "it has ended (completed)", "gaia-sessions run --continues agent-1 -- COMMAND"),
    ({"phase": "executing"}, "its phase is executing", "gaia-sessions update agent-1 --phase planning"),
    ({"phase": "initializing", "runs": [AT_WORK]}, "its agent is at work", "gaia-sessions wait agent-1"),
    ({"phase": "planning", "runs": [AT_WORK]}, "its agent is at work", "gaia-sessions wait agent-1"),
    (
        {"phase": "planning", "runs": [PAUSED, {"run": 2, "claimed_at": format_time(LATER)}]},
        "somebody is about to resume it",
        "gaia-sessions wait agent-1",
    ),
    (
        {"phase": "approval", "last_updated": "2026-01-01T00:00:00Z", "runs": [PAUSED]},
        "it waited too long for approval",
        "type this, then try again: gaia-sessions approve agent-1",
    ),
    (
        {"phase": "planning", "last_updated": "2026-01-01T00:00:00Z", "runs": [PAUSED]},
        "it has been idle for too long",
        "type this, then try again: gaia-sessions update agent-1",
    ),
    (
        {"phase": "planning", "resume_ready": False},
        "resuming is switched off",
        "gaia-sessions update agent-1 --resume-",
    ),
    ({"phase": "planning", "error_count": 9}, "it has failed too often", "gaia-sessions finalize agent-1 failed"),
    (
        {"phase": "planning", "paused_until": "2027-01-01T00:00:00Z"},
        "it waits for a usage limit, which is reset at 2027-01-01T00:00:00Z",
        "gaia-sessions update agent-1 --resume-ready",
    ),
    (
        {"phase": "planning", "last_updated": "2027-01-01T00:00:00Z"},
        "it was last updated in the future",
        "the clock is",
    ),
]


@table(("keys", "problem", "hint"), REFUSED)
def test_a_command_for_a_session_that_cannot_be_resumed_is_refused_with_a_hint(
    keys: dict[str, Any], problem: str, hint: str
) -> None:
    record = record_with(**{"resume_ready": True, "last_updated": format_time(LATER), **keys})

    with pytest.raises(RunNotAllowed) as refused:
        check_may_begin(record, decide("agent-1", record, LATER, LIMITS))

    assert (refused.value.problem, refused.value.exit_code) == (problem, 4)
    assert hint in refused.value.hint


def test_every_policy_reason_that_concerns_a_command_has_a_refusal() -> None:
    of_agents = {"phase_not_resumable", "running", "claimed", "cancelled", "session_resumable", "not_found", "corrupt"}
    assert set(policy.ADVICE) - of_agents == set(own_runs._REFUSALS) - {"phase_not_resumable"}


@table("phase", PHASES)
def test_only_a_session_that_has_ended_can_be_continued_by_another(phase: str) -> None:
    record = record_with(phase=phase)
    if phase in OUTCOMES:
        check_may_be_continued(record, LATER)
        return
    with pytest.raises(RunNotAllowed, match="has not ended") as refused:
        check_may_be_continued(record, LATER)
    assert refused.value.hint == "to resume it instead, type gaia-sessions run agent-1 -- COMMAND"


@table(
    "changes, is_superseded_now",
    [
        ({}, False),
        ({"end": "lost"}, False),
        ({"end": "lost", "phase": "abandoned"}, True),
        ({"end": "lost", "later": True}, True),
        ({"end": "lost", "later": True, "wrapper": {"pid": 7}}, False),
        ({"later": True}, False),
    ],
)
def test_the_end_of_a_run_with_a_lease_does_not_count_once_others_may_have_gone_on(
    changes: dict[str, Any],
    is_superseded_now: bool,  # noqa: FBT001  # a column
) -> None:
    run: Any = {**AT_WORK, "wrapper": changes.get("wrapper", {"lease": "a"})}
    if "end" in changes:
        run |= {"end": changes["end"], "ended_at": WHEN}
    record: Any = record_with(run, phase=changes.get("phase", "planning"))
    if "later" in changes:
        record = {**record, "runs": [run, {**run, "run": run["run"] + 1}]}

    assert is_superseded(record, run) is is_superseded_now


def test_a_session_ended_by_hand_is_not_continued_while_its_command_is_at_work() -> None:
    with pytest.raises(RunNotAllowed, match="at work"):
        check_may_be_continued(record_with(AT_WORK, phase="completed"), LATER)


RUNS = st.sampled_from([AT_WORK, {**AT_WORK, "reported": "approval"}, {**AT_WORK, "reported": "executing"}])


@given(
    run=RUNS,
    phase=st.sampled_from(PHASES),
    cause=st.sampled_from(CAUSES),
    code=st.none() | st.integers(0, 255),
    message=st.text(st.characters(), max_size=5000),
    marker=st.none() | st.sampled_from(MARKER_PHASES),
    answers=st.sampled_from([{}, {"denial": {"message": "no", "timestamp": WHEN}}]),
)
def test_every_end_leaves_a_consistent_record(
    run: Any, phase: str, cause: str, code: int | None, message: str, marker: str | None, answers: Any
) -> None:
    final = {"finalized_at": WHEN, "duration_seconds": 1} if is_final(phase) else {}
    record = record_with(run, phase=phase, **final, **answers)

    after, gained = ended(record, RunEnd(cause, code, message), marker)

    assert {"end", "ended_at"} <= set(gained)
    assert is_final(after["phase"]) is ("finalized_at" in after)
    assert after["resume_ready"] is (after["phase"] in RESUMABLE) or after["phase"] == phase
    assert "denial" not in after or cause in (SIGNALLED, LEASE_LOST) or is_final(phase)
    if phase in OPEN:
        is_failing = cause in (NOT_STARTED, TIMED_OUT, OUT_OF_TOKENS) or (cause == EXITED and bool(code))
        assert after["error_count"] == int(is_failing)
        assert not is_failing or after["phase"] in ("failed", *RESUMABLE)
        assert (after["phase"] == "completed") <= (gained["end"] == "stopped")
