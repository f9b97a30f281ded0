"""Gemini CLI: its hook JSON as events, as seen in runs of 0.61.0. Everything in a payload is untrusted.
This host has no events of sub-agents and no IDs: agent name and prompt identify a delegation.
"""

from __future__ import annotations

from gaia_sessions.hosts.marker import BRIEFING, END_OF_DATA, NOTE
from gaia_sessions.hosts.payload import bare_event, key_in, object_in, text_in, with_addition
from gaia_sessions.hosts.tool_only import delegation_reader, failure_events, report_events, return_events
from gaia_sessions.session import host_events
from gaia_sessions.session.ids import MARKER_OPENING, short_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import EventReaders, HookPayload, Payload
    from gaia_sessions.session.host_events import Event


_PROGRAMS = ("node",)
_TOOL = "invoke_agent"
_GOAL = "GOAL"
_LIMITS = ("MAX_TURNS", "TIMEOUT")
_ABORTED = "ABORTED"


def rewrite_prompt(tool_input: Payload, addition: str) -> dict[str, object]:
    """Returns the reply that adds ``addition`` to the prompt of a delegation."""
    return {"tool_input": with_addition(tool_input, "prompt", addition)}


def _keys(payload: HookPayload) -> dict[str, object]:
    """Returns the keys of the delegation in ``payload``; empty for another tool."""
    # The use of a tool by a sub-agent looks like the main agent's. Only ``invoke_agent`` starts a sub-agent.
    agent_name, prompt = key_in(payload.tool_input, "agent_name"), payload.tool_input.get("prompt")
    if payload.raw.get("tool_name") != _TOOL or not agent_name or not isinstance(prompt, str):
        return {}
    return {"tool_use_id": content_key(agent_name, prompt), "agent_name": agent_name}


def content_key(agent_name: str, prompt: str) -> str:
    """Returns the key that replaces the ID of a delegation: equal words have equal keys."""
    # The same words are another delegation after the first one has ended. The same words twice at once count as one.
    # Our hooks' additions do not count: the host may report the return with the rewritten prompt.
    content = "\0".join((agent_name, _without_additions(prompt)))
    return f"content-{short_digest(content.encode())}"


def _without_additions(prompt: str) -> str:
    while (shorter := _without_last_addition(prompt)) != prompt:
        prompt = shorter
    return prompt


def _without_last_addition(prompt: str) -> str:
    """Removes one complete addition at the end. The same words elsewhere are part of the prompt."""
    if prompt.endswith(f"\n\n{NOTE}"):
        return prompt.removesuffix(f"\n\n{NOTE}")
    if not prompt.endswith(f"\n{END_OF_DATA}"):
        return prompt
    return prompt.rpartition(f"\n\n{MARKER_OPENING} {BRIEFING} ")[0] or prompt


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


READERS: EventReaders = {
    "BeforeTool": delegation_reader(_keys, _PROGRAMS),
    "AfterTool": _after_tool,
    "AfterAgent": bare_event(host_events.MAIN_STOP),
    "SessionStart": bare_event(host_events.SESSION_START),
    "SessionEnd": bare_event(host_events.SESSION_END),
}

GENERAL = "generalist"
REPLIES = (host_events.DELEGATE, host_events.RETURNED, host_events.SESSION_START)
PRE_DELEGATE = ("BeforeTool",)
SUBAGENT_STOP = ("AfterTool",)
