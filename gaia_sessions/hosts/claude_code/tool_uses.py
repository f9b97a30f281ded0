"""Claude Code: the use of tools by its sub-agents, as events. Imported only for these.

That a permission is asked for is always heard; the others come with ``--track-tools``. A phase is inferred from the
tools that edit and from nothing else: the text of a command does not say what it changes. Only the event after a use
counts: one before it proves nothing, since a rule, a hook or a person may refuse the use (seen in runs of 2.1.197 and
2.1.330).
"""

from __future__ import annotations

from gaia_sessions.hosts.agent_files import transcript_of
from gaia_sessions.hosts.payload import one_line
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.session import host_events
from gaia_sessions.session.ids import quick_digest
from gaia_sessions.session.tool_inference import MAX_TOOL_NAME_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import HookPayload, Payload
    from gaia_sessions.session.host_events import Event

_EDITING = ("Edit", "MultiEdit", "NotebookEdit", "Write")

_LONGEST_INPUT = 1 << 30
"""Bytes: more than what any payload or line of a transcript that is read can become."""

_KINDS = {
    "PermissionRequest": host_events.PERMISSION_REQUEST,
    "PostToolUse": host_events.TOOL_USED,
    "PostToolUseFailure": host_events.TOOL_USED,
}


def events_of(payload: HookPayload, *, tracked: bool = False) -> list[Event]:
    """The event about a sub-agent's tools; none about the main agent's. tracked: a phase may be inferred from it."""
    kind = _KINDS.get(payload.text("hook_event_name"))
    agent, name = payload.key("agent_id"), name_of_tool(payload.text("tool_name"))
    keys: dict[str, object] = {"host_agent_id": agent, "agent_name": payload.key("agent_type")}
    if not kind or not agent or not name:
        return []
    keys |= {"tool_name": name, "asked": digest_of_use(name, payload.tool_input), "call": payload.key("tool_use_id")}
    if kind == host_events.PERMISSION_REQUEST:
        transcript = transcript_of(payload.raw.get("transcript_path"), agent)
        return [payload.event(kind, **keys, transcript_path=transcript, tracked=tracked or None)]
    edited = name in _EDITING and payload.raw["hook_event_name"] == "PostToolUse"  # one that failed changed nothing
    return [payload.event(kind, **keys, writes=edited)] if keys["call"] else []


def name_of_tool(name: str) -> str:
    """The name of a tool as events have it."""
    return one_line(name, MAX_TOOL_NAME_LENGTH)


def digest_of_use(tool: str, tool_input: Payload) -> str:
    """What a request, a use and a call in a transcript have in common if they are about the same."""
    given = dump_line(dict(sorted(tool_input.items())), _LONGEST_INPUT)
    return quick_digest(f"{tool} {given.decode()}")
