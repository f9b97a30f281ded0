"""Waiting until the work of sessions has ended, by looking at them again and again.

A change of the session's files is never all there is to wait for: that the process of a host has ended is in no file,
what cancels a session may stand above it, and its end may wait in the inbox.
"""

from __future__ import annotations

import time
from typing import TypedDict

from gaia_sessions.errors import BadArgument, SessionNotFound
from gaia_sessions.session.report import RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Literal, TypeAlias

    from gaia_sessions.session.report import Report

    ReportOn: TypeAlias = Callable[[str], tuple[Report, object]]

NOT_FOUND: Literal["not_found"] = "not_found"

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.7
"""Seconds between two looks: each pause is longer than the one before, since most work takes minutes."""

_GRACE = 0.2
"""Seconds for which the look at the end of the time may go on."""


class NoReport(TypedDict):
    """In place of the report on a session that does not exist."""

    agent_id: str
    status: Literal["not_found"]


def wait(
    reporter: Callable[[], ReportOn],
    agent_ids: Iterable[str],
    *,
    first: bool,
    timeout: float | None,
    hear: Callable[[Iterable[Report | NoReport]], None] | None = None,
) -> list[Report | NoReport]:
    """What ``Sessions.wait`` does; ``reporter`` is called for each look at the sessions, ``hear`` after the first."""
    if isinstance(agent_ids, str | bytes):  # or it would wait for each letter
        raise BadArgument("agent_ids", agent_ids, "a list of IDs")
    if timeout is not None and not timeout >= 0:
        raise BadArgument("timeout", timeout, "a number of seconds from 0")
    deadline = float("inf") if timeout is None else time.monotonic() + timeout
    asked = [*agent_ids]
    waited_for, pause = list(dict.fromkeys(asked)), _FIRST_PAUSE
    reports = dict(_look(reporter(), waited_for))
    if hear:
        hear(reports.values())
    while True:
        at_work = [agent_id for agent_id in waited_for if reports[agent_id]["status"] == RUNNING]
        left = deadline - time.monotonic()
        if not at_work or (first and len(at_work) < len(waited_for)) or left <= 0:
            return [reports[agent_id] for agent_id in asked]
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE)
        for agent_id, report in _look(reporter(), at_work):
            reports[agent_id] = report
            if time.monotonic() >= deadline + _GRACE:
                break


def _look(report_on: ReportOn, agent_ids: Iterable[str]) -> Iterator[tuple[str, Report | NoReport]]:
    """A report on each session, made when it is asked for."""
    for agent_id in agent_ids:
        try:
            yield agent_id, report_on(agent_id)[0]
        except SessionNotFound:
            yield agent_id, {"agent_id": agent_id, "status": NOT_FOUND}
