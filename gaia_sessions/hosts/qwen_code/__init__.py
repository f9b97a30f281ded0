"""Qwen Code: its hook JSON as events, as seen in runs of 0.15.10.

The tool that starts a sub-agent is ``agent``. The events before and after it carry the same ``tool_use_id``, and the
one after it also says how the agent ended and what it said last. The events of the agent itself carry an id that
appears nowhere else, so they cannot be joined and are not read. A refused delegation is not reported at all.
Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.hosts import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.hosts.payload import bare_event, events_reader, key_in, object_in, text_in
from gaia_sessions.hosts.tool_only import delegation_reader, failure_events, report_events, return_events
from gaia_sessions.session import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import EventReaders, HookPayload
    from gaia_sessions.session.events import Event

GENERAL = "general-purpose"

SUPPORTED_REPLIES = frozenset([events.RETURNED, events.SESSION_START])
"""A rewritten prompt and a note to a starting agent had no effect in any run."""

rewrite_prompt = None

_PROGRAMS = ("node",)
_TOOL = "agent"
_LIMITS = ("MAX_TURNS", "TIMEOUT")


def _keys(message: HookPayload) -> dict[str, object]:
    """The keys of the delegation that ``message`` is about; empty if it is about another tool."""
    tool_use_id = message.key("tool_use_id")
    if message.payload.get("tool_name") != _TOOL or not tool_use_id or not message.tool_input:
        return {}
    return {"tool_use_id": tool_use_id, "agent_name": key_in(message.tool_input, "subagent_type") or GENERAL}


def _post_tool_use(message: HookPayload) -> list[Event]:
    keys = _keys(message)
    display = object_in(object_in(message.payload, "tool_response"), "returnDisplay")
    status, reason = display.get("status"), key_in(display, "terminateReason") or ""
    if not keys or status not in ("completed", "failed", "cancelled"):
        return []
    if status == "completed":
        return report_events(message, text_in(display, "result"), **keys)
    if reason in _LIMITS:
        return return_events(message, **keys)
    return failure_events(message, reason, keys, interrupted="cancelled" in (status, reason.casefold()))


def _post_tool_use_failure(message: HookPayload) -> list[Event]:
    keys, interrupted = _keys(message), message.payload.get("is_interrupt") is True
    return failure_events(message, message.text("error"), keys, interrupted=interrupted) if keys else []


_READERS: EventReaders = {
    "PreToolUse": delegation_reader(_keys, _PROGRAMS),
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    "Stop": bare_event(events.MAIN_STOP),
    "StopFailure": bare_event(events.MAIN_STOP),
    "SessionStart": bare_event(events.SESSION_START),
    "SessionEnd": bare_event(events.SESSION_END),
}

EVENTS_BY_HOOK = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("PostToolUse",), HOOK: tuple(_READERS)}
events_of = events_reader(_READERS, EVENTS_BY_HOOK)
