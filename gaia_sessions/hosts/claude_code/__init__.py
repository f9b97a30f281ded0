"""Claude Code: its hook JSON as normal events.

Owns what this host calls things, as seen in runs of 2.1.197 and 2.1.330. The tool that starts a sub-agent
is ``Agent`` (``Task`` in older versions); what it tells of an agent names the agent but not its
delegation, and what it tells of a delegation does not name the agent: that both belong together is told
when the delegation returns, and by the ``meta.json`` beside the agent's transcript. Everything in a
payload is untrusted: what does not look as expected is not ours.
"""

from __future__ import annotations

import os

from gaia_sessions.hosts.payload import Told, element_in, hear, host_process, key_in, one_line
from gaia_sessions.hosts.protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.session import events
from gaia_sessions.session.phases import ABANDONED, COMPLETED, FAILED
from gaia_sessions.session.schema import LONGEST_MESSAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import Readings
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    Payload = dict[str, Json]

HOST = "claude-code"
PROGRAMS = ("claude",)
PID = "CLAUDE_PID"

GENERAL = "general-purpose"
OBEYS = frozenset([events.DELEGATE, events.START, events.RETURNED, events.NOTIFICATION, events.SESSION_START])
PROMPT = "prompt"

_AGENT_TOOLS = ("Agent", "Task")
_NOTIFICATION = "<task-notification>"
_LEFT = ("clear", "resume")
_OUTCOMES = {"completed": COMPLETED, "failed": FAILED, "killed": ABANDONED, "stopped": ABANDONED}


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else.

    tools: also of what a sub-agent does with its tools.
    """
    found = hear(HOST, _READINGS, HEARD_BY[hook], payload, config, now)
    if found or not tools:
        return found
    told = Told(HOST, payload, config, now)
    if not told.host_session_id or not told.key("agent_id") or _is_of_agent_tool(told):
        return []
    from .tools import events_of as events_of_tools

    return events_of_tools(told)


def rewritten(asked: Payload, prompt: str) -> dict[str, object]:
    """How this host is told to delegate with ``prompt``: its whole input, since that is replaced whole."""
    return {"updatedInput": {**asked, PROMPT: prompt}}


def _pre_tool_use(told: Told) -> list[Event]:
    if told.payload.get("tool_name") == "SendMessage":
        to = key_in(told.asked, "to")
        return [told.event(events.MESSAGE, host_agent_id=to, call=told.key("tool_use_id"))] if to else []
    tool_use_id = told.key("tool_use_id")
    if not _is_of_agent_tool(told) or not tool_use_id or not isinstance(told.payload.get("tool_input"), dict):
        return []
    background = told.asked.get("run_in_background")
    event = told.delegation(
        told.asked.get("prompt"),
        told.asked.get("description"),
        tool_use_id=tool_use_id,
        agent_name=_asked_name(told),
        parent_host_agent_id=told.key("agent_id"),
        background=background if isinstance(background, bool) else None,
        host_process=_process(),
    )
    return [event]


def _subagent_start(told: Told) -> list[Event]:
    keys = _keys_of_agent(told)
    if not keys:
        return []
    from gaia_sessions.hosts.agent_files import transcript_of

    transcript = transcript_of(told.payload.get("transcript_path"), str(keys["host_agent_id"]))
    return [told.event(events.START, **keys, host_process=_process(), transcript_path=transcript)]


def _subagent_stop(told: Told) -> list[Event]:
    """Compaction sends a stop of what no delegation started, with an empty ``agent_type``."""
    keys = _keys_of_agent(told)
    if not keys:
        return []
    from gaia_sessions.hosts.agent_files import first_words
    from gaia_sessions.hosts.marker import read_briefed

    transcript = told.payload.get("agent_transcript_path")
    event = told.event(
        events.STOP,
        **keys,
        told_id=None if keys["tool_use_id"] else read_briefed(first_words(transcript)),
        again=told.payload.get("stop_hook_active") is True,
        transcript_path=transcript if isinstance(transcript, str) else None,
        **told.last_words(told.text("last_assistant_message")),
    )
    return [event]


def _stop_failure(told: Told) -> list[Event]:
    """Without an agent it is the main agent's own turn that failed; who else is running is not told then."""
    agent = told.key("agent_id")
    if not agent:
        return [told.event(events.MAIN_STOP)]
    from gaia_sessions.hosts.agent_files import delegation_of

    error = told.text("last_assistant_message") or told.text("error")
    tool_use_id = delegation_of(told.payload.get("transcript_path"), agent)
    keys = {"host_agent_id": agent, "agent_name": told.key("agent_type"), "tool_use_id": tool_use_id}
    return [told.failure(error, **keys, spoke=True)]


def _post_tool_use(told: Told) -> list[Event]:
    response = told.payload.get("tool_response")
    found = response if isinstance(response, dict) else {}
    if told.payload.get("tool_name") == "TaskStop":
        agent = key_in(found, "task_id")
        return [told.failure("stopped by the main agent", host_agent_id=agent, interrupted=True)] if agent else []
    tool_use_id, agent = told.key("tool_use_id"), key_in(found, "agentId")
    if not _is_of_agent_tool(told) or not tool_use_id:
        return []
    keys = {"tool_use_id": tool_use_id, "host_agent_id": agent, "agent_name": _asked_name(told)}
    if found.get("status") == "async_launched":
        return [told.event(events.START, **keys, launch=True, background=True)] if agent else []
    return [told.event(events.RETURNED, **keys)] if found.get("status") == "completed" else []


def _post_tool_use_failure(told: Told) -> list[Event]:
    tool_use_id = told.key("tool_use_id")
    if not _is_of_agent_tool(told) or not tool_use_id:
        return []
    from gaia_sessions.hosts.agent_files import agent_of

    interrupted = told.payload.get("is_interrupt") is True or None
    agent = agent_of(told.payload.get("transcript_path"), tool_use_id)
    keys = {"tool_use_id": tool_use_id, "host_agent_id": agent, "agent_name": _asked_name(told)}
    return [told.failure(told.text("error"), **keys, interrupted=interrupted)]


def _post_tool_batch(told: Told) -> list[Event]:
    """The host tells of refused delegations nowhere else; their response is a bare text."""
    calls = told.payload.get("tool_calls")
    given = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [event for call in given for event in _refused(told, call)]


def _refused(told: Told, call: Payload) -> list[Event]:
    tool_use_id, response = key_in(call, "tool_use_id"), call.get("tool_response")
    if call.get("tool_name") not in _AGENT_TOOLS or not tool_use_id or not isinstance(response, str):
        return []
    from gaia_sessions.hosts.agent_files import agent_of

    agent = agent_of(told.payload.get("transcript_path"), tool_use_id)
    error = one_line(response, LONGEST_MESSAGE)
    return [told.event(events.OVER, tool_use_id=tool_use_id, host_agent_id=agent, error=error)]


def _user_prompt_submit(told: Told) -> list[Event]:
    """The end of an agent in the background comes as a prompt; nobody typed it."""
    prompt = told.text("prompt").strip()
    if not prompt.startswith(_NOTIFICATION):
        return []
    told_first, _, rest = prompt.partition("<summary>")  # what the agent itself said comes later, and can be anything
    agent, tool_use_id = element_in(told_first, "task-id"), element_in(told_first, "tool-use-id")
    outcome = _OUTCOMES.get(element_in(told_first, "status") or "")
    if not outcome or not (agent or tool_use_id):
        return []
    error = None if outcome == COMPLETED else one_line(rest.partition("</summary>")[0] or outcome, LONGEST_MESSAGE)
    return [told.event(events.NOTIFICATION, host_agent_id=agent, tool_use_id=tool_use_id, outcome=outcome, error=error)]


def _stop(told: Told) -> list[Event]:
    tasks = told.payload.get("background_tasks")
    if not isinstance(tasks, list):
        return [told.event(events.MAIN_STOP)]
    keys = (key_in(task, "id") for task in tasks if isinstance(task, dict))
    return [told.event(events.MAIN_STOP, running=[key for key in keys if key])]


def _session_start(told: Told) -> list[Event]:
    return [told.event(events.SESSION_START, source=told.key("source"))]


def _session_end(told: Told) -> list[Event]:
    """The process goes on after ``/clear`` and ``/resume``, and with it every agent in the background."""
    left = told.payload.get("reason") in _LEFT
    return [told.event(events.SESSION_LEFT if left else events.SESSION_END)]


_READINGS: Readings = {
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

HEARD_BY = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("SubagentStop",), HOOK: tuple(_READINGS)}
"""Which events each hook is there for."""


def _is_of_agent_tool(told: Told) -> bool:
    return told.payload.get("tool_name") in _AGENT_TOOLS


def _asked_name(told: Told) -> str:
    return key_in(told.asked, "subagent_type") or GENERAL


def _keys_of_agent(told: Told) -> dict[str, object]:
    """Which agent the host tells of, and its delegation or where that will be noted; empty for none of a type."""
    agent, name = told.key("agent_id"), told.key("agent_type")
    if not agent or not name:
        return {}
    from gaia_sessions.hosts.agent_files import KEY, delegation_of, note_of

    transcript = told.payload.get("transcript_path")
    tool_use_id = delegation_of(transcript, agent)
    note = None if tool_use_id else note_of(transcript, agent)
    noted = {"key_file": note, "key_name": KEY if note else None}
    return {"host_agent_id": agent, "agent_name": name, "tool_use_id": tool_use_id, **noted}


def _process() -> object:
    return host_process(PROGRAMS, os.environ.get(PID, ""))
