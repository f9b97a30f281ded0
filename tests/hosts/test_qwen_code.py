"""Events of Qwen Code: a newer version that names each tool call, and an older one that does not."""

from __future__ import annotations

from typing import Any

from tests.hosts.test_hosts import read
from tests.hosts.test_hosts import told as told_by
from tests.table import table

BASE = {"session_id": "s", "transcript_path": "/chats/s.jsonl", "permission_mode": "yolo", "prompt_id": "s#0"}
ASKED = {"description": "Count", "prompt": "Count quokkas", "subagent_type": "Explore"}
CALL = {"tool_name": "agent", "tool_input": ASKED, "tool_use_id": "toolu_1", "tool_call_id": "call_1"}
AGENT = {"agent_id": "Explore-call_1", "agent_type": "Explore"}
KEYS = {"host_agent_id": "Explore-call_1", "agent_name": "Explore", "tool_use_id": "call_1"}
ENDED = {"agent_transcript_path": "/subagents/s/a.jsonl", "last_assistant_message": "Twelve.", "background_tasks": []}


def told(event: str, **payload: Any) -> list[Any]:
    """The events of the payload, without the keys that all events share."""
    found = told_by("qwen-code", {**BASE, "hook_event_name": event, **payload})
    for each in found:
        assert each.pop("host_session_id") == "s"
    return found


def test_a_delegation_has_the_id_of_its_call_and_expects_a_start() -> None:
    delegate = {"kind": "delegate", "tool_use_id": "call_1", "agent_name": "Explore", "purpose": "Count"}
    assert told("PreToolUse", **CALL) == [delegate]
    nested = {**CALL, "agent_id": "Plan-call_0", "tool_input": {**ASKED, "run_in_background": False}}
    assert told("PreToolUse", **nested) == [
        {**delegate, "background": False, "parent_host_agent_id": "Plan-call_0"},
    ]


def test_an_agent_is_identified_by_its_type_and_the_id_of_its_call() -> None:
    assert told("SubagentStart", **AGENT) == [{"kind": "start", **KEYS}]
    background = {"returnDisplay": {"subagentName": "Explore", "status": "background"}}
    launched = {"launch": True, "background": True}
    assert told("PostToolUse", **CALL, tool_response=background) == [{"kind": "start", **KEYS, **launched}]
    last = {
        "has_message": True,
        "last_message": "Twelve.",
        "after_block": False,
        "transcript_path": "/subagents/s/a.jsonl",
    }
    assert told("SubagentStop", **AGENT, **ENDED) == [{"kind": "stop", **KEYS, **last}]


def test_an_agent_whose_id_contains_no_call_id_is_ignored() -> None:
    for keys in ({"agent_id": "call_1", "agent_type": "Explore"}, {"agent_id": "a"}, {"agent_type": "Explore"}):
        assert told("SubagentStart", **keys) == []
        assert told("SubagentStop", **keys, **ENDED) == []


def test_the_stop_of_a_foreground_agent_is_ignored() -> None:
    assert told("SubagentStop", **AGENT, **{**ENDED, "agent_transcript_path": BASE["transcript_path"]}) == []


def test_agent_starts_and_stops_of_the_older_version_are_ignored() -> None:
    older: Any = {"hook_event_name": "SubagentStart", "session_id": "s", **AGENT}
    assert read("qwen-code", older) == []
    stopped = {key: value for key, value in ENDED.items() if key != "background_tasks"}
    assert told("SubagentStop", **AGENT, **stopped) == []


def test_the_end_of_a_turn_reports_running_agents_and_how_the_others_ended() -> None:
    states = ("running", "completed", "failed", "cancelled", "paused", "new")
    tasks = [{"id": f"Explore-{state}", "status": state, "agent_type": "Explore"} for state in states]

    found = told("Stop", background_tasks=[*tasks, {"status": "failed"}, {"id": 1}, "x", None])

    notified = [(each["host_agent_id"], each["outcome"], each.get("has_message")) for each in found[:-1]]
    assert [each["kind"] for each in found] == ["notification"] * 3 + ["main_stop"]
    assert notified == [
        ("Explore-completed", "completed", False),
        ("Explore-failed", "failed", None),
        ("Explore-cancelled", "abandoned", None),
    ]
    assert found[-1] == {"kind": "main_stop", "running": ["Explore-running"]}


@table("tasks", [None, "x", 1, {}, True])
def test_a_turn_without_a_task_list_does_not_say_which_agents_run(tasks: object) -> None:
    assert told("Stop", background_tasks=tasks) == [{"kind": "main_stop"}]


def test_a_failed_turn_ends_agents_only_in_the_older_version() -> None:
    assert told("StopFailure", error="unknown") == []
    older: Any = {"hook_event_name": "StopFailure", "session_id": "s"}
    [event] = read("qwen-code", older)
    assert event["kind"] == "main_stop"


def test_a_failed_call_without_a_start_had_no_running_agent() -> None:
    [event] = told("PostToolUseFailure", **CALL, error="depth limit")
    assert event == {"kind": "fail", "tool_use_id": "call_1", "agent_name": "Explore", "error": "depth limit"}
