"""Codex: its hook JSON as normal events.

Owns what this host calls things, as seen in runs of 0.169.0. The tool that starts a sub-agent is ``spawn_agent``,
bare or with its namespace glued on; it returns at once with the agent's id, and that joins both. Every agent works
in the background: how one failed only ``wait_agent`` says, and that one woke only the prompt it got. With the
feature ``multi_agent_v2`` the tool returns a path, which stands in the agent's own transcript, and its waiting
tells of nobody. Everything in a payload is untrusted.
"""

from __future__ import annotations

from gaia_sessions.hosts.payload import hear, host_process, is_key, key_in, one_line, only
from gaia_sessions.hosts.protocol import HOOK, PRE_DELEGATE, SUBAGENT_STOP
from gaia_sessions.session import events
from gaia_sessions.session.phases import COMPLETED
from gaia_sessions.session.schema import LONGEST_MESSAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import Readings, Told
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

    Payload = dict[str, Json]

HOST = "codex"
PROGRAMS = ("codex",)

GENERAL = "default"

OBEYS = frozenset([events.DELEGATE, events.START, events.NOTIFICATION, events.SESSION_START])
PROMPT = "message"

_NAMESPACES = ("", "multi_agent_v1", "collaboration")
_SPAWN, _WAIT, _CLOSE, _WRITE = (
    frozenset(f"{namespace}{tool}" for namespace in _NAMESPACES)
    for tool in ("spawn_agent", "wait_agent", "close_agent", "send_input")
)
_MOST_AGENTS = 64
_LONGEST_RESPONSE = 1 << 20


def events_of(hook: str, payload: Payload, config: Config, now: datetime, *, tools: bool = False) -> list[Event]:  # noqa: ARG001
    """What ``payload`` tells, as far as ``hook`` is there for it; nothing for everything else."""
    return hear(HOST, _READINGS, HEARD_BY[hook], payload, config, now)


def rewritten(asked: Payload, prompt: str) -> dict[str, object]:
    """How this host is told to delegate with ``prompt``; seen to have no effect without the decision."""
    return {"permissionDecision": "allow", "updatedInput": {**asked, PROMPT: prompt}}


def _pre_tool_use(told: Told) -> list[Event]:
    tool, tool_use_id = told.text("tool_name"), told.key("tool_use_id")
    if tool in _WRITE:
        to = key_in(told.asked, "target")
        return [told.event(events.MESSAGE, host_agent_id=to)] if to else []
    if tool not in _SPAWN or not tool_use_id or not told.asked:
        return []
    keys = {"tool_use_id": tool_use_id, "agent_name": _asked_name(told), "parent_host_agent_id": told.key("agent_id")}
    process = host_process(PROGRAMS)
    return [told.delegation(told.asked.get("message"), told.asked.get("task_name"), **keys, host_process=process)]


def _post_tool_use(told: Told) -> list[Event]:
    tool = told.text("tool_name")
    reading = next((read for names, read in _RETURNS if tool in names), None)
    return reading(told, _response(told)) if reading else []


def _spawned(told: Told, response: Payload) -> list[Event]:
    tool_use_id = told.key("tool_use_id")
    if not tool_use_id:
        return []
    agent = key_in(response, "agent_id") or key_in(response, "task_name")
    keys = {"tool_use_id": tool_use_id, "agent_name": _asked_name(told)}
    if agent:
        return [told.event(events.START, **keys, host_agent_id=agent, launch=True, background=True)]
    error = one_line(told.text("tool_response"), LONGEST_MESSAGE) or None
    return [told.event(events.OVER, **keys, error=error)]


def _waited(told: Told, response: Payload) -> list[Event]:
    status = response.get("status")
    found = list(status.items())[:_MOST_AGENTS] if isinstance(status, dict) else []
    return [event for agent, how in found if is_key(agent) for event in _became(told, agent, how)]


def _became(told: Told, agent: str, how: Json) -> list[Event]:
    if how in ("interrupted", "shutdown"):
        return [told.failure(str(how), host_agent_id=agent, interrupted=True)]
    if isinstance(how, dict) and "errored" in how:
        return [told.failure(str(how["errored"]), host_agent_id=agent)]
    if isinstance(how, dict) and "completed" in how:
        return [told.event(events.NOTIFICATION, host_agent_id=agent, outcome=COMPLETED)]
    return []


def _closed(told: Told, response: Payload) -> list[Event]:
    agent = key_in(told.asked, "target")
    if not agent or response.get("previous_status") != "running":
        return []
    return [told.failure("closed by the main agent", host_agent_id=agent, interrupted=True)]


_RETURNS: tuple[tuple[frozenset[str], Callable[[Told, Payload], list[Event]]], ...] = (
    (_SPAWN, _spawned),
    (_WAIT, _waited),
    (_CLOSE, _closed),
)


def _start(told: Told) -> list[Event]:
    """That an agent wakes is told by the prompt it got, so its new run knows nothing but what is said here."""
    agent = _agent(told, "transcript_path")
    if not agent:
        return []
    keys = {"host_agent_id": agent, "agent_name": told.key("agent_type"), "host_process": host_process(PROGRAMS)}
    return [told.event(events.START, **keys, transcript_path=told.text("transcript_path") or None)]


def _subagent_stop(told: Told) -> list[Event]:
    agent = _agent(told, "agent_transcript_path")
    if not agent:
        return []
    event = told.event(
        events.STOP,
        host_agent_id=agent,
        agent_name=told.key("agent_type"),
        unkeyed=True,
        again=told.payload.get("stop_hook_active") is True,
        transcript_path=told.text("agent_transcript_path") or None,
        **told.last_words(told.text("last_assistant_message")),
    )
    return [event]


_READINGS: Readings = {
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "SubagentStart": _start,
    "UserPromptSubmit": _start,
    "SubagentStop": _subagent_stop,
    "Interrupt": only(events.MAIN_STOP),
    "Stop": only(events.MAIN_STOP),
    "SessionStart": only(events.SESSION_START),
    "SessionEnd": only(events.SESSION_END),
}

HEARD_BY = {PRE_DELEGATE: ("PreToolUse",), SUBAGENT_STOP: ("SubagentStop",), HOOK: tuple(_READINGS)}
"""Which events each hook is there for."""


def _asked_name(told: Told) -> str:
    return key_in(told.asked, "agent_type") or GENERAL


def _agent(told: Told, transcript: str) -> str | None:
    """The agent by its id, or by its path where it has one: that is all the host tells of it when it is spawned."""
    agent = told.key("agent_id")
    if not agent:
        return None
    from gaia_sessions.hosts.agent_files import first_words

    path = first_words(told.payload.get(transcript)).partition('"agent_path":"')[2].partition('"')[0]
    return path or agent


def _response(told: Told) -> Payload:
    """What a tool returned, which this host tells as text; empty if it is no object."""
    from gaia_sessions.errors import InvalidInput
    from gaia_sessions.jsonio import strict

    try:
        return strict.load_object(told.text("tool_response").encode(), _LONGEST_RESPONSE)
    except InvalidInput:
        return {}
