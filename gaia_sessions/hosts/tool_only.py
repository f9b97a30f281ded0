"""Delegations of hosts that report a sub-agent only by its tool: one event before the tool runs, one event after it.
No event of the agent itself can be joined to its delegation (Gemini CLI, Qwen Code 0.15.10).
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
    """Returns a reader of the event before a tool runs, for hosts that report no start."""

    def read(payload: HookPayload) -> list[Event]:
        # ``keys_of`` gives no keys for another tool.
        keys = keys_of(payload)
        if not keys:
            return []
        # The agent counts as started when it is delegated, unless the delegation is refused: ``unannounced``.
        # The ID may come again (``reused_id``): an ID made of the prompt is equal for an equal prompt, and a model that
        # invents IDs may count from 0 in every turn.
        flags = {"reused_id": True, "unannounced": True, "host_process": host_process(programs)}
        prompt, description = payload.tool_input.get("prompt"), payload.tool_input.get("description")
        return [payload.delegation(prompt, description, **keys, **flags)]

    return read


def report_events(payload: HookPayload, report: str, **keys: object) -> list[Event]:
    """Returns the events of a delegation that returned with ``report``, the agent's last message."""
    # What the tool returned replaces the agent's stop, which the host does not report.
    stop = payload.event(host_events.STOP, **keys, was_running=True, **payload.last_message_keys(report))
    return [stop, *return_events(payload, **keys)]


def return_events(payload: HookPayload, **keys: object) -> list[Event]:
    """Returns the events of a delegation that returned without more: a limit may have stopped the agent."""
    return [payload.event(host_events.RETURNED, **keys, was_running=True)]


def failure_events(payload: HookPayload, error: str, keys: Keys, *, interrupted: bool = False) -> list[Event]:
    """Returns the events of an agent that was at work when it failed or was interrupted."""
    return [payload.failure(error, **keys, was_running=True, interrupted=interrupted or None)]
