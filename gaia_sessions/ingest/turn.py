"""The main agent's own turn: what its end, and the end of its conversation, say about the agents it started.

Owns which runs are concerned: those of the conversation, and those whose agents the host names. Each is settled by
itself: one that cannot be written now keeps no other from it.
"""

from __future__ import annotations

from gaia_sessions.errors import (
    CorruptSession,
    DurabilityUnknown,
    LockTimeout,
    NewerSchema,
    SessionNotFound,
    SessionsError,
    StoreFailure,
)
from gaia_sessions.session import events, runs
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.run_ends import ended, settled
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST

from .join import entry_of, find_agent, heard, is_of_host, readable
from .result import BUSY, KNOWN, Done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    Rule = Callable[[Record, Run], Record]
    RunOf = tuple[str, int]
    """A session, and the number of its run."""


def main_stop(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """The delegations of this turn are dealt with: what never started was denied, what returned is settled.

    Agents in the background, and what those delegated, go on; where the host does not say who they are, all
    that other agents delegated counts as theirs. Whoever is named is alive in this conversation.
    """
    alive = event.get("running")
    unknown = _has_unknown(store, event)

    def goes_on(run: Run) -> bool:
        parent = run.get("parent_host_agent_id")
        if alive is None:
            return parent is not None
        return parent in alive

    def rule(record: Record, run: Run) -> Record:
        if run.get("host_agent_id") in (alive or ()):
            return _at_work_beside(*heard(record, run, event["host_session_id"], now))
        if run.get("background") or goes_on(run):
            return record
        if runs.has_begun(run):
            return settled(record, run, now)
        return record if unknown else ended(record, run, DENIED, {"detail": "never started"}, now)

    concerned = dict.fromkeys([*_of_conversation(store, event, now), *_named(store, event)])
    return _each_run(store, event, timeout, rule, concerned)


def _at_work_beside(record: Record, run: Run) -> Record:
    """An agent that is alive when the main agent's turn ends works in the background, however it was started."""
    if runs.has_ended(run) or run.get("background"):
        return record
    return runs.with_run(record, {**run, "background": True})


def _has_unknown(store: Store, event: Event) -> bool:
    """Whether an agent is alive whose start we have not joined yet: it may be that of any delegation."""
    running = event.get("running", ())
    return any(find_agent(store, event.get("host"), event["host_session_id"], agent) is None for agent in running)


def session_end(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """The conversation is over, and every agent of it with it, whether or not its start was told of."""

    def rule(record: Record, run: Run) -> Record:
        return _over(record, run, now)

    return _each_run(store, event, timeout, rule, _of_conversation(store, event, now))


def session_left(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """The conversation is over, and its process goes on with another one, and so do the agents in the background."""
    going_on = _agents_in_background(store, event, now)

    def rule(record: Record, run: Run) -> Record:
        goes_on = run.get("background") or run.get("parent_host_agent_id") in going_on
        return record if goes_on else _over(record, run, now)

    return _each_run(store, event, timeout, rule, _of_conversation(store, event, now))


def _agents_in_background(store: Store, event: Event, now: datetime) -> set[str]:
    """The agents of this conversation that work in the background, and all that those delegated to."""
    parents: dict[str, str | None] = {}
    found: set[str] = set()
    for agent_id, number in _of_conversation(store, event, now):
        run = runs.run_numbered(store.read(agent_id), number)
        if run and "host_agent_id" in run and not runs.has_ended(run):
            parents[run["host_agent_id"]] = run.get("parent_host_agent_id")
            if run.get("background"):
                found.add(run["host_agent_id"])
    while more := {agent for agent, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _over(record: Record, run: Run, now: datetime) -> Record:
    if not runs.has_ended(run):
        record = runs.presumed_begun(record, run, now)
        run = runs.run_now(record, run)
    end = ENDED_WITH_HOST if runs.has_begun(run) else DENIED
    record = ended(record, run, end, {"detail": "the host's session ended"}, now)
    return settled(record, runs.run_now(record, run), now)


def _each_run(store: Store, event: Event, timeout: float, rule: Rule, concerned: Iterable[RunOf]) -> Done:
    """``settled`` if any session changed, ``busy`` if one that should could not be written, else ``known``."""
    words = {KNOWN}
    failed: SessionsError | None = None
    for agent_id, number in list(concerned):
        try:
            words.add(_settle(store, event, timeout, rule, agent_id, number))
        except (
            LockTimeout,
            StoreFailure,
            DurabilityUnknown,
        ):  # it is deferred, and applied twice it changes nothing
            words.add(BUSY)
        except (SessionNotFound, CorruptSession, NewerSchema):  # there is nothing to settle
            continue
        except SessionsError as error:
            failed = failed or error
    if failed:
        raise failed
    return Done(next(word for word in (BUSY, "settled", KNOWN) if word in words))


def _settle(store: Store, event: Event, timeout: float, rule: Rule, agent_id: str, number: int) -> str:
    def under_lock(record: Record) -> Record:
        run = runs.run_numbered(record, number)
        return record if run is None else rule(record, run)

    before = store.read(agent_id)
    run = runs.run_numbered(before, number)
    if run is None or rule(before, run) is before:
        return KNOWN
    store.change(agent_id, under_lock, timeout=timeout, entry=entry_of(event, number))
    return "settled"


def _of_conversation(store: Store, event: Event, now: datetime) -> Iterator[RunOf]:
    """The open and the latest runs of this conversation; not what began after the news, which may have waited."""
    for agent_id, record in store.scan(active_only=True, host_session_id=event["host_session_id"]):
        if isinstance(record, SessionsError) or has_newer_schema(record):
            continue
        for run in record.get("runs", ()):
            began = runs.began_at(run)
            concerned = not runs.has_ended(run) or runs.is_latest(record, run)
            here = runs.conversation_of(run) == event["host_session_id"]
            if concerned and here and (began is None or began <= now):
                yield agent_id, run["run"]


def _named(store: Store, event: Event) -> Iterator[RunOf]:
    """The runs of the agents that the host says are alive, in whichever conversation they were heard of last."""
    for agent in event.get("running", ()):
        agent_id = find_agent(store, event.get("host"), event["host_session_id"], agent)
        record = readable(store, agent_id) if agent_id else None
        run = runs.run_of_agent(record, event["host_session_id"], agent) if record else None
        if agent_id and run and is_of_host(run, event):
            yield agent_id, run["run"]


USE_CASES = {events.MAIN_STOP: main_stop, events.SESSION_END: session_end, events.SESSION_LEFT: session_left}
"""What takes in which kind of event."""
