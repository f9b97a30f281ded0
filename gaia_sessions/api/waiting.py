"""Waits until the work of sessions has ended: looks at the sessions again and again.

To watch files is not enough: no file changes when a host's process ends.
"""

from __future__ import annotations

import time
from collections import ChainMap, deque
from typing import TypedDict

from gaia_sessions.errors import BadArgument, SessionNotFound, StoreFailure
from gaia_sessions.session.report import RUNNING

from . import at
from .reporting import reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Literal, TypeAlias

    from gaia_sessions.session.report import Report

    from .at import Place, Reading
    from .standing import Standing

    Found: TypeAlias = tuple[Report | "NoReport", Standing | None]

NOT_FOUND: Literal["not_found"] = "not_found"

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.7
"""Seconds between two looks; each pause is longer than the one before, because most work takes minutes."""

_GRACE = 0.2
"""How many seconds the last look may take beyond the limit."""


_LONGEST_OUTAGE = 90.0
"""How many seconds a server may be away while somebody waits: as long as a run goes on then."""


class NoReport(TypedDict):
    """Replaces the report on a session that does not exist."""

    agent_id: str
    status: Literal["not_found"]


def wait(
    place: Place, agent_ids: Iterable[str], *, first: bool = False, timeout: float | None = None
) -> Sequence[Report | NoReport]:
    """Waits until the work of all sessions has ended.

    The work has ended when the latest [run](record.md#runs) has ended, in any phase, or the session is final or
    cancelled. If a session never had a run, for example because your own program works on it, ``wait`` waits for the
    end or the cancellation of the session, even if that program was killed.

    Args:
        first: returns when the work of one session has ended.
        timeout: the longest wait in seconds; None means no limit. Every session is checked at least once, even if the
            check takes longer.

    Returns:
        A report on each session, in the order of ``agent_ids``. Its ``status`` is ``running`` if the work has not
        ended, and ``not_found`` if there is no such session.

    Raises:
        BadArgument: ``timeout`` is below 0, or ``agent_ids`` is a text and not a sequence.

    Example:
        agent_id = sessions.create("reviewer")
        [report] = sessions.wait([agent_id], timeout=1)
        print(report["status"])
    """
    if isinstance(agent_ids, str | bytes):  # each letter of a text would be an ID
        raise BadArgument("agent_ids", agent_ids, "a list of IDs")
    if timeout is not None and not timeout >= 0:
        raise BadArgument("timeout", timeout, "a number of seconds from 0")
    asked = [*agent_ids]
    [found] = deque(looks({place: lambda: asked}, first=first, timeout=timeout), maxlen=1)
    return [found[agent_id][0] for agent_id in asked]


def looks(
    asked: Mapping[Place, Callable[[], Iterable[str]]], *, first: bool = False, timeout: float | None = None
) -> Iterator[Mapping[str, Found]]:
    """Yields what each look finds, until all have ended (with ``first``, until one has) or the time is up.

    asked: by place, what names the sessions there at each look. If two places have an ID, the first one counts.
    """
    deadline = float("inf") if timeout is None else time.monotonic() + timeout
    found_by_place: dict[Place, dict[str, Found]] = {place: {} for place in asked}
    found = ChainMap(*found_by_place.values())
    pause, latest = _FIRST_PAUSE, float("inf")  # the first look checks every session
    looked = dict.fromkeys(asked, float("-inf"))
    while True:
        for place, own in found_by_place.items():
            # ``asked`` may name new sessions at each look. A session that it drops may be gone, so we check it, too.
            try:
                at.read(place, _look, dict.fromkeys([*asked[place](), *own]), own, latest)
                looked[place] = time.monotonic()
            except StoreFailure:
                if place.folder is not None or time.monotonic() - looked[place] > _LONGEST_OUTAGE:
                    raise
        yield found
        at_work = sum(map(is_at_work, found.values()))
        left = deadline - time.monotonic()
        if not at_work or (first and at_work < len(found)) or left <= 0:
            return
        time.sleep(min(pause, left))
        pause, latest = min(pause * 1.5, _LONGEST_PAUSE), deadline + _GRACE


def is_at_work(found: Found) -> bool:
    """Returns whether the work of the session has not ended."""
    return found[0]["status"] == RUNNING


def _look(at: Reading, agent_ids: Iterable[str], found: dict[str, Found], latest: float) -> None:
    """Puts the reports on unfinished sessions into ``found``; after the time ``latest``, checks no further session."""
    report_on = reporter(at)
    for agent_id in agent_ids:
        if agent_id in found and not is_at_work(found[agent_id]):
            continue
        try:
            found[agent_id] = report_on(agent_id)
        except SessionNotFound:
            found[agent_id] = {"agent_id": agent_id, "status": NOT_FOUND}, None
        if time.monotonic() >= latest:
            return
