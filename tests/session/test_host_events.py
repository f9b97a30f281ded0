"""The shape of an event of a host: which keys it may have, and which faults are refused."""

from __future__ import annotations

from typing import Any

import pytest

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.event_checks import check_event
from gaia_sessions.session.host_events import KINDS
from tests.table import table

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
    "several",
)

FAULTS: list[tuple[Any, str, str]] = [
    ([], "must be an object, not an array", ""),  # an array
    ({"at": "2026-01-08T18:05:30Z"}, "missing", "kind"),  # no kind
    ({"kind": "stop"}, "missing", "at"),  # no time
    ({**STOP, "kind": "begin"}, f"must be one of {', '.join(KINDS_IN_WORDS)}", "kind"),  # unknown kind
    ({**STOP, "kind": "Stop"}, f"must be one of {', '.join(KINDS_IN_WORDS)}", "kind"),  # a kind in capitals
    ({**STOP, "at": "today"}, "must be an ISO 8601 time", "at"),  # not a time
    (
        {**STOP, "marker_phase": "executing"},
        "must be one of investigating, planning, approval, failed",
        "marker_phase",
    ),  # a phase that no marker has
    (
        {**STOP, "interruption": "lunch"},
        "must be one of interrupted, stopped_by_user, usage_limit, overloaded, connection_lost",
        "interruption",
    ),  # an unknown interruption
    (
        {**STOP, "interrupted_at": 7},
        "must be an ISO 8601 time",
        "interrupted_at",
    ),  # a number as the time of an interruption
    ({**STOP, "paused_until": "soon"}, "must be an ISO 8601 time", "paused_until"),  # a word as the time to wait for
    ({**STOP, "outcome": "done"}, "must be one of completed, failed, abandoned", "outcome"),  # unknown outcome
    ({**STOP, "background": "yes"}, "must be true or false, not a string", "background"),  # background a word
    ({**STOP, "after_block": 1}, "must be true or false, not a number", "after_block"),  # after_block a number
    ({**STOP, "host_process": {"pid": 0}}, "must be a whole number from 1", "host_process.pid"),  # a pid of 0
    (
        {**STOP, "host_process": {"pid": 1, "started": 5}},
        "must be a string, not a number",
        "host_process.started",
    ),  # a start time in ticks
    ({**STOP, "workflow": {"key": "v2:1"}}, "missing", "workflow.run_id"),  # a workflow without an ID
    (
        {**STOP, "workflow": {"run_id": "wf_1", "key": 1}},
        "must be a string, not a number",
        "workflow.key",
    ),  # a key of an agent that is a number
    (
        {**STOP, "usage": {"input_tokens": -1}},
        "must be a whole number from 0",
        "usage.input_tokens",
    ),  # a negative number of tokens
    ({**STOP, "consumed": 7}, "must be an object, not a number", "consumed"),  # a sum that is not an object
    ({**STOP, "worktree": "/w"}, "must be an object, not a string", "worktree"),  # a worktree that is only a path
    ({**STOP, "workflow": "wf_1"}, "must be an object, not a string", "workflow"),  # a workflow that is only an ID
    ({**STOP, "host_process": 4242}, "must be an object, not a number", "host_process"),  # a process that is only a pid
]


@table(
    "event",
    [
        STOP,  # all keys
        {"kind": "delegate", "at": "2026-01-08T18:05:30Z"},  # only the required keys
        {**STOP, "kind": "finalize", "of later": [1]},  # an unknown key
        {**STOP, "resume": [], "mentioned": [], "running": [], "host_process": {}},  # empty values
        *({**STOP, "kind": kind} for kind in KINDS_IN_WORDS),
        *({**STOP, "marker_phase": marked} for marked in ("investigating", "planning", "failed")),
        *({**STOP, "outcome": outcome} for outcome in ("failed", "abandoned")),
    ],
)
def test_an_event_may_have_few_keys_all_keys_or_unknown_keys(event: dict[str, Any]) -> None:
    check_event(event, "")


@table(("event", "problem", "where"), FAULTS)
def test_a_faulty_event_is_refused_with_its_first_bad_key(event: Any, problem: str, where: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_event(event, "")
    assert (caught.value.problem, caught.value.where) == (problem, where)


@table("key", STOP)
def test_no_key_of_an_event_may_be_null(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_event({**STOP, key: None}, "")
    assert caught.value.where == key


def test_events_have_exactly_the_listed_kinds() -> None:
    assert KINDS == KINDS_IN_WORDS
