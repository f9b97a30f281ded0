"""Finds the sessions above and below a session, and the earliest mark above that cancels it.

Each parent and each mark is read once per call, so an object serves one call only. Records can be written by hand, so
parents can form a circle.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.errors import StoreFailure
from gaia_sessions.session.record import check_readable, parent_id_of

from . import cancellation_or_unread, read_if_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gaia_sessions.session.cancellation import Cancellation, MarkOf
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.trace import Trace

    from .port import Reader, ReaderAbove

    Known = tuple["MarkOf | None", str | None, int]
    """Facts about a session: the first mark that cancels all below it, its topmost ID (None in a circle), its depth."""

_NOBODY: Known = None, None, -1


def all_below(sessions: Reader, agent_id: str) -> Iterator[Record]:
    """Yields the record of each session below ``agent_id`` once, level by level."""
    level, seen = [agent_id], {agent_id}
    while level:
        below = [record for record in sessions.children(level) if record["agent_id"] not in seen]
        level = [record["agent_id"] for record in below]
        seen.update(level)
        yield from below


def all_that_limit(sessions: Reader, record: Record) -> list[Record]:
    """Returns ``record`` and the records above it that exist, the nearest first: each can limit the agent."""
    check_readable(record)
    family = [record]
    for agent_id, above in sessions.ancestors(record).items() if "parent_id" in record else ():
        try:
            family.append(above or sessions.read(agent_id))
        except (errors.SessionNotFound, errors.InvalidId):
            continue
        check_readable(family[-1])
    return family


def continuing(sessions: Reader, earlier: Record) -> Record:
    """Returns keys for a session that continues ``earlier``: the ID of ``earlier``, and the tools of its agent."""
    kept: Record = {"continues": earlier["agent_id"]}  # type: ignore[typeddict-item]  # some keys of a record
    family = all_that_limit(sessions, earlier)
    # The limits of the sessions above count too: the new session may be below other sessions, or below none.
    if any("allowed_tools" in one for one in family):
        from gaia_sessions.session.tools import ToolRules, usable_tools  # few agents are limited

        kept["allowed_tools"] = usable_tools(family, ToolRules()) or []
    return kept


def continuing_anyway(sessions: Reader, earlier: Record) -> Record:
    """Returns what ``continuing`` returns; if the limits cannot be read, allows no tools instead of raising."""
    try:
        return continuing(sessions, earlier)
    except (errors.CorruptSession, errors.NewerSchema, errors.StoreFailure):
        return {"continues": earlier["agent_id"], "allowed_tools": []}  # type: ignore[typeddict-item]  # as above


class Above:
    """Knows what is above the sessions of one call, as each was when this object first read it."""

    __slots__ = ("_below", "_known", "_marks", "_parents", "_sessions")

    def __init__(self, sessions: ReaderAbove) -> None:
        self._sessions = sessions
        self._parents: dict[str, str | None] = {}
        self._marks: dict[str, MarkOf | None] = {}
        self._known: dict[str | None, Known] = {None: _NOBODY}
        self._below: dict[str, dict[str, bool]] = {}

    def know(self, records: Iterable[Record]) -> None:
        """Notes the parent of each of ``records``, and looks for the marks of all of them at once."""
        agent_ids = []
        for record in records:
            agent_ids.append(record["agent_id"])
            self.know_parent(record)
        self._look_for_marks(agent_ids)

    def know_parent(self, record: Record) -> str | None:
        """Notes the parent of ``record`` and returns it."""
        return self._parents.setdefault(record["agent_id"], parent_id_of(record))

    def _look_for_marks(self, agent_ids: Iterable[str]) -> None:
        new = [agent_id for agent_id in agent_ids if agent_id not in self._marks]
        if new:
            self._marks |= {**dict.fromkeys(new), **{marked[0]: marked for marked in self._sessions.marks(new)}}

    def cancellation(self, record: Record) -> Cancellation | None:
        """Returns why the session of ``record`` is cancelled; if a mark cannot be read, it counts as cancelled."""
        return cancellation_or_unread(lambda: self.proved_cancellation(record))

    def proved_cancellation(self, record: Record) -> Cancellation | None:
        """Returns what ``cancellation`` returns, for a writer; raises ``StoreFailure`` if a mark cannot be read."""
        agent_id = record["agent_id"]
        self.know_parent(record)
        self._follow(agent_id)
        own, above = self._marks.get(agent_id), self._known[self._parents[agent_id]][0]
        marks = [found for found in (own, above) if found]
        if not marks:
            return None
        from gaia_sessions.session.cancellation import cancellation_of

        return cancellation_of(agent_id, marks)

    def handed_down(self, agent_id: str) -> MarkOf | None:
        """Returns the first mark that cancels everything below this session, and the session that has the mark."""
        self._follow(agent_id)
        return self._known[agent_id][0]

    def place(self, record: Record) -> tuple[str, int] | None:
        """Returns the topmost session above ``record``, and how many are above; None if none is, or if unknown."""
        if parent_id_of(record) is None:
            return None
        self.know_parent(record)
        depth = self.depth(record["agent_id"])
        root_id = self._known[record["agent_id"]][1] if depth else None
        return None if root_id is None else (root_id, depth)

    def depth(self, agent_id: str) -> int:
        """Returns how many sessions are above this one; 0 if that is unknown, or if they form a circle."""
        try:
            if self.parent_of(agent_id) is None:
                return 0
            self._follow(agent_id)
        except StoreFailure:
            return 0
        return self._known[agent_id][2]

    def root_id(self, record: Record) -> str:
        """Returns the topmost session above ``record``; the ID of ``record`` if none is above, or if unknown."""
        place = self.place(record)
        return place[0] if place else record["agent_id"]

    def trace(self, record: Record) -> Trace:
        """Returns the trace of the session of ``record``."""
        from gaia_sessions.session.trace import trace_of  # no hook needs one

        return trace_of(self.root_id(record))

    def is_below(self, record: Record, agent_id: str) -> bool:
        """Returns whether ``agent_id`` is above the session of ``record``; False if that is unknown."""
        known = self._below.setdefault(agent_id, {agent_id: True})
        path, is_below = [], False
        try:
            for one in self.ids_above(record) if record["agent_id"] != agent_id else ():
                if one in known:
                    is_below = known[one]
                    break
                path.append(one)
        except StoreFailure:
            return False
        known.update(dict.fromkeys(path, is_below))
        return is_below

    def ids_above(self, record: Record) -> Iterator[str]:
        """Yields the IDs of all sessions above ``record``, the parent first, each once, even in a circle."""
        seen: set[str] = set()
        current = parent_id_of(record)
        while current is not None and current not in seen:
            seen.add(current)
            yield current
            current = self.parent_of(current)

    def _follow(self, agent_id: str) -> None:
        """Follows the parents of ``agent_id`` up to a session that is known, or around a circle one time."""
        path: dict[str, None] = {}
        current: str | None = agent_id
        while current is not None and current not in self._known and current not in path:
            path[current] = None
            current = self.parent_of(current)
        self._look_for_marks(path)
        upwards = [*path]
        if current in path:
            start = upwards.index(current)
            self._know_circle(upwards[start:])
            del upwards[start:]
        for one in reversed(upwards):
            mark, root_id, depth = self._known[self._parents[one]]
            if self._parents[one] is None:
                root_id = one
            self._known[one] = self._first([self._marks.get(one), mark]), root_id, depth + 1

    def _know_circle(self, circle: Sequence[str]) -> None:
        """Notes that each session of a circle is above all others in the circle."""
        mark = self._first([self._marks.get(one) for one in circle])
        self._known.update(dict.fromkeys(circle, (mark, None, 0)))

    @staticmethod
    def _first(marks: Sequence[MarkOf | None]) -> MarkOf | None:
        if not any(marks):
            return None
        from gaia_sessions.session.cancellation import first_mark  # few sessions are cancelled

        return first_mark(filter(None, marks))

    def parent_of(self, agent_id: str) -> str | None:
        """Returns the parent of a session; None if the session has none, is gone or is corrupt."""
        if agent_id not in self._parents:
            record = read_if_readable(self._sessions, agent_id)
            self._parents[agent_id] = None if record is None else parent_id_of(record)
        return self._parents[agent_id]
