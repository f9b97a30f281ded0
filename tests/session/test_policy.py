"""The resume check: each reason, the order of the reasons, the limits and the advice."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.config import Config
from gaia_sessions.session import policy
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import OUTCOMES, PHASES
from gaia_sessions.session.policy import ADVICE, ADVICE_WHEN_ASKED, RESUMABLE_REASON, Limits
from gaia_sessions.session.record import decode, encode, new_record
from tests.records import LIMITS
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

NOW = datetime(2026, 1, 8, 18, 30, tzinfo=UTC)
decide = partial(policy.decide, dead_runs=frozenset(), cancellation=None, written_at=None)
PHASES_TO_RESUME = ["investigating", "planning", "approval"]
LIVE = {"run": 1, "started_at": "2026-01-08T18:00:00Z"}
CLAIMED = {"run": 2, "claimed_at": "2026-01-08T18:29:00Z"}
ENDED = {"run": 1, "started_at": "2026-01-08T18:00:00Z", "ended_at": "2026-01-08T18:01:00Z", "end": "stopped"}

ORDER = [
    "not_found",
    "corrupt",
    "cancelled",
    "phase_not_resumable",
    "running",
    "claimed",
    "not_approved",
    "not_ready",
    "clock_skew",
    "waiting_for_limit",
    "expired",
    "too_many_errors",
]
NAMES = {
    "not_found": "exists",
    "corrupt": "readable",
    "cancelled": "not_cancelled",
    "phase_not_resumable": "phase",
    "running": "no_live_run",
    "claimed": "not_claimed",
    "not_approved": "answered",
    "not_ready": "resume_ready",
    "clock_skew": "clock",
    "waiting_for_limit": "limit_reset",
    "expired": "idle_seconds",
    "too_many_errors": "error_count",
}


UNTIL = format_time(NOW + timedelta(minutes=20))
"""When ``resumable()`` can no longer be resumed."""


def resumable(idle: timedelta = timedelta(minutes=10), **changed: Any) -> Record:
    """A record that passes every check, with some keys changed."""
    record: Any = {
        **new_record("agent-1", "Explore", "general", {}, NOW - timedelta(hours=2)),
        "last_updated": format_time(NOW - idle),
        "phase": "approval",
        "resume_ready": True,
        **changed,
    }
    return decode(encode(record), "agent-1")


def checks(**changed: tuple[bool, object, object]) -> list[dict[str, object]]:
    """The checks of ``resumable()`` in the order of the policy, with some changed."""
    sound: dict[str, tuple[bool, object, object]] = {
        "not_found": (True, True, True),
        "corrupt": (True, None, None),
        "cancelled": (True, None, None),
        "phase_not_resumable": (True, "approval", PHASES_TO_RESUME),
        "running": (True, [], []),
        "claimed": (True, [], []),
        "not_approved": (True, None, None),
        "not_ready": (True, True, True),
        "clock_skew": (True, 0.0, 300.0),
        "waiting_for_limit": (True, None, None),
        "expired": (True, 600.0, 1800.0),
        "too_many_errors": (True, 0, 3),
    }
    found = {**sound, **changed}
    return [
        dict(zip(("name", "ok", "actual", "limit"), (NAMES[reason], *found[reason]), strict=True)) for reason in ORDER
    ]


def test_a_session_that_meets_every_condition_may_be_resumed() -> None:
    assert list(decide("agent-1", resumable(), NOW, LIMITS).items()) == [
        ("should_resume", True),
        ("reason", "session_resumable"),
        ("agent_id", "agent-1"),
        ("phase", "approval"),
        ("idle_seconds", 600.0),
        ("until", UNTIL),
        ("checks", checks()),
        ("advice", "resume it with its metadata and history as context"),
    ]


NOTHING: tuple[bool, object, object] = (False, None, None)
UNKNOWN = dict.fromkeys(ORDER[1:], NOTHING)


@table(
    ("problem", "reason", "findings", "advice"),
    [
        (None, "not_found", {"not_found": (False, False, True)}, "start new work"),
        (
            "line 1 column 1: not JSON",
            "corrupt",
            {"corrupt": (False, "line 1 column 1: not JSON", None)},
            "start new work, and fix or remove the file",
        ),
        ("", "corrupt", {"corrupt": (False, "", None)}, "start new work, and fix or remove the file"),
    ],
)
def test_for_a_missing_or_corrupt_session_no_other_check_is_known(
    problem: str | None, reason: str, findings: dict[str, tuple[bool, object, object]], advice: str
) -> None:
    assert policy.decide_without_record("agent-1", problem) == {
        "should_resume": False,
        "reason": reason,
        "agent_id": "agent-1",
        "phase": None,
        "idle_seconds": None,
        "until": None,
        "checks": checks(**{**UNKNOWN, **findings}),
        "advice": advice,
    }


# For each reason: the keys of the record that cause it, and the failed check.
FAULTS: dict[str, tuple[dict[str, Any], tuple[bool, object, object]]] = {
    "phase_not_resumable": ({"phase": "executing"}, (False, "executing", PHASES_TO_RESUME)),
    "running": ({"runs": [LIVE]}, (False, [1], [])),
    "claimed": ({"runs": [ENDED, CLAIMED]}, (False, [2], [])),
    "not_ready": ({"resume_ready": False}, (False, False, True)),
    "clock_skew": ({"last_updated": "2026-01-08T18:35:00.5Z"}, (False, 300.5, 300.0)),
    "expired": ({"last_updated": "2026-01-08T17:59:59Z"}, (False, 1801.0, 1800.0)),
    "too_many_errors": ({"error_count": 3}, (False, 3, 3)),
}


def test_e7_a_cancelled_session_is_not_resumable_and_this_reason_comes_first() -> None:
    """E7: also if the session has ended, or fails another check."""
    cancellation: Any = {"at": UNTIL, "reason": "no longer needed", "by": "agent-0"}
    for record in (resumable(), resumable(phase="abandoned", resume_ready=False), resumable(error_count=9)):
        decision = decide("agent-1", record, NOW, LIMITS, cancellation=cancellation)
        assert (decision["should_resume"], decision["reason"]) == (False, "cancelled")
        assert (decision["cancellation"], decision["advice"]) == (cancellation, ADVICE["cancelled"])
        assert decision["checks"][2] == {"name": "not_cancelled", "ok": False, "actual": UNTIL, "limit": None}
    assert decide("agent-1", resumable(), NOW, LIMITS, cancellation={})["reason"] == "cancelled"


@table("reason", FAULTS)
def test_each_failed_condition_alone_gives_its_own_reason(reason: str) -> None:
    changed, finding = FAULTS[reason]
    idle = {"clock_skew": 0.0, "expired": 1801.0}.get(reason, 600.0)
    also: dict[str, tuple[bool, object, object]] = {"expired": (True, 0.0, 1800.0)} if reason == "clock_skew" else {}
    assert decide("agent-1", resumable(**changed), NOW, LIMITS) == {
        "should_resume": False,
        "reason": reason,
        "agent_id": "agent-1",
        "phase": changed.get("phase", "approval"),
        "idle_seconds": idle,
        "until": None,
        "checks": checks(**{reason: finding}, **also),
        "advice": {**ADVICE, "expired": ADVICE_WHEN_ASKED}[reason].replace("{id}", "agent-1"),
    }


_TOGETHER = [reason for reason in FAULTS if reason != "clock_skew"]  # a time in the future has not expired


@table("first", range(len(_TOGETHER)))
def test_the_first_of_many_reasons_is_given_and_all_checks_are_shown(first: int) -> None:
    at_hand = _TOGETHER[first:]
    changed = {key: value for reason in at_hand for key, value in FAULTS[reason][0].items()}
    if {"running", "claimed"} <= set(at_hand):
        changed["runs"] = [LIVE, CLAIMED]
    decision = decide("agent-1", resumable(**changed), NOW, LIMITS)
    assert (decision["reason"], decision["checks"]) == (
        at_hand[0],
        checks(**{reason: FAULTS[reason][1] for reason in at_hand}),
    )


@table(("earlier", "reason"), [({"resume_ready": False}, "not_ready"), ({"error_count": 3}, "clock_skew")])
def test_a_clock_ahead_comes_after_not_ready_and_before_too_many_errors(earlier: dict[str, Any], reason: str) -> None:
    record = resumable(last_updated="2026-01-08T18:36:00Z", **earlier)
    assert decide("agent-1", record, NOW, LIMITS)["reason"] == reason


@table("phase", PHASES)
def test_only_three_phases_may_be_resumed(phase: str) -> None:
    decision = decide("agent-1", resumable(phase=phase), NOW, LIMITS)
    expected = "session_resumable" if phase in PHASES_TO_RESUME else "phase_not_resumable"
    assert (decision["should_resume"], decision["reason"], decision["phase"]) == (
        phase in PHASES_TO_RESUME,
        expected,
        phase,
    )


@table(
    ("idle", "reason", "seconds"),
    [
        (timedelta(0), "session_resumable", 0.0),  # not idle
        (timedelta(minutes=29, seconds=59), "session_resumable", 1799.0),  # 29:59
        (timedelta(minutes=30, microseconds=-1), "session_resumable", 1799.999999),  # just under 30 minutes
        (timedelta(minutes=30), "expired", 1800.0),  # exactly 30 minutes
        (timedelta(minutes=31), "expired", 1860.0),  # 31 minutes
        (timedelta(days=4000), "expired", 345600000.0),  # years
        (timedelta(minutes=-1), "session_resumable", 0.0),  # a minute ahead counts as not idle
        (timedelta(minutes=-5), "session_resumable", 0.0),  # exactly 5 minutes ahead counts as not idle
        (timedelta(minutes=-5, microseconds=-1), "clock_skew", 0.0),  # over 5 minutes ahead
        (timedelta(days=-4000), "clock_skew", 0.0),  # years ahead
    ],
)
def test_a_session_is_resumable_under_30_minutes_idle_and_up_to_5_minutes_ahead(
    idle: timedelta, reason: str, seconds: float
) -> None:
    decision = decide("agent-1", resumable(idle), NOW, LIMITS)
    assert (decision["should_resume"], decision["reason"], decision["idle_seconds"]) == (
        reason == "session_resumable",
        reason,
        seconds,
    )


@table(
    ("written", "reason", "seconds"),
    [
        (timedelta(minutes=29), "session_resumable", 1740.0),  # in time
        (timedelta(minutes=30), "expired", 1800.0),  # too long ago
        (timedelta(hours=3), "expired", 2700.0),  # before the last update
        (timedelta(minutes=-5), "session_resumable", 0.0),  # by a clock a little ahead
        (timedelta(minutes=-5, microseconds=-1), "expired", 2700.0),  # too far in the future to count
    ],
)
def test_a_write_of_the_agent_counts_as_activity(written: timedelta, reason: str, seconds: float) -> None:
    decision = decide("agent-1", resumable(timedelta(minutes=45)), NOW, LIMITS, written_at=NOW - written)
    until = format_time(NOW - written + timedelta(minutes=30)) if reason == "session_resumable" else None
    assert (decision["reason"], decision["idle_seconds"], decision["until"]) == (reason, seconds, until)


@table(
    ("errors", "reason"),
    [(0, "session_resumable"), (2, "session_resumable"), (3, "too_many_errors"), (4, "too_many_errors")],
)
def test_a_session_is_resumable_after_two_errors_but_not_after_three(errors: int, reason: str) -> None:
    assert decide("agent-1", resumable(error_count=errors), NOW, LIMITS)["reason"] == reason


@table(
    ("runs", "reason", "live", "claimed"),
    [
        ([], "session_resumable", [], []),  # no run
        ([ENDED], "session_resumable", [], []),  # ended
        ([{"run": 1, "claimed_at": "2026-01-08T18:20:00Z"}], "session_resumable", [], []),  # a claim that has lapsed
        ([{"run": 1, "claimed_at": "2026-01-08T18:20:01Z"}], "claimed", [], [1]),  # a claim that holds
        ([LIVE, CLAIMED], "running", [1], [2]),  # one live, one claimed
        ([LIVE, {**LIVE, "run": 2}], "running", [1, 2], []),  # two live
    ],
)
def test_a_session_with_a_live_or_claimed_run_is_not_resumed(
    runs: list[dict[str, Any]], reason: str, live: list[int], claimed: list[int]
) -> None:
    decision = decide("agent-1", resumable(runs=runs), NOW, LIMITS)
    assert (decision["reason"], decision["checks"]) == (
        reason,
        checks(running=(not live, live, []), claimed=(not claimed, claimed, [])),
    )


@table(
    ("runs", "gone", "reason", "live", "claimed"),
    [
        ([LIVE], {1}, "session_resumable", [], []),  # the live run is gone
        ([ENDED, CLAIMED], {2}, "session_resumable", [], []),  # the claim's host is gone
        ([LIVE, CLAIMED], {1}, "claimed", [], [2]),  # the live run is gone, and a claim holds
        ([LIVE, CLAIMED], {2}, "running", [1], []),  # the claim is gone, and a run is live
        ([LIVE, CLAIMED], {1, 2}, "session_resumable", [], []),  # both are gone
        ([LIVE, {**LIVE, "run": 2}], {2}, "running", [1], []),  # one of two live runs is gone
        ([ENDED], {1}, "session_resumable", [], []),  # the host of an ended run is gone
        ([], {1}, "session_resumable", [], []),  # the gone run is not in the record
        ([LIVE], set(), "running", [1], []),  # no run is gone
    ],
)
def test_a_run_whose_host_is_gone_does_not_prevent_a_resume(
    runs: list[dict[str, Any]], gone: set[int], reason: str, live: list[int], claimed: list[int]
) -> None:
    record = resumable(runs=runs)
    before = deepcopy(record)
    assert decide("agent-1", record, NOW, LIMITS, dead_runs=frozenset(gone)) == {
        "should_resume": reason == "session_resumable",
        "reason": reason,
        "agent_id": "agent-1",
        "phase": "approval",
        "idle_seconds": 600.0,
        "until": UNTIL if reason == "session_resumable" else None,
        "checks": checks(running=(not live, live, []), claimed=(not claimed, claimed, [])),
        "advice": ADVICE[reason].replace("{id}", "agent-1"),
    }
    assert record == before


@table("reason", [reason for reason in FAULTS if reason not in {"running", "claimed"}])
def test_a_host_that_is_gone_does_not_override_any_other_reason(reason: str) -> None:
    record = resumable(**FAULTS[reason][0], runs=[LIVE])
    assert decide("agent-1", record, NOW, LIMITS, dead_runs=frozenset([1]))["reason"] == reason


@table(
    ("limits", "idle", "errors", "reason"),
    [
        (Config({"idle_minutes": 60}).limits, 59, 0, "session_resumable"),  # a longer idle time
        (Config({"idle_minutes": 5}).limits, 5, 0, "expired"),  # a shorter idle time
        (Config({"max_errors": 10}).limits, 1, 9, "session_resumable"),  # more errors
        (Config({"max_errors": 1}).limits, 1, 1, "too_many_errors"),  # no error
    ],
)
def test_the_policy_uses_the_limits_of_the_caller(limits: Limits, idle: int, errors: int, reason: str) -> None:
    record = resumable(timedelta(minutes=idle), error_count=errors)
    decision = decide("agent-1", record, NOW, limits)
    assert (decision["reason"], decision["checks"][-2]["limit"], decision["checks"][-1]["limit"]) == (
        reason,
        limits.idle.total_seconds(),
        limits.max_errors,
    )


def test_a_time_with_an_offset_and_no_fraction_is_judged_the_same() -> None:
    record = resumable(last_updated="2026-01-08T19:10:15+01:00")
    assert decide("agent-1", record, NOW, LIMITS)["idle_seconds"] == 1185.0


@table("phase", PHASES)
def test_ended_new_and_executing_sessions_each_get_their_own_advice(phase: str) -> None:
    advice = decide("agent-1", resumable(phase=phase, resume_ready=False), NOW, LIMITS)["advice"]
    if phase in OUTCOMES:
        assert advice == "start new work: this session has ended"
    elif phase == "initializing":
        assert advice == "start the work: there is nothing to resume yet"
    elif phase not in PHASES_TO_RESUME:
        assert advice == "start new work: only investigating, planning and approval can be resumed"


@table("key, reason", [("started_at", "running"), ("claimed_at", "claimed")])
def test_the_advice_for_a_new_session_with_an_agent_is_to_leave_it_to_the_agent(key: str, reason: str) -> None:
    runs = [{"run": 1, "host": "codex", key: format_time(NOW)}]
    record = resumable(phase="initializing", resume_ready=False, runs=runs)
    assert decide("agent-1", record, NOW, LIMITS)["advice"] == ADVICE[reason]


def test_advice_that_names_a_command_gives_the_whole_command() -> None:
    named = [decide("agent-1", resumable(**FAULTS[reason][0]), NOW, LIMITS) for reason in ("not_ready", "clock_skew")]
    assert [decision["advice"] for decision in named] == [
        "start new work, or allow resuming again: gaia-sessions update agent-1 --resume-ready",
        "when the clock is right, type: gaia-sessions update agent-1",
    ]


def test_there_is_advice_for_every_reason_in_the_order_of_the_checks() -> None:
    assert list(ADVICE) == [RESUMABLE_REASON, *ORDER]
    assert all(ADVICE.values())


_RUNS = st.sampled_from([[], [ENDED], [LIVE], [CLAIMED | {"run": 1}], [ENDED, CLAIMED]])


_GONE = st.frozensets(st.sampled_from([1, 2]))


@given(st.sampled_from(PHASES), st.booleans(), st.integers(-400, 2000), st.integers(0, 4), _RUNS, _GONE)
def test_a_session_is_resumable_exactly_when_all_conditions_hold(
    phase: str,
    ready: bool,  # noqa: FBT001
    idle: int,
    errors: int,
    runs: list[dict[str, Any]],
    gone: frozenset[int],
) -> None:
    record = resumable(timedelta(seconds=idle), phase=phase, resume_ready=ready, error_count=errors, runs=runs)
    before = deepcopy(record)
    decision = decide("agent-1", record, NOW, LIMITS, dead_runs=gone)
    unended = {"started_at" in run: run["run"] not in gone for run in runs if run != ENDED}
    is_cut_off = phase == "initializing" and any(run != ENDED and run["run"] in gone for run in runs[-1:])
    fails = {
        "phase_not_resumable": phase not in PHASES_TO_RESUME and not is_cut_off,
        "running": unended.get(True, False),
        "claimed": unended.get(False, False),
        "not_ready": not ready and not is_cut_off,
        "clock_skew": idle < -300,
        "expired": idle >= 1800,
        "too_many_errors": errors >= 3,
    }
    failing = [reason for reason in ORDER if fails.get(reason)]
    assert [reason for reason, check in zip(ORDER, decision["checks"], strict=True) if not check["ok"]] == failing
    assert decision["reason"] == [*failing, "session_resumable"][0]
    assert decision["should_resume"] == (failing == [])
    assert record == before


def test_a_denied_session_is_resumable_with_the_advice_to_choose_another_way() -> None:
    denial = {"message": "too dear", "timestamp": "2026-01-08T18:00:00.000000Z"}
    plain = decide("agent-1", resumable(), NOW, LIMITS)

    assert decide("agent-1", resumable(denial=denial), NOW, LIMITS) == {
        **plain,
        "answer": "denied",
        "denial": denial,
        "advice": "resume it, and choose another way: its question was denied: too dear",
    }
    tired = resumable(timedelta(minutes=31), denial=denial)
    assert decide("agent-1", tired, NOW, LIMITS)["advice"] == ADVICE["expired"].replace("{id}", "agent-1")


def test_the_decision_includes_an_approval_and_its_note() -> None:
    approval = {"message": "in staging", "timestamp": "2026-01-08T18:00:00.000000Z"}
    plain = decide("agent-1", resumable(), NOW, LIMITS)

    assert decide("agent-1", resumable(approval=approval), NOW, LIMITS) == {
        **plain,
        "answer": "approved",
        "approval": approval,
        "advice": "resume it: its question was approved: in staging",
    }


@table(
    ("changed", "reason"),
    [
        ({}, "not_approved"),
        ({"last_updated": "2026-01-08T10:00:00Z"}, "not_approved"),
        ({"runs": [LIVE]}, "running"),
        ({"phase": "planning"}, "session_resumable"),
        ({"approval": {"message": "", "timestamp": "2026-01-08T18:00:00Z"}}, "session_resumable"),
        ({"denial": {"message": "", "timestamp": "2026-01-08T18:00:00Z"}}, "session_resumable"),
    ],
)
def test_with_explicit_approvals_a_waiting_session_is_resumable_only_after_an_answer(
    changed: dict[str, Any], reason: str
) -> None:
    limits = Limits(LIMITS.idle, LIMITS.max_errors, LIMITS.quiet, explicit_approvals=True)

    decision = decide("agent-1", resumable(**changed), NOW, limits)

    assert (decision["reason"], decision["should_resume"]) == (reason, reason == "session_resumable")
    if reason == "not_approved":
        asks = "to make it resumable, a person types this in a terminal: gaia-sessions approve agent-1"
        assert decision["advice"] == asks


@table(
    ("changed", "command"),
    [
        ({}, "run agent-1 -- COMMAND"),
        ({"phase": "completed"}, "run --continues agent-1 -- COMMAND"),
        ({"turns": 1}, "send agent-1 TEXT -- COMMAND"),
        ({"app": "a", "user": "u", "app_session": {}}, None),
    ],
)
def test_where_no_hook_looks_a_command_resumes_each_session_that_no_app_resumes(
    changed: dict[str, Any], command: str | None
) -> None:
    limits = Limits(LIMITS.idle, LIMITS.max_errors, LIMITS.quiet, has_hooks=False)
    decided = decide("agent-1", resumable(**changed), NOW, limits).get("run_command")
    assert decided == (command and f"gaia-sessions {command}")


@table("changed", [{}, {"turns": 1}])
def test_no_command_continues_a_session_that_has_ended_while_its_run_goes_on(changed: dict[str, Any]) -> None:
    limits = Limits(LIMITS.idle, LIMITS.max_errors, LIMITS.quiet, has_hooks=False)
    run = {"run": 1, "started_at": format_time(NOW)}
    ended = resumable(phase="completed", runs=[run], **changed)
    decided = decide("agent-1", ended, NOW, limits)
    advice = "wait until its run has ended: then you can continue it in a new session"
    assert (decided.get("run_command"), decided["advice"]) == (None, advice)
    assert decide("agent-1", ended, NOW, LIMITS).get("run_command") is None
    assert "run_command" in decide("agent-1", ended, NOW, limits, dead_runs=frozenset([1]))


@table("phase", ["investigating", "planning"])
def test_the_advice_for_an_expired_session_is_an_update_unless_it_failed_too_often(phase: str) -> None:
    tired = resumable(timedelta(minutes=31), phase=phase)
    assert decide("agent-1", tired, NOW, LIMITS)["advice"] == ADVICE["expired"].replace("{id}", "agent-1")
    assert decide("agent-1", {**tired, "error_count": 3}, NOW, LIMITS)["advice"].endswith("finalize agent-1 failed")
