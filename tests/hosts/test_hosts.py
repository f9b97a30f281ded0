"""Which host told, by what only that one sends; and what each host that was never seen is documented to send."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gaia_sessions import hosts
from gaia_sessions.config import Config
from gaia_sessions.hook.replies import _REPLY_BUILDERS
from gaia_sessions.hosts import HOOK
from gaia_sessions.hosts.marker import END_OF_DATA, NOTE
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.hosts.tool_only import content_key
from gaia_sessions.session.event_checks import check_event

NOW = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)

PROMPT = "Count the quokkas"
BASE = {"session_id": "s", "transcript_path": "/t", "cwd": "/p"}
STAMPED = {**BASE, "timestamp": "2026-11-21T23:40:48.102Z"}
CLAUDE = {"CLAUDE_PROJECT_DIR": "/p", "CLAUDE_PID": "1"}
QWEN = {"CLAUDE_PROJECT_DIR": "/p", "GEMINI_PROJECT_DIR": "/p", "QWEN_PROJECT_DIR": "/p"}
GEMINI = {"CLAUDE_PROJECT_DIR": "/p", "GEMINI_PROJECT_DIR": "/p", "GEMINI_SESSION_ID": "s"}

# What was wired, what was sent, what stood in the environment, and whose it is.
TOLD: dict[str, tuple[str | None, dict[str, Any], dict[str, str], str]] = {
    "Claude Code": (None, {**BASE, "hook_event_name": "PreToolUse"}, CLAUDE, "claude-code"),
    "Claude Code with the model of its session": (
        None,
        {**BASE, "hook_event_name": "SessionStart", "model": "m"},
        CLAUDE,
        "claude-code",
    ),
    "Claude Code in the shell of Qwen Code": (None, {**BASE, "hook_event_name": "Stop"}, QWEN | CLAUDE, "claude-code"),
    "Claude Code in the shell of Gemini CLI": (
        None,
        {**BASE, "session_id": "other", "hook_event_name": "Stop"},
        GEMINI | CLAUDE,
        "claude-code",
    ),
    "nobody known": (None, {"hook_event_name": "PreToolUse"}, {}, "claude-code"),
    "a host nobody knows": ("grok", {**BASE, "hook_event_name": "PreToolUse"}, {}, "claude-code"),
    "Codex by its keys": (None, {**BASE, "turn_id": "t", "model": "m", "hook_event_name": "PreToolUse"}, {}, "codex"),
    "Codex by its wiring": ("codex", {**BASE, "hook_event_name": "SessionEnd"}, {}, "codex"),
    "Codex in the shell of Claude Code": ("codex", {**BASE, "hook_event_name": "SessionEnd"}, CLAUDE, "codex"),
    "Qwen Code": (None, {**STAMPED, "hook_event_name": "PreToolUse"}, QWEN, "qwen-code"),
    "Gemini CLI by its event": (None, {**STAMPED, "hook_event_name": "BeforeTool"}, {}, "gemini-cli"),
    "Gemini CLI by its session": (None, {**STAMPED, "hook_event_name": "SessionEnd"}, GEMINI, "gemini-cli"),
    "Cursor with Claude Code's wiring": (
        "claude-code",
        {"conversation_id": "c", "cursor_version": "2", "hook_event_name": "subagentStart"},
        CLAUDE,
        "cursor",
    ),
    "VS Code with Claude Code's wiring": (
        "claude-code",
        {"sessionId": "s", "hookEventName": "PreToolUse"},
        {},
        "copilot",
    ),
    "Copilot CLI with Claude Code's wiring": (
        "claude-code",
        {**STAMPED, "hook_event_name": "PreToolUse"},
        {},
        "copilot",
    ),
    "Factory": (None, {**BASE, "hook_event_name": "PreToolUse"}, {"FACTORY_PROJECT_DIR": "/p"}, "factory"),
    "Factory by its wiring": ("factory", {**BASE, "hook_event_name": "PreToolUse"}, {}, "factory"),
}


@pytest.mark.parametrize(("wired", "payload", "environ", "name"), TOLD.values(), ids=TOLD)
def test_what_only_one_host_sends_beats_the_wiring_and_that_beats_the_environment(
    wired: str | None, payload: dict[str, Any], environ: dict[str, str], name: str
) -> None:
    assert hosts.host_of(wired, payload, environ) == name


def test_a_reply_can_be_built_for_exactly_the_kinds_to_which_some_host_obeys_one() -> None:
    supported = {kind for name in hosts.HOSTS for kind in hosts.module_of(name).SUPPORTED_REPLIES}
    assert set(_REPLY_BUILDERS) == supported


@pytest.mark.parametrize("name", hosts.HOSTS)
def test_a_host_says_how_it_is_replied_to_if_it_obeys_such_a_reply_and_only_then(name: str) -> None:
    host = hosts.module_of(name)

    said = {"delegate": host.rewrite_prompt is not None, "start": host.START_EVENT is not None}
    assert said == {kind: kind in host.SUPPORTED_REPLIES for kind in said}


SILENT_STARTS = {"qwen-code", "gemini-cli", "factory", "copilot"}


@pytest.mark.parametrize("name", hosts.HOSTS)
def test_a_delegation_says_whether_its_start_will_be_told_of(name: str) -> None:
    asked = {"prompt": PROMPT, "message": PROMPT, "agent_name": "x"}
    tools = {"codex": "spawn_agent", "qwen-code": "agent", "gemini-cli": "invoke_agent", "factory": "Task"}
    payload = {**STAMPED, "tool_name": tools.get(name, "Agent"), "tool_input": asked, "tool_use_id": "t"}
    [event] = hosts.module_of(name).EVENTS_BY_HOOK["pre_delegate"][:1]
    found = told(name, {**payload, "hook_event_name": event, "subagent_id": "a", "subagent_type": "x"})

    assert [event.get("unannounced", False) for event in found[:1]] == [name in SILENT_STARTS]


def test_every_host_has_a_module_that_says_what_it_is_heard_and_told_by() -> None:
    for name in hosts.HOSTS:
        module = hosts.module_of(name)
        assert set(module.EVENTS_BY_HOOK) == {"pre_delegate", "subagent_stop", "hook"}
        assert module.GENERAL
        assert ("delegate" in module.SUPPORTED_REPLIES) == (module.rewrite_prompt is not None)


def told(host: str, payload: dict[str, Any]) -> list[Any]:
    """What ``host`` tells by ``payload``, without what is the same in all of it."""
    found = read(host, payload)
    for event in found:
        check_event(event, "")
        assert (event.pop("host"), event.pop("at")) == (host, "2026-01-08T18:05:30.123456Z")
        event.pop("host_process", None)
    return found


def read(host: str, payload: dict[str, Any]) -> list[Any]:
    message = HookPayload(host, payload, Config({}), NOW, {})
    return [*hosts.module_of(host).events_of(HOOK, message)]


RETURNED = {"kind": "returned", "host_session_id": "s", "worked": True}
REPORT = {
    "kind": "stop",
    "host_session_id": "s",
    "worked": True,
    "spoke": True,
    "last_message": "Twelve.\n[gaia-sessions: planning] more?",
    "marked": "planning",
}


def test_cursor_tells_of_an_agent_twice_by_one_id() -> None:
    base = {"conversation_id": "s", "cursor_version": "2.1", "subagent_id": "call_1\nfc_2", "subagent_type": "explore"}
    keys = {"host_session_id": "s", "tool_use_id": "call_1\nfc_2", "agent_name": "explore"}
    agent = {**keys, "host_agent_id": "call_1\nfc_2"}

    start = {**base, "hook_event_name": "subagentStart", "task": PROMPT}
    assert told("cursor", start) == [
        {"kind": "delegate", **keys, "purpose": "general"},
        {"kind": "start", **agent, "launch": True},
    ]
    stop = {**base, "hook_event_name": "subagentStop"}
    assert told("cursor", {**stop, "status": "completed"}) == [
        {"kind": "stop", **agent, "spoke": False},
        {"kind": "returned", **agent},
    ]
    assert told("cursor", {**stop, "status": "error", "error_message": "overloaded"}) == [
        {"kind": "fail", **agent, "error": "overloaded"}
    ]
    assert told("cursor", {**stop, "status": "aborted"}) == [{"kind": "fail", **agent, "interrupted": True}]
    assert told("cursor", {**stop, "status": "running"}) == []


def test_a_child_of_cursor_is_told_of_in_its_parents_conversation() -> None:
    payload = {"conversation_id": "child", "parent_conversation_id": "s", "cursor_version": "2", "subagent_id": "a"}
    [delegation, _] = told("cursor", {**payload, "subagent_type": "x", "hook_event_name": "subagentStart"})

    assert delegation["host_session_id"] == "s"


ASKED = {"description": "Count quokkas", "prompt": f"{PROMPT}\n[gaia-sessions: resume agent-1]", "subagent_type": "x"}


def test_factory_without_ids_is_known_by_what_was_asked_of_whom() -> None:
    payload = {**BASE, "tool_name": "Task", "tool_input": ASKED}
    keys = {"host_session_id": "s", "tool_use_id": content_key("x", ASKED["prompt"]), "agent_name": "x"}

    delegation = {**keys, "purpose": "Count quokkas", "resume": ["agent-1"], "recurring": True, "unannounced": True}
    assert told("factory", {**payload, "hook_event_name": "PreToolUse"}) == [{"kind": "delegate", **delegation}]
    response = {**payload, "hook_event_name": "PostToolUse", "tool_response": REPORT["last_message"]}
    assert told("factory", response) == [REPORT | keys, RETURNED | keys]
    assert told("factory", {**response, "tool_response": {"a": 1}}) == [RETURNED | keys]


def test_vs_code_tells_a_delegation_by_its_id_and_its_report_as_text() -> None:
    base = {"timestamp": "2026-02-09T10:30:00.000Z", "cwd": "/p", "session_id": "s", "transcript_path": "/t"}
    asked = {"prompt": PROMPT, "description": "Count", "agentName": "x"}
    payload = {**base, "tool_name": "runSubagent", "tool_input": asked, "tool_use_id": "tool-123"}
    keys = {"host_session_id": "s", "tool_use_id": "tool-123", "agent_name": "x"}

    [delegation] = told("copilot", {**payload, "hook_event_name": "PreToolUse"})
    assert delegation == {"kind": "delegate", **keys, "purpose": "Count", "unannounced": True, "recurring": True}
    response = {**payload, "hook_event_name": "PostToolUse", "tool_response": REPORT["last_message"]}
    assert told("copilot", response) == [REPORT | keys, RETURNED | keys]
    start = {**base, "hook_event_name": "SubagentStart", "agent_id": "a", "agent_type": "x"}
    assert told("copilot", start) == [
        {"kind": "start", "host_session_id": "s", "host_agent_id": "a", "agent_name": "x"}
    ]


def test_copilot_cli_tells_how_a_delegation_went() -> None:
    payload = {**STAMPED, "tool_name": "Agent", "tool_input": {"prompt": PROMPT, "agent_type": "x"}}
    keys = {"host_session_id": "s", "tool_use_id": content_key("x", PROMPT), "agent_name": "x"}
    returned = {**payload, "hook_event_name": "PostToolUse"}

    def went(how: str, text: str = "") -> list[Any]:
        return told("copilot", {**returned, "tool_result": {"result_type": how, "text_result_for_llm": text}})

    assert told("copilot", {**payload, "hook_event_name": "PreToolUse"})[0]["recurring"] is True
    assert went("success", str(REPORT["last_message"])) == [REPORT | keys, RETURNED | keys]
    assert went("failure", "overloaded") == [{"kind": "fail", **keys, "worked": True, "error": "overloaded"}]
    assert went("denied") == [{"kind": "over", **keys}]
    failed = {**payload, "hook_event_name": "PostToolUseFailure", "error": "overloaded"}
    assert told("copilot", failed) == [{"kind": "fail", **keys, "worked": True, "error": "overloaded"}]
    camel = {"sessionId": "s", "timestamp": 1, "cwd": "/p", "toolName": "task", "toolArgs": {"prompt": PROMPT}}
    assert told("copilot", camel) == []


@pytest.mark.parametrize(
    ("status", "reason", "kinds", "interrupted"),
    [
        ("completed", "GOAL", ["stop", "returned"], None),
        ("failed", "MAX_TURNS", ["returned"], None),
        ("failed", "Failed to run subagent: 400", ["fail"], None),
        ("cancelled", "CANCELLED", ["fail"], True),
        ("running", None, [], None),
    ],
)
def test_qwen_code_ends_as_its_tool_says(
    status: str, reason: str | None, kinds: list[str], interrupted: object
) -> None:
    shown = {"status": status, "terminateReason": reason, "result": "Twelve."}
    payload = {**STAMPED, "tool_name": "agent", "tool_input": ASKED, "tool_use_id": "t"}
    response = {"hook_event_name": "PostToolUse", "tool_response": {"returnDisplay": shown}}

    found = told("qwen-code", {**payload, **response})

    assert [event["kind"] for event in found] == kinds
    assert [event.get("interrupted") for event in found[:1]] == ([interrupted] if kinds else [])


@pytest.mark.parametrize(("is_interrupt", "interrupted"), [(False, None), (True, True), ("yes", None), (None, None)])
def test_a_delegation_of_qwen_code_that_failed_had_an_agent_at_work(is_interrupt: object, interrupted: object) -> None:
    payload = {**STAMPED, "tool_name": "agent", "tool_input": ASKED, "tool_use_id": "t"}
    [event] = told("qwen-code", {**payload, "hook_event_name": "PostToolUseFailure", "is_interrupt": is_interrupt})

    assert (event["kind"], event["worked"], event.get("interrupted")) == ("fail", True, interrupted)


@pytest.mark.parametrize(
    ("state", "reason", "kinds", "interrupted"),
    [
        ("completed", "GOAL", ["stop", "returned"], None),
        ("completed", "TIMEOUT", ["returned"], None),
        ("error", None, ["fail"], None),
        ("cancelled", None, ["fail"], True),
        ("completed", "ABORTED", ["fail"], True),
    ],
)
def test_gemini_cli_ends_as_its_tool_says(
    state: str, reason: str | None, kinds: list[str], interrupted: object
) -> None:
    shown = {"state": state, "terminateReason": reason, "result": "Twelve."}
    payload = {**STAMPED, "tool_name": "invoke_agent", "tool_input": {"agent_name": "x", "prompt": PROMPT}}
    response = {"hook_event_name": "AfterTool", "tool_response": {"returnDisplay": shown, "llmContent": "e"}}

    found = told("gemini-cli", {**payload, **response})

    assert [event["kind"] for event in found] == kinds
    assert found[0].get("interrupted") == interrupted
    assert {event["tool_use_id"] for event in found} == {content_key("x", PROMPT)}


BRIEFED = f"\n\n[gaia-sessions: briefing agent-1]\nYou go on.\n{END_OF_DATA}"


@pytest.mark.parametrize("ours", ["", f"\n\n{NOTE}", BRIEFED, f"{BRIEFED}\n\n{NOTE}", f"{BRIEFED}\n\n{NOTE}" * 2])
def test_what_we_added_to_a_prompt_does_not_count_for_its_key(ours: str) -> None:
    assert content_key("x", PROMPT + ours) == content_key("x", PROMPT) != content_key("y", PROMPT)


@pytest.mark.parametrize(
    "quoted",
    [f"\n\n{NOTE}\n\nWhat does it mean?", "\n\n[gaia-sessions: briefing agent-1]\nx", f"{BRIEFED}\nAnd so on."],
)
def test_our_words_within_a_prompt_are_words_of_that_prompt(quoted: str) -> None:
    assert len({content_key("x", PROMPT + tail) for tail in ("", quoted, quoted.replace("a", "b"))}) == 3


def test_an_id_of_a_host_is_never_taken_for_one_made_of_a_prompt() -> None:
    asked = {"prompt": PROMPT, "description": "Count", "agentName": "x"}
    payload = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "runSubagent", "tool_input": asked}
    [delegation] = told("copilot", {**payload, "tool_use_id": content_key("y", PROMPT)})
    assert delegation["tool_use_id"] == content_key("x", PROMPT)


WAITED = {
    "a": {"completed": "Twelve."},
    "b": {"errored": "400"},
    "c": "running",
    "d": "interrupted",
    "": {"errored": "nobody"},
}


def test_waiting_for_agents_of_codex_tells_of_each_what_became_of_it() -> None:
    payload = {**BASE, "hook_event_name": "PostToolUse", "tool_name": "multi_agent_v1wait_agent", "tool_use_id": "t"}
    found = told("codex", {**payload, "tool_response": json.dumps({"status": WAITED, "timed_out": False})})

    assert found == [
        {"kind": "notification", "host_session_id": "s", "host_agent_id": "a", "outcome": "completed"},
        {"kind": "fail", "host_session_id": "s", "host_agent_id": "b", "error": "400"},
        {"kind": "fail", "host_session_id": "s", "host_agent_id": "d", "error": "interrupted", "interrupted": True},
    ]


def test_a_spawn_of_codex_that_failed_is_over() -> None:
    payload = {**BASE, "hook_event_name": "PostToolUse", "tool_name": "spawn_agent", "tool_use_id": "t"}

    assert told("codex", {**payload, "tool_response": "agent thread limit reached"}) == [
        {
            "kind": "over",
            "host_session_id": "s",
            "tool_use_id": "t",
            "agent_name": "default",
            "error": "agent thread limit reached",
        }
    ]


STRANGE: list[Any] = [None, True, 7, -1.5, "", "x" * 100_000, [], ["a"], {}, {"a": {"b": [1]}}, "\0", "\n"]
KEYS = [
    *("session_id", "sessionId", "hookEventName", "tool_name", "tool_use_id", "tool_input", "tool_response"),
    *("agent_id", "agent_type", "last_assistant_message", "status", "conversation_id", "subagent_id", "subagent_type"),
    *("transcript_path", "agent_transcript_path", "error", "tool_result", "task", "summary", "stop_hook_active"),
]


@pytest.mark.parametrize("name", [name for name in hosts.HOSTS if name != "claude-code"])
def test_whatever_a_payload_holds_it_is_read_or_passed_by(name: str) -> None:
    module = hosts.module_of(name)
    whole: dict[str, Any] = {
        **STAMPED,
        "conversation_id": "s",
        "agent_id": "a",
        "agent_type": "x",
        "subagent_id": "a",
        "subagent_type": "x",
        "status": "completed",
        "tool_use_id": "t",
        "tool_response": {"returnDisplay": {"status": "completed", "state": "completed"}},
    }
    tools = {"codex": "spawn_agent", "qwen-code": "agent", "gemini-cli": "invoke_agent", "factory": "Task"}
    whole |= {"tool_name": tools.get(name, "Agent"), "tool_input": {"prompt": "p", "message": "p", "agent_name": "x"}}
    for event in module.EVENTS_BY_HOOK[HOOK]:
        for key in KEYS:
            for value in STRANGE:
                for found in read(name, {**whole, "hook_event_name": event, key: value}):
                    check_event(found, "")
    for value in STRANGE:
        assert read(name, {**whole, "hook_event_name": value}) == []
