"""Claude Code: its hook JSON as normal events.

Owns what this host calls things, as seen in runs of 2.1.197 and 2.1.330. The tool that starts a sub-agent
is ``Agent`` (``Task`` in older versions); what it tells of an agent names the agent but not its
delegation, and what it tells of a delegation does not name the agent: that both belong together is told
when the delegation returns, and by the ``meta.json`` beside the agent's transcript. Everything in a
payload is untrusted: what does not look as expected is not ours.
"""

from __future__ import annotations

import os

from gaia_sessions.hosts.payload import HookPayload, element_in, host_process, key_in, one_line, read_events
from gaia_sessions.hosts.protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.session import events
from gaia_sessions.session.phases import ABANDONED, COMPLETED, FAILED
from gaia_sessions.session.schema import MAX_MESSAGE_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import EventReaders
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    Payload = dict[str, Json]

HOST = "claude-code"
PROGRAMS = ("claude",)
PID_VARIABLE = "CLAUDE_PID"

GENERAL = "general-purpose"
SUPPORTED_REPLIES = frozenset(
    [events.DELEGATE, events.START, events.RETURNED, events.NOTIFICATION, events.SESSION_START]
)
PROMPT = "prompt"

_AGENT_TOOLS = ("Agent", "Task")
_NOTIFICATION = "<task-notification>"
_CONTINUING_REASONS = ("clear", "resume")
_OUTCOMES = {"completed": COMPLETED, "failed": FAILED, "killed": ABANDONED, "stopped": ABANDONED}


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else.

    tools: also of what a sub-agent does with its tools.
    """
    known_events = read_events(HOST, _READERS, EVENTS_BY_HOOK[hook], payload, config, now)
    if known_events or not tools:
        return known_events
    message = HookPayload(HOST, payload, config, now)
    if not message.host_session_id or not message.key("agent_id") or _is_of_agent_tool(message):
        return []
    from .tools import events_of as events_of_tools

    return events_of_tools(message)


def rewrite_prompt(tool_input: Payload, prompt: str) -> dict[str, object]:
    """How this host is told to delegate with ``prompt``: its whole input, since that is replaced whole."""
    return {"updatedInput": {**tool_input, PROMPT: prompt}}


def _pre_tool_use(message: HookPayload) -> list[Event]:
    if message.payload.get("tool_name") == "SendMessage":
        to = key_in(message.asked, "to")
        return [message.event(events.MESSAGE, host_agent_id=to, call=message.key("tool_use_id"))] if to else []
    tool_use_id = message.key("tool_use_id")
    if not _is_of_agent_tool(message) or not tool_use_id or not isinstance(message.payload.get("tool_input"), dict):
        return []
    background = message.asked.get("run_in_background")
    event = message.delegation(
        message.asked.get("prompt"),
        message.asked.get("description"),
        tool_use_id=tool_use_id,
        agent_name=_agent_name(message),
        parent_host_agent_id=message.key("agent_id"),
        background=background if isinstance(background, bool) else None,
        host_process=_host_process(),
    )
    return [event]


def _subagent_start(message: HookPayload) -> list[Event]:
    keys = _agent_keys(message)
    if not keys:
        return []
    from gaia_sessions.hosts.agent_files import transcript_of

    transcript = transcript_of(message.payload.get("transcript_path"), str(keys["host_agent_id"]))
    return [message.event(events.START, **keys, host_process=_host_process(), transcript_path=transcript)]


def _subagent_stop(message: HookPayload) -> list[Event]:
    """Compaction sends a stop of what no delegation started, with an empty ``agent_type``."""
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
    """Without an agent it is the main agent's own turn that failed; who else is running is not told then."""
    agent = message.key("agent_id")
    if not agent:
        return [message.event(events.MAIN_STOP)]
    from gaia_sessions.hosts.agent_files import delegation_of

    error = message.text("last_assistant_message") or message.text("error")
    tool_use_id = delegation_of(message.payload.get("transcript_path"), agent)
    keys = {"host_agent_id": agent, "agent_name": message.key("agent_type"), "tool_use_id": tool_use_id}
    return [message.failure(error, **keys, spoke=True)]


def _post_tool_use(message: HookPayload) -> list[Event]:
    response = message.payload.get("tool_response")
    found = response if isinstance(response, dict) else {}
    if message.payload.get("tool_name") == "TaskStop":
        agent = key_in(found, "task_id")
        return [message.failure("stopped by the main agent", host_agent_id=agent, interrupted=True)] if agent else []
    tool_use_id, agent = message.key("tool_use_id"), key_in(found, "agentId")
    if not _is_of_agent_tool(message) or not tool_use_id:
        return []
    keys = {"tool_use_id": tool_use_id, "host_agent_id": agent, "agent_name": _agent_name(message)}
    if found.get("status") == "async_launched":
        return [message.event(events.START, **keys, launch=True, background=True)] if agent else []
    return [message.event(events.RETURNED, **keys)] if found.get("status") == "completed" else []


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
    """The host tells of refused delegations nowhere else; their response is a bare text."""
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
    """The end of an agent in the background comes as a prompt; nobody typed it."""
    prompt = message.text("prompt").strip()
    if not prompt.startswith(_NOTIFICATION):
        return []
    head, _, rest = prompt.partition("<summary>")  # what the agent itself said comes later, and can be anything
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
    """The process goes on after ``/clear`` and ``/resume``, and with it every agent in the background."""
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
"""What reads which event."""

EVENTS_BY_HOOK = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("SubagentStop",), HOOK: tuple(_READERS)}
"""Which events each hook is there for."""


def _is_of_agent_tool(message: HookPayload) -> bool:
    return message.payload.get("tool_name") in _AGENT_TOOLS


def _agent_name(message: HookPayload) -> str:
    return key_in(message.asked, "subagent_type") or GENERAL


def _agent_keys(message: HookPayload) -> dict[str, object]:
    """Which agent the host tells of, and its delegation or where that will be noted; empty for none of a type."""
    agent, name = message.key("agent_id"), message.key("agent_type")
    if not agent or not name:
        return {}
    from gaia_sessions.hosts.agent_files import TOOL_USE_ID_KEY, delegation_of, meta_file_of

    transcript = message.payload.get("transcript_path")
    tool_use_id = delegation_of(transcript, agent)
    meta_file = None if tool_use_id else meta_file_of(transcript, agent)
    key_file = {"key_file": meta_file, "key_name": TOOL_USE_ID_KEY if meta_file else None}
    return {"host_agent_id": agent, "agent_name": name, "tool_use_id": tool_use_id, **key_file}


def _host_process() -> object:
    return host_process(PROGRAMS, os.environ.get(PID_VARIABLE, ""))
