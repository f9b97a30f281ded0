"""Gemini CLI: its hook JSON as normal events.

Owns what this host calls things, as seen in runs of 0.61.0. It has no events of sub-agents and no ids at all: the
tool that starts one is ``invoke_agent``, and all there is to know a delegation by is what was asked of whom. The
same asked again is another delegation once the first is over; the same asked twice at once is taken for one. What
an agent does with its own tools looks like the main agent's. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.hosts.payload import hear, key_in, only
from gaia_sessions.hosts.protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.hosts.tool_only import cut_short, failed, keys_by_content, reported, unannounced
from gaia_sessions.session import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import Readings, Told
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    Payload = dict[str, Json]

HOST = "gemini-cli"
PROGRAMS = ("node",)

GENERAL = "generalist"

OBEYS = frozenset([events.DELEGATE, events.RETURNED, events.SESSION_START])
PROMPT = "prompt"

_TOOL = "invoke_agent"
_GOAL = "GOAL"
_LIMITS = ("MAX_TURNS", "TIMEOUT")
_ABORTED = "ABORTED"


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    return hear(HOST, _READINGS, HEARD_BY[hook], payload, config, now)


def rewritten(asked: Payload, prompt: str) -> dict[str, object]:
    """How this host is told to delegate with ``prompt``."""
    return {"tool_input": {**asked, PROMPT: prompt}}


def _before_tool(told: Told) -> list[Event]:
    return unannounced(told, _keys(told), PROGRAMS)


def _after_tool(told: Told) -> list[Event]:
    keys, shown = _keys(told), _shown(told)
    state, reason = shown.get("state"), shown.get("terminateReason")
    if not keys or not isinstance(state, str):
        return []
    if state == "completed" and reason == _GOAL:
        report = shown.get("result")
        return reported(told, report if isinstance(report, str) else "", **keys)
    if reason in _LIMITS:
        return cut_short(told, **keys)
    return failed(told, _error(told), keys, interrupted=state == "cancelled" or reason == _ABORTED)


_READINGS: Readings = {
    "BeforeTool": _before_tool,
    "AfterTool": _after_tool,
    "AfterAgent": only(events.MAIN_STOP),
    "SessionStart": only(events.SESSION_START),
    "SessionEnd": only(events.SESSION_END),
}

HEARD_BY = {PRE_DELEGATE: ("BeforeTool",), SUBAGENT_STOP: ("AfterTool",), HOOK: tuple(_READINGS)}
"""Which events each hook is there for; of a stop this host tells by what the delegation returned."""


def _keys(told: Told) -> dict[str, object]:
    """Which delegation is meant, by what was asked of whom; empty for any other tool."""
    name, prompt = key_in(told.asked, "agent_name"), told.asked.get("prompt")
    if told.payload.get("tool_name") != _TOOL or not name or not isinstance(prompt, str):
        return {}
    return keys_by_content(told, name, prompt)


def _response(told: Told) -> Payload:
    response = told.payload.get("tool_response")
    return response if isinstance(response, dict) else {}


def _shown(told: Told) -> Payload:
    shown = _response(told).get("returnDisplay")
    return shown if isinstance(shown, dict) else {}


def _error(told: Told) -> str:
    said = _response(told).get("llmContent")
    return said if isinstance(said, str) else ""
