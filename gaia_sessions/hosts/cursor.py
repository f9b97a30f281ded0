"""Cursor: its hook JSON as normal events.

Owns what this host calls things, by its documents and by what others logged of it; no run of it was seen. It tells
of a sub-agent twice, when it starts and when it stops, by one id (which may hold a line end) and in the parent's
conversation; of its own tools the agent tells under another conversation, which nothing joins to it. Cursor runs
Claude Code's hooks as well, under Claude's names for the events. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.session import events

from .payload import hear, host_process, only
from .protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    from .payload import Readings, Told

    Payload = dict[str, Json]

HOST = "cursor"
PROGRAMS = ("cursor", "Cursor", "cursor-agent")

GENERAL = "generalPurpose"
OBEYS: frozenset[str] = frozenset()
"""Its answers have another shape, and none of them was tried."""


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    conversation = payload.get("parent_conversation_id") or payload.get("conversation_id") or payload.get("session_id")
    return hear(HOST, _READINGS, HEARD_BY[hook], {**payload, "session_id": conversation}, config, now)


def _start(told: Told) -> list[Event]:
    """The start is the first that is told of it: it begins the session too."""
    agent, name = _agent(told), told.key("subagent_type")
    if not agent or not name:
        return []
    keys = {"tool_use_id": agent, "agent_name": name, "host_process": host_process(PROGRAMS)}
    task, description = told.payload.get("task"), told.payload.get("description")
    begun = told.delegation(task, description, **keys)
    return [begun, told.event(events.START, host_agent_id=agent, launch=True, **keys)]


def _stop(told: Told) -> list[Event]:
    agent, status = _agent(told), told.payload.get("status")
    if not agent:
        return []
    keys = {"tool_use_id": agent, "host_agent_id": agent, "agent_name": told.key("subagent_type")}
    if status != "completed":
        aborted = status == "aborted"
        told_of = status in ("error", "aborted")
        return [told.failure(_error(told), interrupted=aborted or None, **keys)] if told_of else []
    transcript = told.text("agent_transcript_path") or None
    stop = told.event(events.STOP, transcript_path=transcript, **keys, **told.last_words(told.text("summary")))
    return [stop, told.event(events.RETURNED, **keys)]


_READINGS: Readings = {
    "subagentStart": _start,
    "SubagentStart": _start,
    "subagentStop": _stop,
    "SubagentStop": _stop,
    "stop": only(events.MAIN_STOP),
    "Stop": only(events.MAIN_STOP),
    "sessionStart": only(events.SESSION_START),
    "SessionStart": only(events.SESSION_START),
    "sessionEnd": only(events.SESSION_END),
    "SessionEnd": only(events.SESSION_END),
}

HEARD_BY = {
    PRE_DELEGATE: ("subagentStart", "SubagentStart"),
    SUBAGENT_STOP: ("subagentStop", "SubagentStop"),
    HOOK: tuple(_READINGS),
}
"""Which events each hook is there for."""


def _agent(told: Told) -> str | None:
    return told.key("subagent_id") or told.key("tool_call_id")


def _error(told: Told) -> str:
    return told.text("error_message") or told.text("error")
