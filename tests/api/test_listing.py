"""Lists of sessions: the lines, the filters, and the arguments that are refused."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import gaia_sessions
from gaia_sessions.api.listing import Filter, list_sessions
from gaia_sessions.errors import BadArgument, SessionNotFound, UnknownState
from gaia_sessions.session.phases import PHASES
from gaia_sessions.session.policy import decide
from gaia_sessions.session.state import STATES
from gaia_sessions.session.trace import trace_of
from gaia_sessions.store.file_store import FileStore
from tests.records import LIMITS, WHEN, record_with
from tests.table import table

LATER = datetime(2026, 1, 8, 18, 20, tzinfo=UTC)


MARK = '{"at": "2026-01-08T18:10:00Z", "below": true}'
RUNS: list[list[Any]] = [
    [],
    [{"run": 1, "started_at": WHEN}],
    *(
        [{"run": 1, "started_at": WHEN, "ended_at": WHEN, "end": end}]
        for end in ("failed", "lost", "returned", "stopped")
    ),
]
"""No run, an open run, and one run for each kind of end."""


def listed(store: FileStore, now: datetime, **wanted: Any) -> list[Any]:
    return list(list_sessions(store, Filter(**wanted), now, LIMITS))


@pytest.fixture
def store(root: str) -> FileStore:
    return FileStore(root)


@table(
    ("phase", "state", "status", "reason", "until"),
    [
        ("initializing", "new", "active", "phase_not_resumable", None),
        ("approval", "waiting", "active", "session_resumable", "2026-01-08T18:34:00.000000Z"),
        ("completed", "completed", "final", "phase_not_resumable", None),
        ("abandoned", "abandoned", "final", "phase_not_resumable", None),
    ],
)
def test_a_list_line_has_the_summary_of_the_record_and_the_resume_answer(
    root: str, phase: str, state: str, status: str, reason: str, until: str | None
) -> None:
    store = FileStore(f"{root}-{phase}")
    record = record_with(phase=phase, resume_ready=True, error_count=2, last_updated=WHEN, summary="not in it")
    store.create(record)
    [line] = listed(store, LATER)
    assert list(line.items()) == [
        ("agent_id", "agent-1"),
        ("agent_name", "Explore"),
        ("purpose", "general"),
        ("phase", phase),
        ("status", status),
        ("created_at", "2026-01-08T18:00:00.000000Z"),
        ("last_updated", WHEN),
        ("resume_ready", True),
        ("error_count", 2),
        ("resume", {"should_resume": until is not None, "reason": reason, "until": until}),
        ("running", False),
        ("state", state),
        ("state_since", "2026-01-08T18:00:00.000000Z"),
        ("root_id", "agent-1"),
        ("trace_id", trace_of("agent-1")["trace_id"]),
    ]


def test_the_line_of_a_child_has_its_parent_root_and_depth(store: FileStore) -> None:
    store.create({**record_with(parent_id="agent-2"), "agent_id": "agent-3", "phase": "failed"})
    store.create(record_with(parent_id="agent-3"))
    line, _ = listed(store, LATER)
    above = [("parent_id", "agent-3"), *trace_of("agent-2").items(), ("depth", 2)]
    assert list(line.items())[-4:] == above


def test_a_session_whose_parents_form_a_circle_is_its_own_root(store: FileStore) -> None:
    for agent_id, parent_id in [("a", "b"), ("b", "a"), ("leaf", "a")]:
        store.create({**record_with(parent_id=parent_id), "agent_id": agent_id})
    assert [(line["parent_id"], line.get("root_id"), line.get("depth")) for line in listed(store, LATER)] == [
        ("b", "a", None),
        ("a", "b", None),
        ("a", "leaf", None),
    ]


def test_an_unreadable_mark_counts_only_for_its_own_session(store: FileStore) -> None:
    for number in range(50):
        store.create({**record_with(), "agent_id": f"agent-{number}"})
    Path(store.root, "agent-7", "cancelled.json").symlink_to("nowhere")
    Path(store.root, "agent-8", "cancelled.json").write_text('{"at": "2026-01-08T18:00:00Z", "below": true}')

    lines = listed(store, LATER)

    assert {line["agent_id"] for line in lines if "cancelled" in line} == {"agent-7", "agent-8"}
    assert len(lines) == 50


COUNT_OPENINGS = """
import sys
import gaia_sessions
opened = []
sys.addaudithook(lambda event, words: opened.append(words[0]) if event == "open" else None)
found = len(list(gaia_sessions.list_sessions(root=sys.argv[1])))
print(found, opened.count(sys.argv[1]) <= found / 10)
"""


def test_a_list_opens_the_root_at_most_once_for_ten_sessions(store: FileStore) -> None:
    for number in range(60):
        store.create({**record_with(), "agent_id": f"agent-{number}"})

    command = [sys.executable, "-c", COUNT_OPENINGS, store.root]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)

    assert completed.stdout == "60 True\n"


def test_until_is_the_first_moment_at_which_the_session_is_not_resumable(store: FileStore) -> None:
    record = record_with(phase="approval", resume_ready=True, last_updated=WHEN)
    store.create(record)
    [line] = listed(store, LATER)
    until = datetime.fromisoformat(line["resume"]["until"])
    tick = timedelta(microseconds=1)
    assert decide("agent-1", record, until - tick, LIMITS, dead_runs=frozenset(), cancellation=None, written_at=None)[
        "should_resume"
    ]
    assert (
        decide("agent-1", record, until, LIMITS, dead_runs=frozenset(), cancellation=None, written_at=None)["reason"]
        == "expired"
    )


@table("phase", ["approval", "executing"])
def test_a_list_line_says_in_any_phase_that_an_agent_is_at_work(root: str, phase: str) -> None:
    store = FileStore(f"{root}-{phase}")
    record = record_with({"run": 1, "started_at": WHEN}, phase=phase, resume_ready=True, last_updated=WHEN)
    store.create(record)
    [line] = listed(store, LATER)
    assert (line["running"], line["resume"]["should_resume"]) == (True, False)


@table("phases", ["approval", "", b"approval", None, 5])
def test_phases_that_are_not_a_list_are_refused(phases: Any, root: str) -> None:
    with pytest.raises(BadArgument, match=f"^phases {phases!r} is not valid") as refused:
        gaia_sessions.list_sessions(phases=phases, root=root)
    assert refused.value.hint == "must be a list of phases"


@table("limit", [-1, "3", 1.5, True, []])
def test_list_and_tree_refuse_an_invalid_limit_at_the_call(limit: Any, root: str) -> None:
    for ask in (gaia_sessions.Sessions(root).list, gaia_sessions.Sessions(root).tree):
        with pytest.raises(BadArgument) as refused:
            ask(limit=limit)
        assert (str(refused.value), refused.value.hint) == (
            f"limit {limit!r} is not valid",
            "must be a whole number from 0",
        )


@table(("states", "wrong"), [(["error", "eror"], "eror"), ([5], 5), ([["new"]], ["new"])])
def test_an_unknown_state_is_refused_with_the_known_states(states: Any, wrong: object, root: str) -> None:
    with pytest.raises(UnknownState) as refused:
        gaia_sessions.list_sessions(states=states, root=root)
    assert (refused.value.word, refused.value.known) == (wrong, STATES)


def test_a_list_by_states_has_exactly_the_sessions_in_these_states(root: str) -> None:
    store = FileStore(root, durable=False)
    for phase in PHASES:
        for number, runs in enumerate(RUNS):
            for name in (f"{phase}-{number}", f"{phase}-{number}-cancelled"):
                store.create({**record_with(*runs, phase=phase), "agent_id": name})
            Path(root, name, "cancelled.json").write_text(MARK)

    everything = listed(store, LATER)

    for states in ([], *([state] for state in STATES), STATES):
        expected = [line for line in everything if not states or line["state"] in states]
        assert listed(store, LATER, states=states) == expected


@table("name", ["agent_name", "grep"])
@table("value", [5, ["x"], b"x"])
def test_a_filter_that_is_not_a_text_is_refused(name: str, value: Any, root: str) -> None:
    with pytest.raises(BadArgument, match=f"^{name} .* is not valid") as refused:
        gaia_sessions.list_sessions(**{name: value}, root=root)
    assert refused.value.hint == "must be a text"


def test_the_events_of_a_missing_session_are_refused_at_the_call(root: str) -> None:
    gaia_sessions.create_session(agent_id="agent-1", root=root)
    with pytest.raises(SessionNotFound):
        gaia_sessions.Sessions(root).events("agent-2")
    assert list(gaia_sessions.Sessions(root).events("agent-1")) == []


@table("hours", ["2h", None, -1, float("nan"), 1e9])
def test_an_invalid_age_in_hours_is_refused(hours: Any, root: str) -> None:
    with pytest.raises(BadArgument, match=r"^hours "):
        gaia_sessions.cleanup_sessions(hours, root=root)
