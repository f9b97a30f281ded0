"""The direct form of ``subagent_stop``: it finalizes a session by the stated outcome or exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from tests.hook.conftest import own_host, refused, whole
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from tests.hook.conftest import Host


def session_in(host: Host, phase: str) -> str:
    agent_id = gaia_sessions.create_session("Explore", agent_id="agent-123", root=str(host.root))
    gaia_sessions.update_state(agent_id, phase, root=str(host.root))
    return agent_id


@pytest.fixture
def working(host: Host) -> str:
    """A session in ``executing``."""
    return session_in(host, "executing")


SAYS_HOW: list[tuple[dict[str, object], str]] = [
    ({"exit_code": 1}, "failed"),
    ({"exit_code": -9}, "failed"),
    ({"exit_code": 137}, "failed"),
    ({"outcome": "completed"}, "completed"),
    ({"outcome": "failed"}, "failed"),
    ({"outcome": "abandoned"}, "abandoned"),
    ({"outcome": "completed", "exit_code": 0}, "completed"),
    ({"outcome": "completed", "exit_code": 1}, "completed"),
    ({"outcome": "abandoned", "exit_code": 0}, "abandoned"),
    ({"outcome": None, "exit_code": 1}, "failed"),
]
SAYS_NO_END: list[dict[str, object]] = [
    {},
    {"exit_code": 0},
    {"output": "0 errors found, none failed; exit code: 1"},
    {"summary": "error: 3 errors, FAILED with exit code 1"},
]
ENDINGS = [
    *((phase, told, outcome) for phase in ("executing", "approval") for told, outcome in SAYS_HOW),
    *(("executing", told, "completed") for told in SAYS_NO_END),
]


@table("nested", [False, True])
@table(("phase", "told", "outcome"), ENDINGS)
@own_host
def test_a_stop_uses_the_stated_outcome_also_in_approval_and_ignores_texts(
    host: Host, phase: str, told: dict[str, object], outcome: str, *, nested: bool
) -> None:
    working = session_in(host, phase)
    asked: dict[str, object] = {"agent_id": working, **told}
    if nested:
        asked = {"task_info": asked, "agent_output": "0 errors found, but exit code: 1"}

    answer = host.ask("subagent_stop", asked)

    assert answer == {
        "finalized": True,
        "agent_id": working,
        "outcome": outcome,
        "reason": "finalized",
        "original_context": asked,
    }
    assert host.record()["phase"] == outcome


def test_a_failed_stop_with_summary_and_error_writes_exactly_the_expected_record(host: Host, working: str) -> None:
    host.ask("subagent_stop", {"agent_id": working, "exit_code": 2, "summary": "Half of it", "error": "No access"})

    assert host.timeless(host.record()) == whole(
        agent_id=working,
        purpose="general",
        phase="failed",
        history=host.moved("initializing", "executing", "failed"),
        error_count=1,
        last_error={"message": "No access", "timestamp": "TIME"},
        revision=3,
        finalized_at="TIME",
        duration_seconds="SECONDS",
        summary="Half of it",
    )


SAYS_NOTHING: list[dict[str, object]] = [
    {},
    {"exit_code": 0},
    {"outcome": None},
    {"outcome": None, "exit_code": 0, "summary": "All done", "error": "failed"},
]


@table("nested", [False, True])
@table("told", SAYS_NOTHING)
@own_host
def test_a_stop_without_an_outcome_leaves_a_session_in_approval_unchanged(
    host: Host, told: dict[str, object], *, nested: bool
) -> None:
    pausing = session_in(host, "approval")
    asked: dict[str, object] = {"agent_id": pausing, **told}
    if nested:
        asked = {"task_info": asked}
    before = host.tree(host.root)

    answer = host.ask("subagent_stop", asked)

    assert answer == refused("subagent_stop", asked, "waits_for_approval", agent_id=pausing)
    assert host.tree(host.root) == before
    assert host.log("subagent_stop")[-1]["decision"] == "waits_for_approval"


@table("phase", ["initializing", "investigating", "planning", "executing", "validating"])
@own_host
def test_a_stop_without_an_outcome_completes_a_session_in_any_other_open_phase(host: Host, phase: str) -> None:
    agent_id = gaia_sessions.create_session(root=str(host.root))
    if phase != "initializing":
        gaia_sessions.update_state(agent_id, phase, root=str(host.root))

    assert host.ask("subagent_stop", {"agent_id": agent_id})["finalized"] is True

    assert host.record()["phase"] == "completed"


@table("told", [{"exit_code": 1}, {"outcome": "failed", "summary": "told later", "error": "again"}])
@own_host
def test_a_second_stop_succeeds_and_changes_nothing(host: Host, told: dict[str, object]) -> None:
    working = session_in(host, "executing")
    host.ask("subagent_stop", {"agent_id": working, "exit_code": 1, "summary": "first", "error": "first"})
    before = host.tree(host.root)

    answer = host.ask("subagent_stop", {"agent_id": working, **told})

    assert answer["finalized"] is True
    assert host.tree(host.root) == before


def test_a_second_stop_with_another_outcome_is_refused_and_changes_nothing(host: Host, working: str) -> None:
    host.ask("subagent_stop", {"agent_id": working})
    before = host.tree(host.root)

    asked = {"agent_id": working, "exit_code": 1}

    answer = host.ask("subagent_stop", asked)

    error = "session 'agent-123' has ended (completed) and can no longer be changed"
    assert answer == refused("subagent_stop", asked, "error", error=error)
    assert host.tree(host.root) == before


@table("asked", [{}, {"exit_code": 1}, {"agent_id": None}, {"task_info": {}}, {"task_id": "T001"}])
def test_a_stop_without_an_id_does_nothing_and_answers_no_agent_id(host: Host, asked: dict[str, object]) -> None:
    assert host.ask("subagent_stop", asked) == refused("subagent_stop", asked, "no_agent_id")
    assert not host.root.exists()


def test_a_stop_with_an_unknown_id_changes_nothing_and_answers_not_found(host: Host, working: str) -> None:
    before = host.tree(host.root)
    asked = {"agent_id": "agent-404", "exit_code": 1}

    assert host.ask("subagent_stop", asked) == refused("subagent_stop", asked, "not_found")
    assert host.tree(host.root) == before
    assert host.record()["agent_id"] == working


WRONG: dict[str, dict[str, Any]] = {
    "task_info: must be an object": {"task_info": ["agent-123"]},
    "agent_id: must be a string, not a number": {"agent_id": 123},
    "exit_code: must be a whole number": {"agent_id": "agent-123", "exit_code": "1"},
    "exit_code: must be a whole number (not a boolean)": {"agent_id": "agent-123", "exit_code": False},
    "unknown outcome 'done'": {"agent_id": "agent-123", "outcome": "done"},
    "unknown outcome ['failed']": {"agent_id": "agent-123", "outcome": ["failed"]},
    "summary: must be a string, not an object": {"agent_id": "agent-123", "summary": {}},
    "error: must be a string, not a number": {"agent_id": "agent-123", "error": 1},
}


@pytest.mark.usefixtures("working")
@table(("error", "asked"), WRONG.items())
def test_a_stop_with_a_wrong_value_is_refused_and_changes_nothing(
    host: Host, error: str, asked: dict[str, object]
) -> None:
    before = host.tree(host.root)

    answer = host.ask("subagent_stop", asked)

    error = error.removesuffix(" (not a boolean)")
    assert answer == refused("subagent_stop", asked, "invalid_input", error=error)
    assert host.tree(host.root) == before


def test_a_refusal_names_the_session_whose_id_was_in_task_info(host: Host, working: str) -> None:
    asked = {"task_info": {"agent_id": working, "outcome": "done"}}

    answer = host.ask("subagent_stop", asked)

    error = "unknown outcome 'done'"
    assert answer == refused("subagent_stop", asked, "invalid_input", agent_id=working, error=error)


DAMAGES: list[Callable[[Path], object]] = [
    lambda file: file.write_text(json.dumps({**json.loads(file.read_bytes()), "schema": 2}), encoding="utf-8"),
    lambda file: file.write_bytes(b"{torn"),
]


@table("damage", DAMAGES)
@own_host
def test_a_stop_leaves_a_corrupt_or_newer_record_unchanged(host: Host, damage: Callable[[Path], object]) -> None:
    working = session_in(host, "executing")
    damage(host.root / working / "state.json")
    before = host.tree(host.root / working)

    answer = host.ask("subagent_stop", {"agent_id": working})

    assert (answer["finalized"], answer["reason"]) == (False, "error")
    assert host.tree(host.root / working) == before


def test_every_call_leaves_one_line_in_the_log_without_the_texts(host: Host, working: str) -> None:
    host.ask("subagent_stop", {"agent_id": working, "summary": "hunter2", "agent_output": "hunter2"})
    host.ask("subagent_stop", {"agent_id": "agent-404"})

    lines = host.timeless(host.log("subagent_stop"))
    assert all(line.pop("ms") >= 0 for line in lines)
    assert lines == [
        {"at": "TIME", "event": "direct", "decision": "finalized", "session": working},
        {"at": "TIME", "event": "direct", "decision": "not_found", "session": "agent-404"},
    ]
