"""Codex: its hook JSON as events, as seen in runs of 0.169.0. Everything in a payload is untrusted.
Every agent works in the background: ``spawn_agent`` returns at once.
"""

from __future__ import annotations

from gaia_sessions.hosts import CODEX, denial
from gaia_sessions.hosts.payload import (
    bare_event,
    host_process,
    is_key,
    key_in,
    object_in,
    one_line,
    with_addition,
)
from gaia_sessions.session import host_events
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.phases import COMPLETED
from gaia_sessions.session.schema import INTERRUPTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.hosts.payload import EventReaders, HookPayload, Payload
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event

GENERAL = "default"

_PROGRAMS = ("codex",)
# A tool's name comes bare, or with its namespace in front.
_NAMESPACES = ("", "multi_agent_v1", "collaboration")
_SPAWN, _WAIT, _CLOSE, _INTERRUPT, _WRITE = (
    frozenset(f"{namespace}{tool}" for namespace in _NAMESPACES)
    for tool in ("spawn_agent", "wait_agent", "close_agent", "interrupt_agent", "send_input")
)
_MAIN_AGENT = "/root"
"""The path of the main agent, if agents have paths."""

_MOST_AGENTS = 64
_LONGEST_RESPONSE = 1 << 20


def rewrite_prompt(tool_input: Payload, addition: str) -> dict[str, object]:
    """Returns the reply that adds ``addition`` to the prompt of a delegation."""
    # Without the decision, the addition had no effect.
    return {"permissionDecision": "allow", "updatedInput": with_addition(tool_input, "message", addition)}


def _pre_tool_use(payload: HookPayload) -> list[Event]:
    tool, tool_use_id = payload.text("tool_name"), payload.key("tool_use_id")
    if tool in _WRITE:
        to = key_in(payload.tool_input, "target")
        return [payload.event(host_events.MESSAGE, host_agent_id=to)] if to else []
    if tool not in _SPAWN or not tool_use_id or not payload.tool_input:
        return []
    keys = {
        "tool_use_id": tool_use_id,
        "agent_name": _agent_name(payload),
        "parent_host_agent_id": payload.key("agent_id"),
    }
    prompt, description = payload.tool_input.get("message"), payload.tool_input.get("task_name")
    return [payload.delegation(prompt, description, **keys, host_process=host_process(_PROGRAMS))]


def _post_tool_use(payload: HookPayload) -> list[Event]:
    tool = payload.text("tool_name")
    reader = next((read for names, read in _RETURN_READERS if tool in names), None)
    return reader(payload, _response(payload)) if reader else []


def _spawn_returned(payload: HookPayload, response: Payload) -> list[Event]:
    tool_use_id = payload.key("tool_use_id")
    if not tool_use_id:
        return []
    # The returned ID joins the agent to its delegation. With the feature ``multi_agent_v2`` the tool returns a path
    # instead, which is also in the agent's own transcript.
    agent = key_in(response, "agent_id") or key_in(response, "task_name")
    keys = {"tool_use_id": tool_use_id, "agent_name": _agent_name(payload)}
    if agent:
        return [payload.event(host_events.START, **keys, host_agent_id=agent, launch=True, background=True)]
    error = one_line(payload.text("tool_response"), MAX_MESSAGE_LENGTH) or None
    return [payload.event(host_events.DELEGATION_CLOSED, **keys, error=error)]


def _wait_returned(payload: HookPayload, response: Payload) -> list[Event]:
    # Only ``wait_agent`` reports how an agent failed. With ``multi_agent_v2`` it reports about no agent.
    states = list(object_in(response, "status").items())[:_MOST_AGENTS]
    return [event for agent, state in states if is_key(agent) for event in _agent_outcome(payload, agent, state)]


def _agent_outcome(payload: HookPayload, agent: str, state: Json) -> list[Event]:
    if state == "interrupted":
        return [_interruption(payload, agent, state)]
    if state == "shutdown":
        return [payload.failure(state, host_agent_id=agent, interrupted=True)]
    if isinstance(state, dict) and "errored" in state:
        return [payload.failure(str(state["errored"]), host_agent_id=agent)]
    if isinstance(state, dict) and "completed" in state:
        return [payload.event(host_events.NOTIFICATION, host_agent_id=agent, outcome=COMPLETED)]
    return []


def _close_returned(payload: HookPayload, response: Payload) -> list[Event]:
    agent = key_in(payload.tool_input, "target")
    if not agent or response.get("previous_status") != "running":
        return []
    return [payload.failure("closed by the main agent", host_agent_id=agent, interrupted=True)]


def _interrupt_returned(payload: HookPayload, response: Payload) -> list[Event]:
    agent = _agent_meant(payload)
    if not agent or response.get("previous_status") != "running":
        return []
    # No other event says that ``interrupt_agent`` stopped an agent.
    return [_interruption(payload, agent, "interrupted by another agent")]


def _interruption(payload: HookPayload, agent: str, how: str) -> Event:
    keys = {"host_agent_id": agent, "interrupted": True, "interruption": INTERRUPTED}
    return payload.failure(how, **keys, interrupted_at=format_time(payload.now))


def _agent_meant(payload: HookPayload) -> str | None:
    """Returns the agent that a tool acts on: its ID, its path, or its name below the agent that uses the tool."""
    target = key_in(payload.tool_input, "target")
    if not target or target.startswith("/"):
        return target
    from gaia_sessions.hosts.clients import is_conversation_id

    if is_conversation_id(target):
        return target
    path = f"{_agent(payload, 'transcript_path') or _MAIN_AGENT}/{target}"
    return path if is_key(path) else None


_RETURN_READERS: tuple[tuple[frozenset[str], Callable[[HookPayload, Payload], list[Event]]], ...] = (
    (_SPAWN, _spawn_returned),
    (_WAIT, _wait_returned),
    (_CLOSE, _close_returned),
    (_INTERRUPT, _interrupt_returned),
)


def _start(payload: HookPayload) -> list[Event]:
    agent = _agent(payload, "transcript_path")
    if not agent:
        return []
    # Only the prompt that an agent gets reports that it works again. So a start from a prompt has every key too.
    keys = {"host_agent_id": agent, "agent_name": payload.key("agent_type"), "host_process": host_process(_PROGRAMS)}
    return [payload.event(host_events.START, **keys, transcript_path=payload.text("transcript_path") or None)]


def _subagent_stop(payload: HookPayload) -> list[Event]:
    agent = _agent(payload, "agent_transcript_path")
    if not agent:
        return []
    event = payload.event(
        host_events.STOP,
        host_agent_id=agent,
        agent_name=payload.key("agent_type"),
        key_pending=True,
        after_block=payload.raw.get("stop_hook_active") is True,
        transcript_path=payload.text("agent_transcript_path") or None,
        **payload.last_message_keys(payload.text("last_assistant_message")),
    )
    return [event]


READERS: EventReaders = {
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "SubagentStart": _start,
    "UserPromptSubmit": _start,
    "SubagentStop": _subagent_stop,
    "Interrupt": bare_event(host_events.MAIN_STOP),
    "Stop": bare_event(host_events.MAIN_STOP),
    "SessionStart": bare_event(host_events.SESSION_START),
    "SessionEnd": bare_event(host_events.SESSION_END),
}


def _agent_name(payload: HookPayload) -> str:
    return key_in(payload.tool_input, "agent_type") or GENERAL


def _agent(payload: HookPayload, transcript: str) -> str | None:
    """Returns the agent's path, if it has one, else its ID."""
    agent = payload.key("agent_id")
    if not agent:
        return None
    from gaia_sessions.hosts.agent_files import first_transcript_line

    # If agents have paths, ``spawn_agent`` returned only the path.
    path = first_transcript_line(CODEX, payload.raw.get(transcript)).partition('"agent_path":"')[2].partition('"')[0]
    return path or agent


def _response(payload: HookPayload) -> Payload:
    """Returns the object that a tool returned, which this host reports as text; empty if the text is no object."""
    from gaia_sessions.errors import InvalidInput
    from gaia_sessions.jsonio import strict

    try:
        return strict.load_object(payload.text("tool_response").encode(), _LONGEST_RESPONSE)
    except InvalidInput:
        return {}


DENIES = denial
REPLIES = (host_events.DELEGATE, host_events.START, host_events.NOTIFICATION, host_events.SESSION_START)
START_EVENT = "SubagentStart"

LATE = {"end_in_files": "rollouts.end_in_rollout"}
