"""Factory's Droid: its hook JSON as normal events.

Owns what this host calls things, by its documents and by what others reported of it; no run of it was seen. The
tool that starts a sub-agent is ``Task``. Neither before nor after it need there be an id, and what it returned
can be a bare text: then a delegation is known by what was asked of whom, as with Gemini CLI, and a text is the
report. The stop of an agent has no key. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.session import events

from .payload import hear, key_in, only
from .protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from .tool_only import cut_short, keys_by_content, reported, unannounced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    from .payload import Readings, Told

    Payload = dict[str, Json]

HOST = "factory"
PROGRAMS = ("droid",)

GENERAL = "worker"
OBEYS = frozenset([events.RETURNED, events.SESSION_START])

_TOOL = "Task"


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    return hear(HOST, _READINGS, HEARD_BY[hook], payload, config, now)


def _pre_tool_use(told: Told) -> list[Event]:
    return unannounced(told, _keys(told), PROGRAMS)


def _post_tool_use(told: Told) -> list[Event]:
    keys, response = _keys(told), told.payload.get("tool_response")
    if not keys:
        return []
    return reported(told, response, **keys) if isinstance(response, str) else cut_short(told, **keys)


_READINGS: Readings = {
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "Stop": only(events.MAIN_STOP),
    "SessionStart": only(events.SESSION_START),
    "SessionEnd": only(events.SESSION_END),
}

HEARD_BY = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("PostToolUse",), HOOK: tuple(_READINGS)}
"""Which events each hook is there for; of a stop this host tells by what the delegation returned."""


def _keys(told: Told) -> dict[str, object]:
    """Which delegation is meant, by its id or by what was asked of whom; empty for any other tool."""
    name, prompt = key_in(told.asked, "subagent_type") or GENERAL, told.asked.get("prompt")
    if told.payload.get("tool_name") != _TOOL or not isinstance(prompt, str):
        return {}
    return keys_by_content(told, name, prompt)
