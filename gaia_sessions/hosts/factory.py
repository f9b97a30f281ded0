"""Factory's Droid: its hook JSON as normal events.

Owns what this host calls things, by its documents and by what others reported of it; no run of it was seen. The
tool that starts a sub-agent is ``Task``. Neither before nor after it need there be an id, and what it returned
can be a bare text: then a delegation is known by what was asked of whom, as with Gemini CLI, and a text is the
report. The stop of an agent has no key. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.session import events

from .payload import bare_event, key_in, read_events
from .protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from .tool_only import delegation_events, delegation_keys, report_events, return_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    from .payload import EventReaders, HookPayload

    Payload = dict[str, Json]

HOST = "factory"
PROGRAMS = ("droid",)

GENERAL = "worker"
SUPPORTED_REPLIES = frozenset([events.RETURNED, events.SESSION_START])

_TOOL = "Task"


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    return read_events(HOST, _READERS, EVENTS_BY_HOOK[hook], payload, config, now)


def _pre_tool_use(message: HookPayload) -> list[Event]:
    return delegation_events(message, _keys(message), PROGRAMS)


def _post_tool_use(message: HookPayload) -> list[Event]:
    keys, response = _keys(message), message.payload.get("tool_response")
    if not keys:
        return []
    return report_events(message, response, **keys) if isinstance(response, str) else return_events(message, **keys)


_READERS: EventReaders = {
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "Stop": bare_event(events.MAIN_STOP),
    "SessionStart": bare_event(events.SESSION_START),
    "SessionEnd": bare_event(events.SESSION_END),
}

EVENTS_BY_HOOK = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("PostToolUse",), HOOK: tuple(_READERS)}
"""Which events each hook is there for; of a stop this host tells by what the delegation returned."""


def _keys(message: HookPayload) -> dict[str, object]:
    """Which delegation is meant, by its id or by what was asked of whom; empty for any other tool."""
    name, prompt = key_in(message.asked, "subagent_type") or GENERAL, message.asked.get("prompt")
    if message.payload.get("tool_name") != _TOOL or not isinstance(prompt, str):
        return {}
    return delegation_keys(message, name, prompt)
