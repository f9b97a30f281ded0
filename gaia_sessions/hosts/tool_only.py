"""Delegations of hosts that report a sub-agent by its tool alone: one event before the tool runs, one after.

Gemini CLI and Qwen Code 0.15.10 have this in common: no event of the agent itself can be joined to its delegation. So
the agent counts as started when it is delegated, unless the delegation is refused, and what the tool returned stands
for the agent's stop.
"""

from __future__ import annotations

from gaia_sessions.session import host_events

from .payload import host_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.host_events import Event

    from .payload import EventReader, HookPayload

    Keys = dict[str, object]


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
        flags = {"reused_id": True, "unannounced": True, "host_process": host_process(programs)}
        prompt, description = payload.tool_input.get("prompt"), payload.tool_input.get("description")
        return [payload.delegation(prompt, description, **keys, **flags)]

    return read


def report_events(payload: HookPayload, report: str, **keys: object) -> list[Event]:
    """The delegation returned with ``report``, the agent's last message."""
    stop = payload.event(host_events.STOP, **keys, was_running=True, **payload.last_message_keys(report))
    return [stop, *return_events(payload, **keys)]


def return_events(payload: HookPayload, **keys: object) -> list[Event]:
    """The delegation returned, and nothing else is known: a limit may have stopped the agent."""
    return [payload.event(host_events.RETURNED, **keys, was_running=True)]


def failure_events(payload: HookPayload, error: str, keys: Keys, *, interrupted: bool = False) -> list[Event]:
    """The agent was at work when it failed or was interrupted."""
    return [payload.failure(error, **keys, was_running=True, interrupted=interrupted or None)]
