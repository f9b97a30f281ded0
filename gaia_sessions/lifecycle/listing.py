"""Which sessions there are, as summaries.

Owns the filters and the order. Holds summaries, never records: of ten thousand sessions a list keeps a
line each.
"""

from __future__ import annotations

import heapq

from gaia_sessions.clock import read_time
from gaia_sessions.errors import CorruptSession, NewerSchema, SessionsError
from gaia_sessions.phases import check_phase, is_final
from gaia_sessions.record import check_readable, has_newer_schema, summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.shape import CorruptSummary, Record, Summary
    from gaia_sessions.stores.port import Found, Store


class Filter:
    """Which sessions are wanted; empty means all. ``since`` and ``until`` bound ``created_at``, both included."""

    __slots__ = ("active_only", "agent_name", "phases", "since", "until")

    def __init__(
        self,
        *,
        active_only: bool = False,
        agent_name: str | None = None,
        phases: Iterable[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> None:
        self.active_only = active_only
        self.agent_name = agent_name
        self.phases = frozenset(check_phase(phase) for phase in phases)
        self.since = since
        self.until = until

    def wants(self, record: Record) -> bool:
        """Whether ``record`` passes."""
        return (
            not (self.active_only and is_final(record["phase"]))
            and self.agent_name in (None, record["agent_name"])
            and (not self.phases or record["phase"] in self.phases)
            and self._in_time(record)
        )

    def _in_time(self, record: Record) -> bool:
        if self.since is None and self.until is None:
            return True
        created = read_time(record["created_at"])
        return not ((self.since and created < self.since) or (self.until and created > self.until))


def list_sessions(store: Store, wanted: Filter, limit: int | None = None) -> Iterator[Summary | CorruptSummary]:
    """Summaries, the latest activity first, the first ``limit`` of them.

    A session that cannot be read passes every filter and comes first: it is never hidden by the others.
    """
    lines = _lines(store.scan(active_only=wanted.active_only, agent_name=wanted.agent_name), wanted)
    if limit is None:
        yield from sorted(lines, key=_newest_first)
    else:
        yield from heapq.nsmallest(limit, lines, key=_newest_first)


def _lines(found: Iterable[tuple[str, Found]], wanted: Filter) -> Iterator[Summary | CorruptSummary]:
    for agent_id, record in found:
        if isinstance(record, SessionsError):
            status = "corrupt" if isinstance(record, CorruptSession) else "unreadable"
            yield {"agent_id": agent_id, "status": status, "problem": str(record)}
        elif has_newer_schema(record):
            yield from _newer(agent_id, record, wanted)
        elif wanted.wants(record):
            yield summarize(record)


def _newer(agent_id: str, record: Record, wanted: Filter) -> Iterator[Summary | CorruptSummary]:
    """Of a later version's record as much as this version understands."""
    try:
        check_readable(record)
    except NewerSchema:
        yield {"agent_id": agent_id, "status": "newer", "problem": "written by a later version"}
        return
    if wanted.wants(record):
        yield {**summarize(record), "status": "newer"}


def _newest_first(line: Summary | CorruptSummary) -> tuple[float, str]:
    touched = line.get("last_updated")
    return -read_time(touched).timestamp() if touched else float("-inf"), line["agent_id"]
