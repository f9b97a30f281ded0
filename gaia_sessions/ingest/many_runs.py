"""The runs of a conversation, and events that change many of them.
The runs of one session change in one write: a record may have thousands. Sessions that cannot be written are skipped.
"""

from __future__ import annotations

from itertools import chain, groupby, islice

from gaia_sessions import errors
from gaia_sessions.errors import CorruptSession, LockTimeout, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session import runs
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.updates import Change

from . import AT_ONCE, BUSY, KNOWN, EventResult
from .join import changed_run_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    from . import Terms
    from .join import JoinedRun, RunRule

    RunRef = tuple[str, int]
    """A session, and the number of its run."""


def change_each_run(
    store: Store, event: Event, terms: Terms, rule: RunRule, joined_runs: Iterable[JoinedRun]
) -> EventResult:
    """Returns ``settled`` if a session changed, ``busy`` if a change failed or time ran out, else ``known``."""
    words = {KNOWN}
    failed: SessionsError | None = None
    to_change = _runs_to_change(terms, rule, joined_runs)
    first = list(islice(to_change, AT_ONCE + 1))
    # The event is in the inbox before the first of many runs changes. The next call changes what this call leaves.
    if len(first) > AT_ONCE:
        terms.hold()
    for agent_id, run_refs in groupby(chain(first, to_change), lambda run_ref: None if run_ref is None else run_ref[0]):
        if agent_id is None:
            words.add(BUSY)
            break
        try:
            numbers = [number for _, number in filter(None, run_refs)]
            _change_runs(store, event, terms.timeout, rule, agent_id, numbers)
            words.add("settled")
        except (LockTimeout, StoreFailure, errors.DurabilityUnknown):
            words.add(BUSY)  # the event is deferred; applying it twice changes nothing
        except (SessionNotFound, CorruptSession, errors.NewerSchema):
            continue  # no run can be changed
        except SessionsError as error:
            failed = failed or error
    if failed:
        raise failed
    return EventResult(next(word for word in (BUSY, "settled", KNOWN) if word in words))


def _runs_to_change(terms: Terms, rule: RunRule, joined_runs: Iterable[JoinedRun]) -> Iterator[RunRef | None]:
    """Yields each run that ``rule`` changes, once. If the time of the call ends too early, yields None last."""
    found: set[RunRef] = set()
    record: Record | None = None
    for read, run in joined_runs:
        if terms.should_stop():
            yield None
            return
        if runs.is_own_run(run):  # no host knows about our own runs
            continue
        before = record if record and record["agent_id"] == read["agent_id"] else read  # another run of one session
        record = rule(before, runs.updated_run(before, run))
        run_ref = read["agent_id"], run["run"]
        if record is not before and run_ref not in found:
            found.add(run_ref)
            yield run_ref


def _change_runs(
    store: Store, event: Event, timeout: float, rule: RunRule, agent_id: str, numbers: Iterable[int]
) -> None:
    with store.open(agent_id, timeout=timeout) as session:
        record, entries = session.record, []
        for number in numbers:
            run = runs.run_by_number(record, number)
            changed = record if run is None else rule(record, run)
            if run is not None and changed is not record:
                record = changed
                entries.append(changed_run_entry(event, record, run))
        session.commit(Change(record, entries))


def records_of_conversation(store: Store, host_session_id: str) -> Iterator[Record]:
    """Yields the open sessions of this conversation, without those that only a later version understands."""
    for _, record in store.scan(active_only=True, host_session_id=host_session_id):
        if isinstance(record, SessionsError) or has_newer_schema(record):
            continue
        if runs.is_active(record, None, host_session_id):
            yield record


def runs_of_conversation(store: Store, event: Event, now: datetime) -> Iterator[JoinedRun]:
    """Yields the open runs and the latest run of each session of this conversation, if they began before the event."""
    for record in records_of_conversation(store, event["host_session_id"]):
        for run in record["runs"]:
            is_open_or_latest = not runs.has_ended(run) or runs.is_latest(record, run)
            in_conversation = runs.conversation_of(run) == event["host_session_id"]
            # An event that has waited says nothing about what began since.
            if is_open_or_latest and in_conversation and not began_after(run, now):
                yield record, run


def began_after(run: Run, now: datetime) -> bool:
    """Returns whether ``run`` began after ``now``: an event of that time says nothing about such a run."""
    began = runs.started_or_claimed_at(run)
    return began is not None and began > now
