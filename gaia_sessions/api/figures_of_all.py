"""Figures of all sessions: how they ended, how often they were resumed, how long they stayed in each phase.

A session counts once: by its record, or without a record by the latest line that its removal left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.errors import BadArgument, SessionsError, StoreFailure
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.figures import figures_of, read_figures
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.totals import BY_AGENT, BY_DAY, GROUPINGS, Sum
from gaia_sessions.store.above import Above

from .listing import given_moments, with_marks_known, without_stand_ins
from .standing import standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from typing import NotRequired, TypedDict

    from gaia_sessions.session.figures import Figures
    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.totals import Totals
    from gaia_sessions.store.port import Reader, RecordOrError

    from .at import Reading

    class AgentTotals(TypedDict):
        """The sessions with one agent name together."""

        agent_name: str
        totals: Totals

    class DayTotals(TypedDict):
        """The sessions that ended on one day, in local time.

        Keys:
            day: null for the sessions that have not ended.
        """

        day: str | None
        totals: Totals

    class Stats(TypedDict):
        """Figures of sessions.

        Keys:
            agents: by agent name, the name with the most sessions first.
            days: by the day of the end, the latest first; last, the sessions that have not ended.
            unread: how many other sessions cannot be read, or were written by a later version.
            unread_lines: how many lines about removed sessions cannot be read.
            removed_unread: why some lines about removed sessions were not read; absent if all were read.
        """

        total: Totals
        agents: NotRequired[list[AgentTotals]]
        days: NotRequired[list[DayTotals]]
        unread: int
        unread_lines: int
        removed_unread: NotRequired[str]


_BETWEEN_REPORTS = 250
"""How many sessions are read between two calls of ``on_read``."""


class Filter:
    """Selects sessions by their end, or their last activity while open; with ``by``, also counts them in parts."""

    def __init__(self, *, since: datetime | None = None, until: datetime | None = None, by: str | None = None) -> None:
        if by is not None and by not in GROUPINGS:
            raise BadArgument("by", by, f"one of {', '.join(GROUPINGS)}")
        self.since, self.until, self.by = since, until, by

    def accepts(self, figures: Figures) -> bool:
        """Returns whether the session of ``figures`` counts."""
        if self.since is None and self.until is None:
            return True
        moment = parse_time(figures.get("ended_at", figures["last_activity"]))
        return (self.since is None or moment >= self.since) and (self.until is None or moment <= self.until)

    def part_of(self, figures: Figures) -> str | None:
        """Returns the part in which a session counts: its agent name, or the local day of its end."""
        if self.by == BY_AGENT:
            return figures["agent_name"]
        return _local_day(figures["ended_at"]) if self.by == BY_DAY and "ended_at" in figures else None


def _local_day(timestamp: str) -> str:
    try:
        return parse_time(timestamp).astimezone().date().isoformat()
    except (OverflowError, ValueError):  # the offset leads before year 1 or after year 9999
        return timestamp[:10]


class _Sums:
    """The sums of the added sessions, in all and in parts."""

    def __init__(self, wanted: Filter) -> None:
        self._wanted = wanted
        self._total = Sum()
        self._parts: dict[str | None, Sum] = {}

    def add(self, figures: Figures, *, is_removed: bool) -> None:
        if not self._wanted.accepts(figures):
            return
        self._total.add(figures, is_removed=is_removed)
        if self._wanted.by in (BY_AGENT, BY_DAY):
            self._parts.setdefault(self._wanted.part_of(figures), Sum()).add(figures, is_removed=is_removed)

    def stats(self, unread: int, unread_lines: int) -> Stats:
        stats: Stats = {"total": self._total.totals(), "unread": unread, "unread_lines": unread_lines}
        parts = [(name, part.totals()) for name, part in self._parts.items()]
        if self._wanted.by == BY_AGENT:
            agents: list[AgentTotals] = [{"agent_name": name or "", "totals": totals} for name, totals in parts]
            stats["agents"] = sorted(agents, key=lambda agent: (-agent["totals"]["sessions"], agent["agent_name"]))
        if self._wanted.by == BY_DAY:
            days: list[DayTotals] = [{"day": day, "totals": totals} for day, totals in parts]
            stats["days"] = sorted(days, key=lambda one: one["day"] or "", reverse=True)
        return stats


def stats(
    at: Reading,
    *,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    by: str | None = None,
    on_read: Callable[[int], object] | None = None,
) -> Stats:
    """Returns [figures](figures.md#stats): how sessions ended, how often they were resumed, how long their phases took.

    Every session of every app is counted once, even if it was removed.

    Args:
        since, until: select by the end of a session, or by its last activity if it is open; both limits are included.
        by: ``"agent"`` or ``"day"`` adds figures for each agent or day; ``"phase"`` changes nothing, because every
            total has phases.
        on_read: is called now and then with the number of sessions that were read.

    Raises:
        BadArgument: ``since``, ``until`` or ``by`` is not acceptable.
    """
    wanted = Filter(by=by, **given_moments({"since": since, "until": until}, at.now))
    sessions, now, limits = at.preview(), at.now, at.config.limits
    sums, above = _Sums(wanted), Above(sessions)
    living, unread = set[str](), set[str]()
    for number, (agent_id, found) in enumerate(with_marks_known(without_stand_ins(sessions.scan()), above)):
        if on_read and number and number % _BETWEEN_REPORTS == 0:
            on_read(number)
        figures = _figures(found, above, now, limits)
        if figures is None:
            unread.add(agent_id)
            continue
        living.add(_key(figures))
        sums.add(figures, is_removed=False)
    try:
        return sums.stats(len(unread), _add_removed(sums, sessions, living, unread))
    except StoreFailure as error:
        return {**sums.stats(len(unread), 0), "removed_unread": str(error)}


def _figures(record: RecordOrError, above: Above, now: datetime, limits: Limits) -> Figures | None:
    """Returns the figures of a record; None if it cannot be read, or a later version wrote it."""
    if isinstance(record, SessionsError) or has_newer_schema(record):
        return None
    stands = standing(above.cancellation, record, now, limits)
    return figures_of(record, stands.decision, stands.state)


def _key(figures: Figures) -> str:
    return f"{figures['agent_id']} {figures['created_at']}"


def _add_removed(sums: _Sums, sessions: Reader, living: set[str], unread: set[str]) -> int:
    """Adds the removed sessions, of which only lines are left; returns how many lines cannot be read."""
    # Lines come after the records, so no session that is removed meanwhile is missed. Two reads keep memory small.
    # Two processes that remove may write in the wrong order, so the revision counts more than the order.
    latest: dict[str, tuple[int, int]] = {}
    unread_lines = 0
    for number, figures in enumerate(_lines(sessions)):
        if figures is None:
            unread_lines += 1
        elif (key := _key(figures)) not in living and figures["agent_id"] not in unread:
            latest[key] = max(latest.get(key, (0, 0)), (figures["revision"], number))
    for number, figures in enumerate(_lines(sessions) if latest else ()):
        if figures is not None and latest.get(_key(figures)) == (figures["revision"], number):
            sums.add(figures, is_removed=True)
    return unread_lines


def _lines(sessions: Reader) -> Iterator[Figures | None]:
    return map(read_figures, sessions.figures())
