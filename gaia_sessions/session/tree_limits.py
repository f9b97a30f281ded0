"""How deep a tree of sessions may be, and how many children of a session may be at work at once.

Both limits hold for sessions that somebody begins with gaia_sessions. Delegations of hosts are only recorded.
"""

from __future__ import annotations

from datetime import timedelta

from gaia_sessions import errors

from .clock import is_within, parse_time
from .record import is_open
from .runs import has_agent, is_send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from .schema import Record

MAX_DEPTH = 8
"""The greatest depth of a session below its root, unless a session above it has another limit."""

MAX_CHILDREN_AT_WORK = 5

TOUCHED_WITHIN = timedelta(minutes=10)
"""How long after its last activity an open session that never ran counts as at work."""


def check_depth(parent: Record, above: Mapping[str, Record | None]) -> int:
    """Returns the greatest allowed depth of a session below ``parent``; refuses one more level if it is too deep."""
    # All sessions above count: if a session got its parent after its children, the children lack the parent's limit.
    depth, most = len(above) + 1, _narrowest(parent, above)
    if depth > most:
        raise errors.TooDeep(parent["agent_id"], depth, most)
    return most


def check_depth_of_work(record: Record, above: Mapping[str, Record | None], least: int) -> None:
    """Refuses an agent that works deeper than allowed; the caller knows that the depth is ``least`` or more."""
    depth, most = max(least, len(above)), _narrowest(record, above)
    if depth > most:
        raise errors.TooDeep(None, depth, most)


def _narrowest(record: Record, above: Mapping[str, Record | None]) -> int:
    limits = [one["max_depth"] for one in (record, *above.values()) if one and "max_depth" in one]
    return min(limits, default=MAX_DEPTH)


def check_free_place(parent_id: str, at_work: list[str]) -> None:
    """Refuses another child while too many children are at work."""
    if len(at_work) >= MAX_CHILDREN_AT_WORK:
        raise errors.TooManyChildren(parent_id, at_work, MAX_CHILDREN_AT_WORK)


def is_at_work(record: Record, now: datetime, *, dead_runs: frozenset[int]) -> bool:
    """Whether the session has an agent at work or about to be, or never ran and was active lately."""
    if not is_open(record):
        return False
    # Sends do not count: a person waits for each of them.
    sends = [run["run"] for run in record.get("runs", ()) if is_send(run)]
    if len(sends) < len(record.get("runs", ())):
        return has_agent(record, now, dead_runs | {*sends})
    return not sends and is_within(TOUCHED_WITHIN, parse_time(record["last_updated"]), now)
