"""Reports on sessions, and waiting until their work has ended, woken by changes of their files.

Owns when a wait is over, and how changes are noticed: by watchfiles where that is installed and finds watches free,
else by a look at the files several times a second. Must never judge a session: its report says how its work stands.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import TypedDict

from gaia_sessions.errors import BadArgument, SessionNotFound
from gaia_sessions.session.report import RUNNING
from gaia_sessions.store.root import INBOX

from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from gaia_sessions.session.report import Report

NOT_FOUND: Literal["not_found"] = "not_found"

_STEP = 50
"""Milliseconds between two looks at the files."""

_LONGEST_WAIT = 1.0
"""Seconds after which the records are read again without a change: that the process of a host has ended is in no file,
and a session above may have been cancelled."""


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
    or cancelled. A session that has never run is waited for, and one that does not exist is not. After ``timeout``
    seconds the reports say ``running`` where work goes on; without it there is no limit. Raises ``BadArgument`` for a
    timeout below 0, ``CorruptSession``, ``InvalidId``, ``StoreFailure``.
    """
    return wait(Sessions(root), agent_ids, first=first, timeout=timeout)


def wait(
    sessions: Sessions, agent_ids: Sequence[str], *, first: bool = False, timeout: float | None = None
) -> list[Report | NoReport]:
    """What ``wait_sessions`` does, in ``sessions``."""
    if timeout is not None and not timeout >= 0:
        raise BadArgument("timeout", timeout, "a number of seconds from 0")
    deadline = float("inf") if timeout is None else time.monotonic() + timeout
    changes = _changes(sessions.root, agent_ids)
    longest_wait = 0.0  # what changed between the first look and the first step is in no step: look again at once
    while True:
        reports = [_report_or_none(sessions, agent_id) for agent_id in agent_ids]
        has_ended = [report["status"] != RUNNING for report in reports]
        if all(has_ended) or (first and any(has_ended)) or time.monotonic() >= deadline:
            return reports
        _wait_for_change(changes, min(deadline, time.monotonic() + longest_wait))
        longest_wait = _LONGEST_WAIT


def _report_or_none(sessions: Sessions, agent_id: str) -> Report | NoReport:
    try:
        return sessions.report(agent_id)[0]
    except SessionNotFound:
        return {"agent_id": agent_id, "status": NOT_FOUND}


def _wait_for_change(changes: Iterator[object], deadline: float) -> None:
    """Returns after the next change, or soon after ``deadline``."""
    for change in changes:
        if change or time.monotonic() >= deadline:
            return


def _changes(root: str, agent_ids: Sequence[str]) -> Iterator[object]:
    """What has changed since the last step, or nothing if a step found no change for a moment; without end."""
    if find_spec("watchfiles") and os.path.isdir(root):
        from watchfiles import watch

        with suppress(OSError, RuntimeError):  # other programs may have all the watches that a user can have
            yield from watch(
                root, watch_filter=None, debounce=_STEP, step=_STEP, rust_timeout=_STEP * 2, yield_on_timeout=True
            )
    yield from _changes_of_folders([root, *(os.path.join(root, name) for name in (INBOX, *agent_ids))])


def _changes_of_folders(paths: Sequence[str]) -> Iterator[object]:
    """Whether names in these folders have changed: a record is replaced by another file, and a mark is a new one."""
    seen = [_changed_at(path) for path in paths]
    while True:
        time.sleep(_STEP / 1000)
        found = [_changed_at(path) for path in paths]
        yield found != seen
        seen = found


def _changed_at(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None
