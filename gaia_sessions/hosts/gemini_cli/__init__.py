"""Gemini CLI: its hook JSON as normal events.

Owns what this host calls things, as seen in runs of 0.61.0. It has no events of sub-agents and no ids at all: the
tool that starts one is ``invoke_agent``, and all there is to know a delegation by is what was asked of whom. The
same asked again is another delegation once the first is over; the same asked twice at once is taken for one. What
an agent does with its own tools looks like the main agent's. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.hosts.payload import bare_event, key_in, read_events
from gaia_sessions.hosts.protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.hosts.tool_only import (
    delegation_events,
    delegation_keys,
    failure_events,
    report_events,
    return_events,
)
from gaia_sessions.session import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import EventReaders, HookPayload
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    Payload = dict[str, Json]

HOST = "gemini-cli"
PROGRAMS = ("node",)

GENERAL = "generalist"

SUPPORTED_REPLIES = frozenset([events.DELEGATE, events.RETURNED, events.SESSION_START])
PROMPT = "prompt"

_TOOL = "invoke_agent"
_GOAL = "GOAL"
_LIMITS = ("MAX_TURNS", "TIMEOUT")
_ABORTED = "ABORTED"


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    return read_events(HOST, _READERS, EVENTS_BY_HOOK[hook], payload, config, now)


def rewrite_prompt(tool_input: Payload, prompt: str) -> dict[str, object]:
    """How this host is told to delegate with ``prompt``."""
    return {"tool_input": {**tool_input, PROMPT: prompt}}


def _before_tool(message: HookPayload) -> list[Event]:
    return delegation_events(message, _keys(message), PROGRAMS)


def _after_tool(message: HookPayload) -> list[Event]:
    keys, display = _keys(message), _return_display(message)
    state, reason = display.get("state"), display.get("terminateReason")
    if not keys or not isinstance(state, str):
        return []
    if state == "completed" and reason == _GOAL:
        report = display.get("result")
        return report_events(message, report if isinstance(report, str) else "", **keys)
    if reason in _LIMITS:
        return return_events(message, **keys)
    return failure_events(message, _error(message), keys, interrupted=state == "cancelled" or reason == _ABORTED)


_READERS: EventReaders = {
    "BeforeTool": _before_tool,
    "AfterTool": _after_tool,
    "AfterAgent": bare_event(events.MAIN_STOP),
    "SessionStart": bare_event(events.SESSION_START),
    "SessionEnd": bare_event(events.SESSION_END),
}

EVENTS_BY_HOOK = {PRE_DELEGATE: ("BeforeTool",), SUBAGENT_STOP: ("AfterTool",), HOOK: tuple(_READERS)}
"""Which events each hook is there for; of a stop this host tells by what the delegation returned."""


def _keys(message: HookPayload) -> dict[str, object]:
    """Which delegation is meant, by what was asked of whom; empty for any other tool."""
    name, prompt = key_in(message.asked, "agent_name"), message.asked.get("prompt")
    if message.payload.get("tool_name") != _TOOL or not name or not isinstance(prompt, str):
        return {}
    return delegation_keys(message, name, prompt)


def _response(message: HookPayload) -> Payload:
    response = message.payload.get("tool_response")
    return response if isinstance(response, dict) else {}


def _return_display(message: HookPayload) -> Payload:
    display = _response(message).get("returnDisplay")
    return display if isinstance(display, dict) else {}


def _error(message: HookPayload) -> str:
    content = _response(message).get("llmContent")
    return content if isinstance(content, str) else ""
