"""Qwen Code: its hook JSON as normal events.

Owns what this host calls things, as seen in runs of 0.15.10. The tool that starts a sub-agent is ``agent``.
Before and after it the same ``tool_use_id`` is told, and after it how the agent ended and what it said. The news
of the agent itself has an id of its own that nothing else has, so none of it can be joined and all of it is left
out. A refused delegation is told of nowhere. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.hosts.payload import bare_event, key_in, read_events
from gaia_sessions.hosts.protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.hosts.tool_only import delegation_events, failure_events, report_events, return_events
from gaia_sessions.session import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import EventReaders, HookPayload
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    Payload = dict[str, Json]

HOST = "qwen-code"
PROGRAMS = ("node",)

GENERAL = "general-purpose"

SUPPORTED_REPLIES = frozenset([events.RETURNED, events.SESSION_START])
"""A rewritten prompt and words to a starting agent had no effect in any run."""

_TOOL = "agent"
_LIMITS = ("MAX_TURNS", "TIMEOUT")


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    return read_events(HOST, _READERS, EVENTS_BY_HOOK[hook], payload, config, now)


def _pre_tool_use(message: HookPayload) -> list[Event]:
    return delegation_events(message, _keys(message), PROGRAMS)


def _post_tool_use(message: HookPayload) -> list[Event]:
    keys, display = _keys(message), _return_display(message)
    status = display.get("status")
    reason = key_in(display, "terminateReason") or ""
    if not keys or status not in ("completed", "failed", "cancelled"):
        return []
    if status == "completed":
        report = display.get("result")
        return report_events(message, report if isinstance(report, str) else "", **keys)
    if reason in _LIMITS:
        return return_events(message, **keys)
    return failure_events(message, reason, keys, interrupted="cancelled" in (status, reason.casefold()))


def _post_tool_use_failure(message: HookPayload) -> list[Event]:
    keys, interrupted = _keys(message), message.payload.get("is_interrupt") is True
    return failure_events(message, message.text("error"), keys, interrupted=interrupted) if keys else []


_READERS: EventReaders = {
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    "Stop": bare_event(events.MAIN_STOP),
    "StopFailure": bare_event(events.MAIN_STOP),
    "SessionStart": bare_event(events.SESSION_START),
    "SessionEnd": bare_event(events.SESSION_END),
}

EVENTS_BY_HOOK = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("PostToolUse",), HOOK: tuple(_READERS)}
"""Which events each hook is there for; of a stop this host tells by what the delegation returned."""


def _keys(message: HookPayload) -> dict[str, object]:
    """Which delegation is meant; empty for any other tool."""
    tool_use_id = message.key("tool_use_id")
    if message.payload.get("tool_name") != _TOOL or not tool_use_id or not message.asked:
        return {}
    return {"tool_use_id": tool_use_id, "agent_name": key_in(message.asked, "subagent_type") or GENERAL}


def _return_display(message: HookPayload) -> Payload:
    response = message.payload.get("tool_response")
    display = response.get("returnDisplay") if isinstance(response, dict) else None
    return display if isinstance(display, dict) else {}
