"""Factory's Droid: its hook JSON as events. Experimental: written from documents and other people's reports.

The tool that starts a sub-agent is ``Task``. The events before and after it need not have an id, and what it returned
may be a bare text, which is then the agent's report. The stop of an agent has no key. Everything in a payload is
untrusted.

Why it is kept: Droid's payloads look like Claude Code's. Read as those, a documented delegation that completed is
recorded as denied, or not at all where it has no id.
"""

from __future__ import annotations

from gaia_sessions.session import events

from . import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from .payload import bare_event, events_reader, key_in
from .tool_only import delegation_keys, delegation_reader, report_events, return_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.events import Event

    from .payload import EventReaders, HookPayload

GENERAL = "worker"
SUPPORTED_REPLIES = frozenset([events.RETURNED, events.SESSION_START])
end_in_files = None
consumption = None
recent_messages = None
revival = None
WAKE_ADVICE = None
START_EVENT = None
PERMITS_COMMANDS = False
rewrite_prompt = None

_PROGRAMS = ("droid",)
_TOOLS = ("Task",)


def _keys(payload: HookPayload) -> dict[str, object]:
    return delegation_keys(payload, _TOOLS, key_in(payload.tool_input, "subagent_type") or GENERAL)


def _post_tool_use(payload: HookPayload) -> list[Event]:
    keys, response = _keys(payload), payload.raw.get("tool_response")
    if not keys:
        return []
    return report_events(payload, response, **keys) if isinstance(response, str) else return_events(payload, **keys)


_READERS: EventReaders = {
    "PreToolUse": delegation_reader(_keys, _PROGRAMS),
    "PostToolUse": _post_tool_use,
    "Stop": bare_event(events.MAIN_STOP),
    "SessionStart": bare_event(events.SESSION_START),
    "SessionEnd": bare_event(events.SESSION_END),
}

EVENTS_BY_HOOK = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("PostToolUse",), HOOK: tuple(_READERS)}
events_of = events_reader(_READERS, EVENTS_BY_HOOK)
