"""The figures of one session: one record for each rule, and figures that are refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.jsonio.strict import LARGEST_INTEGER
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.figures import LONGEST_STAY, figures_of, read_figures
from gaia_sessions.session.phases import PHASES, is_final
from gaia_sessions.session.policy import decide
from gaia_sessions.session.schema import ENDS, INTERRUPTIONS
from gaia_sessions.session.state import state_of
from gaia_sessions.session.updates import MAX_HISTORY
from tests.records import LIMITS, START, moved, record_with
from tests.table import table


def at(minutes: float) -> str:
    return format_time(START + timedelta(minutes=minutes))


CREATED = at(0)
NOTHING: dict[str, Any] = {
    "agent_id": "agent-1",
    "created_at": CREATED,
    "revision": 1,
    "agent_name": "Explore",
    "state": "paused",
    "phase": "investigating",
    "last_activity": CREATED,
    "stays": {},
    "rests": 0,
    "resumed": 0,
    "interruptions": {},
    "runs_dropped": 0,
    "history_dropped": 0,
    "errors": 0,
}


def figures(*runs: Any, now: float = 6, cancellation: Any = None, **changed: Any) -> Any:
    record, moment = record_with(*runs, **changed), START + timedelta(minutes=now)
    decision = decide(
        "agent-1", record, moment, LIMITS, dead_runs=frozenset(), cancellation=cancellation, written_at=None
    )
    found = figures_of(record, decision, state_of(record, decision, None))
    assert read_figures(found) == found, "what we write is read back"
    return found


def having(*runs: Any, **changed: Any) -> Any:
    """The arguments of ``figures`` in a row of a table."""
    return runs, changed


def run(number: int, began: float, ended: float | None = None, end: str = "stopped", **keys: Any) -> dict[str, Any]:
    over = {} if ended is None else {"ended_at": at(ended), "end": end}
    return {"run": number, "started_at": at(began), **over, **keys}


def final(phase: str, minutes: float, *earlier: Any, before: str = "planning") -> dict[str, Any]:
    return {"phase": phase, "finalized_at": at(minutes), "history": [*earlier, moved(before, phase, at(minutes))]}


def counts(found: Any) -> tuple[int, int]:
    return found["rests"], found["resumed"]


RESTS = run(1, 1, 2)
PLANNED = moved("investigating", "planning", at(2))

RUNS: dict[str, tuple[Any, tuple[int, int]]] = {
    "none": (having(), (0, 0)),
    "at work": (having(run(1, 1)), (0, 0)),
    "rests": (having(RESTS), (1, 0)),
    "resumed, and at work": (having(RESTS, run(2, 3)), (1, 1)),
    "resumed twice, and rests": (having(RESTS, run(2, 3, 4), run(3, 4, 5)), (3, 2)),
    "resumed, and done": (having(RESTS, run(2, 3, 4), **final("completed", 4, PLANNED)), (1, 1)),
    "done by its stop": (having(RESTS, **final("completed", 2)), (0, 0)),
    "a person ended it hours later": (having(RESTS, **final("completed", 200, PLANNED)), (1, 0)),
    "its agent ended it, then stopped": (having(run(1, 1, 3), **final("failed", 2, PLANNED)), (0, 0)),
    "its agent ended it, and a clock was set back": (
        having(run(1, 1, 1.5, reported="failed"), **final("failed", 2, PLANNED)),
        (0, 0),
    ),
    "a person reopened what its agent had ended": (
        having(run(1, 1, 1.5, reported="failed"), phase="planning"),
        (1, 0),
    ),
    "resumed by a run that was denied": (having(RESTS, run(2, 3, 4, "denied")), (1, 0)),
    "resumed by a claim that lapsed": (having(RESTS, {"run": 2, "claimed_at": at(3)}), (1, 0)),
    "resumed by a claim, and its host is gone": (
        having(RESTS, {"run": 2, "claimed_at": at(3), "ended_at": at(4), "end": "lost"}),
        (1, 0),
    ),
    "resumed by a claim, and its conversation ended": (
        having(RESTS, {"run": 2, "claimed_at": at(3), "ended_at": at(4), "end": "ended_with_host"}),
        (1, 0),
    ),
    "resumed by a claim, and a person stopped it": (
        having(RESTS, {"run": 2, "claimed_at": at(3), "ended_at": at(4), "end": "killed"}),
        (1, 0),
    ),
    "resumed by a claim that returned": (
        having(RESTS, {"run": 2, "claimed_at": at(3), "ended_at": at(4), "end": "returned"}),
        (2, 1),
    ),
    "denied alone": (having(run(1, 1, 2, "denied"), **final("abandoned", 2)), (0, 0)),
    "a send": (having(run(1, 1, 2, "returned", turn=1)), (0, 0)),
    "a run, then a send": (having(RESTS, run(2, 3, 4, "returned", turn=1)), (1, 0)),
    "a send, then a run": (having(run(1, 1, 2, "returned", turn=1), run(2, 3, 4)), (1, 0)),
    "the host ended while the session was executing": (
        having(run(1, 1, 2, "ended_with_host"), **final("abandoned", 2, before="executing")),
        (0, 0),
    ),
    "the host ended while the session was planning": (having(run(1, 1, 2, "lost"), phase="planning"), (1, 0)),
    "no stop came": (
        having(
            run(1, 1, 2, "returned", detail="returned, and no stop came"),
            **final("failed", 3, before="executing"),
        ),
        (0, 0),
    ),
    "ended before the known moves": (
        having(RESTS, **final("completed", 9, moved("planning", "executing", at(8))), history_dropped=5),
        (1, 0),
    ),
    "runs are dropped": (having(run(8, 1, 2), run(9, 3), runs_dropped=7), (1, 1)),
}


@table("made, expected", RUNS.values())
def test_an_ended_run_of_an_open_session_rests_until_a_later_run_resumes_it(made: Any, expected: Any) -> None:
    assert counts(figures(*made[0], **made[1])) == expected


STAYS: dict[str, tuple[Any, Any]] = {
    "still in its first phase": (having(phase="initializing"), {}),
    "twice in one phase": (
        having(
            phase="approval",
            history=[
                moved("initializing", "investigating", at(0)),
                moved("investigating", "approval", at(1.5)),
                moved("approval", "investigating", at(31.5)),
                moved("investigating", "approval", at(32)),
            ],
        ),
        {"initializing": [0], "investigating": [90, 30], "approval": [1800]},
    ),
    "judged again": (
        having(
            phase="planning",
            history=[moved("planning", "completed", at(1)), moved("completed", "planning", at(9)), PLANNED],
        ),
        {"planning": [60], "investigating": [0]},  # an end is not a stay, and a clock that was set back gives 0, not -7
    ),
    "the first known move after dropped ones": (
        having(history=[moved("planning", "approval", at(5)), moved("approval", "planning", at(6))], history_dropped=1),
        {"approval": [60]},
    ),
    "part of a second": (having(history=[moved("planning", "approval", at(0.999 / 60))]), {"planning": [0]}),
}


@table("made, expected", STAYS.values())
def test_a_stay_lasts_from_move_to_move_and_counts_once_it_is_over(made: Any, expected: Any) -> None:
    assert figures(*made[0], **made[1])["stays"] == expected


MARKED: Any = {"at": at(4), "reason": "no longer needed"}
WHOLE: dict[str, tuple[Any, dict[str, Any]]] = {
    "new": (having(phase="initializing"), {"state": "new", "phase": "initializing"}),
    "idle for too long": (
        having(RESTS, phase="planning", resume_ready=True, now=31),
        {"phase": "planning", "rests": 1, "expired": True},
    ),
    "idle for too long, and too many errors": (
        having(RESTS, phase="planning", resume_ready=True, now=31, error_count=50),
        {"phase": "planning", "rests": 1, "errors": 50, "state": "paused"},
    ),
    "idle for too long, but not in a resumable phase": (
        having(RESTS, phase="executing", now=31),
        {"phase": "executing", "rests": 1},
    ),
    "ended": (
        having(**final("failed", 3), error_count=2, last_updated=at(2)),
        {
            "state": "failed",
            "phase": "failed",
            "ended_at": at(3),
            "last_activity": at(2),
            "stays": {"planning": [180]},
            "errors": 2,
        },
    ),
    "ended, and the record lacks the time": (
        having(phase="completed", history=[moved("planning", "completed", at(3))]),
        {"state": "completed", "phase": "completed", "ended_at": at(3), "stays": {"planning": [180]}},
    ),
    "ended, and the record lacks time and history": (
        having(phase="completed"),
        {"state": "completed", "phase": "completed", "ended_at": CREATED},
    ),
    "cancelled, and the record not written since": (
        having(RESTS, phase="planning", cancellation=MARKED),
        {
            "state": "cancelled",
            "phase": "abandoned",
            "ended_at": at(4),
            "stays": {"planning": [240]},
            "rests": 1,
        },
    ),
    "cancelled before the end": (
        having(**final("abandoned", 5), cancellation=MARKED),
        {"state": "cancelled", "phase": "abandoned", "ended_at": at(5), "stays": {"planning": [300]}},
    ),
    "interrupted": (
        having(
            run(1, 1, 2, "killed", interruption="overloaded"),
            run(2, 3, 4, "killed", interruption="usage_limit"),
            run(3, 3, 4, "killed", interruption="overloaded"),
            run(4, 5, 5, "killed", interruption="stopped_by_user", turn=1),
        ),
        {
            "state": "interrupted",
            "rests": 3,
            "resumed": 2,
            "interruptions": {"usage_limit": 1, "overloaded": 2},
        },
    ),
    "tokens": (having(RESTS, charged_tokens=40), {"rests": 1, "tokens": 40}),
    "no text": (
        having(
            RESTS, purpose="secret", metadata={"secret": 1}, agent_name="x" * 300, runs_dropped=0, app="a", user="u"
        ),
        {"agent_name": "x" * 200, "rests": 1},
    ),
}


@table("made, expected", WHOLE.values())
def test_each_kind_of_session_has_exactly_the_expected_figures(made: Any, expected: Any) -> None:
    state = {} if "rests" in expected or "state" in expected else {"state": "open"}
    assert figures(*made[0], **made[1]) == {**NOTHING, **state, **expected}


WRONG: tuple[Any, ...] = (None, True, [], 1.5)
FOREIGN: list[dict[str, Any]] = [
    *({key: value} for key in NOTHING for value in WRONG),
    {"agent_id": "../up"},
    {"agent_name": "x" * 201},
    {"created_at": "yesterday"},
    {"state": "cancelled"},  # without an end
    {"ended_at": at(1)},  # but open
    {"state": "expired"},
    {"phase": "done"},
    {"stays": {"completed": [1]}},
    {"stays": {"planning": 1}},
    *({"stays": {"planning": seconds}} for seconds in ([-1], [True], [1.5], ["1"], [LONGEST_STAY + 1])),
    {"stays": {"planning": [1] * MAX_HISTORY, "approval": [1]}},
    {"interruptions": {"bored": 1}},
    {"interruptions": {"overloaded": True}},
    *({key: count} for key in ("rests", "errors", "tokens") for count in (-1, False, LARGEST_INTEGER + 1, "1")),
    {"resumed": 1},  # but no rest
    {"expired": 1},
]


@table("changed", FOREIGN)
def test_figures_that_no_session_can_have_are_not_read(changed: dict[str, Any]) -> None:
    assert read_figures({**NOTHING, **changed}) is None


@table("missing", NOTHING)
def test_figures_that_lack_a_key_are_not_read(missing: str) -> None:
    assert read_figures({key: value for key, value in NOTHING.items() if key != missing}) is None


def test_figures_of_a_later_version_are_read_without_their_new_keys() -> None:
    assert read_figures({**NOTHING, "mood": "good"}) == NOTHING


MINUTES = st.integers(0, 90)


@given(
    st.lists(st.tuples(st.sampled_from(PHASES), MINUTES), max_size=8),
    st.lists(st.tuples(st.sampled_from(ENDS), MINUTES, st.sampled_from([None, *INTERRUPTIONS])), max_size=5),
    st.sampled_from([None, MARKED, {}]),
)
def test_the_figures_of_any_record_are_consistent_and_can_be_read_back(moves: Any, ends: Any, mark: Any) -> None:
    history = [
        moved(one, other, at(minutes))
        for (one, _), (other, minutes) in zip([("initializing", 0), *moves], moves, strict=False)
    ]
    runs = [
        run(number, 0, minutes, end, **({"interruption": kind} if kind else {}))
        for number, (end, minutes, kind) in enumerate(ends, 1)
    ]
    phase = moves[-1][0] if moves else "initializing"

    found = figures(*runs, phase=phase, history=history, cancellation=mark, now=91)

    assert found["resumed"] <= found["rests"] <= len(runs)
    assert ("ended_at" in found) == (is_final(phase) or mark is not None)
    assert sum(map(len, found["stays"].values())) <= len(history) + 1
    assert parse_time(found["last_activity"]) == START
