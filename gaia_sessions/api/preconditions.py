"""Checks before a process of ours works on a session or continues it: for cancellation, gone runs, and its own run."""

from __future__ import annotations

from gaia_sessions.errors import Cancelled, RunGone
from gaia_sessions.hosts.evidence import written_at
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.own_runs import at_work, check_may_be_continued
from gaia_sessions.session.phases import is_abandoned
from gaia_sessions.session.record import is_open
from gaia_sessions.session.run_ends import with_end_of_gone_host
from gaia_sessions.session.runs import has_ended, is_own_run, is_send, run_by_number, updated_run
from gaia_sessions.session.updates import Change
from gaia_sessions.store import subagent_events
from gaia_sessions.store.above import Above
from gaia_sessions.store.journal import RECONCILE, event_entry
from gaia_sessions.system import gone_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import OpenSession, Reader, Store


def refuse_if_cancelled(store: Store, record: Record) -> None:
    """Raises ``Cancelled`` if the session is cancelled."""
    cancellation = Above(store).proved_cancellation(record)
    if cancellation is not None:
        raise Cancelled(record["agent_id"], **cancellation)


def refuse_cancelled_work(session: OpenSession) -> None:
    """Raises ``Cancelled`` if the session is cancelled, unless its work ended before the cancellation."""
    cancellation = session.cancellation()
    if cancellation is not None and (is_open(session.record) or is_abandoned(session.record["phase"])):
        raise Cancelled(session.record["agent_id"], **cancellation)


def check_no_send(record: Record) -> Record:
    """Returns ``record``; raises ``AgentAtWork`` during a send."""
    sends = {run["run"] for run in record.get("runs", ()) if is_send(run) and not has_ended(run)}
    if sends - gone_runs(record):
        raise at_work(record["agent_id"])
    return record


def ended_session(store: Store, agent_id: str, now: datetime, *, even_cancelled: bool = False) -> Record:
    """Returns the session to continue; raises ``RunNotAllowed`` unless it has ended."""
    with store.open(agent_id) as session:
        if not even_cancelled:
            refuse_if_cancelled(store, session.record)
        record = session.commit(with_lost_runs(store, session.record, gone_runs(session.record), now))
    check_may_be_continued(record, now)
    return record


def own_run(record: Record, begun: Run) -> Run:
    """Returns the ``begun`` run as it is in ``record``; raises ``RunGone`` if another run has its number."""
    # A session that was created again or restored may have another run with this number.
    run = run_by_number(record, begun["run"])
    if run is None or any(run.get(key) != begun.get(key) for key in ("wrapper", "started_at")):
        raise RunGone(record["agent_id"], begun["run"])
    return run


def with_lost_runs(store: Reader, before: Record, lost: Collection[int], now: datetime) -> Change:
    """Returns ``before`` with an end for the runs with the numbers ``lost``, and the journal entries."""
    record, entries = before, []
    for run in [run for run in before.get("runs", ()) if run["run"] in lost]:
        record = with_end_of_gone_host(record, run, now, written_at(run))
        if is_own_run(run):
            entries.append(subagent_events.lost(store, before, record, run, now))
        else:
            evidence = subagent_events.pid_of(run)
            closed = updated_run(record, run)
            entries.append(event_entry(format_time(now), RECONCILE, closed, record, before["revision"] + 1, evidence))
    return Change(record, entries)
