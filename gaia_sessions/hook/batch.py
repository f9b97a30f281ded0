"""After a batch of tools, or a request for permission: whether the agent's next batches must be heard.

Owns that rule. ``hooks/filter.sh`` passes over the batches of an agent with a mark. What is uncertain gets none.
The mark is removed only once the record says that the agent waits, so that the batch which answers is heard; one that
is being handled meanwhile may leave its mark again, and then the answer is heard up to a minute late. Must never be
needed: a batch that is heard without need changes nothing.
"""

from __future__ import annotations

from gaia_sessions.ingest import NO_KEY
from gaia_sessions.session.events import PERMISSION_REQUEST
from gaia_sessions.session.tool_inference import HEARTBEAT_INTERVAL
from gaia_sessions.store import batch_marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from gaia_sessions.ingest import EventResult
    from gaia_sessions.session.events import Event


def update_mark(event: Event, result: EventResult, variables: Mapping[str, str], now: datetime) -> None:
    """Removes the mark of the agent that asked for a permission, or marks the one whose batch changes nothing more."""
    agent = event["host_agent_id"]
    if event["kind"] == PERMISSION_REQUEST:
        batch_marks.remove(variables, agent)
    elif _is_settled(agent, result):
        batch_marks.leave(variables, agent, now, HEARTBEAT_INTERVAL)


def _is_settled(agent: str, result: EventResult) -> bool:
    """Whether no session has the agent, or one has, was not locked, and says that nobody is waited for."""
    if result.record is None:
        return result.word == NO_KEY
    runs = result.record.get("runs", [])
    return not any("waiting" in run for run in runs if run.get("host_agent_id") == agent)
