"""The runs of a record: claims, starts, how a run is found, and what the first event of an agent does."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.session.phases import OPEN, OUTCOMES, PHASES
from gaia_sessions.session.runs import (
    CLAIM_LIFETIME,
    agent_alias,
    aliases_of,
    delegation_alias,
    has_ended,
    has_started,
    host_outlives_conversation,
    is_claimed,
    is_latest,
    is_live,
    run_by_number,
    run_of_agent,
    run_of_delegation,
    runs_of_gone_hosts,
    started_or_claimed_at,
    unended_run_in_conversation,
    updated_run,
    with_claimed_run,
    with_new_run,
    with_reported_phase,
    with_run,
    with_start,
)
from tests.records import START, WHEN, moved, record_with, unchanged
from tests.table import table

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.schema import HostProcess, Record, Run

LATER = START + timedelta(minutes=4)
THEN = "2026-01-08T18:00:00.000000Z"

KEYS: Run = {"host": "claude-code", "host_session_id": "h", "tool_use_id": "t"}
WORKING: dict[str, Any] = {**KEYS, "run": 1, "claimed_at": THEN, "host_agent_id": "a"}


@table(
    ("run", "live", "claimed", "ended"),
    [
        ({"run": 1}, False, False, False),  # nothing known
        ({"claimed_at": THEN}, False, True, False),  # delegated
        ({"started_at": THEN}, True, False, False),  # started
        ({"claimed_at": THEN, "started_at": THEN}, True, False, False),  # delegated and started
        ({"claimed_at": THEN, "host_agent_id": "a"}, True, False, False),  # the agent is known
        ({"claimed_at": THEN, "reported": "planning"}, True, False, False),  # the agent reported a phase
        ({"claimed_at": THEN, "unannounced": True}, True, False, False),  # no event of a start will follow
        ({"claimed_at": THEN, "unannounced": False}, False, True, False),  # an event of a start will follow
        ({"claimed_at": THEN, "ended_at": THEN, "end": "stopped"}, False, False, True),  # denied
        (
            {"claimed_at": THEN, "unannounced": True, "ended_at": THEN, "end": "stopped"},
            False,
            False,
            True,
        ),  # denied or ended
        ({"started_at": THEN, "host_agent_id": "a", "ended_at": THEN, "end": "stopped"}, False, False, True),  # ended
    ],
)
def test_a_run_is_claimed_then_live_then_ended(run: Run, live: bool, claimed: bool, ended: bool) -> None:  # noqa: FBT001
    assert (is_live(run), is_claimed(run, LATER), has_ended(run)) == (live, claimed, ended)


@table(
    ("run", "begun_once"),
    [
        ({"run": 1}, False),  # nothing known
        ({"claimed_at": THEN, "tool_use_id": "t"}, False),  # delegated
        ({"claimed_at": THEN, "unannounced": True}, False),  # no event of a start will follow
        ({"claimed_at": THEN, "ended_at": THEN, "end": "denied"}, False),  # denied
        ({"started_at": THEN}, True),  # started
        ({"host_agent_id": "a"}, True),  # the agent is known
        ({"reported": "planning"}, True),  # the agent reported a phase
        ({"host_agent_id": "a", "ended_at": THEN, "end": "stopped"}, True),  # it has ended since
    ],
)
def test_a_run_has_begun_once_anything_is_known_of_its_agent(run: Run, begun_once: bool) -> None:  # noqa: FBT001
    assert has_started(run) == begun_once


@table(("number", "latest"), [(1, False), (2, False), (3, True)])
def test_the_run_that_began_or_was_claimed_last_is_the_latest(number: int, latest: bool) -> None:  # noqa: FBT001
    record = record_with({"run": 1}, {"run": 2, "started_at": WHEN}, {"run": 3, "claimed_at": THEN})
    assert is_latest(record, record["runs"][number - 1]) == latest


@table(
    ("passed", "holds"),
    [
        (timedelta(0), True),  # at once
        (timedelta(minutes=9, seconds=59, microseconds=999999), True),  # just under 10 minutes
        (timedelta(minutes=10), False),  # exactly 10 minutes
        (timedelta(days=1), False),  # a day
        (timedelta(minutes=-1), True),  # claimed by a clock a minute ahead
        (timedelta(minutes=-5), True),  # exactly 5 minutes ahead
        (timedelta(minutes=-5, microseconds=-1), False),  # over 5 minutes ahead: a wrong clock
        (timedelta(days=-4000), False),  # years ahead: a wrong clock
    ],
)
def test_a_claim_holds_for_ten_minutes(passed: timedelta, holds: bool) -> None:  # noqa: FBT001
    assert is_claimed({"run": 1, "claimed_at": THEN}, START + passed) == holds
    assert timedelta(minutes=10) == CLAIM_LIFETIME


@table(
    ("run", "moment"),
    [
        ({"started_at": WHEN, "claimed_at": THEN}, LATER),  # started
        ({"claimed_at": THEN}, START),  # only delegated
        ({"run": 1}, None),  # neither
    ],
)
def test_a_run_began_when_it_started_or_was_delegated(run: Run, moment: datetime | None) -> None:
    assert started_or_claimed_at(run) == moment


@table(
    "earlier",
    [
        [],
        [{"run": 1, "ended_at": THEN, "end": "stopped"}],
        [{"run": 1, "ended_at": THEN, "end": "stopped"}, {"run": 2, "claimed_at": THEN}],
    ],
)
def test_a_delegation_appends_a_claimed_run_and_touches_nothing_else(earlier: list[dict[str, Any]]) -> None:
    record = record_with(*earlier, phase="approval")
    assert unchanged(lambda record: with_claimed_run(record, KEYS, LATER), record) == {
        **record,
        "runs": [*earlier, {**KEYS, "run": len(earlier) + 1, "claimed_at": WHEN}],
    }


MANY = record_with(
    {"run": 1, "host_session_id": "h", "tool_use_id": "t", "host_agent_id": "a", "ended_at": THEN, "end": "stopped"},
    {"run": 2, "host_session_id": "h", "tool_use_id": "u", "host_agent_id": "a"},
    {"run": 3, "host_session_id": "g", "tool_use_id": "t", "ended_at": THEN, "end": "stopped"},
    {"run": 4, "claimed_at": THEN},
)


@table(
    ("host_session_id", "tool_use_id", "number"),
    [
        ("h", "t", 1),  # ended runs count
        ("h", "u", 2),  # open
        ("g", "t", 3),  # the same tool use in another conversation
        ("g", "u", None),  # both keys must match
        ("H", "t", None),  # case matters
        ("", "", None),  # a run without keys matches no key
    ],
)
def test_a_run_is_found_by_its_exact_delegation(host_session_id: str, tool_use_id: str, number: int | None) -> None:
    expected = None if number is None else MANY["runs"][number - 1]
    assert run_of_delegation(MANY, host_session_id, tool_use_id) == expected


@table(
    ("host_session_id", "host_agent_id", "number"),
    [
        ("h", "a", 2),  # the latest run of one agent
        ("g", "a", None),  # another conversation: the ID may not be unique there
        ("h", "b", None),  # another agent
    ],
)
def test_a_run_is_found_by_its_exact_agent(host_session_id: str, host_agent_id: str, number: int | None) -> None:
    expected = None if number is None else MANY["runs"][number - 1]
    assert run_of_agent(MANY, host_session_id, host_agent_id) == expected


@table(
    ("host_session_id", "number"),
    [
        ("h", 2),  # the latest run is open
        ("g", None),  # the latest run has ended
        ("x", None),  # an unknown conversation
    ],
)
def test_the_open_run_of_a_conversation_is_found(host_session_id: str, number: int | None) -> None:
    expected = None if number is None else MANY["runs"][number - 1]
    assert unended_run_in_conversation(MANY, host_session_id) == expected


def test_an_agent_is_looked_for_in_its_own_conversation_first() -> None:
    agent = {"host": "claude-code", "host_agent_id": "a"}
    here = {**agent, "run": 1, "host_session_id": "h"}
    moved = {**agent, "run": 2, "host_session_id": "x", "current_host_session_id": "g"}
    there = {**agent, "run": 3, "host_session_id": "y"}
    record = record_with(here, moved, there)
    found = {where: run_of_agent(record, where, "a") for where in ("h", "g", "x", "y", "z")}
    assert found == {"h": here, "g": moved, "x": moved, "y": there, "z": there}


def test_an_agent_with_a_unique_id_is_found_in_any_conversation() -> None:
    keys = {"host_session_id": "h", "current_host_session_id": "g", "host_agent_id": "a", "tool_use_id": "t"}
    assert aliases_of(record_with({**keys, "run": 1, "host": "claude-code"})) == [
        ("delegation", ("h", "t")),
        agent_alias("g", "a", "claude-code"),
    ]


@table("host", ["codex", "qwen-code", "gemini-cli"])
def test_an_agent_id_that_a_host_reuses_finds_no_run_in_another_conversation(host: str) -> None:
    run = {"run": 1, "host": host, "host_session_id": "h", "host_agent_id": "/root/alpha"}
    record = record_with(run)
    assert aliases_of(record) == [agent_alias("h", "/root/alpha")]
    assert run_of_agent(record, "g", "/root/alpha") is None


def test_the_latest_open_run_of_a_conversation_is_found_if_a_later_run_has_ended() -> None:
    record = record_with(
        {"run": 1, "host_session_id": "h"},
        {"run": 2, "host_session_id": "h"},
        {"run": 3, "host_session_id": "g"},
        {"run": 4, "host_session_id": "h", "ended_at": THEN, "end": "stopped"},
    )
    assert unended_run_in_conversation(record, "h") == {"run": 2, "host_session_id": "h"}


def test_no_run_is_found_in_a_record_without_runs() -> None:
    record = record_with()
    assert (
        run_of_delegation(record, "h", "t"),
        run_of_agent(record, "h", "a"),
        unended_run_in_conversation(record, "h"),
    ) == (None, None, None)
    assert aliases_of(record) == []


def test_an_alias_is_a_kind_and_its_exact_strings() -> None:
    assert delegation_alias("h", "t") == ("delegation", ("h", "t"))
    assert agent_alias("h", "a", "claude-code") == ("agent_of_host", ("claude-code", "a"))
    assert agent_alias("h", "a") == ("agent", ("h", "a"))


def test_the_aliases_of_a_record_are_the_complete_keys_of_its_runs() -> None:
    assert aliases_of(MANY) == [
        ("delegation", ("h", "t")),
        ("agent", ("h", "a")),
        ("delegation", ("h", "u")),
        ("agent", ("h", "a")),
        ("delegation", ("g", "t")),
    ]


def test_keys_without_a_conversation_are_not_aliases() -> None:
    assert aliases_of(record_with({"run": 1, "tool_use_id": "t", "host_agent_id": "a"})) == []


def test_a_newer_record_has_no_aliases() -> None:
    newer: Any = {"agent_id": "agent-1", "schema": 2, "runs": "something of later"}
    assert aliases_of(newer) == []


@table(
    "runs",
    [
        [],  # no run
        [{"run": 1, "ended_at": THEN, "end": "stopped", "reported": "planning"}],  # only an ended run
        [{"run": 1}, {"run": 2, "ended_at": THEN, "end": "stopped"}],  # the last run has ended
    ],
)
def test_a_phase_reported_outside_a_run_is_recorded_in_no_run(runs: list[dict[str, Any]]) -> None:
    record = record_with(*runs)
    assert with_reported_phase(record, "approval") is record


@table("before", [{}, {"reported": "planning"}])
def test_a_reported_phase_is_recorded_in_the_open_run(before: dict[str, Any]) -> None:
    record = record_with({"run": 1, "ended_at": THEN, "end": "stopped"}, {"run": 2, **before})
    assert unchanged(lambda record: with_reported_phase(record, "approval"), record) == {
        **record,
        "runs": [{"run": 1, "ended_at": THEN, "end": "stopped"}, {"run": 2, "reported": "approval"}],
    }


def test_a_run_is_found_by_its_number_and_not_by_its_place() -> None:
    record: Any = {"runs": [{"run": 3}, {"run": 7, "host": "h"}, {"run": 8}]}

    assert run_by_number(record, 7) == {"run": 7, "host": "h"}
    assert [run_by_number(record, number) for number in (0, 1, 2, 9)] == [None] * 4
    assert updated_run(record, {"run": 7}) == {"run": 7, "host": "h"}
    assert unchanged(lambda record: with_run(record, {"run": 7, "detail": "d"}), record) == {
        "runs": [{"run": 3}, {"run": 7, "detail": "d"}, {"run": 8}]
    }
    assert [is_latest(record, run) for run in record["runs"]] == [False, False, True]
    assert unchanged(lambda record: with_new_run(record, {"host": "h"}), record) == {
        "runs": [*record["runs"], {"run": 9, "host": "h"}]
    }


def test_the_first_run_is_number_1() -> None:
    record = record_with()
    assert run_by_number(record, 1) is None
    assert with_new_run(record, {"host": "h"}) == {**record, "runs": [{"run": 1, "host": "h"}]}


NEWS = [
    {"host_agent_id": "a"},  # the agent is known
    {"host_agent_id": "a", "started_at": WHEN, "background": True},  # it started
]


@table("known", NEWS)
def test_the_first_event_of_an_agent_moves_the_session_to_investigating(known: Run) -> None:
    record = record_with({**KEYS, "run": 1, "claimed_at": THEN}, phase="initializing")
    assert unchanged(lambda record: with_start(record, record["runs"][0], known, LATER), record) == {
        **record,
        "last_updated": WHEN,
        "phase": "investigating",
        "resume_ready": True,
        "history": [moved("initializing", "investigating")],
        "runs": [{**KEYS, "run": 1, "claimed_at": THEN, **known}],
    }


@table("phase", [phase for phase in OPEN if phase not in {"initializing", "approval"}])
@table("known", NEWS)
def test_the_start_of_a_first_run_keeps_the_phase_of_work_that_has_begun(phase: str, known: Run) -> None:
    record = record_with({**KEYS, "run": 1, "claimed_at": THEN}, phase=phase, resume_ready=False)
    assert unchanged(lambda record: with_start(record, record["runs"][0], known, LATER), record) == {
        **record,
        "last_updated": WHEN,
        "runs": [{**KEYS, "run": 1, "claimed_at": THEN, **known}],
    }


@table("phase", [phase for phase in OPEN if phase not in {"initializing", "approval"}])
@table("known", NEWS)
def test_the_start_of_a_resumed_run_keeps_the_phase_of_work_that_has_begun(phase: str, known: Run) -> None:
    record = record_with({"run": 1, "ended_at": THEN, "end": "stopped"}, {"run": 2, "claimed_at": THEN}, phase=phase)
    assert unchanged(lambda record: with_start(record, record["runs"][1], known, LATER), record) == {
        **record,
        "last_updated": WHEN,
        "runs": [{"run": 1, "ended_at": THEN, "end": "stopped"}, {"run": 2, "claimed_at": THEN, **known}],
    }


@table("known", NEWS)
def test_resuming_a_session_that_waits_for_approval_approves_it(known: Run) -> None:
    record = record_with(
        {"run": 1, "ended_at": THEN, "end": "stopped"}, {"run": 2, "claimed_at": THEN}, phase="approval"
    )
    assert unchanged(lambda record: with_start(record, record["runs"][1], known, LATER), record) == {
        **record,
        "last_updated": WHEN,
        "phase": "executing",
        "resume_ready": False,
        "history": [moved("approval", "executing")],
        "answers": [{"answer": "approved", "by": "resume_line", "timestamp": WHEN}],
        "runs": [{"run": 1, "ended_at": THEN, "end": "stopped"}, {"run": 2, "claimed_at": THEN, **known}],
    }


@table("known", NEWS)
def test_a_denied_session_still_waits_for_approval_after_it_is_resumed(known: Run) -> None:
    denial = {"message": "too dear", "timestamp": THEN}
    runs = ({"run": 1, "ended_at": THEN, "end": "stopped"}, {"run": 2, "claimed_at": THEN})
    record = record_with(*runs, phase="approval", resume_ready=True, denial=denial)
    assert unchanged(lambda record: with_start(record, record["runs"][1], known, LATER), record) == {
        **record,
        "last_updated": WHEN,
        "runs": [{"run": 1, "ended_at": THEN, "end": "stopped"}, {"run": 2, "claimed_at": THEN, **known}],
    }


@table("phase", PHASES)
@table("known", [{}, {"host_agent_id": "a"}, {"host_agent_id": "a", "host_session_id": "h"}])
def test_an_event_with_nothing_new_changes_nothing(phase: str, known: Run) -> None:
    record = record_with(WORKING, phase=phase)
    assert with_start(record, record["runs"][0], known, LATER) is record


@table("phase", PHASES)
@table("run", [WORKING, {**WORKING, "ended_at": THEN, "end": "stopped"}])
def test_a_later_event_of_a_run_that_has_begun_changes_only_the_run(phase: str, run: dict[str, Any]) -> None:
    record = record_with(run, {"run": 2}, phase=phase)
    assert unchanged(lambda record: with_start(record, record["runs"][0], {"started_at": WHEN}, LATER), record) == {
        **record,
        "runs": [{**run, "started_at": WHEN}, {"run": 2}],
    }


@table("phase", OPEN)
def test_a_late_start_of_an_ended_run_changes_only_the_run(phase: str) -> None:
    ended = {**KEYS, "run": 1, "claimed_at": THEN, "ended_at": THEN, "end": "lost"}
    record = record_with(ended, phase=phase)
    assert with_start(record, record["runs"][0], {"host_agent_id": "a"}, LATER) == {
        **record,
        "runs": [{**ended, "host_agent_id": "a"}],
    }


@table("phase", OUTCOMES)
@table("known", NEWS)
def test_a_late_event_of_an_agent_is_not_activity_of_a_final_session(phase: str, known: Run) -> None:
    record = record_with({**KEYS, "run": 1, "claimed_at": THEN}, phase=phase, finalized_at=THEN, duration_seconds=0)
    after = unchanged(lambda record: with_start(record, record["runs"][0], known, LATER), record)
    assert after == {**record, "runs": [{**KEYS, "run": 1, "claimed_at": THEN, **known}]}


GONE: HostProcess = {"pid": 1, "started": "1"}
ALIVE: HostProcess = {"pid": 2, "started": "2"}


def test_the_runs_of_gone_hosts_are_runs_without_an_end_time() -> None:
    runs: list[Run] = [
        {"run": 1, "host_process": GONE},
        {"run": 2, "host_process": GONE, "ended_at": THEN, "end": "stopped"},
        {"run": 3, "host_process": ALIVE},
        {"run": 4},
        {"run": 5, "host_process": {}},
        {"run": 6, "host_process": GONE, "end": "stopped"},
    ]
    assert runs_of_gone_hosts(record_with(runs=runs), lambda process: process == GONE) == {1, 6}


@table("runs", [{}, {"runs": []}])
def test_a_session_without_runs_has_no_runs_of_gone_hosts(runs: dict[str, Any]) -> None:
    record: Record = {**record_with(), **runs}  # type: ignore[typeddict-item]
    assert runs_of_gone_hosts(record, lambda _process: True) == frozenset()


@table(
    ("run", "outlives"),
    [
        ({"run": 1, "end": "ended_with_host", "host_process": ALIVE}, True),
        ({"run": 1, "end": "ended_with_host", "host_process": GONE}, False),
        ({"run": 1, "end": "ended_with_host"}, False),
        ({"run": 1, "end": "stopped", "host_process": ALIVE}, False),
        ({"run": 1, "host_process": ALIVE}, False),
    ],
)
def test_a_host_outlives_only_a_run_that_ended_with_its_conversation(run: Run, *, outlives: bool) -> None:
    assert host_outlives_conversation(run, lambda process: process == ALIVE) == outlives
