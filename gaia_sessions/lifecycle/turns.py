"""The main agent's own turn: what its end, and the end of its whole session, say about the agents it started.

Owns which runs are concerned. Looks at the sessions that are not final and at no others.
"""

from __future__ import annotations

from gaia_sessions import runs
from gaia_sessions.endings import ended, settled
from gaia_sessions.errors import DurabilityUnknown, LockTimeout, SessionsError, StoreFailure
from gaia_sessions.record import has_newer_schema
from gaia_sessions.shape import DENIED, ENDED_WITH_HOST

from .done import BUSY, KNOWN, Done
from .joins import entry_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from gaia_sessions.events import Event
    from gaia_sessions.shape import Record, Run
    from gaia_sessions.stores.port import Store

    Rule = Callable[[Record, Run], Record]


def main_stop(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """The delegations of this turn are dealt with: what never started was denied, what returned is settled.

    Agents in the background, and what those delegated, go on; where the host does not say who they are, all
    that other agents delegated counts as theirs.
    """
    alive = event.get("running")
    unknown = _has_unknown(store, event)

    def goes_on(run: Run) -> bool:
        parent = run.get("parent_host_agent_id")
        if alive is None:
            return parent is not None
        return run.get("host_agent_id") in alive or parent in alive

    def rule(record: Record, run: Run) -> Record:
        if run.get("background") or goes_on(run):
            return record
        if runs.has_begun(run):
            return settled(record, run, now)
        return record if unknown else ended(record, run, DENIED, {"detail": "never started"}, now)

    return _each_run(store, event, now, timeout, rule)


def _has_unknown(store: Store, event: Event) -> bool:
    """Whether an agent is alive whose start we have not joined yet: it may be that of any delegation."""
    keys = (runs.agent_alias(event["host_session_id"], agent) for agent in event.get("running", ()))
    return any(store.find(key) is None for key in keys)


def session_end(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """The host's session is over, and every agent of it with it, whether or not its start was told of."""

    def rule(record: Record, run: Run) -> Record:
        if not runs.has_ended(run):
            record = runs.presumed_begun(record, run, now)
            run = runs.run_now(record, run)
        end = ENDED_WITH_HOST if runs.has_begun(run) else DENIED
        record = ended(record, run, end, {"detail": "the host's session ended"}, now)
        return settled(record, runs.run_now(record, run), now)

    return _each_run(store, event, now, timeout, rule)


def _each_run(store: Store, event: Event, now: datetime, timeout: float, rule: Rule) -> Done:
    """``settled`` if any session changed, ``busy`` if one that should could not be written, else ``known``."""
    words = {KNOWN}
    for agent_id, number in list(_concerned(store, event["host_session_id"], now)):
        try:
            words.add(_settle(store, event, timeout, rule, agent_id, number))
        except (LockTimeout, StoreFailure, DurabilityUnknown):  # told again, the others know it already
            words.add(BUSY)
        except SessionsError:  # gone, unreadable or of a later version: there is nothing to settle
            continue
    return Done(next(word for word in (BUSY, "settled", KNOWN) if word in words))


def _settle(store: Store, event: Event, timeout: float, rule: Rule, agent_id: str, number: int) -> str:
    def under_lock(record: Record) -> Record:
        run = runs.run_numbered(record, number)
        return record if run is None else rule(record, run)

    before = store.read(agent_id)
    if under_lock(before) is before:
        return KNOWN
    store.change(agent_id, under_lock, timeout=timeout, entry=entry_of(event, number))
    return "settled"


def _concerned(store: Store, host_session_id: str, now: datetime) -> Iterator[tuple[str, int]]:
    """The open and the latest runs of this host session; not what began after the news, which may have waited."""
    for agent_id, record in store.scan(active_only=True):
        if isinstance(record, SessionsError) or has_newer_schema(record):
            continue
        for run in record.get("runs", ()):
            began = runs.began_at(run)
            concerned = not runs.has_ended(run) or runs.is_latest(record, run)
            if concerned and run.get("host_session_id") == host_session_id and (began is None or began <= now):
                yield agent_id, run["run"]
