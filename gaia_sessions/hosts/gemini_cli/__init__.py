"""Gemini CLI: its hook JSON as events, as seen in runs of 0.61.0.

This host has no events of sub-agents and no ids at all. The tool that starts a sub-agent is ``invoke_agent``, and a
delegation is known only by the agent's name and the prompt. The same words again are another delegation once the first
one has ended; the same words twice at once count as one. An agent's use of tools looks like the main agent's.
Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.hosts import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.hosts.payload import bare_event, events_reader, key_in, object_in, text_in, with_addition
from gaia_sessions.hosts.tool_only import (
    delegation_keys,
    delegation_reader,
    failure_events,
    report_events,
    return_events,
)
from gaia_sessions.session import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import EventReaders, HookPayload, Payload
    from gaia_sessions.session.events import Event

GENERAL = "generalist"
SUPPORTED_REPLIES = frozenset([events.DELEGATE, events.RETURNED, events.SESSION_START])
end_in_files = None
consumption = None
recent_messages = None
revival = None
WAKE_ADVICE = None
START_EVENT = None
PERMITS_COMMANDS = False

_PROGRAMS = ("node",)
_TOOLS = ("invoke_agent",)
_GOAL = "GOAL"
_LIMITS = ("MAX_TURNS", "TIMEOUT")
_ABORTED = "ABORTED"


def rewrite_prompt(tool_input: Payload, addition: str) -> dict[str, object]:
    """The reply that adds ``addition`` to the prompt of a delegation."""
    return {"tool_input": with_addition(tool_input, "prompt", addition)}


def _keys(payload: HookPayload) -> dict[str, object]:
    return delegation_keys(payload, _TOOLS, key_in(payload.tool_input, "agent_name"))


def _after_tool(payload: HookPayload) -> list[Event]:
    keys, response = _keys(payload), object_in(payload.raw, "tool_response")
    display = object_in(response, "returnDisplay")
    state, reason = display.get("state"), display.get("terminateReason")
    if not keys or not isinstance(state, str):
        return []
    if state == "completed" and reason == _GOAL:
        return report_events(payload, text_in(display, "result"), **keys)
    if reason in _LIMITS:
        return return_events(payload, **keys)
    interrupted = state == "cancelled" or reason == _ABORTED
    return failure_events(payload, text_in(response, "llmContent"), keys, interrupted=interrupted)


_READERS: EventReaders = {
    "BeforeTool": delegation_reader(_keys, _PROGRAMS),
    "AfterTool": _after_tool,
    "AfterAgent": bare_event(events.MAIN_STOP),
    "SessionStart": bare_event(events.SESSION_START),
    "SessionEnd": bare_event(events.SESSION_END),
}

EVENTS_BY_HOOK = {PRE_DELEGATE: ("BeforeTool",), SUBAGENT_STOP: ("AfterTool",), HOOK: tuple(_READERS)}
events_of = events_reader(_READERS, EVENTS_BY_HOOK)
