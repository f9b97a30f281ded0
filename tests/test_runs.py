from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.changes import finalized, in_phase, written
from gaia_sessions.clock import write_time
from gaia_sessions.phases import OUTCOMES, PHASES
from gaia_sessions.record import decode, encode, new_record
from gaia_sessions.runs import (
    CLAIM_LAPSES,
    agent_alias,
    aliases_of,
    began_at,
    delegated,
    delegation_alias,
    has_ended,
    is_claimed,
    is_live,
    joined,
    may_be_rejudged,
    reported,
    restopped,
    run_of_agent,
    run_of_delegation,
    stopped,
    unended_run_of_host,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.shape import Record, Run

START = datetime(2026, 1, 8, 18, 0, tzinfo=UTC)
LATER = START + timedelta(minutes=4)
LATEST = START + timedelta(minutes=5)
THEN = "2026-01-08T18:00:00.000000Z"
WHEN = "2026-01-08T18:04:00.000000Z"
AT_LAST = "2026-01-08T18:05:00.000000Z"

KEYS: Run = {"host": "claude-code", "host_session_id": "h", "tool_use_id": "t"}
WORKING: dict[str, Any] = {**KEYS, "run": 1, "claimed_at": THEN, "host_agent_id": "a"}


def record_with(*runs: dict[str, Any], phase: str = "investigating", **changed: Any) -> Record:
    record: Any = {**new_record("agent-1", "Explore", "general", {}, START), "phase": phase, **changed}
    if runs:
        record["runs"] = list(runs)
    return decode(encode(record), "agent-1")


def moved(one: str, other: str, at: str = WHEN) -> dict[str, str]:
    return {"from_phase": one, "to_phase": other, "timestamp": at}


def unchanged(change: Callable[[Record], object], record: Record) -> Any:
    """What ``change`` makes of ``record``, which must itself stay as it was."""
    before = deepcopy(record)
    after = change(record)
    assert record == before
    return after


@pytest.mark.parametrize(
    ("run", "live", "claimed", "ended"),
    [
        pytest.param({"run": 1}, False, False, False, id="nothing known"),
        pytest.param({"claimed_at": THEN}, False, True, False, id="delegated"),
        pytest.param({"started_at": THEN}, True, False, False, id="started"),
        pytest.param({"claimed_at": THEN, "started_at": THEN}, True, False, False, id="delegated and started"),
        pytest.param({"claimed_at": THEN, "host_agent_id": "a"}, True, False, False, id="its agent is known"),
        pytest.param({"claimed_at": THEN, "reported": "planning"}, True, False, False, id="it reported"),
        pytest.param({"claimed_at": THEN, "ended_at": THEN}, False, False, True, id="denied"),
        pytest.param({"started_at": THEN, "host_agent_id": "a", "ended_at": THEN}, False, False, True, id="ended"),
    ],
)
def test_a_run_is_claimed_then_live_then_ended(run: Run, live: bool, claimed: bool, ended: bool) -> None:  # noqa: FBT001
    assert (is_live(run), is_claimed(run, LATER), has_ended(run)) == (live, claimed, ended)


@pytest.mark.parametrize(
    ("passed", "holds"),
    [
        pytest.param(timedelta(0), True, id="at once"),
        pytest.param(timedelta(minutes=9, seconds=59, microseconds=999999), True, id="just under 10 minutes"),
        pytest.param(timedelta(minutes=10), False, id="exactly 10 minutes"),
        pytest.param(timedelta(days=1), False, id="a day"),
        pytest.param(timedelta(minutes=-1), True, id="claimed by a clock a minute ahead"),
        pytest.param(timedelta(minutes=-5), True, id="exactly 5 minutes ahead"),
        pytest.param(timedelta(minutes=-5, microseconds=-1), False, id="over 5 minutes ahead is plainly wrong"),
        pytest.param(timedelta(days=-4000), False, id="years ahead is plainly wrong"),
    ],
)
def test_a_claim_holds_for_ten_minutes(passed: timedelta, holds: bool) -> None:  # noqa: FBT001
    assert is_claimed({"run": 1, "claimed_at": THEN}, START + passed) == holds
    assert timedelta(minutes=10) == CLAIM_LAPSES


@pytest.mark.parametrize(
    ("run", "moment"),
    [
        pytest.param({"started_at": WHEN, "claimed_at": THEN}, LATER, id="started"),
        pytest.param({"claimed_at": THEN}, START, id="only delegated"),
        pytest.param({"run": 1}, None, id="not known"),
    ],
)
def test_a_run_began_when_it_started_or_was_delegated(run: Run, moment: datetime | None) -> None:
    assert began_at(run) == moment


@pytest.mark.parametrize(
    "earlier",
    [[], [{"run": 1, "ended_at": THEN}], [{"run": 1, "ended_at": THEN}, {"run": 2, "claimed_at": THEN}]],
    ids=["the first", "the second", "the third"],
)
def test_a_delegation_appends_a_claimed_run_and_touches_nothing_else(earlier: list[dict[str, Any]]) -> None:
    record = record_with(*earlier, phase="approval")
    assert unchanged(lambda record: delegated(record, KEYS, LATER), record) == {
        **record,
        "runs": [*earlier, {**KEYS, "run": len(earlier) + 1, "claimed_at": WHEN}],
    }


MANY = record_with(
    {"run": 1, "host_session_id": "h", "tool_use_id": "t", "host_agent_id": "a", "ended_at": THEN},
    {"run": 2, "host_session_id": "h", "tool_use_id": "u", "host_agent_id": "a"},
    {"run": 3, "host_session_id": "g", "tool_use_id": "t", "ended_at": THEN},
    {"run": 4, "claimed_at": THEN},
)


@pytest.mark.parametrize(
    ("host_session_id", "tool_use_id", "number"),
    [
        pytest.param("h", "t", 1, id="ended ones count"),
        pytest.param("h", "u", 2, id="unended"),
        pytest.param("g", "t", 3, id="the same tool use in another main session"),
        pytest.param("g", "u", None, id="both keys must match"),
        pytest.param("H", "t", None, id="exactly"),
        pytest.param("", "", None, id="a run without keys matches no key"),
    ],
)
def test_a_run_is_found_by_its_exact_delegation(host_session_id: str, tool_use_id: str, number: int | None) -> None:
    expected = None if number is None else MANY["runs"][number - 1]
    assert run_of_delegation(MANY, host_session_id, tool_use_id) == expected


@pytest.mark.parametrize(
    ("host_session_id", "host_agent_id", "number"),
    [
        pytest.param("h", "a", 2, id="the latest of one agent"),
        pytest.param("g", "a", None, id="not of another main session"),
        pytest.param("h", "b", None, id="not of another agent"),
    ],
)
def test_a_run_is_found_by_its_exact_agent(host_session_id: str, host_agent_id: str, number: int | None) -> None:
    expected = None if number is None else MANY["runs"][number - 1]
    assert run_of_agent(MANY, host_session_id, host_agent_id) == expected


@pytest.mark.parametrize(
    ("host_session_id", "number"),
    [
        pytest.param("h", 2, id="the latest is unended"),
        pytest.param("g", None, id="the latest has ended"),
        pytest.param("x", None, id="none"),
    ],
)
def test_the_unended_run_of_a_main_session_is_found(host_session_id: str, number: int | None) -> None:
    expected = None if number is None else MANY["runs"][number - 1]
    assert unended_run_of_host(MANY, host_session_id) == expected


def test_an_unended_run_is_found_behind_one_that_has_ended() -> None:
    unended = {"run": 1, "host_session_id": "h", "host_agent_id": "a"}
    record = record_with(unended, {"run": 2, "host_session_id": "h", "ended_at": THEN})
    assert unended_run_of_host(record, "h") == unended


def test_of_several_unended_runs_of_a_main_session_the_latest_is_found() -> None:
    record = record_with(
        {"run": 1, "host_session_id": "h"},
        {"run": 2, "host_session_id": "h"},
        {"run": 3, "host_session_id": "g"},
        {"run": 4, "host_session_id": "h", "ended_at": THEN},
    )
    assert unended_run_of_host(record, "h") == {"run": 2, "host_session_id": "h"}


def test_a_record_without_runs_has_none_to_find() -> None:
    record = record_with()
    assert (run_of_delegation(record, "h", "t"), run_of_agent(record, "h", "a"), unended_run_of_host(record, "h")) == (
        None,
        None,
        None,
    )
    assert aliases_of(record) == []


def test_an_alias_is_a_kind_and_its_exact_strings() -> None:
    assert delegation_alias("h", "t") == ("delegation", ("h", "t"))
    assert agent_alias("h", "a") == ("agent", ("h", "a"))


def test_a_record_is_found_by_every_whole_key_of_its_runs() -> None:
    assert aliases_of(MANY) == [
        ("delegation", ("h", "t")),
        ("agent", ("h", "a")),
        ("delegation", ("h", "u")),
        ("agent", ("h", "a")),
        ("delegation", ("g", "t")),
    ]


def test_keys_without_a_main_session_are_no_aliases() -> None:
    assert aliases_of(record_with({"run": 1, "tool_use_id": "t", "host_agent_id": "a"})) == []


def test_the_runs_of_a_newer_record_are_not_looked_at() -> None:
    newer: Any = {"agent_id": "agent-1", "schema": 2, "runs": "something of later"}
    assert aliases_of(newer) == []


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([], id="no run"),
        pytest.param([{"run": 1, "ended_at": THEN, "reported": "planning"}], id="only an ended one"),
        pytest.param([{"run": 1}, {"run": 2, "ended_at": THEN}], id="the last one ended"),
    ],
)
def test_what_is_reported_outside_a_run_is_kept_with_none(runs: list[dict[str, Any]]) -> None:
    record = record_with(*runs)
    assert reported(record, "approval") is record


@pytest.mark.parametrize("before", [{}, {"reported": "planning"}], ids=["the first", "a later"])
def test_what_is_reported_is_kept_with_the_unended_run(before: dict[str, Any]) -> None:
    record = record_with({"run": 1, "ended_at": THEN}, {"run": 2, **before})
    assert unchanged(lambda record: reported(record, "approval"), record) == {
        **record,
        "runs": [{"run": 1, "ended_at": THEN}, {"run": 2, "reported": "approval"}],
    }


def test_the_first_news_of_an_agent_starts_the_work() -> None:
    record = record_with({**KEYS, "run": 1, "claimed_at": THEN}, phase="initializing")
    assert unchanged(lambda record: joined(record, record["runs"][0], "a", LATER), record) == {
        **record,
        "last_updated": WHEN,
        "phase": "investigating",
        "resume_ready": True,
        "history": [moved("initializing", "investigating")],
        "runs": [{**KEYS, "run": 1, "claimed_at": THEN, "host_agent_id": "a"}],
    }


@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase != "initializing" and phase not in OUTCOMES])
def test_the_first_news_of_an_agent_leaves_work_that_has_begun_where_it_stands(phase: str) -> None:
    record = record_with({"run": 1, "ended_at": THEN}, {"run": 2, "claimed_at": THEN}, phase=phase)
    assert joined(record, record["runs"][1], "a", LATER) == {
        **record,
        "last_updated": WHEN,
        "runs": [{"run": 1, "ended_at": THEN}, {"run": 2, "claimed_at": THEN, "host_agent_id": "a"}],
    }


def test_the_same_news_again_changes_nothing() -> None:
    record = record_with(WORKING, phase="initializing")
    assert joined(record, record["runs"][0], "a", LATER) is record


@pytest.mark.parametrize("phase", OUTCOMES)
def test_late_news_of_an_agent_is_no_activity_of_a_final_session(phase: str) -> None:
    record = record_with({**KEYS, "run": 1, "claimed_at": THEN}, phase=phase, finalized_at=THEN, duration_seconds=0)
    after = unchanged(lambda record: joined(record, record["runs"][0], "a", LATER), record)
    assert after == {**record, "runs": [WORKING]}


# What a stop leaves behind: by the marker of the last line, and by the phase last reported in the run.
STOPS = [
    pytest.param(None, None, "completed", id="no word: done"),
    pytest.param(None, "approval", "approval", id="no word, approval reported: paused"),
    pytest.param(None, "planning", "completed", id="no word, another phase reported: done"),
    pytest.param(None, "completed", "completed", id="no word, done reported: done"),
    pytest.param("approval", None, "approval", id="says approval"),
    pytest.param("planning", "approval", "planning", id="says planning, whatever was reported"),
    pytest.param("investigating", None, "investigating", id="says investigating"),
    pytest.param("failed", None, "failed", id="says failed"),
    pytest.param("failed", "approval", "failed", id="says failed, whatever was reported"),
]


@pytest.mark.parametrize(("marked", "before", "phase"), STOPS)
@pytest.mark.parametrize(
    "told",
    [{}, {"last_message": ""}, {"last_message": "All done.", "transcript_path": "t.jsonl"}],
    ids=["nothing told", "empty message", "message and transcript"],
)
def test_a_stop_ends_the_run_and_pauses_or_ends_the_session(
    marked: str | None, before: str | None, phase: str, told: Run
) -> None:
    run = WORKING if before is None else {**WORKING, "reported": before}
    record = record_with(run, phase="executing")
    ended = {**run, **told, "ended_at": WHEN, "end": "stopped"}
    if marked is not None:
        ended |= {"reported": marked, "detail": "said so in its last line"}
    ending = {"finalized_at": WHEN, "duration_seconds": 240.0} if phase in OUTCOMES else {}
    assert unchanged(lambda record: stopped(record, record["runs"][0], marked, told, LATER), record) == {
        **record,
        "last_updated": WHEN,
        "phase": phase,
        "resume_ready": phase in {"investigating", "planning", "approval"},
        "history": [moved("executing", phase)],
        "runs": [ended],
        **ending,
    }


def test_a_pause_in_the_phase_the_session_stands_in_leaves_no_history() -> None:
    record = record_with(WORKING, phase="approval", resume_ready=False)
    assert stopped(record, record["runs"][0], "approval", {}, LATER) == {
        **record,
        "last_updated": WHEN,
        "runs": [
            {
                **WORKING,
                "ended_at": WHEN,
                "end": "stopped",
                "reported": "approval",
                "detail": "said so in its last line",
            }
        ],
    }


def test_a_stop_of_an_earlier_run_ends_that_one() -> None:
    record = record_with(WORKING, {"run": 2, "claimed_at": THEN})
    assert stopped(record, record["runs"][0], None, {}, LATER)["runs"] == [
        {**WORKING, "ended_at": WHEN, "end": "stopped"},
        {"run": 2, "claimed_at": THEN},
    ]


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("marked", [None, "approval", "failed"])
def test_a_stop_closes_only_the_run_of_a_session_that_was_finalized_before(outcome: str, marked: str | None) -> None:
    record = finalized(record_with(WORKING, phase="executing"), outcome, "by hand", START)
    said = {} if marked is None else {"reported": marked, "detail": "said so in its last line"}
    assert unchanged(
        lambda record: stopped(record, record["runs"][0], marked, {"last_message": "bye"}, LATER), record
    ) == {
        **record,
        "runs": [{**WORKING, "ended_at": WHEN, "end": "stopped", **said, "last_message": "bye"}],
    }


def after_stop(marked: str | None, before: str | None = None) -> Record:
    run = WORKING if before is None else {**WORKING, "reported": before}
    record = record_with(run, phase="executing")
    return stopped(record, record["runs"][0], marked, {"last_message": "first"}, LATER)


@pytest.mark.parametrize("marked", [None, "approval", "failed"], ids=["completed", "paused", "failed"])
def test_an_end_made_by_a_stop_is_provisional(marked: str | None) -> None:
    record = after_stop(marked)
    assert may_be_rejudged(record, record["runs"][0])


def _finalized_by_hand() -> Record:
    working = record_with(WORKING, phase="executing")
    by_hand = finalized(working, "completed", None, START)
    return stopped(by_hand, by_hand["runs"][0], None, {}, LATER)


def _paused_then_finalized_by_hand() -> Record:
    return finalized(after_stop("approval"), "abandoned", None, LATEST)


@pytest.mark.parametrize(
    ("record", "number"),
    [
        pytest.param(_finalized_by_hand(), 1, id="somebody finalized it before the stop"),
        pytest.param(_paused_then_finalized_by_hand(), 1, id="somebody finalized it after the pause"),
        pytest.param(delegated(after_stop("approval"), KEYS, LATEST), 1, id="a new run began"),
        pytest.param(delegated(after_stop("approval"), KEYS, LATEST), 2, id="the new run itself has not stopped"),
        pytest.param(record_with({**WORKING, "ended_at": THEN, "end": "lost"}), 1, id="the run ended otherwise"),
        pytest.param(record_with(WORKING), 1, id="the run has not ended"),
    ],
)
def test_an_end_made_otherwise_or_followed_by_more_is_not_provisional(record: Record, number: int) -> None:
    assert not may_be_rejudged(record, record["runs"][number - 1])


RESTOPS = [
    pytest.param(None, None, None, "completed", None, id="done, still done"),
    pytest.param(None, None, "approval", "approval", "approval", id="done, now paused"),
    pytest.param(None, None, "failed", "failed", "failed", id="done, now failed"),
    pytest.param("approval", None, None, "completed", None, id="paused by its word, now without it: done"),
    pytest.param("approval", None, "planning", "planning", "planning", id="paused, now in another phase"),
    pytest.param("approval", None, "approval", "approval", "approval", id="paused, still paused"),
    pytest.param("failed", None, None, "completed", None, id="failed by its word, now without it: done"),
    pytest.param("failed", None, "approval", "approval", "approval", id="failed, now paused"),
    pytest.param(None, "approval", None, "approval", "approval", id="paused by command: that still counts"),
    pytest.param(None, "approval", "failed", "failed", "failed", id="paused by command, now failed"),
    pytest.param(None, "planning", None, "completed", "planning", id="another phase by command: done, still done"),
]


@pytest.mark.parametrize(("first", "before", "again", "phase", "said"), RESTOPS)
def test_a_second_stop_judges_the_same_run_afresh(
    first: str | None, before: str | None, again: str | None, phase: str, said: str | None
) -> None:
    record = after_stop(first, before)
    one = record["phase"]
    rest = {key: value for key, value in record.items() if key not in {"finalized_at", "duration_seconds"}}
    run = {**WORKING, "ended_at": AT_LAST, "end": "stopped", "last_message": "second"}
    if said is not None:
        run["reported"] = said
    if again is not None:
        run["detail"] = "said so in its last line"
    ending = {"finalized_at": AT_LAST, "duration_seconds": 300.0} if phase in OUTCOMES else {}
    assert unchanged(
        lambda record: restopped(record, record["runs"][0], again, {"last_message": "second"}, LATEST), record
    ) == {
        **rest,
        "last_updated": AT_LAST,
        "phase": phase,
        "resume_ready": phase in {"investigating", "planning", "approval"},
        "history": [*record["history"], *([moved(one, phase, AT_LAST)] if phase != one else [])],
        "runs": [run],
        **ending,
    }


def test_a_second_stop_that_tells_nothing_keeps_what_the_first_told() -> None:
    record = after_stop(None)
    assert restopped(record, record["runs"][0], None, {}, LATEST)["runs"] == [
        {**WORKING, "ended_at": AT_LAST, "end": "stopped", "last_message": "first"}
    ]


def test_a_judgement_stays_provisional_however_often_it_is_made() -> None:
    record = after_stop(None)
    for marked in ("approval", None, "failed", "planning", None):
        record = restopped(record, record["runs"][0], marked, {}, LATEST)
        assert may_be_rejudged(record, record["runs"][0])
    assert [step["to_phase"] for step in record["history"]] == [
        "completed",
        "approval",
        "completed",
        "failed",
        "planning",
        "completed",
    ]


_MARKS = st.sampled_from([None, "investigating", "planning", "approval", "failed"])
_WORDS = st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5))


@given(st.lists(st.tuples(st.sampled_from(["delegate", "join", "report", "stop"]), _MARKS, _WORDS), max_size=12))
def test_whatever_hosts_tell_the_record_can_be_written_and_read_back(
    news: list[tuple[str, str | None, str | None]],
) -> None:
    record, now = record_with(phase="initializing"), START
    for number, (kind, marked, words) in enumerate(news):
        now += timedelta(seconds=1)
        record = written(_after_news(record, kind, marked, words, now))
        assert decode(encode(record), "agent-1") == record
        assert [run["run"] for run in record.get("runs", [])] == list(range(1, len(record.get("runs", [])) + 1))
        assert record["revision"] == number + 2
        assert ("finalized_at" in record) == (record["phase"] in OUTCOMES)


def _after_news(record: Record, kind: str, marked: str | None, words: str | None, now: datetime) -> Record:
    if kind == "delegate":
        return delegated(record, {"host_session_id": "h", "tool_use_id": write_time(now)}, now)
    if kind == "report":
        taken = record["phase"] not in OUTCOMES and marked != "failed"
        return reported(in_phase(record, marked, now), marked) if taken and marked else record
    run = record.get("runs", [])[-1:]
    return _after_news_of(record, run[0], kind, marked, {"last_message": words or ""}, now) if run else record


def _after_news_of(record: Record, run: Run, kind: str, marked: str | None, told: Run, now: datetime) -> Record:
    if kind == "join":
        return joined(record, run, f"agent {run['run']}", now)
    if may_be_rejudged(record, run):
        return restopped(record, run, marked, told, now)
    return record if has_ended(run) else stopped(record, run, marked, told, now)
