"""Qwen Code: its hook JSON as events, as seen in runs of 0.15.10 and 0.24.4. Everything in a payload is untrusted.
The tool ``agent`` starts a sub-agent. A refused delegation is not reported.
"""

from __future__ import annotations

from gaia_sessions.hosts import denial
from gaia_sessions.hosts.payload import bare_event, figures_in, key_in, object_in, text_in
from gaia_sessions.hosts.tool_only import delegation_reader, failure_events, report_events, return_events
from gaia_sessions.session import host_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import EventReaders, HookPayload, Payload
    from gaia_sessions.session.host_events import Event

GENERAL = "general-purpose"


_PROGRAMS = ("node",)
_TOOL = "agent"
_CALL = "tool_call_id"
_LIMITS = ("MAX_TURNS", "TIMEOUT")
_FIGURES = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cachedTokens",
    "total_tokens": "totalTokens",
    "tool_uses": "totalToolCalls",
    "duration_ms": "totalDurationMs",
}


def _keys(payload: HookPayload) -> dict[str, object]:
    """Returns the keys of the delegation in ``payload``; empty for another tool."""
    # In 0.24.4 ``tool_call_id`` leads from the agent's own events to its delegation. In 0.15.10 only the events before
    # and after the tool share an ID, ``tool_use_id``, and the agent's own events do not have it.
    tool_use_id = payload.key(_CALL) or payload.key("tool_use_id")
    if payload.raw.get("tool_name") != _TOOL or not tool_use_id or not payload.tool_input:
        return {}
    return {"tool_use_id": tool_use_id, "agent_name": key_in(payload.tool_input, "subagent_type") or GENERAL}


_read_delegation = delegation_reader(_keys, _PROGRAMS)


def _pre_tool_use(payload: HookPayload) -> list[Event]:
    keys = _keys(payload)
    if not keys or not payload.key(_CALL):
        return _read_delegation(payload)
    from . import agents

    return [agents.delegation(payload, keys, _PROGRAMS)]


def _subagent_start(payload: HookPayload) -> list[Event]:
    from . import agents

    return agents.start(payload, _PROGRAMS)


def _subagent_stop(payload: HookPayload) -> list[Event]:
    from . import agents

    return agents.stop(payload)


def _post_tool_use(payload: HookPayload) -> list[Event]:
    keys = _keys(payload)
    display = object_in(object_in(payload.raw, "tool_response"), "returnDisplay")
    status, reason = display.get("status"), key_in(display, "terminateReason") or ""
    # In 0.24.4 agents work in the background by default. In 0.15.10 there is no background.
    if keys and status == "background" and payload.key(_CALL):
        from . import agents

        return agents.launch(payload, keys, key_in(display, "subagentName"))
    if not keys or status not in ("completed", "failed", "cancelled"):
        return []
    keys |= _figures(display)
    # The event after the tool says how the agent ended and what it said last.
    if status == "completed":
        return report_events(payload, text_in(display, "result"), **keys)
    if reason in _LIMITS:
        return return_events(payload, **keys)
    return failure_events(payload, reason, keys, interrupted="cancelled" in (status, reason.casefold()))


def _figures(display: Payload) -> dict[str, object]:
    """Returns what the agent used. The host adds up all the agent's requests, so this is also what the run consumed."""
    usage = figures_in(object_in(display, "executionSummary"), _FIGURES)
    return {"usage": usage, "consumed": usage} if usage else {}


def _post_tool_use_failure(payload: HookPayload) -> list[Event]:
    keys, interrupted = _keys(payload), payload.raw.get("is_interrupt") is True
    if keys and payload.key(_CALL):
        # In this version starts are reported. So if no start was reported, the agent never ran.
        return [payload.failure(payload.text("error"), **keys, interrupted=interrupted or None)]
    return failure_events(payload, payload.text("error"), keys, interrupted=interrupted) if keys else []


def _stop(payload: HookPayload) -> list[Event]:
    tasks = payload.raw.get("background_tasks")
    if not isinstance(tasks, list):
        return [payload.event(host_events.MAIN_STOP)]
    from . import agents

    return agents.main_stop(payload, tasks)


def _stop_failure(payload: HookPayload) -> list[Event]:
    # In 0.24.4, which sends its mode, agents in the background may be at work, and this event does not name them.
    return [] if "permission_mode" in payload.raw else [payload.event(host_events.MAIN_STOP)]


READERS: EventReaders = {
    "PreToolUse": _pre_tool_use,
    "SubagentStart": _subagent_start,
    "SubagentStop": _subagent_stop,
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    "Stop": _stop,
    "StopFailure": _stop_failure,
    "SessionStart": bare_event(host_events.SESSION_START),
    "SessionEnd": bare_event(host_events.SESSION_END),
}

DENIES = denial
REPLIES = (host_events.RETURNED, host_events.SESSION_START)
"""A rewritten prompt, and a note as the reply to a start, had no effect in any run."""

SUBAGENT_STOP = ("PostToolUse", "SubagentStop")
