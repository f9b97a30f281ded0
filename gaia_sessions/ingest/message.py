"""A message to a sub-agent: noted in the session's journal, once for each call.
If the message wakes the agent, its host reports a start.
"""

from __future__ import annotations

from gaia_sessions.session import runs
from gaia_sessions.store.reading import EVENTS

from . import KNOWN, EventResult
from .join import entry_of_event, find_run, not_joined_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.store.port import Store

    from . import Terms


def message_sent(store: Store, event: Event, terms: Terms) -> EventResult:
    """Notes in the journal that somebody sent a message to the agent."""
    joined = find_run(store, event)
    if isinstance(joined, EventResult):
        return joined
    agent_id, number = joined[0]["agent_id"], joined[1]["run"]
    with store.lock_key(("message", event["host_agent_id"]), terms.timeout):
        record = store.read(agent_id)
        run = runs.run_by_number(record, number)
        if run is None:
            return not_joined_result(event)
        new_entry = entry_of_event(event, record, run, record["revision"])
        if any(_is_same_call(entry, new_entry) for entry in store.entries(agent_id, EVENTS)):
            return EventResult(KNOWN, record=record)
        store.append(agent_id, EVENTS, [new_entry], timeout=terms.timeout)
    return EventResult("noted", record=record)


def _is_same_call(entry: object, new_entry: dict[str, Json]) -> bool:
    """Returns whether ``entry`` of a journal is about the same call of a tool as ``new_entry``."""
    evidence: Json = new_entry["evidence"]
    has_call = isinstance(evidence, dict) and "call" in evidence
    return (
        has_call
        and isinstance(entry, dict)
        and (entry.get("kind"), entry.get("evidence")) == (new_entry["kind"], evidence)
    )
