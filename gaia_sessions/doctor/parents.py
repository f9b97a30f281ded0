"""The check of what records say of the sessions above them.

Owns what is a problem there: parents that form a circle, and an open session without all the sessions above it, since
nobody can tell any more whether one of those was cancelled. Must never write anything.
"""

from __future__ import annotations

from gaia_sessions.errors import plural

from .findings import first_few, ok, problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .findings import Finding
    from .inspection import Inspection


def parents(inspection: Inspection) -> Finding:
    """Whether every open session has all the sessions above it, and no session is above itself."""
    above = inspection.records.above
    circular = sorted(agent_id for agent_id in above if _is_above_itself(agent_id, above))
    missing = _missing(inspection)
    if not circular and not missing:
        return ok("parents", f"{plural(len(above), 'session')} below another one")
    found = [f"parents that form a circle: {first_few(circular)}"] if circular else []
    if missing:
        pairs = (f"{agent_id} (below {', '.join(gone)})" for agent_id, gone in missing.items())
        text = "open sessions below one that is gone, so that it cannot cancel them; finalize or cancel each"
        found.append(f"{text}: {first_few(pairs)}")
    return problem("parents", "; ".join(found), None)


def _is_above_itself(agent_id: str, above: Mapping[str, list[str]]) -> bool:
    current, seen = agent_id, set()
    while current in above and current not in seen:
        seen.add(current)
        current = above[current][0]
        if current == agent_id:
            return True
    return False


def _missing(inspection: Inspection) -> dict[str, list[str]]:
    """The open sessions above which one is gone, each with those that are gone."""
    records = inspection.records
    wanted = {agent_id: records.above[agent_id] for agent_id in sorted(records.active & records.above.keys())}
    existing = set(inspection.store.ids()) if wanted else set()
    gone = {agent_id: [one for one in above if one not in existing] for agent_id, above in wanted.items()}
    return {agent_id: found for agent_id, found in gone.items() if found}
