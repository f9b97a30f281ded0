"""VS Code's agents and Copilot CLI: their hook JSON as normal events.

Owns what these two call things, by their documents; no run of them was seen. They share their settings and most of
their words, and read Claude Code's settings too. The tool that starts a sub-agent is ``Agent``, ``task`` or
``runSubagent``; VS Code gives its use an id, Copilot CLI none, and then a delegation is known by what was asked
of whom. The news of an agent itself has no key of its delegation. Copilot's camelCase dialect does not name its
events and cannot be read: it must be wired by the PascalCase names. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.session import events

from .payload import bare_event, key_in, read_events
from .protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from .tool_only import delegation_events, delegation_keys, failure_events, report_events, return_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    from .payload import EventReaders, HookPayload

    Payload = dict[str, Json]

HOST = "copilot"
PROGRAMS = ("copilot", "code")

GENERAL = "general-purpose"
SUPPORTED_REPLIES = frozenset([events.DELEGATE, events.START, events.RETURNED, events.SESSION_START])
PROMPT = "prompt"

_TOOLS = ("Agent", "Task", "task", "runSubagent")
_NAMES = ("agent_type", "subagent_type", "agentName")
_FAILED = ("failure", "error")


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    return read_events(HOST, _READERS, EVENTS_BY_HOOK[hook], payload, config, now)


def rewrite_prompt(tool_input: Payload, prompt: str) -> dict[str, object]:
    """How this host is told to delegate with ``prompt``."""
    return {"updatedInput": {**tool_input, PROMPT: prompt}}


def _pre_tool_use(message: HookPayload) -> list[Event]:
    return delegation_events(message, _keys(message), PROGRAMS)


def _post_tool_use(message: HookPayload) -> list[Event]:
    """VS Code tells a text, and only of what succeeded; Copilot CLI tells how it went."""
    keys, text, result = _keys(message), message.payload.get("tool_response"), message.payload.get("tool_result")
    if not keys:
        return []
    if isinstance(result, dict):
        text, result_type = result.get("text_result_for_llm"), result.get("result_type")
        if result_type == "denied":
            return [message.event(events.DELEGATION_CLOSED, **keys)]
        if result_type in _FAILED:
            return failure_events(message, str(text or ""), keys)
    return report_events(message, text, **keys) if isinstance(text, str) else return_events(message, **keys)


def _post_tool_use_failure(message: HookPayload) -> list[Event]:
    keys = _keys(message)
    return failure_events(message, message.text("error"), keys) if keys else []


def _subagent_start(message: HookPayload) -> list[Event]:
    """Never joined; told so that the agent can be told how to pause."""
    agent, name = message.key("agent_id"), message.key("agent_type")
    return [message.event(events.START, host_agent_id=agent, agent_name=name)] if agent and name else []


_READERS: EventReaders = {
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    "SubagentStart": _subagent_start,
    "Stop": bare_event(events.MAIN_STOP),
    "SessionStart": bare_event(events.SESSION_START),
    "SessionEnd": bare_event(events.SESSION_END),
}

EVENTS_BY_HOOK = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("PostToolUse",), HOOK: tuple(_READERS)}
"""Which events each hook is there for; of a stop these hosts tell by what the delegation returned."""


def _keys(message: HookPayload) -> dict[str, object]:
    """Which delegation is meant, by its id or by what was asked of whom; empty for any other tool."""
    prompt = message.asked.get("prompt")
    if message.payload.get("tool_name") not in _TOOLS or not isinstance(prompt, str):
        return {}
    name = next((found for key in _NAMES if (found := key_in(message.asked, key))), GENERAL)
    return delegation_keys(message, name, prompt)
