"""Which host sent a payload, and the events of the hosts other than Claude Code."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from gaia_sessions import hosts
from gaia_sessions.config import Config
from gaia_sessions.hook.replies import _REPLY_BUILDERS
from gaia_sessions.hosts import HOOK
from gaia_sessions.hosts.gemini_cli import content_key
from gaia_sessions.hosts.marker import END_OF_DATA, NOTE
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.session.event_checks import check_event
from tests.table import table

NOW = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)

PROMPT = "Count the quokkas"
BASE = {"session_id": "s", "transcript_path": "/t", "cwd": "/p"}
STAMPED = {**BASE, "timestamp": "2026-11-21T23:40:48.102Z"}
CLAUDE = {"CLAUDE_PROJECT_DIR": "/p", "CLAUDE_PID": "1"}
QWEN = {"CLAUDE_PROJECT_DIR": "/p", "GEMINI_PROJECT_DIR": "/p", "QWEN_PROJECT_DIR": "/p"}
GEMINI = {"CLAUDE_PROJECT_DIR": "/p", "GEMINI_PROJECT_DIR": "/p", "GEMINI_SESSION_ID": "s"}

# The wired host, the payload, the environment, and the host that is recognized.
TOLD: dict[str, tuple[str | None, dict[str, Any], dict[str, str], str | None]] = {
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
        None,
    ),
    "VS Code with Claude Code's wiring": (
        "claude-code",
        {"sessionId": "s", "hookEventName": "PreToolUse"},
        {},
        None,
    ),
    "Copilot CLI with Claude Code's wiring": (
        "claude-code",
        {**STAMPED, "hook_event_name": "PreToolUse"},
        {},
        None,
    ),
    "Factory": (None, {**BASE, "hook_event_name": "PreToolUse"}, {"FACTORY_PROJECT_DIR": "/p"}, None),
}


@table(("wired", "payload", "environ", "name"), TOLD.values())
def test_the_payload_overrides_the_wired_host_and_that_overrides_the_environment(
    wired: str | None, payload: dict[str, Any], environ: dict[str, str], name: str | None
) -> None:
    assert hosts.host_of(wired, payload, environ) == name


def test_reply_builders_exist_for_exactly_the_kinds_that_some_host_obeys() -> None:
    supported = {kind for name in hosts.HOSTS for kind in hosts.host_named(name).replies}
    assert set(_REPLY_BUILDERS) == supported


@table("name", hosts.HOSTS)
def test_a_host_defines_a_reply_exactly_if_it_obeys_that_reply(name: str) -> None:
    host = hosts.host_named(name)

    said = {"delegate": host.rewrite_prompt is not None, "start": host.start_event is not None}
    assert said == {kind: kind in host.replies for kind in said}


SILENT_STARTS = {"qwen-code", "gemini-cli"}


@table("name", hosts.HOSTS)
def test_a_delegation_says_whether_the_host_will_report_its_start(name: str) -> None:
    asked = {"prompt": PROMPT, "message": PROMPT, "agent_name": "x"}
    tools = {"codex": "spawn_agent", "qwen-code": "agent", "gemini-cli": "invoke_agent"}
    payload = {**STAMPED, "tool_name": tools.get(name, "Agent"), "tool_input": asked, "tool_use_id": "t"}
    [event] = hosts.host_named(name).events_by_hook["pre_delegate"][:1]
    found = told(name, {**payload, "hook_event_name": event})

    assert [event.get("unannounced", False) for event in found[:1]] == [name in SILENT_STARTS]


NEEDED = {"general", "readers", "replies"}
PARTS = {*hosts.Host.__annotations__}
OTHERS = {"content_key"}
"""Gemini CLI has this one: it gives the key of a delegation before Gemini CLI sends it."""


def defined_by(module: ModuleType) -> set[str]:
    """The public names that the source of ``module`` defines."""
    statements = ast.parse(Path(module.__file__ or "").read_bytes()).body
    names = {one.name for one in statements if isinstance(one, ast.FunctionDef)}
    targets = [one.targets[0] for one in statements if isinstance(one, ast.Assign)]
    targets += [one.target for one in statements if isinstance(one, ast.AnnAssign)]
    names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


@table("name", hosts.HOSTS)
def test_a_hosts_module_has_the_parts_of_a_host_and_no_other_public_name(name: str) -> None:
    host = hosts.host_named(name)
    module = import_module(f"gaia_sessions.hosts.{name.replace('-', '_')}")
    late: dict[str, str] = getattr(module, "LATE", {})
    own = {defined.casefold() for defined in defined_by(module)} - {"late", "type_checking", *OTHERS}
    assert own | {*late} <= PARTS
    assert own & {*late} == set()
    parts = {part: getattr(host, part) for part in PARTS}
    assert {part for part, value in parts.items() if value is not None} == own | {*late}
    assert own >= NEEDED
    assert [part for part, value in parts.items() if isinstance(value, ModuleType)] == []
    for path in late.values():
        submodule, function = path.split(".")
        assert callable(getattr(import_module(f"{module.__name__}.{submodule}"), function))
    assert hosts.settings_of(name).name == name


def told(host: str, payload: dict[str, Any]) -> list[Any]:
    """The events of ``payload`` from ``host``, without the keys that all events share."""
    found = read(host, payload)
    for event in found:
        check_event(event, "")
        assert (event.pop("host"), event.pop("at")) == (host, "2026-01-08T18:05:30.123456Z")
        event.pop("host_process", None)
    return found


def read(host: str, payload: dict[str, Any]) -> list[Any]:
    message = HookPayload(host, payload, Config({}), NOW, {})
    return [*hosts.host_named(host).events_of(HOOK, message)]


RETURNED = {"kind": "returned", "host_session_id": "s", "was_running": True}
REPORT = {
    "kind": "stop",
    "host_session_id": "s",
    "was_running": True,
    "has_message": True,
    "last_message": "Twelve.\n[gaia-sessions: planning] more?",
    "marker_phase": "planning",
}


ASKED = {"description": "Count quokkas", "prompt": f"{PROMPT}\n[gaia-sessions: resume agent-1]", "subagent_type": "x"}


@table(
    ("status", "reason", "kinds", "interrupted"),
    [
        ("completed", "GOAL", ["stop", "returned"], None),
        ("failed", "MAX_TURNS", ["returned"], None),
        ("failed", "TIMEOUT", ["returned"], None),
        ("failed", "Failed to run subagent: 400", ["fail"], None),
        ("cancelled", "CANCELLED", ["fail"], True),
        ("running", None, [], None),
    ],
)
def test_an_agent_of_qwen_code_ends_as_its_tool_reports(
    status: str, reason: str | None, kinds: list[str], interrupted: object
) -> None:
    shown = {"status": status, "terminateReason": reason, "result": "Twelve."}
    payload = {**STAMPED, "tool_name": "agent", "tool_input": ASKED, "tool_use_id": "t"}
    response = {"hook_event_name": "PostToolUse", "tool_response": {"returnDisplay": shown}}

    found = told("qwen-code", {**payload, **response})

    assert [event["kind"] for event in found] == kinds
    assert [event.get("interrupted") for event in found[:1]] == ([interrupted] if kinds else [])


@table(("is_interrupt", "interrupted"), [(False, None), (True, True), ("yes", None), (None, None)])
def test_a_failed_delegation_of_qwen_code_had_a_running_agent(is_interrupt: object, interrupted: object) -> None:
    payload = {**STAMPED, "tool_name": "agent", "tool_input": ASKED, "tool_use_id": "t"}
    [event] = told("qwen-code", {**payload, "hook_event_name": "PostToolUseFailure", "is_interrupt": is_interrupt})

    assert (event["kind"], event["was_running"], event.get("interrupted")) == ("fail", True, interrupted)


@table(
    ("state", "reason", "kinds", "interrupted"),
    [
        ("completed", "GOAL", ["stop", "returned"], None),
        ("completed", "TIMEOUT", ["returned"], None),
        ("error", None, ["fail"], None),
        ("cancelled", None, ["fail"], True),
        ("completed", "ABORTED", ["fail"], True),
    ],
)
def test_an_agent_of_gemini_cli_ends_as_its_tool_reports(
    state: str, reason: str | None, kinds: list[str], interrupted: object
) -> None:
    shown = {"state": state, "terminateReason": reason, "result": "Twelve."}
    payload = {**STAMPED, "tool_name": "invoke_agent", "tool_input": {"agent_name": "x", "prompt": PROMPT}}
    response = {"hook_event_name": "AfterTool", "tool_response": {"returnDisplay": shown, "llmContent": "e"}}

    found = told("gemini-cli", {**payload, **response})

    assert [event["kind"] for event in found] == kinds
    assert found[0].get("interrupted") == interrupted
    assert {event["tool_use_id"] for event in found} == {content_key("x", PROMPT)}


def test_a_delegation_of_gemini_cli_is_identified_by_its_agent_and_prompt() -> None:
    asked = {"agent_name": "x", "prompt": ASKED["prompt"], "description": "Count quokkas"}
    payload = {**STAMPED, "tool_name": "invoke_agent", "tool_input": asked, "tool_use_id": "t"}
    keys = {"host_session_id": "s", "tool_use_id": content_key("x", ASKED["prompt"]), "agent_name": "x"}

    delegation = {**keys, "purpose": "Count quokkas", "resume": ["agent-1"], "reused_id": True, "unannounced": True}
    assert told("gemini-cli", {**payload, "hook_event_name": "BeforeTool"}) == [{"kind": "delegate", **delegation}]
    shown = {"state": "completed", "terminateReason": "GOAL", "result": REPORT["last_message"]}
    response = {**payload, "hook_event_name": "AfterTool", "tool_response": {"returnDisplay": shown}}
    assert told("gemini-cli", response) == [REPORT | keys, RETURNED | keys]


BRIEFED = f"\n\n[gaia-sessions: briefing agent-1]\nYou go on.\n{END_OF_DATA}"


@table("ours", ["", f"\n\n{NOTE}", BRIEFED, f"{BRIEFED}\n\n{NOTE}", f"{BRIEFED}\n\n{NOTE}" * 2])
def test_text_that_hooks_added_to_a_prompt_does_not_change_its_key(ours: str) -> None:
    assert content_key("x", PROMPT + ours) == content_key("x", PROMPT) != content_key("y", PROMPT)


@table(
    "quoted",
    [f"\n\n{NOTE}\n\nWhat does it mean?", "\n\n[gaia-sessions: briefing agent-1]\nx", f"{BRIEFED}\nAnd so on."],
)
def test_quoted_hook_text_within_a_prompt_changes_its_key(quoted: str) -> None:
    assert len({content_key("x", PROMPT + tail) for tail in ("", quoted, quoted.replace("a", "b"))}) == 3


WAITED = {
    "a": {"completed": "Twelve."},
    "b": {"errored": "400"},
    "c": "running",
    "d": "interrupted",
    "": {"errored": "nobody"},
}


def test_wait_agent_of_codex_reports_how_each_agent_ended() -> None:
    payload = {**BASE, "hook_event_name": "PostToolUse", "tool_name": "multi_agent_v1wait_agent", "tool_use_id": "t"}
    found = told("codex", {**payload, "tool_response": json.dumps({"status": WAITED, "timed_out": False})})

    assert found == [
        {"kind": "notification", "host_session_id": "s", "host_agent_id": "a", "outcome": "completed"},
        {"kind": "fail", "host_session_id": "s", "host_agent_id": "b", "error": "400"},
        {**INTERRUPTED, "host_agent_id": "d", "error": "interrupted"},
    ]


INTERRUPTED = {
    "kind": "fail",
    "host_session_id": "s",
    "interrupted": True,
    "interruption": "interrupted",
    "interrupted_at": "2026-01-08T18:05:30.123456Z",
}
THREAD = "01a2007b-0000-7000-8000-000000000001"


@table(
    ("tool", "target", "before", "agent"),
    [
        ("interrupt_agent", "/root/long", "running", "/root/long"),
        ("collaborationinterrupt_agent", "long", "running", "/root/long"),
        ("interrupt_agent", "long/deep", "running", "/root/long/deep"),
        ("interrupt_agent", THREAD, "running", THREAD),
        ("interrupt_agent", "/root/long", {"completed": "Done."}, None),
        ("interrupt_agent", "/root/long", "not_found", None),
        ("interrupt_agent", "", "running", None),
        ("interrupt_agent", ["/root/long"], "running", None),
        ("interrupt_agent", "x" * 510, "running", None),
        ("not_interrupt_agent", "/root/long", "running", None),
    ],
)
def test_interrupt_agent_of_codex_interrupts_a_running_agent_by_path_name_or_id(
    tool: str, target: object, before: object, agent: str | None
) -> None:
    payload = {**BASE, "hook_event_name": "PostToolUse", "tool_name": tool, "tool_use_id": "t"}
    returned = {"tool_input": {"target": target}, "tool_response": json.dumps({"previous_status": before})}

    found = told("codex", {**payload, **returned})

    keys = {"host_agent_id": agent, "error": "interrupted by another agent"}
    assert found == ([{**INTERRUPTED, **keys}] if agent else [])


def test_a_relative_name_from_a_codex_sub_agent_means_an_agent_below_it() -> None:
    folder = Path.home() / ".codex" / "sessions"
    folder.mkdir(parents=True)
    path = folder / "rollout.jsonl"
    path.write_text('{"type":"session_meta","payload":{"agent_path":"/root/long"}}\n', encoding="utf-8")
    payload = {**BASE, "hook_event_name": "PostToolUse", "tool_name": "interrupt_agent", "agent_id": THREAD}
    returned = {"tool_input": {"target": "deep"}, "tool_response": '{"previous_status":"running"}'}

    [found] = told("codex", {**payload, **returned, "transcript_path": str(path)})

    assert found["host_agent_id"] == "/root/long/deep"


def test_a_failed_spawn_of_codex_closes_its_delegation() -> None:
    payload = {**BASE, "hook_event_name": "PostToolUse", "tool_name": "spawn_agent", "tool_use_id": "t"}

    assert told("codex", {**payload, "tool_response": "agent thread limit reached"}) == [
        {
            "kind": "delegation_closed",
            "host_session_id": "s",
            "tool_use_id": "t",
            "agent_name": "default",
            "error": "agent thread limit reached",
        }
    ]


STRANGE: list[Any] = [None, True, 7, -1.5, "", "x" * 100_000, [], ["a"], {}, {"a": {"b": [1]}}, "\0", "\n"]
KEYS = [
    *("session_id", "tool_name", "tool_use_id", "tool_call_id", "tool_input", "tool_response"),
    *("agent_id", "agent_type", "last_assistant_message", "background_tasks"),
    *("transcript_path", "agent_transcript_path", "error", "stop_hook_active"),
]


@table("name", [name for name in hosts.HOSTS if name != "claude-code"])
def test_a_malformed_payload_gives_only_valid_events(name: str) -> None:
    module = hosts.host_named(name)
    whole: dict[str, Any] = {
        **STAMPED,
        "agent_id": "a",
        "agent_type": "x",
        "tool_use_id": "t",
        "tool_response": {"returnDisplay": {"status": "completed", "state": "completed"}},
    }
    tools = {"codex": "spawn_agent", "qwen-code": "agent", "gemini-cli": "invoke_agent"}
    whole |= {"tool_name": tools.get(name, "Agent"), "tool_input": {"prompt": "p", "message": "p", "agent_name": "x"}}
    for event in module.events_by_hook[HOOK]:
        for key in KEYS:
            for value in STRANGE:
                for found in read(name, {**whole, "hook_event_name": event, key: value}):
                    check_event(found, "")
    for value in STRANGE:
        assert read(name, {**whole, "hook_event_name": value}) == []
