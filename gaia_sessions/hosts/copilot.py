"""VS Code's agents and Copilot CLI: their hook JSON as normal events.

Owns what these two call things, by their documents; no run of them was seen. They share their settings and most of
their words, and read Claude Code's settings too. The tool that starts a sub-agent is ``Agent``, ``task`` or
``runSubagent``; VS Code gives its use an id, Copilot CLI none, and then a delegation is known by what was asked
of whom. The news of an agent itself has no key of its delegation. Copilot's camelCase dialect does not name its
events and cannot be read: it must be wired by the PascalCase names. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.session import events

from .payload import hear, key_in, only
from .protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from .tool_only import cut_short, failed, keys_by_content, reported, unannounced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    from .payload import Readings, Told

    Payload = dict[str, Json]

HOST = "copilot"
PROGRAMS = ("copilot", "code")

GENERAL = "general-purpose"
OBEYS = frozenset([events.DELEGATE, events.START, events.RETURNED, events.SESSION_START])
PROMPT = "prompt"

_TOOLS = ("Agent", "Task", "task", "runSubagent")
_NAMES = ("agent_type", "subagent_type", "agentName")
_FAILED = ("failure", "error")


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    return hear(HOST, _READINGS, HEARD_BY[hook], payload, config, now)


def rewritten(asked: Payload, prompt: str) -> dict[str, object]:
    """How this host is told to delegate with ``prompt``."""
    return {"updatedInput": {**asked, PROMPT: prompt}}


def _pre_tool_use(told: Told) -> list[Event]:
    return unannounced(told, _keys(told), PROGRAMS)


def _post_tool_use(told: Told) -> list[Event]:
    """VS Code tells a text, and only of what succeeded; Copilot CLI tells how it went."""
    keys, text, result = _keys(told), told.payload.get("tool_response"), told.payload.get("tool_result")
    if not keys:
        return []
    if isinstance(result, dict):
        text, how = result.get("text_result_for_llm"), result.get("result_type")
        if how == "denied":
            return [told.event(events.OVER, **keys)]
        if how in _FAILED:
            return failed(told, str(text or ""), keys)
    return reported(told, text, **keys) if isinstance(text, str) else cut_short(told, **keys)


def _post_tool_use_failure(told: Told) -> list[Event]:
    keys = _keys(told)
    return failed(told, told.text("error"), keys) if keys else []


def _subagent_start(told: Told) -> list[Event]:
    """Never joined; told so that the agent can be told how to pause."""
    agent, name = told.key("agent_id"), told.key("agent_type")
    return [told.event(events.START, host_agent_id=agent, agent_name=name)] if agent and name else []


_READINGS: Readings = {
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    "SubagentStart": _subagent_start,
    "Stop": only(events.MAIN_STOP),
    "SessionStart": only(events.SESSION_START),
    "SessionEnd": only(events.SESSION_END),
}

HEARD_BY = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("PostToolUse",), HOOK: tuple(_READINGS)}
"""Which events each hook is there for; of a stop these hosts tell by what the delegation returned."""


def _keys(told: Told) -> dict[str, object]:
    """Which delegation is meant, by its id or by what was asked of whom; empty for any other tool."""
    prompt = told.asked.get("prompt")
    if told.payload.get("tool_name") not in _TOOLS or not isinstance(prompt, str):
        return {}
    name = next((found for key in _NAMES if (found := key_in(told.asked, key))), GENERAL)
    return keys_by_content(told, name, prompt)
