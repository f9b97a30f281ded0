"""Arranges the sessions of a list below their parents, with sums, and finds the children of one session.

Records can be written by hand, so parents may form a circle.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidId, SessionNotFound, SessionsError
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.record import is_stand_in
from gaia_sessions.store.above import Above, all_below

from .listing import describe, filter_of, lines_of, list_sessions, newest_first
from .sums import sums_of, total_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import TypeAlias, Unpack

    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Reader, RecordOrError

    from .at import Reading
    from .listing import Line, Sums, Wanted

    TreeLine: TypeAlias = tuple[int, Line]
    """A level and a line."""


def tree(at: Reading, **wanted: Unpack[Wanted]) -> Sequence[TreeLine]:
    """Returns what ``list`` returns, each session below its parent.

    Takes the arguments of ``list``, and raises its errors.

    Returns:
        Pairs of a level and a summary. Level 0 is the top.
    """
    return arranged(at, **wanted)[0]


def arranged(at: Reading, **wanted: Unpack[Wanted]) -> tuple[Sequence[TreeLine], Mapping[str, int]]:
    """Returns what ``tree`` finds, and how many sessions of each app it left out."""
    sessions, now, limits = at.preview(), at.now, at.config.limits
    asked = filter_of(wanted, now)
    lines, above = list(list_sessions(sessions, asked, now, limits)), Above(sessions)
    tree = _below_parents(lines, lambda agent_id: line_of(sessions, above, agent_id, now, limits))
    return _with_sums(tree), asked.left_out


def subtree(at: Reading, agent_id: str) -> Sequence[TreeLine]:
    """Returns a session and everything below it, in the form of ``tree``."""
    # A parent that is gone has a line above the session. A session that is gone has a line if it has children.
    sessions, now, limits = at.preview(), at.now, at.config.limits
    records = list(all_below(sessions, agent_id))
    if not records:
        sessions.read(agent_id)
    above = Above(sessions)
    below = sorted(lines_of(((record["agent_id"], record) for record in records), above, now, limits), key=newest_first)
    first = line_of(sessions, above, agent_id, now, limits)
    tree = _below_parents([first, *below], lambda parent_id: line_of(sessions, above, parent_id, now, limits))
    return _with_sums(list(_from(agent_id, tree)))


def children(at: Reading, agent_id: str) -> Sequence[Line]:
    """Returns summaries of the sessions right below a session, the first created first.

    The children are found even if the session is gone. A child that cannot be read is left out.
    """
    sessions = at.preview()
    return children_of(sessions, Above(sessions), agent_id, at.now, at.config.limits)


def children_of(sessions: Reader, above: Above, agent_id: str, now: datetime, limits: Limits) -> list[Line]:
    """Returns the lines of the children; those of later versions come last."""
    found = ((record["agent_id"], record) for record in sessions.children([agent_id]))
    return sorted(lines_of(found, above, now, limits), key=_oldest_first)


def line_of(
    sessions: Reader, above: Above, agent_id: str, now: datetime, limits: Limits, known: Iterable[Record] = ()
) -> Line:
    """Returns the line of ``agent_id``, a parent that may be gone; ``known`` are records that were read before."""
    record: RecordOrError
    try:
        record = next((one for one in known if one["agent_id"] == agent_id), None) or sessions.read(agent_id)
    except InvalidId:  # somebody wrote this ID by hand
        record = SessionNotFound(agent_id)
    except SessionsError as error:
        record = error
    return describe(above, agent_id, record, now, limits)


def _oldest_first(line: Line) -> tuple[float, str]:
    created_at = line.get("created_at")
    return parse_time(created_at).timestamp() if created_at else float("inf"), line["agent_id"]


def ids_below(at: Reading, agent_id: str) -> Sequence[str]:
    """Returns the IDs of the readable sessions below ``agent_id``, level by level, without stand-ins."""
    sessions = at.preview()
    below = [*all_below(sessions, agent_id)]
    if not below:
        sessions.read(agent_id)
    return [record["agent_id"] for record in below if not is_stand_in(record)]


def _with_sums(tree: list[TreeLine]) -> list[TreeLine]:
    """Adds ``sums`` to each line: the line and all lines below it together."""
    below: dict[int, list[Sums]] = {}
    for level, line in reversed(tree):
        line["sums"] = total_of([sums_of(line), *below.pop(level + 1, ())])
        below.setdefault(level, []).append(line["sums"])
    return tree


def _from(agent_id: str, tree: Sequence[TreeLine]) -> Iterator[TreeLine]:
    """Yields the lines from ``agent_id`` down; before them only a parent that is gone."""
    start = next(number for number, (_, line) in enumerate(tree) if line["agent_id"] == agent_id)
    level, line = tree[start]
    parent_status = line.get("parent_status")
    top = level
    if parent_status == "gone":
        top = level - 1
        yield 0, tree[start - 1][1]
    elif parent_status == "excluded" and "problem" not in line:
        line = {**line}
        del line["parent_status"]
    yield level - top, line
    for below, other in tree[start + 1 :]:
        if below <= level:
            return
        yield below - top, other


def _below_parents(lines: Sequence[Line], line_of_parent: Callable[[str], Line]) -> list[TreeLine]:
    """Returns ``lines`` as a tree; ``line_of_parent`` makes the lines of parents that are not among them."""
    tree = _Tree(lines)
    for line in lines:
        tree.put_below_parents(line, line_of_parent)
    tree.break_circles()
    return list(tree.lines())


class _Tree:
    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = {line["agent_id"]: line for line in lines}
        self._ranks = {agent_id: float(number) for number, agent_id in enumerate(self._lines)}
        self._parents: dict[str, str] = {}
        self._circular: set[str] = set()

    def put_below_parents(self, line: Line, line_of_parent: Callable[[str], Line]) -> None:
        """Puts ``line`` below its parent, and so on upwards until a session is in the tree already or is gone."""
        agent_id, parent_id = line["agent_id"], line.get("parent_id")
        while isinstance(parent_id, str):
            self._parents[agent_id] = parent_id
            if parent_id in self._lines:
                return
            parent = line_of_parent(parent_id)
            parent["selected"] = False
            self._lines[parent_id] = parent
            self._ranks[parent_id] = float("inf")
            agent_id, parent_id = parent_id, parent.get("parent_id")

    def break_circles(self) -> None:
        """Breaks each circle of parents: puts the session of the circle that was listed first on top."""
        seen: set[str] = set()
        for start in self._lines:
            path: dict[str, None] = {}
            agent_id: str | None = start
            while agent_id is not None and agent_id not in seen:
                seen.add(agent_id)
                path[agent_id] = None
                agent_id = self._parents.get(agent_id)
            if agent_id in path:
                self._break_circle(list(path)[list(path).index(agent_id) :])

    def _break_circle(self, circle: list[str]) -> None:
        first = min(circle, key=self._ranks.__getitem__)
        del self._parents[first]
        self._circular.add(first)

    def lines(self) -> Iterator[TreeLine]:
        """Yields every line with its level, in the order of a tree."""
        children = self._ordered_children()
        waiting = [(0, agent_id) for agent_id in reversed(children.get(None, []))]
        while waiting:
            level, agent_id = waiting.pop()
            yield level, self._with_parent_status(self._lines[agent_id])
            waiting += [(level + 1, child) for child in reversed(children.get(agent_id, []))]

    def _ordered_children(self) -> dict[str | None, list[str]]:
        """Returns the children of each session, in the order of the first line in each branch."""
        children: dict[str | None, list[str]] = {}
        for agent_id in self._lines:
            children.setdefault(self._parents.get(agent_id), []).append(agent_id)
        downwards = list(children.get(None, []))
        for agent_id in downwards:
            downwards += children.get(agent_id, [])
        for agent_id in reversed(downwards):
            if agent_id in self._parents:
                parent_id = self._parents[agent_id]
                self._ranks[parent_id] = min(self._ranks[parent_id], self._ranks[agent_id])
        return {parent_id: sorted(below, key=self._ranks.__getitem__) for parent_id, below in children.items()}

    def _with_parent_status(self, line: Line) -> Line:
        if "problem" in line:
            return line
        if line["agent_id"] in self._circular:
            return {**line, "parent_status": "circle"}
        parent = self._lines.get(self._parents.get(line["agent_id"], ""))
        if parent is None or parent.get("selected", True):
            return line
        return {**line, "parent_status": "gone" if parent["status"] == "gone" else "excluded"}
