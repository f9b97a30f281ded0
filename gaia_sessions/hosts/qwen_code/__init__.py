"""Qwen Code: its hook JSON as normal events.

Owns what this host calls things, as seen in runs of 0.15.10. The tool that starts a sub-agent is ``agent``.
Before and after it the same ``tool_use_id`` is told, and after it how the agent ended and what it said. The news
of the agent itself has an id of its own that nothing else has, so none of it can be joined and all of it is left
out. A refused delegation is told of nowhere. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.hosts.payload import hear, key_in, only
from gaia_sessions.hosts.protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.hosts.tool_only import cut_short, failed, reported, unannounced
from gaia_sessions.session import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import Readings, Told
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    Payload = dict[str, Json]

HOST = "qwen-code"
PROGRAMS = ("node",)

GENERAL = "general-purpose"

OBEYS = frozenset([events.RETURNED, events.SESSION_START])
"""A rewritten prompt and words to a starting agent had no effect in any run."""

_TOOL = "agent"
_LIMITS = ("MAX_TURNS", "TIMEOUT")


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    return hear(HOST, _READINGS, HEARD_BY[hook], payload, config, now)


def _pre_tool_use(told: Told) -> list[Event]:
    return unannounced(told, _keys(told), PROGRAMS)


def _post_tool_use(told: Told) -> list[Event]:
    keys, shown = _keys(told), _shown(told)
    status = shown.get("status")
    reason = key_in(shown, "terminateReason") or ""
    if not keys or status not in ("completed", "failed", "cancelled"):
        return []
    if status == "completed":
        report = shown.get("result")
        return reported(told, report if isinstance(report, str) else "", **keys)
    if reason in _LIMITS:
        return cut_short(told, **keys)
    return failed(told, reason, keys, interrupted="cancelled" in (status, reason.casefold()))


def _post_tool_use_failure(told: Told) -> list[Event]:
    keys, interrupted = _keys(told), told.payload.get("is_interrupt") is True
    return failed(told, told.text("error"), keys, interrupted=interrupted) if keys else []


_READINGS: Readings = {
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    "Stop": only(events.MAIN_STOP),
    "StopFailure": only(events.MAIN_STOP),
    "SessionStart": only(events.SESSION_START),
    "SessionEnd": only(events.SESSION_END),
}

HEARD_BY = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("PostToolUse",), HOOK: tuple(_READINGS)}
"""Which events each hook is there for; of a stop this host tells by what the delegation returned."""


def _keys(told: Told) -> dict[str, object]:
    """Which delegation is meant; empty for any other tool."""
    tool_use_id = told.key("tool_use_id")
    if told.payload.get("tool_name") != _TOOL or not tool_use_id or not told.asked:
        return {}
    return {"tool_use_id": tool_use_id, "agent_name": key_in(told.asked, "subagent_type") or GENERAL}


def _shown(told: Told) -> Payload:
    response = told.payload.get("tool_response")
    shown = response.get("returnDisplay") if isinstance(response, dict) else None
    return shown if isinstance(shown, dict) else {}
