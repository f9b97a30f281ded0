"""Cursor: its hook JSON as events. Experimental: written from documents and other people's logs.

Cursor reports a sub-agent when it starts and when it stops, both times by one id (which may hold a line feed) and in
the parent's conversation. The agent's own tools are reported under another conversation that nothing joins to it.
Cursor also runs Claude Code's hooks, under Claude Code's names of the events. Everything in a payload is untrusted.

Why it is kept: Cursor runs our hook wherever Claude Code's settings start it, and read as Claude Code's payloads, a
documented start and stop leave no record at all. No other host loads this module.
"""

from __future__ import annotations

from gaia_sessions.session import events

from . import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from .payload import HookPayload, bare_event, host_process, read_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.events import Event

    from .payload import EventReaders

GENERAL = "generalPurpose"

SUPPORTED_REPLIES: frozenset[str] = frozenset()
"""Its replies have another shape, and none of them was tried."""

end_in_files = None
consumption = None
recent_messages = None
revival = None
WAKE_ADVICE = None
START_EVENT = None
PERMITS_COMMANDS = False

rewrite_prompt = None

_PROGRAMS = ("cursor", "Cursor", "cursor-agent")


def events_of(hook: str, payload: HookPayload, *, tools: bool = False) -> list[Event]:  # noqa: ARG001  # it reports no tools
    """The events that ``payload`` reports, as far as ``hook`` reads them."""
    said = payload.raw
    conversation = said.get("parent_conversation_id") or said.get("conversation_id") or said.get("session_id")
    with_session = {**said, "session_id": conversation}
    in_conversation = HookPayload(payload.host, with_session, payload.config, payload.now, payload.variables)
    return read_events(in_conversation, _READERS, EVENTS_BY_HOOK[hook])


def _start(payload: HookPayload) -> list[Event]:
    """The start is the first event about an agent, so it is its delegation too."""
    agent, name = _agent(payload), payload.key("subagent_type")
    if not agent or not name:
        return []
    keys = {"tool_use_id": agent, "agent_name": name, "host_process": host_process(_PROGRAMS)}
    task, description = payload.raw.get("task"), payload.raw.get("description")
    delegation = payload.delegation(task, description, **keys)
    return [delegation, payload.event(events.START, host_agent_id=agent, launch=True, **keys)]


def _stop(payload: HookPayload) -> list[Event]:
    agent, status = _agent(payload), payload.raw.get("status")
    if not agent:
        return []
    keys = {"tool_use_id": agent, "host_agent_id": agent, "agent_name": payload.key("subagent_type")}
    if status != "completed":
        aborted = status == "aborted"
        is_failure = status in ("error", "aborted")
        return [payload.failure(_error(payload), interrupted=aborted or None, **keys)] if is_failure else []
    transcript = payload.text("agent_transcript_path") or None
    stop = payload.event(
        events.STOP, transcript_path=transcript, **keys, **payload.last_message_keys(payload.text("summary"))
    )
    return [stop, payload.event(events.RETURNED, **keys)]


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


def _agent(payload: HookPayload) -> str | None:
    return payload.key("subagent_id") or payload.key("tool_call_id")


def _error(payload: HookPayload) -> str:
    return payload.text("error_message") or payload.text("error")
