"""Reports on sessions, and waiting until their work has ended, by looking at them again and again.

A change of the session's files is never all there is to wait for: that the process of a host has ended is in no file,
what cancels a session may stand above it, and its end may wait in the inbox.
"""

from __future__ import annotations

import time
from typing import TypedDict

from gaia_sessions.errors import BadArgument, SessionNotFound
from gaia_sessions.session.report import RUNNING

from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Literal

    from gaia_sessions.session.report import Report

NOT_FOUND: Literal["not_found"] = "not_found"

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.7
"""Seconds between two looks: each pause is longer than the one before, since most work takes minutes."""

_GRACE = 0.2
"""Seconds for which the look at the end of the time may go on."""


class NoReport(TypedDict):
    """In place of the report on a session that does not exist."""

    agent_id: str
    status: Literal["not_found"]


def session_report(agent_id: str, *, root: str | None = None) -> Report:
    """How the work of a session stands or ended, in one shape for every end; a key that does not apply is None.

    ``{schema, status, agent_id, task_id, phase, result, error, note, timeout_secs, hard_timeout_secs, elapsed_secs,
    tokens, max_tokens, iterations, todos, recent_messages}``; ``status`` is ``success``, ``error``, ``cancelled`` or
    ``running``. Writes nothing. Raises ``SessionNotFound``, ``CorruptSession``, ``NewerSchema``, ``InvalidId``,
    ``StoreFailure``.
    """
    return Sessions(root).report(agent_id)[0]


def wait_sessions(
    agent_ids: Sequence[str], *, first: bool = False, timeout: float | None = None, root: str | None = None
) -> list[Report | NoReport]:
    """Waits until the work of all sessions has ended, or of the ``first`` of them, and returns a report on each.

    The work of a session has ended with its latest run, whatever phase that leaves it in; and when the session is final
    or cancelled. A session that has never run is waited for, and one that does not exist is not. One that has ended is
    not looked at again. After ``timeout`` seconds the reports say ``running`` where work goes on; without it there is
    no limit. Every session is reported on as it was found when the wait began, however long that takes; of the looks
    after that, the last stops a fraction of a second after the time, and what it did not reach is reported as it was
    found before. Raises ``BadArgument`` for a timeout below 0 and for one text, ``CorruptSession``, ``InvalidId``,
    ``StoreFailure``.
    """
    return wait(Sessions(root), agent_ids, first=first, timeout=timeout)


def wait(
    sessions: Sessions, agent_ids: Sequence[str], *, first: bool = False, timeout: float | None = None
) -> list[Report | NoReport]:
    """What ``wait_sessions`` does, in ``sessions``."""
    if isinstance(agent_ids, str | bytes):  # or it would wait for each letter
        raise BadArgument("agent_ids", agent_ids, "a list of IDs")
    if timeout is not None and not timeout >= 0:
        raise BadArgument("timeout", timeout, "a number of seconds from 0")
    deadline = float("inf") if timeout is None else time.monotonic() + timeout
    waited_for, pause = list(dict.fromkeys(agent_ids)), _FIRST_PAUSE
    reports = dict(_look(sessions, waited_for))
    while True:
        at_work = [agent_id for agent_id in waited_for if reports[agent_id]["status"] == RUNNING]
        left = deadline - time.monotonic()
        if not at_work or (first and len(at_work) < len(waited_for)) or left <= 0:
            return [reports[agent_id] for agent_id in agent_ids]
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE)
        for agent_id, report in _look(sessions, at_work):
            reports[agent_id] = report
            if time.monotonic() >= deadline + _GRACE:
                break


def _look(sessions: Sessions, agent_ids: Iterable[str]) -> Iterator[tuple[str, Report | NoReport]]:
    """A report on each session, made when it is asked for."""
    report_on = sessions.reporter()
    for agent_id in agent_ids:
        try:
            yield agent_id, report_on(agent_id)[0]
        except SessionNotFound:
            yield agent_id, {"agent_id": agent_id, "status": NOT_FOUND}
