"""Claude Code: its hook JSON as events, as seen in runs of 2.1.197 and 2.1.330. Everything in a payload is untrusted.
No event names both an agent and its delegation. Two facts join them: what the delegation returned, and the
``meta.json`` beside the agent's transcript.
"""

from __future__ import annotations

import os
from itertools import islice

from gaia_sessions.hosts import denial
from gaia_sessions.hosts.payload import host_process, key_in, object_in, with_addition
from gaia_sessions.session import host_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import EventReaders, HookPayload, Payload
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.run_ends import ReportedEnd
    from gaia_sessions.session.schema import Run

GENERAL = "general-purpose"
_WORKFLOW = "Workflow"
_AGENT_TOOLS = ("Agent", "Task", _WORKFLOW)  # ``Task`` is the name of ``Agent`` in older versions
_NOTIFICATION = "<task-notification>"
_CONTINUING_REASONS = ("clear", "resume")


def rewrite_prompt(tool_input: Payload, addition: str) -> dict[str, object]:
    """Returns the reply that adds ``addition`` to the prompt of a delegation."""
    # The host replaces the whole input.
    return {"updatedInput": with_addition(tool_input, "prompt", addition)}


def end_in_files(run: Run) -> ReportedEnd | None:
    """Returns how a run ended, by the files of its workflow, or by the end of its transcript."""
    from . import interruptions, workflows

    reported = workflows.end_in_files(run) if "workflow" in run else None
    return reported or interruptions.end_in_transcript(run)


def _pre_tool_use(payload: HookPayload) -> list[Event]:
    if payload.raw.get("tool_name") == "SendMessage":
        to = key_in(payload.tool_input, "to")
        return [payload.event(host_events.MESSAGE, host_agent_id=to, call=payload.key("tool_use_id"))] if to else []
    tool_use_id = payload.key("tool_use_id")
    if not _is_of_agent_tool(payload) or not tool_use_id or not isinstance(payload.raw.get("tool_input"), dict):
        return []
    if payload.raw["tool_name"] == _WORKFLOW:
        from . import workflows

        return [workflows.delegation(payload, _host_process(payload))]
    background = payload.tool_input.get("run_in_background")
    keys = {
        "tool_use_id": tool_use_id,
        "agent_name": _agent_name(payload),
        "parent_host_agent_id": payload.key("agent_id"),
        "background": background if isinstance(background, bool) else None,
    }
    prompt, description = payload.tool_input.get("prompt"), payload.tool_input.get("description")
    return [payload.delegation(prompt, description, **keys, host_process=_host_process(payload))]


def _subagent_start(payload: HookPayload) -> list[Event]:
    from . import agents

    return agents.start(payload, _host_process(payload))


def _subagent_stop(payload: HookPayload) -> list[Event]:
    from . import agents

    return agents.stop(payload)


def _stop_failure(payload: HookPayload) -> list[Event]:
    # Without an agent, the main agent's turn failed. The payload does not say which agents are running.
    if not payload.key("agent_id"):
        return [payload.event(host_events.MAIN_STOP)]
    from . import agents

    return agents.failure(payload)


def _post_tool_use(payload: HookPayload) -> list[Event]:
    response = object_in(payload.raw, "tool_response")
    if payload.raw.get("tool_name") == "TaskStop":
        agent = key_in(response, "task_id")
        return [payload.failure("stopped by the main agent", host_agent_id=agent, interrupted=True)] if agent else []
    tool_use_id, agent = payload.key("tool_use_id"), key_in(response, "agentId")
    if not _is_of_agent_tool(payload) or not tool_use_id:
        return []
    keys = {"tool_use_id": tool_use_id, "host_agent_id": agent, "agent_name": _agent_name(payload)}
    keys["parent_host_agent_id"] = payload.key("agent_id")
    if response.get("status") == "async_launched":
        if payload.raw["tool_name"] == _WORKFLOW:
            from . import workflows

            return workflows.launch(payload)
        model = key_in(response, "resolvedModel")
        return [payload.event(host_events.START, **keys, launch=True, background=True, model=model)] if agent else []
    if response.get("status") != "completed":
        return []
    from .reported_usage import figures_of_return

    keys |= {"purpose": payload.purpose(payload.tool_input.get("description"))}
    return [payload.event(host_events.RETURNED, **keys, **figures_of_return(response))]


def _post_tool_use_failure(payload: HookPayload) -> list[Event]:
    tool_use_id = payload.key("tool_use_id")
    if not _is_of_agent_tool(payload) or not tool_use_id:
        return []
    from . import interruptions

    return [interruptions.failed_delegation(payload, tool_use_id, _agent_name(payload))]


def _permission_request(payload: HookPayload) -> list[Event]:
    agent = payload.key("agent_id")
    if not agent:
        return []
    from .tool_uses import permission_requests

    return permission_requests(payload, agent)


def _user_prompt_submit(payload: HookPayload) -> list[Event]:
    prompt = payload.text("prompt").strip()
    # The end of a background agent arrives as a prompt that nobody typed.
    if prompt.startswith(_NOTIFICATION):
        from . import notifications

        return notifications.events_of(payload, prompt)
    folder = payload.text("transcript_path").removesuffix(".jsonl") + "/subagents"
    if not os.path.isdir(folder):  # most conversations have no such folder and need no more modules
        return []
    from . import interruptions

    return interruptions.events_before_prompt(payload, folder)


def _stop(payload: HookPayload) -> list[Event]:
    tasks = payload.raw.get("background_tasks")
    if not isinstance(tasks, list):
        return [payload.event(host_events.MAIN_STOP)]
    agents: list[str] = []
    others: list[str] = []
    # A task with a command is a shell in the background, and no agent of a delegation.
    for task in islice(tasks, host_events.MOST_RUNNING):
        if isinstance(task, dict) and (key := key_in(task, "id")):
            (others if "command" in task or task.get("type") == "monitor" else agents).append(key)
    return [payload.event(host_events.MAIN_STOP, running=agents, commands=others or None)]


def _session_start(payload: HookPayload) -> list[Event]:
    return [payload.event(host_events.SESSION_START, source=payload.key("source"))]


def _session_end(payload: HookPayload) -> list[Event]:
    # After ``/clear`` and ``/resume`` the process continues, and so does every agent in the background.
    process_continues = payload.raw.get("reason") in _CONTINUING_REASONS
    return [payload.event(host_events.SESSION_LEFT if process_continues else host_events.SESSION_END)]


READERS: EventReaders = {
    "PreToolUse": _pre_tool_use,
    "SubagentStart": _subagent_start,
    "SubagentStop": _subagent_stop,
    "StopFailure": _stop_failure,
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    "PermissionRequest": _permission_request,
    "UserPromptSubmit": _user_prompt_submit,
    "Stop": _stop,
    "SessionStart": _session_start,
    "SessionEnd": _session_end,
}


def _is_of_agent_tool(payload: HookPayload) -> bool:
    return payload.raw.get("tool_name") in _AGENT_TOOLS


def _agent_name(payload: HookPayload) -> str:
    if payload.raw.get("tool_name") == _WORKFLOW:
        return _WORKFLOW.lower()
    return key_in(payload.tool_input, "subagent_type") or GENERAL


def _host_process(payload: HookPayload) -> object:
    return host_process(("claude",), payload.variables.get("CLAUDE_PID", ""))


DENIES = denial
REPLIES = (
    host_events.DELEGATE,
    host_events.START,
    host_events.RETURNED,
    host_events.NOTIFICATION,
    host_events.SESSION_START,
)
START_EVENT = "SubagentStart"
ASKS_BEFORE_TOOLS = "PreToolUse"
WAKE_ADVICE = "use SendMessage to write to the agent named in its line"

LATE = {
    "calls_seen": "calls.calls_seen",
    "consumption": "transcripts.consumption",
    "messages": "messages.messages",
    "newest_first": "messages.newest_first",
    "sent_newest_first": "messages.sent_newest_first",
    "resumption": "resumption.resumption",
    "noted_since": "agents.with_workflow",
    "work_so_far": "work_so_far.work_so_far",
    "recent_calls": "recent_calls.recent_calls",
    "stop_to_hold": "stops.stop_to_hold",
}
