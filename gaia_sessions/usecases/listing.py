"""Lists the sessions as summaries.

Owns the filters, the order and the form of a summary. Must never hold the records: of ten thousand sessions it keeps a
summary each.
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime

from gaia_sessions.errors import BadArgument, CorruptSession, NewerSchema, SessionsError
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.phases import check_phase, is_final
from gaia_sessions.session.policy import is_running, resume_summary
from gaia_sessions.session.record import check_readable, has_newer_schema

from .resume import decide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import NotRequired, TypedDict, final

    from gaia_sessions.session.policy import Decision, Limits, ResumeSummary
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Reader, RecordOrError

    @final
    class Summary(TypedDict):
        """One session in a list. running: whether an agent is at work on it, as far as can be determined."""

        agent_id: str
        agent_name: str
        purpose: str
        phase: str
        status: str
        created_at: str
        last_updated: str
        resume_ready: bool
        error_count: int
        resume: ResumeSummary
        running: bool
        denied: NotRequired[bool]

    @final
    class CorruptSummary(TypedDict):
        agent_id: str
        status: str
        problem: str


class Filter:
    """Which sessions are listed; by default all. ``since`` and ``until`` bound ``created_at``, both included.

    Each may be a time, which is UTC if it has no offset, or a text in a form that records have. Raises
    ``UnknownPhase``, ``BadArgument``.
    """

    __slots__ = ("active_only", "agent_name", "phases", "since", "until")

    def __init__(
        self,
        *,
        active_only: bool = False,
        agent_name: str | None = None,
        phases: Iterable[str] = (),
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> None:
        self.active_only = active_only
        self.agent_name = agent_name
        self.phases = frozenset(check_phase(phase) for phase in phases)
        self.since = _parse_time(since, "since")
        self.until = _parse_time(until, "until")

    def matches(self, record: Record) -> bool:
        """Whether ``record`` passes the filter."""
        return (
            not (self.active_only and is_final(record["phase"]))
            and self.agent_name in (None, record["agent_name"])
            and (not self.phases or record["phase"] in self.phases)
            and self._in_time(record)
        )

    def _in_time(self, record: Record) -> bool:
        if self.since is None and self.until is None:
            return True
        created = parse_time(record["created_at"])
        return not ((self.since and created < self.since) or (self.until and created > self.until))


def _parse_time(value: datetime | str | None, name: str) -> datetime | None:
    if value is None:
        return None
    try:
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return parse_time(value)
    except (ValueError, OverflowError):
        raise BadArgument(name, value, "a datetime, or a text like 2026-01-08T18:05:30Z") from None


def list_sessions(
    sessions: Reader, wanted: Filter, now: datetime, limits: Limits, limit: int | None = None
) -> Iterator[Summary | CorruptSummary]:
    """The first ``limit`` summaries, the latest activity first.

    A session that cannot be read passes every filter and comes last, because its last activity is not known.
    """
    found = sessions.scan(active_only=wanted.active_only, agent_name=wanted.agent_name)
    lines = _summaries(found, wanted, now, limits)
    if limit is None:
        yield from sorted(lines, key=_newest_first)
    else:
        yield from heapq.nsmallest(limit, lines, key=_newest_first)


def summarize(record: Record, decision: Decision) -> Summary:
    """The summary of ``record``; ``status`` is ``active`` or ``final``, and ``denied`` is there only after a denial."""
    line: Summary = {
        "agent_id": record["agent_id"],
        "agent_name": record["agent_name"],
        "purpose": record["purpose"],
        "phase": record["phase"],
        "status": "final" if is_final(record["phase"]) else "active",
        "created_at": record["created_at"],
        "last_updated": record["last_updated"],
        "resume_ready": record["resume_ready"],
        "error_count": record["error_count"],
        "resume": resume_summary(decision),
        "running": is_running(decision),
    }
    if "denial" in record:
        line["denied"] = True
    return line


def _summaries(
    found: Iterable[tuple[str, RecordOrError]], wanted: Filter, now: datetime, limits: Limits
) -> Iterator[Summary | CorruptSummary]:
    for agent_id, record in found:
        if isinstance(record, SessionsError):
            status = "corrupt" if isinstance(record, CorruptSession) else "unreadable"
            yield {"agent_id": agent_id, "status": status, "problem": str(record)}
        elif has_newer_schema(record) and not _is_readable(record):
            yield {"agent_id": agent_id, "status": "newer", "problem": "written by a later version"}
        elif wanted.matches(record):
            line = summarize(record, decide(agent_id, record, now, limits))
            yield {**line, "status": "newer"} if has_newer_schema(record) else line


def _is_readable(record: Record) -> bool:
    """Whether this version understands the record of a later one."""
    try:
        check_readable(record)
    except NewerSchema:
        return False
    return True


def _newest_first(line: Summary | CorruptSummary) -> tuple[float, str]:
    last_updated = line.get("last_updated")
    return -parse_time(last_updated).timestamp() if last_updated else float("inf"), line["agent_id"]
