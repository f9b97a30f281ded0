"""How deep a tree of sessions may grow, and how many children of one session may be at work at once.

Owns both rules and their defaults. They hold for sessions that somebody begins with gaia_sessions; what a host
delegates is recorded as it is. Pure: ``now`` and the runs of hosts that are gone are arguments.
"""

from __future__ import annotations

from datetime import timedelta

from gaia_sessions.errors import TooDeep, TooManyChildren

from .clock import is_within, parse_time
from .record import is_open
from .runs import has_agent

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
    limits = [record["max_depth"] for record in (parent, *above.values()) if record and "max_depth" in record]
    depth, most = len(above) + 1, min(limits, default=MAX_DEPTH)
    if depth > most:
        raise TooDeep(parent["agent_id"], depth, most)
    return most


def check_free_place(parent_id: str, at_work: list[str]) -> None:
    """Raises ``TooManyChildren`` if another child may not begin while those of ``at_work`` are not done."""
    if len(at_work) >= MAX_CHILDREN_AT_WORK:
        raise TooManyChildren(parent_id, at_work, MAX_CHILDREN_AT_WORK)


def is_at_work(record: Record, now: datetime, *, dead_runs: frozenset[int]) -> bool:
    """Whether the session is open and has an agent at work, is about to get one, or never ran and was touched lately.

    ``dead_runs`` are the numbers of runs whose host is proved to be gone: they count as ended.
    """
    if not is_open(record):
        return False
    if not record.get("runs"):
        return is_within(TOUCHED_WITHIN, parse_time(record["last_updated"]), now)
    return has_agent(record, now, dead_runs)
