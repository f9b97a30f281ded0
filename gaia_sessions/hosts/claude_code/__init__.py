"""Claude Code: its hook JSON as events, as seen in runs of 2.1.197 and 2.1.330.

The tool that starts a sub-agent is ``Agent`` (``Task`` in older versions). Events about an agent do not name its
delegation, and events about a delegation do not name its agent. Two facts join them: what the delegation returned, and
the ``meta.json`` beside the agent's transcript. Everything in a payload is untrusted: one that does not look as
expected is passed over.
"""

from __future__ import annotations

from gaia_sessions.hosts import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.hosts.payload import (
    element_in,
    host_process,
    key_in,
    object_in,
    one_line,
    read_events,
    with_addition,
)
from gaia_sessions.session import events
from gaia_sessions.session.events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.phases import ABANDONED, COMPLETED, FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import EventReaders, HookPayload, Payload
    from gaia_sessions.session.events import Event

GENERAL = "general-purpose"
SUPPORTED_REPLIES = frozenset(
    [events.DELEGATE, events.START, events.RETURNED, events.NOTIFICATION, events.SESSION_START]
)

_PROGRAMS = ("claude",)
_PID_VARIABLE = "CLAUDE_PID"
_AGENT_TOOLS = ("Agent", "Task")
_NOTIFICATION = "<task-notification>"
_CONTINUING_REASONS = ("clear", "resume")
_OUTCOMES = {"completed": COMPLETED, "failed": FAILED, "killed": ABANDONED, "stopped": ABANDONED}


def events_of(hook: str, message: HookPayload, *, tools: bool = False) -> list[Event]:
    """The events that ``message`` reports, as far as ``hook`` reads them.

    tools: also the events about the tools that a sub-agent uses.
    """
    found = read_events(message, _READERS, EVENTS_BY_HOOK[hook])
    if found or not tools:
        return found
    if not message.host_session_id or not message.key("agent_id") or _is_of_agent_tool(message):
        return []
    from .tools import events_of as events_of_tools

    return events_of_tools(message)


def rewrite_prompt(tool_input: Payload, addition: str) -> dict[str, object]:
    """The reply that adds ``addition`` to the prompt of a delegation. The host replaces the whole input by it."""
    return {"updatedInput": with_addition(tool_input, "prompt", addition)}


def _pre_tool_use(message: HookPayload) -> list[Event]:
    if message.payload.get("tool_name") == "SendMessage":
        to = key_in(message.tool_input, "to")
        return [message.event(events.MESSAGE, host_agent_id=to, call=message.key("tool_use_id"))] if to else []
    tool_use_id = message.key("tool_use_id")
    if not _is_of_agent_tool(message) or not tool_use_id or not isinstance(message.payload.get("tool_input"), dict):
        return []
    background = message.tool_input.get("run_in_background")
    event = message.delegation(
        message.tool_input.get("prompt"),
        message.tool_input.get("description"),
        tool_use_id=tool_use_id,
        agent_name=_agent_name(message),
        parent_host_agent_id=message.key("agent_id"),
        background=background if isinstance(background, bool) else None,
        host_process=_host_process(message),
    )
    return [event]


def _subagent_start(message: HookPayload) -> list[Event]:
    keys = _agent_keys(message)
    if not keys:
        return []
    from gaia_sessions.hosts.agent_files import transcript_of

    transcript = transcript_of(message.payload.get("transcript_path"), str(keys["host_agent_id"]))
    return [message.event(events.START, **keys, host_process=_host_process(message), transcript_path=transcript)]


def _subagent_stop(message: HookPayload) -> list[Event]:
    """Compaction sends one for an agent that no delegation started, with an empty ``agent_type``: it is passed over."""
    keys = _agent_keys(message)
    if not keys:
        return []
    from gaia_sessions.hosts.agent_files import first_transcript_line
    from gaia_sessions.hosts.marker import read_briefing_id

    transcript = message.payload.get("agent_transcript_path")
    event = message.event(
        events.STOP,
        **keys,
        told_id=None if keys["tool_use_id"] else read_briefing_id(first_transcript_line(transcript)),
        again=message.payload.get("stop_hook_active") is True,
        transcript_path=transcript if isinstance(transcript, str) else None,
        **message.last_message_keys(message.text("last_assistant_message")),
    )
    return [event]


def _stop_failure(message: HookPayload) -> list[Event]:
    """Without an agent it is the main agent's turn that failed; the payload does not say which agents are running."""
    agent = message.key("agent_id")
    if not agent:
        return [message.event(events.MAIN_STOP)]
    from gaia_sessions.hosts.agent_files import delegation_of

    error = message.text("last_assistant_message") or message.text("error")
    tool_use_id = delegation_of(message.payload.get("transcript_path"), agent)
    keys = {"host_agent_id": agent, "agent_name": message.key("agent_type"), "tool_use_id": tool_use_id}
    return [message.failure(error, **keys, spoke=True)]


def _post_tool_use(message: HookPayload) -> list[Event]:
    response = object_in(message.payload, "tool_response")
    if message.payload.get("tool_name") == "TaskStop":
        agent = key_in(response, "task_id")
        return [message.failure("stopped by the main agent", host_agent_id=agent, interrupted=True)] if agent else []
    tool_use_id, agent = message.key("tool_use_id"), key_in(response, "agentId")
    if not _is_of_agent_tool(message) or not tool_use_id:
        return []
    keys = {"tool_use_id": tool_use_id, "host_agent_id": agent, "agent_name": _agent_name(message)}
    if response.get("status") == "async_launched":
        return [message.event(events.START, **keys, launch=True, background=True)] if agent else []
    return [message.event(events.RETURNED, **keys)] if response.get("status") == "completed" else []


def _post_tool_use_failure(message: HookPayload) -> list[Event]:
    tool_use_id = message.key("tool_use_id")
    if not _is_of_agent_tool(message) or not tool_use_id:
        return []
    from gaia_sessions.hosts.agent_files import agent_of

    interrupted = message.payload.get("is_interrupt") is True or None
    agent = agent_of(message.payload.get("transcript_path"), tool_use_id)
    keys = {"tool_use_id": tool_use_id, "host_agent_id": agent, "agent_name": _agent_name(message)}
    return [message.failure(message.text("error"), **keys, interrupted=interrupted)]


def _post_tool_batch(message: HookPayload) -> list[Event]:
    """The only event that reports a refused delegation; its response is a bare text."""
    calls = message.payload.get("tool_calls")
    objects = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [event for call in objects for event in _refusal_events(message, call)]


def _refusal_events(message: HookPayload, call: Payload) -> list[Event]:
    tool_use_id, response = key_in(call, "tool_use_id"), call.get("tool_response")
    if call.get("tool_name") not in _AGENT_TOOLS or not tool_use_id or not isinstance(response, str):
        return []
    from gaia_sessions.hosts.agent_files import agent_of

    agent = agent_of(message.payload.get("transcript_path"), tool_use_id)
    error = one_line(response, MAX_MESSAGE_LENGTH)
    return [message.event(events.DELEGATION_CLOSED, tool_use_id=tool_use_id, host_agent_id=agent, error=error)]


def _user_prompt_submit(message: HookPayload) -> list[Event]:
    """A background agent's end arrives as a prompt that nobody typed."""
    prompt = message.text("prompt").strip()
    if not prompt.startswith(_NOTIFICATION):
        return []
    head, _, rest = prompt.partition("<summary>")  # the agent's own words come after it, and may look like a tag
    agent, tool_use_id = element_in(head, "task-id"), element_in(head, "tool-use-id")
    outcome = _OUTCOMES.get(element_in(head, "status") or "")
    if not outcome or not (agent or tool_use_id):
        return []
    error = None if outcome == COMPLETED else one_line(rest.partition("</summary>")[0] or outcome, MAX_MESSAGE_LENGTH)
    return [
        message.event(events.NOTIFICATION, host_agent_id=agent, tool_use_id=tool_use_id, outcome=outcome, error=error)
    ]


def _stop(message: HookPayload) -> list[Event]:
    tasks = message.payload.get("background_tasks")
    if not isinstance(tasks, list):
        return [message.event(events.MAIN_STOP)]
    keys = (key_in(task, "id") for task in tasks if isinstance(task, dict))
    return [message.event(events.MAIN_STOP, running=[key for key in keys if key])]


def _session_start(message: HookPayload) -> list[Event]:
    return [message.event(events.SESSION_START, source=message.key("source"))]


def _session_end(message: HookPayload) -> list[Event]:
    """After ``/clear`` and ``/resume`` the process continues, and so does every agent in the background."""
    process_continues = message.payload.get("reason") in _CONTINUING_REASONS
    return [message.event(events.SESSION_LEFT if process_continues else events.SESSION_END)]


_READERS: EventReaders = {
    "PreToolUse": _pre_tool_use,
    "SubagentStart": _subagent_start,
    "SubagentStop": _subagent_stop,
    "StopFailure": _stop_failure,
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    "PostToolBatch": _post_tool_batch,
    "UserPromptSubmit": _user_prompt_submit,
    "Stop": _stop,
    "SessionStart": _session_start,
    "SessionEnd": _session_end,
}
EVENTS_BY_HOOK = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("SubagentStop",), HOOK: tuple(_READERS)}


def _is_of_agent_tool(message: HookPayload) -> bool:
    return message.payload.get("tool_name") in _AGENT_TOOLS


def _agent_name(message: HookPayload) -> str:
    return key_in(message.tool_input, "subagent_type") or GENERAL


def _agent_keys(message: HookPayload) -> dict[str, object]:
    """The agent, and its delegation or the file where that will be noted; empty for an agent without a type."""
    agent, name = message.key("agent_id"), message.key("agent_type")
    if not agent or not name:
        return {}
    from gaia_sessions.hosts.agent_files import TOOL_USE_ID_KEY, delegation_of, meta_file_of

    transcript = message.payload.get("transcript_path")
    tool_use_id = delegation_of(transcript, agent)
    meta_file = None if tool_use_id else meta_file_of(transcript, agent)
    key_file = {"key_file": meta_file, "key_name": TOOL_USE_ID_KEY if meta_file else None}
    return {"host_agent_id": agent, "agent_name": name, "tool_use_id": tool_use_id, **key_file}


def _host_process(message: HookPayload) -> object:
    return host_process(_PROGRAMS, message.variables.get(_PID_VARIABLE, ""))
