"""Cursor: its hook JSON as normal events.

Owns what this host calls things, by its documents and by what others logged of it; no run of it was seen. It tells
of a sub-agent twice, when it starts and when it stops, by one id (which may hold a line end) and in the parent's
conversation; of its own tools the agent tells under another conversation, which nothing joins to it. Cursor runs
Claude Code's hooks as well, under Claude's names for the events. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.session import events

from .payload import bare_event, host_process, read_events
from .protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    from .payload import EventReaders, HookPayload

    Payload = dict[str, Json]

HOST = "cursor"
PROGRAMS = ("cursor", "Cursor", "cursor-agent")

GENERAL = "generalPurpose"
SUPPORTED_REPLIES: frozenset[str] = frozenset()
"""Its answers have another shape, and none of them was tried."""


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    conversation = payload.get("parent_conversation_id") or payload.get("conversation_id") or payload.get("session_id")
    return read_events(HOST, _READERS, EVENTS_BY_HOOK[hook], {**payload, "session_id": conversation}, config, now)


def _start(message: HookPayload) -> list[Event]:
    """The start is the first that is told of it: it begins the session too."""
    agent, name = _agent(message), message.key("subagent_type")
    if not agent or not name:
        return []
    keys = {"tool_use_id": agent, "agent_name": name, "host_process": host_process(PROGRAMS)}
    task, description = message.payload.get("task"), message.payload.get("description")
    delegation = message.delegation(task, description, **keys)
    return [delegation, message.event(events.START, host_agent_id=agent, launch=True, **keys)]


def _stop(message: HookPayload) -> list[Event]:
    agent, status = _agent(message), message.payload.get("status")
    if not agent:
        return []
    keys = {"tool_use_id": agent, "host_agent_id": agent, "agent_name": message.key("subagent_type")}
    if status != "completed":
        aborted = status == "aborted"
        is_failure = status in ("error", "aborted")
        return [message.failure(_error(message), interrupted=aborted or None, **keys)] if is_failure else []
    transcript = message.text("agent_transcript_path") or None
    stop = message.event(
        events.STOP, transcript_path=transcript, **keys, **message.last_message_keys(message.text("summary"))
    )
    return [stop, message.event(events.RETURNED, **keys)]


_READERS: EventReaders = {
    "subagentStart": _start,
    "SubagentStart": _start,
    "subagentStop": _stop,
    "SubagentStop": _stop,
    "stop": bare_event(events.MAIN_STOP),
    "Stop": bare_event(events.MAIN_STOP),
    "sessionStart": bare_event(events.SESSION_START),
    "SessionStart": bare_event(events.SESSION_START),
    "sessionEnd": bare_event(events.SESSION_END),
    "SessionEnd": bare_event(events.SESSION_END),
}

EVENTS_BY_HOOK = {
    PRE_DELEGATE: ("subagentStart", "SubagentStart"),
    SUBAGENT_STOP: ("subagentStop", "SubagentStop"),
    HOOK: tuple(_READERS),
}
"""Which events each hook is there for."""


def _agent(message: HookPayload) -> str | None:
    return message.key("subagent_id") or message.key("tool_call_id")


def _error(message: HookPayload) -> str:
    return message.text("error_message") or message.text("error")
