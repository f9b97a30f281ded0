"""How deep a tree of sessions may grow, and how many children of one session may be at work at once.

Owns both rules and their defaults. They hold for sessions that somebody begins with gaia_sessions; what a host
delegates is recorded as it is. Pure: ``now`` and the runs of hosts that are gone are arguments.
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
"""How deep a session may be below its root, unless a session above it says otherwise."""

MAX_CHILDREN_AT_WORK = 5

TOUCHED_WITHIN = timedelta(minutes=10)
"""How long after its last activity an open session that never ran counts as one at work."""


def check_depth(parent: Record, above: Mapping[str, Record | None]) -> int:
    """The greatest depth of a session below ``parent``, which has ``above`` above it: the narrowest limit of all.

    Raises ``TooDeep`` if one more would be deeper. All are asked, since a session that got its parent late did not hand
    that one's limit to those below it.
    """
    depth, most = len(above) + 1, _narrowest(parent, above)
    if depth > most:
        raise errors.TooDeep(parent["agent_id"], depth, most)
    return most


def check_depth_of_work(record: Record, above: Mapping[str, Record | None], least: int) -> None:
    """Raises ``TooDeep`` if the agent of ``record``, which has ``above`` above it, may not work as deep as it does.

    ``least`` is the depth as its caller knows it; that of the session is another, and the greater one counts.
    """
    depth, most = max(least, len(above)), _narrowest(record, above)
    if depth > most:
        raise errors.TooDeep(None, depth, most)


def _narrowest(record: Record, above: Mapping[str, Record | None]) -> int:
    limits = [one["max_depth"] for one in (record, *above.values()) if one and "max_depth" in one]
    return min(limits, default=MAX_DEPTH)


def check_free_place(parent_id: str, at_work: list[str]) -> None:
    """Raises ``TooManyChildren`` if another child may not begin while those of ``at_work`` are not done."""
    if len(at_work) >= MAX_CHILDREN_AT_WORK:
        raise errors.TooManyChildren(parent_id, at_work, MAX_CHILDREN_AT_WORK)


def is_at_work(record: Record, now: datetime, *, dead_runs: frozenset[int]) -> bool:
    """Whether the session is open and has an agent at work, is about to get one, or never ran and was touched lately.

    ``dead_runs`` are the numbers of runs whose host is proved to be gone: they count as ended. So do sends, since a
    person waits for each of them.
    """
    if not is_open(record):
        return False
    sends = [run["run"] for run in record.get("runs", ()) if is_send(run)]
    if len(sends) < len(record.get("runs", ())):
        return has_agent(record, now, dead_runs | {*sends})
    return not sends and is_within(TOUCHED_WITHIN, parse_time(record["last_updated"]), now)
