"""Sends: when a send may begin, and what each end does to its run and to the session."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import AgentAtWork, RunNotAllowed
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.context import cut
from gaia_sessions.session.own_runs import (
    CANCELLED,
    EXITED,
    SIGNALLED,
    RunEnd,
    check_may_begin,
    fitted,
    is_over,
    with_run_begun,
    with_run_ended,
)
from gaia_sessions.session.phases import MARKER_PHASES, PHASES, RESUMABLE, is_final
from gaia_sessions.session.record import decode, encode
from gaia_sessions.session.retention import MAX_RUNS, MAX_SENDS, trim_record
from gaia_sessions.session.run_ends import with_end
from gaia_sessions.session.runs import CLAIM_LIFETIME
from gaia_sessions.session.schema import ENDS, KILLED, LOST, RUN_FAILED, RUN_RETURNED
from gaia_sessions.session.transcript import LINE_LIMIT, number_messages
from gaia_sessions.session.tree_limits import is_at_work
from tests.records import LIMITS, START, WHEN, moved, record_with, unchanged
from tests.session.conversations import message
from tests.session.test_policy import decide
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

FIELDS: Any = {"wrapper": {"pid": 42, "lock": "/root/.locks/a.lock"}}
LATER = START + timedelta(hours=2)
AT_WORK: Any = {"run": 1, **FIELDS, "turn": 1, "started_at": WHEN}


answer = partial(message, "assistant")


def check(record: Record) -> None:
    check_may_begin(record, decide("agent-1", record, LATER, LIMITS), sends=True)


@table("phase", PHASES)
@table("ready", [True, False])
def test_a_send_may_begin_in_a_new_or_resumable_session_despite_idle_time_and_errors(
    phase: str, *, ready: bool
) -> None:
    record = record_with(phase=phase, resume_ready=ready, error_count=7, paused_until=format_time(LATER + LIMITS.idle))
    if phase == "initializing" or (phase in RESUMABLE and ready):
        check(record)
        return
    with pytest.raises(RunNotAllowed) as refused:
        check(record)
    if is_final(phase):
        said = f"it has ended ({phase})"
        hint = "to continue it in a new session, type gaia-sessions create --continues agent-1"
    elif phase in RESUMABLE:
        said = "resuming is switched off"
        hint = "type this, then try again: gaia-sessions update agent-1 --resume-ready"
    else:
        said = f"its phase is {phase}"
        hint = "if no agent works on it, type this, then try again: gaia-sessions update agent-1 --phase planning"
    assert (refused.value.problem, refused.value.hint) == (said, hint)


@table(
    ("run", "said"),
    [
        (AT_WORK, "its agent is at work"),
        ({"run": 1, "host": "claude-code", "started_at": WHEN}, "its agent is at work"),
        ({"run": 1, "claimed_at": format_time(LATER - CLAIM_LIFETIME / 2)}, "somebody is about to resume it"),
    ],
)
def test_a_send_does_not_begin_while_an_agent_is_at_work_or_about_to_start(run: dict[str, Any], said: str) -> None:
    with pytest.raises(AgentAtWork) as refused:
        check(record_with(phase="investigating", runs=[run]))
    assert refused.value.problem == said


@table("phase", ["initializing", *RESUMABLE])
def test_a_send_adds_a_run_of_the_next_turn_and_starts_a_new_session(phase: str) -> None:
    record = record_with(phase=phase, turns=4, paused_until=WHEN)

    begun = unchanged(lambda record: with_run_begun(record, FIELDS, LATER, sends=True), record)

    now = format_time(LATER)
    is_new = phase == "initializing"
    expected: dict[str, Any] = {**record_with(phase="investigating" if is_new else phase), "turns": 4}
    expected |= {
        "resume_ready": record["resume_ready"] or is_new,
        "last_updated": now,
        "runs": [{"run": 1, **FIELDS, "turn": 5, "started_at": now}],
    }
    if is_new:
        expected["history"] = [moved("initializing", "investigating", now)]
    if phase == "approval":
        expected["answers"] = [{"answer": "answered", "by": "send", "timestamp": now}]
    assert begun == expected
    assert decode(encode(begun), "agent-1") == begun


@table("phase", PHASES)
@table("reported", [None, "planning", "approval"])
@table("marked", [None, *MARKER_PHASES])
def test_an_answered_send_ends_as_returned_and_settles_a_question_unless_a_phase_is_reported(
    phase: str, reported: str | None, marked: str | None
) -> None:
    run: Any = {**AT_WORK, **({"reported": reported} if reported else {})}
    record = record_with(phase=phase, runs=[run], charged_tokens=5)

    said = [answer("{}", tool_name="Bash", tokens=1), answer("Done", tokens=2)]
    ended = RunEnd(EXITED, message="Done", answered=said)
    after = unchanged(lambda record: with_run_ended(record, run, ended, marked, LATER)[0], record)

    now = format_time(LATER)
    marked = None if marked == "failed" else marked
    expected = phase
    if not is_final(phase) and marked:
        expected = marked
    elif phase == "approval" and not reported:
        expected = "investigating"
    fields: dict[str, Any] = {"reported": marked, "detail": "said so in its last line"} if marked else {}
    closed = {**run, "last_message": "Done", **fields, "ended_at": now, "end": RUN_RETURNED}
    assert (after["phase"], after["turns"], after["runs"]) == (expected, 1, [closed])
    assert (after["charged_tokens"], after["error_count"]) == (5 if is_final(phase) else 8, 0)
    assert decode(encode(after), "agent-1") == after


@table("phase", PHASES)
@table(
    ("ended", "end", "fields", "errors"),
    [
        (RunEnd(EXITED, detail="ValueError: no"), RUN_FAILED, {"detail": "ValueError: no"}, 1),
        (
            RunEnd(SIGNALLED, message="half", detail="by hand"),
            KILLED,
            {"detail": "by hand", "interruption": "stopped_by_user"},
            0,
        ),
        (RunEnd(CANCELLED), KILLED, {"detail": "cancelled"}, 0),
    ],
)
def test_an_unanswered_send_adds_no_turn_and_does_not_end_the_session(
    phase: str, ended: RunEnd, end: str, fields: dict[str, Any], errors: int
) -> None:
    record = record_with(phase=phase, runs=[AT_WORK], turns=3)

    after = unchanged(lambda record: with_run_ended(record, AT_WORK, ended, "planning", LATER)[0], record)

    resting = {"initializing": "investigating", "executing": "planning", "validating": "planning"}
    run = {**AT_WORK, **fields, "ended_at": format_time(LATER), "end": end}
    assert (after["phase"], after["turns"], after["runs"]) == (resting.get(phase, phase), 3, [run])
    assert after["error_count"] == (0 if is_final(phase) else errors)


def test_the_marker_of_a_send_that_is_not_the_latest_run_moves_no_phase() -> None:
    record = record_with(phase="investigating", runs=[AT_WORK, {"run": 2, "host": "claude-code", "started_at": WHEN}])

    after = with_run_ended(record, AT_WORK, RunEnd(EXITED, message="May I?"), "approval", LATER)[0]

    assert (after["phase"], after["runs"][0]["reported"], after["turns"]) == ("investigating", "approval", 1)


@table(
    ("run", "over"),
    [
        (AT_WORK, False),
        ({**AT_WORK, "ended_at": WHEN, "end": RUN_RETURNED}, True),
        ({**AT_WORK, "ended_at": WHEN, "end": LOST}, True),
        ({"run": 1, **FIELDS, "ended_at": WHEN, "end": "stopped"}, True),
        ({"run": 1, **FIELDS, "ended_at": WHEN, "end": LOST}, False),
    ],
)
def test_a_late_end_counts_for_a_lost_command_but_not_for_a_lost_send(run: Any, *, over: bool) -> None:
    assert is_over(run) == over


def lost_as(end: str, record: Record) -> Record:
    return with_end(record, AT_WORK, end, {}, LATER)


@table("phase", PHASES)
def test_a_lost_send_leaves_an_open_session_in_a_resumable_phase(phase: str) -> None:
    record = record_with(phase=phase, runs=[AT_WORK])
    for end in ENDS:
        after = unchanged(partial(lost_as, end), record)
        if end != LOST:
            assert after is record
            continue
        resting = {"initializing": "investigating", "executing": "planning", "validating": "planning"}
        assert (after["phase"], after["runs"][-1]["end"]) == (resting.get(phase, phase), LOST)


def test_the_newest_two_sends_stay_in_the_record_beside_all_runs_of_hosts() -> None:
    runs: list[Any] = [{"run": 1, "host": "claude-code", "host_agent_id": "a", "ended_at": WHEN, "end": "stopped"}]
    runs += [{**AT_WORK, "run": number, "ended_at": WHEN, "end": RUN_RETURNED} for number in range(2, 2 + MAX_RUNS)]
    runs += [{**AT_WORK, "run": 2 + MAX_RUNS}]

    kept = trim_record(record_with(runs=runs))

    assert kept["runs"] == [runs[0], *runs[-MAX_SENDS:]]
    assert kept["runs_dropped"] == len(runs) - 1 - MAX_SENDS


@table(
    ("runs", "age", "at_work"),
    [
        ([AT_WORK], 0, False),
        ([{**AT_WORK, "ended_at": WHEN, "end": RUN_RETURNED}], 0, False),
        ([AT_WORK, {"run": 2, "host": "claude-code", "started_at": WHEN}], 0, True),
        ([], 0, True),
        ([], 11, False),
    ],
)
def test_a_send_of_a_child_takes_no_place(runs: list[dict[str, Any]], age: int, *, at_work: bool) -> None:
    now = START + timedelta(minutes=age)
    assert is_at_work(record_with(phase="investigating", runs=runs), now, dead_runs=frozenset()) == at_work


@table("text", ["x", "é\x01\n", "\U0001f600"])
def test_an_answer_that_is_too_long_is_stored_with_its_beginning_and_its_end(text: str) -> None:
    long = answer("BEGIN" + text * (LINE_LIMIT // len(text)) + "END", tool_name="n" * 1000, tool_call_id="c" * 1000)
    shortened = fitted(long)
    number_messages([shortened], 1, 1)
    content = shortened["content"]
    assert (content[:5], content[-3:]) == ("BEGIN", "END")
    assert "characters left out ...]" in content
    assert {**shortened, "content": ""} == {**long, "content": ""}
    assert len(dump_line(content, limit=2 * LINE_LIMIT)) > LINE_LIMIT // 2
    short = answer("short")
    assert fitted(short) is short
    assert cut("abc", 3) == "abc"
