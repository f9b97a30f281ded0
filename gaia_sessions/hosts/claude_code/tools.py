"""Claude Code: what its sub-agents do with their tools, as normal events.

Owns which of its tools edit and which run commands; of every other one nothing is concluded. That a tool
is about to be used proves nothing: a rule, a hook or a person may refuse it, and then the host says no
more of it (seen in runs of 2.1.197 and 2.1.330). Only what came after it counts. Imported only where
whoever wired the hook asked for it.
"""

from __future__ import annotations

from gaia_sessions.hosts.payload import one_line
from gaia_sessions.session import events
from gaia_sessions.session.tool_inference import MAX_TOOL_NAME_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import HookPayload
    from gaia_sessions.session.events import Event

_EDITING = ("Edit", "MultiEdit", "NotebookEdit", "Write")
_SHELL = "Bash"
_OTHER_SHELL = "PowerShell"

_KINDS = {
    "PreToolUse": events.TOOL_CALL,
    "PermissionRequest": events.PERMISSION_REQUEST,
    "PostToolUse": events.TOOL_USED,
    "PostToolUseFailure": events.TOOL_USED,
}


def events_of(message: HookPayload) -> list[Event]:
    """What a sub-agent does with a tool that starts no other agent; nothing of the main agent's own."""
    kind = _KINDS.get(message.text("hook_event_name"))
    agent, name = message.key("agent_id"), one_line(message.text("tool_name"), MAX_TOOL_NAME_LENGTH)
    if not kind or not agent or not name:
        return []
    keys: dict[str, object] = {"host_agent_id": agent, "agent_name": message.key("agent_type"), "tool_name": name}
    if kind != events.TOOL_USED:
        return [message.event(kind, **keys)]
    call = message.key("tool_use_id")
    return [message.event(kind, **keys, call=call, writes=_writes(message, name))] if call else []


def _writes(message: HookPayload, name: str) -> bool:
    """Whether it edited something, or ran a command that does not only read. An edit that failed left all as it was."""
    if name in _EDITING:
        return message.payload["hook_event_name"] == "PostToolUse"
    return name == _OTHER_SHELL or (name == _SHELL and not _only_reads(message.tool_input.get("command")))


def _only_reads(command: object) -> bool:
    from .readonly_commands import is_read_only

    return isinstance(command, str) and is_read_only(command)
