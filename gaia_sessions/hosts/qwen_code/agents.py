"""Qwen Code's events about a sub-agent itself, as seen in runs of 0.24.4. 0.15.10 has no such keys, so its events about
agents are ignored. The return of a foreground delegation must not be read here.
"""

from __future__ import annotations

from gaia_sessions.hosts.payload import host_process, key_in
from gaia_sessions.session import host_events
from gaia_sessions.session.phases import ABANDONED, COMPLETED, FAILED, is_success

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import HookPayload, Payload
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event

_OUTCOMES = {"completed": COMPLETED, "failed": FAILED, "cancelled": ABANDONED}


def delegation(payload: HookPayload, keys: dict[str, object], programs: tuple[str, ...]) -> Event:
    """Returns a delegation whose start will be reported; ``keys`` are the keys of the delegation."""
    background = payload.tool_input.get("run_in_background")
    return payload.delegation(
        payload.tool_input.get("prompt"),
        payload.tool_input.get("description"),
        **keys,
        parent_host_agent_id=payload.key("agent_id"),
        background=background if isinstance(background, bool) else None,
        host_process=host_process(programs),
    )


def launch(payload: HookPayload, keys: dict[str, object], agent_name: str | None) -> list[Event]:
    """Returns the start for a delegation that returned at once: its agent continues in the background."""
    if not agent_name:
        return []
    # The ID of an agent is its type and the ID of the call that started it. No two calls that run have the same ID.
    agent = f"{agent_name}-{keys['tool_use_id']}"
    return [payload.event(host_events.START, **keys, host_agent_id=agent, launch=True, background=True)]


def start(payload: HookPayload, programs: tuple[str, ...]) -> list[Event]:
    """Returns the start of an agent, or its start again after a message woke it."""
    keys = _keys(payload)
    if not keys or "prompt_id" not in payload.raw:
        return []
    return [payload.event(host_events.START, **keys, host_process=host_process(programs))]


def stop(payload: HookPayload) -> list[Event]:
    """Returns the stop of an agent in the background."""
    keys, transcript = _keys(payload), payload.text("agent_transcript_path")
    # An agent in the foreground has no transcript of its own. Its stop is ignored: the return of its delegation says
    # the same, and whether the agent reached a limit.
    if not keys or "background_tasks" not in payload.raw or transcript == payload.text("transcript_path"):
        return []
    end: dict[str, object] = {
        "after_block": payload.raw.get("stop_hook_active") is True,
        "transcript_path": transcript or None,
        **payload.last_message_keys(payload.text("last_assistant_message")),
    }
    return [payload.event(host_events.STOP, **keys, **end)]


def main_stop(payload: HookPayload, tasks: list[Json]) -> list[Event]:
    """Returns the end of the main agent's turn. ``tasks`` are all tasks of the conversation, also ended ones."""
    listed = [task for task in tasks[-host_events.MOST_RUNNING :] if isinstance(task, dict) and key_in(task, "id")]
    running = [key_in(task, "id") for task in listed if task.get("status") == "running"]
    ends = [event for task in listed for event in _ends(payload, task)]
    return [*ends, payload.event(host_events.MAIN_STOP, running=running)]


def _ends(payload: HookPayload, task: Payload) -> list[Event]:
    """Returns the end of a background agent, by the agent's task."""
    # Nothing else reports the failure of a background agent. If the agent did its work, its stop says more.
    outcome = _OUTCOMES.get(key_in(task, "status") or "")
    if not outcome:
        return []
    keys = {"host_agent_id": key_in(task, "id"), "agent_name": key_in(task, "agent_type"), "outcome": outcome}
    return [payload.event(host_events.NOTIFICATION, **keys, has_message=False if is_success(outcome) else None)]


def _keys(payload: HookPayload) -> dict[str, object]:
    """Returns the agent and its delegation; empty if the agent's ID is not made of its type and the ID of a call."""
    agent, name = payload.key("agent_id"), payload.key("agent_type")
    if not agent or not name or not agent.startswith(f"{name}-"):
        return {}
    return {"host_agent_id": agent, "agent_name": name, "tool_use_id": agent.removeprefix(f"{name}-") or None}
