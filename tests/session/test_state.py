"""The state of a session in one word: the first rule that holds, for every kind of session."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.session import state as states
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.liveness import liveness
from gaia_sessions.session.phases import PHASES, is_final
from gaia_sessions.session.policy import decide, live_runs
from gaia_sessions.session.record import answer_of
from gaia_sessions.session.schema import ENDS, INTERRUPTIONS
from tests.records import LIMITS, START, WHEN, moved, record_with
from tests.table import table

LATER = "2026-01-08T18:05:00.000000Z"
AHEAD = "2026-01-08T20:00:00.000000Z"
NOW = START + timedelta(minutes=6)
CREATED = format_time(START)
STARTED: Any = {"run": 1, "started_at": WHEN, "host_agent_id": "a"}
CLAIMED: Any = {"run": 2, "claimed_at": LATER}
FIRST_CLAIMED: Any = {**CLAIMED, "run": 1}
DENIAL = {"message": "too expensive", "timestamp": LATER}


def ended(end: str, **keys: Any) -> Any:
    return {**STARTED, "end": end, "ended_at": LATER, **keys}


def state(*runs: Any, cancellation: Any = None, dead: frozenset[int] = frozenset(), **changed: Any) -> tuple[Any, ...]:
    record = record_with(*runs, **changed)
    decision = decide("agent-1", record, NOW, LIMITS, dead_runs=dead, cancellation=cancellation, written_at=None)
    run = next((run for run in runs if run["run"] in live_runs(decision)[-1:]), None)
    alive = liveness(record, run, NOW, LIMITS.quiet, None) if run else None
    found = states.state_of(record, decision, alive, dead)
    return found["state"], found.get("state_since")


CANCELLED: Any = {"at": LATER, "reason": "no longer needed"}
ENDED: Any = {"history": [moved("planning", "abandoned", LATER)], "phase": "abandoned"}

CASES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "completed": (state(phase="completed", history=[moved("planning", "completed")]), ("completed", WHEN)),
    "failed": (state(phase="failed", history=[moved("planning", "failed")]), ("failed", WHEN)),
    "abandoned": (state(**ENDED), ("abandoned", LATER)),
    "abandoned by a mark": (state(**ENDED, cancellation=CANCELLED), ("cancelled", LATER)),
    "abandoned by a mark of an unknown time": (state(**ENDED, cancellation={}), ("cancelled", None)),
    "abandoned, and marked later": (state(**ENDED, cancellation={"at": AHEAD}), ("abandoned", LATER)),
    "completed, and marked": (
        state(phase="completed", history=[moved("planning", "completed")], cancellation=CANCELLED),
        ("completed", WHEN),
    ),
    "final with a live run": (state(STARTED, phase="failed", history=[moved("planning", "failed")]), ("failed", WHEN)),
    "permission": (state({**STARTED, "waiting": {"since": LATER, "for": "Bash"}}), ("waiting", LATER)),
    "at work": (state(STARTED, last_updated=LATER), ("working", WHEN)),
    "at work and cancelled": (state(STARTED, last_updated=LATER, cancellation=CANCELLED), ("working", WHEN)),
    "at work in approval": (state(STARTED, last_updated=LATER, phase="approval"), ("working", WHEN)),
    "at work, and all times are in the future": (
        state({**STARTED, "started_at": AHEAD}, last_updated=AHEAD),
        ("working", AHEAD),
    ),
    "at work, and a claim": (state(STARTED, CLAIMED, last_updated=LATER), ("working", WHEN)),
    "claimed": (state(FIRST_CLAIMED, phase="initializing"), ("starting", LATER)),
    "claimed after a run": (state(ended("stopped"), CLAIMED, phase="planning"), ("starting", LATER)),
    "claimed and cancelled": (state(FIRST_CLAIMED, cancellation=CANCELLED), ("starting", LATER)),
    "claim lapsed": (
        state({**FIRST_CLAIMED, "claimed_at": "2026-01-08T17:00:00.000000Z"}, phase="initializing"),
        ("new", CREATED),
    ),
    "claimed by a host that is gone": (
        state(FIRST_CLAIMED, dead=frozenset([1]), last_updated=LATER),
        ("crashed", LATER),
    ),
    "marked": (state(ended("stopped"), phase="planning", cancellation=CANCELLED), ("cancelled", LATER)),
    "limit ahead": (state(ended("killed", interruption="usage_limit"), paused_until=AHEAD), ("limited", LATER)),
    "limit passed": (state(ended("killed", interruption="usage_limit"), paused_until=WHEN), ("interrupted", LATER)),
    "denied": (state(ended("stopped"), phase="approval", denial=DENIAL), ("denied", LATER)),
    "approved": (state(ended("stopped"), phase="approval", approval=DENIAL), ("approved", LATER)),
    "asked": (
        state(ended("stopped"), phase="approval", history=[moved("planning", "approval", LATER)]),
        ("waiting", LATER),
    ),
    "asked again": (
        state(ended("stopped"), phase="approval", history=[moved("planning", "approval")]),
        ("waiting", LATER),
    ),
    "asked, then a silent stop": (
        state(
            {**STARTED, "end": "stopped"},
            dead=frozenset([1]),
            phase="approval",
            history=[moved("planning", "approval")],
        ),
        ("waiting", WHEN),
    ),
    "asked by command after the stop": (
        state({**ended("stopped"), "ended_at": WHEN}, phase="approval", history=[moved("planning", "approval", LATER)]),
        ("waiting", LATER),
    ),
    "asked, then failed": (
        state(ended("failed"), phase="approval", history=[moved("planning", "approval")]),
        ("waiting", WHEN),
    ),
    "failed run": (state(ended("failed")), ("error", LATER)),
    "lost": (state(ended("lost"), last_updated=WHEN), ("crashed", WHEN)),
    "lost, and updated since": (state(ended("lost"), last_updated=AHEAD), ("crashed", LATER)),
    "its host is gone": (state(STARTED, dead=frozenset([1]), last_updated=LATER), ("crashed", LATER)),
    "ended with its host": (state(ended("ended_with_host")), ("interrupted", LATER)),
    "returned": (state(ended("returned")), ("cut short", LATER)),
    "returned without a start": (
        state({"run": 1, "claimed_at": WHEN, "end": "returned", "ended_at": LATER}),
        ("cut short", LATER),
    ),
    "stopped": (state(ended("stopped"), phase="planning"), ("paused", LATER)),
    "denied delegation after a pause": (
        state(ended("stopped"), {**CLAIMED, "end": "denied", "ended_at": LATER}, phase="planning"),
        ("paused", LATER),
    ),
    "never begun": (state(phase="initializing"), ("new", CREATED)),
    "of a program": (state(phase="executing", history=[moved("initializing", "executing")]), ("open", WHEN)),
    "of a program that asks": (state(phase="approval", history=[moved("initializing", "approval")]), ("waiting", WHEN)),
    **{f"killed, {why}": (state(ended("killed", interruption=why)), ("interrupted", LATER)) for why in INTERRUPTIONS},
}


@table("name", CASES)
def test_the_first_rule_that_holds_gives_the_state_and_its_time(name: str) -> None:
    found, expected = CASES[name]
    assert found == expected


def test_an_agent_is_quiet_since_its_last_sign_of_life() -> None:
    record = record_with({**STARTED, "started_at": CREATED}, last_updated=CREATED)
    now = START + LIMITS.quiet + timedelta(seconds=1)
    decision = decide("agent-1", record, now, LIMITS, dead_runs=frozenset(), cancellation=None, written_at=None)
    alive = liveness(record, record["runs"][0], now, LIMITS.quiet, None)
    assert states.state_of(record, decision, alive) == {"state": "quiet", "state_since": CREATED}


def test_the_cases_cover_every_state() -> None:
    assert {word for _, (word, _) in CASES.values()} | {"quiet"} == set(states.STATES)


@table("phase", PHASES)
@table("keys", [("approval",), ("denial",), ("approval", "denial")])
def test_only_one_answer_is_given_and_only_if_the_state_says_so(phase: str, keys: tuple[str, ...]) -> None:
    left: Any = dict.fromkeys(keys, DENIAL)  # a record that was edited by hand may have either key in any phase
    record = record_with(phase=phase, **left)

    word, _ = state(phase=phase, **left)
    answers = {states.APPROVED: "approved", states.DENIED: "denied"}
    told = answer_of(record)
    assert (told[0] if told else None) == answers.get(word)
    assert (word in answers) == (phase == "approval")
    decision = decide("agent-1", record, NOW, LIMITS, dead_runs=frozenset(), cancellation=None, written_at=None)
    decided = [key for key in ("approval", "denial") if key in decision]
    assert decided == {states.APPROVED: ["approval"], states.DENIED: ["denial"]}.get(word, [])


END = st.sampled_from([None, *ENDS])


@given(
    phase=st.sampled_from(PHASES),
    ends=st.lists(END, max_size=3),
    keys=st.fixed_dictionaries(
        {},
        optional={
            "paused_until": st.sampled_from([WHEN, AHEAD]),
            "denial": st.just(DENIAL),
            "approval": st.just(DENIAL),
        },
    ),
    dead=st.frozensets(st.integers(1, 3)),
    cancellation=st.sampled_from([None, {}, CANCELLED]),
)
def test_every_session_has_a_state_and_a_resumable_session_is_at_rest(
    phase: str, ends: list[str | None], keys: Any, dead: frozenset[int], cancellation: Any
) -> None:
    runs = [
        {"run": number, "started_at": WHEN, **({"end": end, "ended_at": LATER} if end else {})}
        for number, end in enumerate(ends, 1)
    ]
    record = record_with(*runs, phase=phase, resume_ready=True, last_updated=LATER, **keys)
    decision = decide("agent-1", record, NOW, LIMITS, dead_runs=dead, cancellation=cancellation, written_at=None)
    found = states.state_of(record, decision, None, dead)
    assert found["state"] in states.STATES
    at_rest = {"denied", "approved", "waiting", "error", "crashed", "interrupted", "cut short", "paused", "open"}
    assert not decision["should_resume"] or found["state"] in at_rest
    assert not is_final(phase) or found["state"] in ("completed", "failed", "abandoned", "cancelled")
