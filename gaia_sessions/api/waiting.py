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
    from threading import Thread
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


_PATIENCE = 1.0
"""How many seconds one look waits for a server: meanwhile nobody looks at another place."""

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
    watched = [_Watched(place, ids) for place, ids in asked.items()]
    pause, latest = _FIRST_PAUSE, float("inf")  # the first look checks every session
    while True:
        for each in watched:
            each.look(latest)
        found = ChainMap(*(each.found for each in watched))
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


class _Watched:
    """What was found in one place. After the first look a thread asks a server, because it may take long to answer."""

    def __init__(self, place: Place, ids: Callable[[], Iterable[str]]) -> None:
        self.found: dict[str, Found] = {}
        self._place = place
        self._ids = ids
        self._answered: float | None = None
        self._asking: Thread | None = None
        self._answers: list[dict[str, Found] | Exception] = []

    def look(self, latest: float) -> None:
        """Looks again, and leaves ``found`` as it is if a server does not answer now; raises if it is away for long."""
        if self._place.folder is not None or self._answered is None:
            self.found, self._answered = self._found_now(latest), time.monotonic()
            return
        self._ask(latest)
        if not self._answers:
            return
        answer, self._asking = self._answers.pop(), None
        if not isinstance(answer, Exception):
            self.found, self._answered = answer, time.monotonic()
        elif not isinstance(answer, StoreFailure) or time.monotonic() - self._answered > _LONGEST_OUTAGE:
            raise answer

    def _found_now(self, latest: float) -> dict[str, Found]:
        # ``ids`` may name new sessions at each look. A session that it drops may be gone, so we check it, too.
        found = {**self.found}
        at.read(self._place, _look, dict.fromkeys([*self._ids(), *found]), found, latest)
        return found

    def _ask(self, latest: float) -> None:
        """Lets a thread look, and waits for it a moment; a thread that is still at work is not started again."""
        from threading import Thread  # files need none

        if self._asking is None:
            self._asking = Thread(target=self._answer, args=[latest], daemon=True)
            self._asking.start()
        self._asking.join(min(_PATIENCE, max(0, latest - time.monotonic())))

    def _answer(self, latest: float) -> None:
        try:
            self._answers.append(self._found_now(latest))
        except Exception as error:  # noqa: BLE001  # the thread that waits raises it
            self._answers.append(error)


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
