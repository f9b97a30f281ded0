"""Delegations of hosts that report a sub-agent by its tool alone: one event before the tool runs, one after.

Qwen Code, Gemini CLI, Factory and Copilot have this in common: no event of the agent itself can be joined to its
delegation. So the agent counts as started when it is delegated, unless the delegation is refused, and what the tool
returned stands for the agent's stop.
"""

from __future__ import annotations

from gaia_sessions.session import events
from gaia_sessions.session.ids import MARKER_OPENING

from .marker import BRIEFING
from .payload import host_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.events import Event

    from .payload import EventReader, HookPayload

    Keys = dict[str, object]

_CONTENT_PREFIX = "content-"


def delegation_reader(keys_of: Callable[[HookPayload], Keys], programs: tuple[str, ...]) -> EventReader:
    """Reads the event before a tool runs as a delegation, after which the host reports no start.

    keys_of: which delegation a payload is about, empty if it is about another tool. programs: what runs the host's
    agents. The key of a delegation may come again: one that was made of a prompt is equal for an equal prompt, and a
    model that invents ids may count from 0 in every turn.
    """

    def read(payload: HookPayload) -> list[Event]:
        keys = keys_of(payload)
        if not keys:
            return []
        flags = {"recurring": True, "unannounced": True, "host_process": host_process(programs)}
        prompt, description = payload.tool_input.get("prompt"), payload.tool_input.get("description")
        return [payload.delegation(prompt, description, **keys, **flags)]

    return read


def report_events(payload: HookPayload, report: str, **keys: object) -> list[Event]:
    """The delegation returned with ``report``, the agent's last message."""
    stop = payload.event(events.STOP, **keys, worked=True, **payload.last_message_keys(report))
    return [stop, *return_events(payload, **keys)]


def return_events(payload: HookPayload, **keys: object) -> list[Event]:
    """The delegation returned, and nothing else is known: a limit may have stopped the agent."""
    return [payload.event(events.RETURNED, **keys, worked=True)]


def failure_events(payload: HookPayload, error: str, keys: Keys, *, interrupted: bool = False) -> list[Event]:
    """The agent was at work when it failed or was interrupted."""
    return [payload.failure(error, **keys, worked=True, interrupted=interrupted or None)]


def delegation_keys(payload: HookPayload, tools: tuple[str, ...], agent_name: str | None) -> Keys:
    """The keys of the delegation that ``payload`` is about; empty if it is not about one of ``tools``.

    The delegation is known by the host's id, or where there is none, by the agent's name and the prompt.
    """
    prompt = payload.tool_input.get("prompt")
    if payload.raw.get("tool_name") not in tools or not agent_name or not isinstance(prompt, str):
        return {}
    return {"tool_use_id": _host_tool_use_id(payload) or content_key(agent_name, prompt), "agent_name": agent_name}


def _host_tool_use_id(payload: HookPayload) -> str | None:
    """The host's id, unless it has the form of a ``content_key``."""
    tool_use_id = payload.key("tool_use_id")
    return None if tool_use_id and tool_use_id.startswith(_CONTENT_PREFIX) else tool_use_id


def content_key(agent_name: str, prompt: str) -> str:
    """What stands for the id of a delegation where the host gives none: equal for equal words.

    What our hooks add to the end of a prompt does not count: a host may report the return with the rewritten prompt.
    """
    from gaia_sessions.session.ids import short_digest

    content = "\0".join((agent_name, _without_additions(prompt)))
    return f"{_CONTENT_PREFIX}{short_digest(content.encode())}"


def _without_additions(prompt: str) -> str:
    while (shorter := _without_last_addition(prompt)) != prompt:
        prompt = shorter
    return prompt


def _without_last_addition(prompt: str) -> str:
    """An addition ends the prompt and is complete; the same words elsewhere are part of the prompt."""
    from .marker import END_OF_DATA, NOTE

    if prompt.endswith(f"\n\n{NOTE}"):
        return prompt.removesuffix(f"\n\n{NOTE}")
    if not prompt.endswith(f"\n{END_OF_DATA}"):
        return prompt
    return prompt.rpartition(f"\n\n{MARKER_OPENING} {BRIEFING} ")[0] or prompt
