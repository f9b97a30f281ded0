"""The first news of an agent that was at work before the hooks were installed counts as the start of the agent.

Its host must have noted the delegation or the workflow of the agent.
"""

from __future__ import annotations

from gaia_sessions.hosts import HOOK
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.session.host_events import START
from gaia_sessions.session.runs import HOSTS_WITH_UNIQUE_AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts import Host
    from gaia_sessions.session.host_events import Event


def starts_of_sender(payload: HookPayload, host: Host) -> list[Event]:
    """Returns the start of the agent that sent ``payload``, as its host would report it; none without a key."""
    if payload.host not in HOSTS_WITH_UNIQUE_AGENTS:
        return []
    raw = {**payload.raw, "hook_event_name": host.start_event}
    start = HookPayload(payload.host, raw, payload.config, payload.now, payload.variables)
    events = [event for event in host.events_of(HOOK, start) if event["kind"] == START and _has_key(event)]
    return [{**event, "was_running": True} for event in events if payload.is_tracked(event, host.general)]


def _has_key(event: Event) -> bool:
    return "tool_use_id" in event or "workflow" in event
