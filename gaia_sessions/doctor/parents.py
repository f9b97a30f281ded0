"""The check of parents: parents form no circle, and all sessions above an open session exist and can be read."""

from __future__ import annotations

from gaia_sessions.errors import plural

from .findings import first_few, ok, problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from .findings import Finding
    from .inspection import Inspection


def parents(inspection: Inspection) -> Finding:
    """Checks whether every open session has all sessions above it, and no session is above itself."""
    records = inspection.records
    circular = sorted(_in_circles(records.parents))
    below = sorted(records.active & records.parents.keys())
    known = set(inspection.store.ids()) - records.corrupt.keys() if below else set()
    missing = _missing(records.parents, below, known)
    if not circular and not missing:
        return ok("parents", f"{plural(len(records.parents), 'session')} below another one")
    found = [f"parents that form a circle: {first_few(circular)}"] if circular else []
    if missing:
        pairs = (f"{agent_id} (below {gone})" for agent_id, gone in missing.items())
        text = "open sessions below a gone or unreadable session, so a cancellation from above cannot reach them"
        found.append(f"{text}; finalize or cancel each: {first_few(pairs)}")
    return problem("parents", "; ".join(found), None)


def _in_circles(parents: Mapping[str, str]) -> set[str]:
    """Returns the sessions that are above themselves. Follows each parent once."""
    circular: set[str] = set()
    seen: set[str] = set()
    for start in parents:
        path = []
        current = start
        while current in parents and current not in seen:
            seen.add(current)
            path.append(current)
            current = parents[current]
        if current in path:
            circular.update(path[path.index(current) :])
    return circular


def _missing(parents: Mapping[str, str], below: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """Returns the sessions in ``below`` that have an unknown session above them, each with the unknown session."""
    tops: dict[str, str] = {}
    for start in below:
        path = {start: None}
        current = start
        while current in parents and current not in tops and parents[current] not in path:
            current = parents[current]
            path[current] = None
        tops.update(dict.fromkeys(path, tops.get(current, current)))
    return {agent_id: tops[agent_id] for agent_id in below if tops[agent_id] not in known}
