"""VS Code's agents and Copilot CLI: their hook JSON as events. Experimental: written from documents.

These two share their settings and most of their vocabulary. The tool that starts a sub-agent is ``Agent``, ``task`` or
``runSubagent``; VS Code gives its use an id, Copilot CLI does not. The events of an agent itself have no key of its
delegation. Copilot's camelCase dialect does not name its events and cannot be read: the settings must use the
PascalCase names. Everything in a payload is untrusted.

Why it is kept: both hosts read Claude Code's settings too and run our hook from there. Read as Claude Code's payloads,
a documented delegation that completed is recorded as denied (VS Code) or not at all (Copilot CLI).
"""

from __future__ import annotations

from gaia_sessions.session import events

from . import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from .payload import bare_event, events_reader, key_in, with_addition
from .tool_only import delegation_keys, delegation_reader, failure_events, report_events, return_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.events import Event

    from .payload import EventReaders, HookPayload, Payload

GENERAL = "general-purpose"
SUPPORTED_REPLIES = frozenset([events.DELEGATE, events.START, events.RETURNED, events.SESSION_START])
end_in_files = None
consumption = None
recent_messages = None
revival = None
WAKE_ADVICE = None
START_EVENT = "SubagentStart"
PERMITS_COMMANDS = False

_PROGRAMS = ("copilot", "code")
_TOOLS = ("Agent", "Task", "task", "runSubagent")
_NAMES = ("agent_type", "subagent_type", "agentName")
_FAILED = ("failure", "error")


def rewrite_prompt(tool_input: Payload, addition: str) -> dict[str, object]:
    """The reply that adds ``addition`` to the prompt of a delegation."""
    return {"updatedInput": with_addition(tool_input, "prompt", addition)}


def _keys(payload: HookPayload) -> dict[str, object]:
    name = next((found for key in _NAMES if (found := key_in(payload.tool_input, key))), GENERAL)
    return delegation_keys(payload, _TOOLS, name)


def _post_tool_use(payload: HookPayload) -> list[Event]:
    """VS Code reports a text, and only what succeeded; Copilot CLI also reports how the agent ended."""
    keys, text, result = _keys(payload), payload.raw.get("tool_response"), payload.raw.get("tool_result")
    if not keys:
        return []
    if isinstance(result, dict):
        text, result_type = result.get("text_result_for_llm"), result.get("result_type")
        if result_type == "denied":
            return [payload.event(events.DELEGATION_CLOSED, **keys)]
        if result_type in _FAILED:
            return failure_events(payload, str(text or ""), keys)
    return report_events(payload, text, **keys) if isinstance(text, str) else return_events(payload, **keys)


def _post_tool_use_failure(payload: HookPayload) -> list[Event]:
    keys = _keys(payload)
    return failure_events(payload, payload.text("error"), keys) if keys else []


def _subagent_start(payload: HookPayload) -> list[Event]:
    """A start is never joined; it is read so that a reply can tell the agent how to pause."""
    agent, name = payload.key("agent_id"), payload.key("agent_type")
    return [payload.event(events.START, host_agent_id=agent, agent_name=name)] if agent and name else []


_READERS: EventReaders = {
    "PreToolUse": delegation_reader(_keys, _PROGRAMS),
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    START_EVENT: _subagent_start,
    "Stop": bare_event(events.MAIN_STOP),
    "SessionStart": bare_event(events.SESSION_START),
    "SessionEnd": bare_event(events.SESSION_END),
}

EVENTS_BY_HOOK = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("PostToolUse",), HOOK: tuple(_READERS)}
events_of = events_reader(_READERS, EVENTS_BY_HOOK)
