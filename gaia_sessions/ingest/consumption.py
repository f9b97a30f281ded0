"""What a run used in all, from the files of its host, after the run has ended. This is a separate write,
for which no end of a run waits. If a call has no time, the next ``reconcile`` counts. Counting twice changes nothing.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError
from gaia_sessions.hosts import consumption
from gaia_sessions.session.host_events import DELEGATE, START
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.runs import has_ended
from gaia_sessions.session.usage import span_of, uncounted_runs, with_consumed

from . import KNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypedDict

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    from . import EventResult

    class CountedRun(TypedDict):
        """A run whose usage is now known. ``run`` is its number in the session."""

        agent_id: str
        run: int


_MOST_COUNTED = 9
"""How many runs are looked at after an end: runs that cannot be counted are tried again at each call."""


def count_run_of_event(
    store: Store, event: Event, result: EventResult, is_late: Callable[[], bool], timeout: float
) -> None:
    """Counts the run that ``event`` ended, if it is the latest, and earlier runs that nobody has counted."""
    record = result.record
    if not record or not record.get("runs"):
        return
    *earlier, run = record["runs"][-_MOST_COUNTED:]
    # A run that was counted is counted again only for news.
    if event["kind"] not in (DELEGATE, START) and has_ended(run) and not ("consumed" in run and result.word == KNOWN):
        since, _ = span_of(record, run)
        counted = consumption(run, since, event["at"], is_late)
        if counted:
            _store_counted(store, record["agent_id"], run["run"], counted, timeout)
    # After a crash, earlier runs may not be counted.
    for other in earlier:
        if not is_late() and has_ended(other) and "consumed" not in other:
            count_run(store, record, other, timeout, is_late)


def count_ended_runs(store: Store) -> list[CountedRun]:
    """Counts every ended run that was not counted; returns the runs whose usage is known now."""
    counted_runs: list[CountedRun] = []
    for agent_id, record in store.scan():
        if isinstance(record, SessionsError) or has_newer_schema(record):
            continue
        counted_runs += [
            {"agent_id": agent_id, "run": run["run"]} for run in uncounted_runs(record) if count_run(store, record, run)
        ]
    return counted_runs


def count_run(
    store: Store, record: Record, run: Run, timeout: float = 0, is_late: Callable[[], bool] = lambda: False
) -> bool:
    """Stores what ``run`` used, by its host's files; returns whether it is stored. ``timeout`` is for the lock."""
    counted = consumption(run, *span_of(record, run), is_late) if "transcript_path" in run else None
    return counted is not None and _store_counted(store, record["agent_id"], run["run"], counted, timeout)


def _store_counted(store: Store, agent_id: str, number: int, counted: Run, timeout: float) -> bool:
    """Stores ``counted``, but not in room that the end of the work needs; returns whether the record has it now."""

    def rule(record: Record) -> Record:
        return with_consumed(record, number, counted)

    try:
        store.change(agent_id, rule, timeout=timeout, reserved=RESERVED_BYTES)
    except SessionsError:
        return False
    return True
