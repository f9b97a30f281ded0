"""The sessions that a delegation named without resuming one, found again when its report comes.

Owns which run remembers them, and how they are read. What is told of them is in ``speech``.
"""

from __future__ import annotations

from gaia_sessions.errors import CorruptSession, SessionNotFound
from gaia_sessions.session.ids import is_agent_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

_KEYS = ("tool_use_id", "host_agent_id")
"""The delegation comes first: the agent may have been woken since, for something else."""


def mentioned_sessions(store: Store, record: Record, event: Event) -> tuple[list[Record], list[str]]:
    """Records of the sessions that the delegation reported by ``event`` named, and the named ids that do not exist."""
    records: list[Record] = []
    missing: list[str] = []
    for agent_id in filter(is_agent_id, _mentioned_ids(record, event)):
        try:
            records.append(store.read(agent_id))
        except SessionNotFound:
            missing.append(agent_id)
        except CorruptSession:  # ``list`` shows it, and nothing resumes it
            continue
    return records, missing


def _mentioned_ids(record: Record, event: Event) -> list[str]:
    for key in _KEYS:
        value = event.get(key)
        found = [run for run in record["runs"] if value is not None and run.get(key) == value]
        if found:
            return found[-1].get("mentioned", [])
    return []
