from __future__ import annotations

from typing import Any

import pytest

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.event_checks import check_event
from gaia_sessions.session.events import KINDS

STOP: dict[str, Any] = {
    "kind": "stop",
    "at": "2026-01-08T18:05:30Z",
    "host": "claude-code",
    "host_session_id": "h",
    "host_agent_id": "a",
    "tool_use_id": "t",
    "parent_host_agent_id": "p",
    "parent_id": "agent-0",
    "workflow": {"run_id": "wf_1", "key": "v2:1"},
    "key_file": "/home/u/a.meta.json",
    "key_name": "toolUseId",
    "host_process": {"pid": 4242, "started": "1", "boot_id": "b", "pid_ns": "n", "machine": "m"},
    "agent_id": "agent-1",
    "agent_name": "Explore",
    "purpose": "general",
    "source": "startup",
    "background": False,
    "resume": ["agent-1"],
    "mentioned": ["agent-1", "agent-2"],
    "transcript_path": "t.jsonl",
    "last_message": "done",
    "marker_phase": "approval",
    "marker_id": "agent-1",
    "briefed_id": "agent-1",
    "has_message": True,
    "after_block": True,
    "launch": False,
    "interrupted": False,
    "interruption": "usage_limit",
    "interrupted_at": "2026-01-08T18:04:30Z",
    "paused_until": "2026-01-08T19:00:00Z",
    "running": ["a", "b"],
    "outcome": "completed",
    "summary": "s",
    "error": "e",
    "tool_name": "Bash",
    "call": "c",
    "writes": True,
    "tracked": True,
    "was_running": True,
    "key_pending": True,
    "reused_id": True,
    "unannounced": True,
    "outcome_assumed": True,
    "usage": {"input_tokens": 1, "duration_ms": 0},
    "consumed": {"total_tokens": 5},
    "model": "m-1",
    "worktree": {"path": "/w", "branch": "b"},
    "events": [{"kind": "stop"}],
}

KINDS_IN_WORDS = (
    "delegate",
    "start",
    "stop",
    "fail",
    "returned",
    "delegation_closed",
    "message",
    "notification",
    "session_start",
    "session_end",
    "session_left",
    "main_stop",
    "finalize",
    "permission",
    "tool",
    "several",
)

FAULTS: list[tuple[str, Any, str, str]] = [
    ("an array", [], "must be an object, not an array", ""),
    ("no kind", {"at": "2026-01-08T18:05:30Z"}, "missing", "kind"),
    ("no time", {"kind": "stop"}, "missing", "at"),
    ("unknown kind", {**STOP, "kind": "begin"}, f"must be one of {', '.join(KINDS_IN_WORDS)}", "kind"),
    ("a kind in capitals", {**STOP, "kind": "Stop"}, f"must be one of {', '.join(KINDS_IN_WORDS)}", "kind"),
    ("no real time", {**STOP, "at": "today"}, "must be an ISO 8601 time", "at"),
    (
        "marked otherwise",
        {**STOP, "marker_phase": "executing"},
        "must be one of investigating, planning, approval, failed",
        "marker_phase",
    ),
    (
        "an interruption that is none",
        {**STOP, "interruption": "lunch"},
        "must be one of interrupted, stopped_by_user, usage_limit, overloaded, connection_lost",
        "interruption",
    ),
    ("no time of an interruption", {**STOP, "interrupted_at": 7}, "must be an ISO 8601 time", "interrupted_at"),
    ("no time to wait for", {**STOP, "paused_until": "soon"}, "must be an ISO 8601 time", "paused_until"),
    ("unknown outcome", {**STOP, "outcome": "done"}, "must be one of completed, failed, abandoned", "outcome"),
    ("background a word", {**STOP, "background": "yes"}, "must be true or false, not a string", "background"),
    ("after_block a number", {**STOP, "after_block": 1}, "must be true or false, not a number", "after_block"),
    ("a pid of 0", {**STOP, "host_process": {"pid": 0}}, "must be a whole number from 1", "host_process.pid"),
    (
        "a start time in ticks",
        {**STOP, "host_process": {"pid": 1, "started": 5}},
        "must be a string, not a number",
        "host_process.started",
    ),
    ("a workflow without an id", {**STOP, "workflow": {"key": "v2:1"}}, "missing", "workflow.run_id"),
    (
        "a key of an agent that is a number",
        {**STOP, "workflow": {"run_id": "wf_1", "key": 1}},
        "must be a string, not a number",
        "workflow.key",
    ),
    (
        "fewer tokens than none",
        {**STOP, "usage": {"input_tokens": -1}},
        "must be a whole number from 0",
        "usage.input_tokens",
    ),
    ("a sum that is no object", {**STOP, "consumed": 7}, "must be an object, not a number", "consumed"),
    ("a worktree by its path", {**STOP, "worktree": "/w"}, "must be an object, not a string", "worktree"),
    ("a workflow by its id", {**STOP, "workflow": "wf_1"}, "must be an object, not a string", "workflow"),
    ("a process by its pid", {**STOP, "host_process": 4242}, "must be an object, not a number", "host_process"),
]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(STOP, id="everything known"),
        pytest.param({"kind": "delegate", "at": "2026-01-08T18:05:30Z"}, id="nothing known"),
        pytest.param({**STOP, "kind": "finalize", "of later": [1]}, id="an unknown key"),
        pytest.param({**STOP, "resume": [], "mentioned": [], "running": [], "host_process": {}}, id="nothing in it"),
        *(pytest.param({**STOP, "kind": kind}, id=kind) for kind in KINDS_IN_WORDS),
        *(
            pytest.param({**STOP, "marker_phase": marked}, id=marked)
            for marked in ("investigating", "planning", "failed")
        ),
        *(pytest.param({**STOP, "outcome": outcome}, id=outcome) for outcome in ("failed", "abandoned")),
    ],
)
def test_an_event_may_know_little_or_much(event: dict[str, Any]) -> None:
    check_event(event, "")


@pytest.mark.parametrize(("event", "problem", "where"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_a_faulty_event_is_refused_with_its_first_bad_key(event: Any, problem: str, where: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_event(event, "")
    assert (caught.value.problem, caught.value.where) == (problem, where)


@pytest.mark.parametrize("key", STOP)
def test_no_key_of_an_event_is_null(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_event({**STOP, key: None}, "")
    assert caught.value.where == key


def test_these_are_the_kinds_of_news() -> None:
    assert KINDS == KINDS_IN_WORDS
