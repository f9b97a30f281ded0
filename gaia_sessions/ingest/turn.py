"""The end of the main agent's turn or conversation, and what it says about the agents that it started.

Owns which runs are concerned: those of the conversation, and those whose agents the host names. Each run is changed by
itself: one that cannot be written does not keep the others from being changed. Must never create a session.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.errors import CorruptSession, LockTimeout, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session import runs
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.run_ends import with_end, with_settled_return
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST, INTERRUPTED, KILLED

from . import BUSY, KNOWN, EventResult
from .join import alive_in_conversation, changed_run_entry, may_be_of_host, read_or_none, session_id_of_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, Store

    from . import HandlerContext
    from .join import RunRule

    RunRef = tuple[str, int]
    """A session, and the number of its run."""


def main_stop(store: Store, event: Event, context: HandlerContext) -> EventResult:
    """The delegations of this turn are over: those that never started were denied, those that returned are settled.

    An agent that the host names is alive in this conversation, and so are those that it started. Any other that has not
    ended was interrupted. If the host names none, agents in the background and those that others started go on.
    """
    live = _LiveAgents(store, event)
    if "running" in event:
        rule = _rule_by_live_agents(store, event, live, context.now)
    else:
        rule = _rule_without_live_agents(context.now)
    run_refs = dict.fromkeys([*_runs_of_conversation(store, event, context.now), *live.run_refs()])
    return change_each_run(store, event, context.timeout, rule, run_refs)


class _LiveAgents:
    """The agents that the host names as alive, each with its session, in whichever conversation that began."""

    def __init__(self, store: Store, event: Event) -> None:
        self.event = event
        ids = {agent: self._session_id(store, agent) for agent in event.get("running", ())}
        self.has_unknown = None in ids.values()
        """Whether an agent is alive that no session has yet: it may be that of any delegation."""
        found = ((agent, read_or_none(store, agent_id)) for agent, agent_id in ids.items() if agent_id)
        self.records = [(agent, record) for agent, record in found if record]

    def _session_id(self, store: Store, agent: str) -> str | None:
        return session_id_of_agent(store, self.event.get("host"), self.event["host_session_id"], agent)

    def run_refs(self) -> Iterator[RunRef]:
        """The runs of these agents."""
        for agent, record in self.records:
            run = runs.run_of_agent(record, self.event["host_session_id"], agent)
            if run and may_be_of_host(run, self.event):
                yield record["agent_id"], run["run"]

    def workflow_ids(self) -> Iterator[str]:
        """The host's ids of the workflows among them, also those from before it resumed them.

        The agents of a resumed workflow start again one by one, each in its turn. Until then nothing is known of the
        earlier run of an agent; its start ends that run.
        """
        for _, record in self.records:
            for run in record.get("runs", ()):
                if "workflow" in run and "host_agent_id" in run:
                    yield run["host_agent_id"]


def _rule_by_live_agents(store: Store, event: Event, live: _LiveAgents, now: datetime) -> RunRule:
    named = event["running"]
    alive = _with_those_they_started(store, event, now, lambda run: run["host_agent_id"] in named)
    alive.update(named, live.workflow_ids())

    def rule(record: Record, run: Run) -> Record:
        agent = run.get("host_agent_id")
        if agent in named:
            return _in_background(*alive_in_conversation(record, run, event["host_session_id"], now))
        if run.get("parent_host_agent_id") in alive:
            return record
        if not runs.has_started(run):
            may_start = run.get("background") or live.has_unknown
            return record if may_start else with_end(record, run, DENIED, {"detail": "never started"}, now)
        if agent is None or runs.has_ended(run) or _is_of_unknown_workflow(run):
            return with_settled_return(record, run, now)
        return with_end(record, run, KILLED, {"detail": "interrupted", "interruption": INTERRUPTED}, now)

    return rule


def _rule_without_live_agents(now: datetime) -> RunRule:
    def rule(record: Record, run: Run) -> Record:
        if run.get("background") or "parent_host_agent_id" in run:
            return record
        if runs.has_started(run):
            return with_settled_return(record, run, now)
        return with_end(record, run, DENIED, {"detail": "never started"}, now)

    return rule


def _is_of_unknown_workflow(run: Run) -> bool:
    """Whether ``run`` is of an agent of a workflow whose launch was not reported yet: the host names only that."""
    return "key" in run.get("workflow", ()) and "parent_host_agent_id" not in run


def _in_background(record: Record, run: Run) -> Record:
    """An agent that is alive when the main agent's turn ends works in the background, however it was started."""
    if runs.has_ended(run) or run.get("background"):
        return record
    return runs.with_run(record, {**run, "background": True})


def session_end(store: Store, event: Event, context: HandlerContext) -> EventResult:
    """The conversation is over, and so is every agent of it, whether its start was reported or not."""

    def rule(record: Record, run: Run) -> Record:
        return _end_with_conversation(record, run, context.now)

    return change_each_run(store, event, context.timeout, rule, _runs_of_conversation(store, event, context.now))


def session_left(store: Store, event: Event, context: HandlerContext) -> EventResult:
    """The conversation is over; its process continues with another one, as do the agents in the background."""
    background_agents = _with_those_they_started(store, event, context.now, lambda run: run.get("background"))

    def rule(record: Record, run: Run) -> Record:
        goes_on = run.get("background") or run.get("parent_host_agent_id") in background_agents
        return record if goes_on else _end_with_conversation(record, run, context.now)

    return change_each_run(store, event, context.timeout, rule, _runs_of_conversation(store, event, context.now))


def _with_those_they_started(store: Store, event: Event, now: datetime, is_chosen: Callable[[Run], object]) -> set[str]:
    """The agents at work in this conversation whose runs are chosen, and all that were started by those."""
    parents: dict[str, str | None] = {}
    found: set[str] = set()
    for agent_id, number in _runs_of_conversation(store, event, now):
        run = runs.run_by_number(store.read(agent_id), number)
        if run and "host_agent_id" in run and not runs.has_ended(run):
            parents[run["host_agent_id"]] = run.get("parent_host_agent_id")
            if is_chosen(run):
                found.add(run["host_agent_id"])
    while more := {agent for agent, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _end_with_conversation(record: Record, run: Run, now: datetime) -> Record:
    if not runs.has_ended(run):
        record = runs.with_presumed_start(record, run, now)
        run = runs.updated_run(record, run)
    end = ENDED_WITH_HOST if runs.has_started(run) else DENIED
    record = with_end(record, run, end, {"detail": "the host's session ended"}, now)
    return with_settled_return(record, runs.updated_run(record, run), now)


def change_each_run(
    store: Store, event: Event, timeout: float, rule: RunRule, run_refs: Iterable[RunRef]
) -> EventResult:
    """``settled`` if any session changed, ``busy`` if one that should could not be written, else ``known``."""
    words = {KNOWN}
    failed: SessionsError | None = None
    for agent_id, number in list(run_refs):
        try:
            words.add(_change_run(store, event, timeout, rule, agent_id, number))
        except (LockTimeout, StoreFailure, errors.DurabilityUnknown):
            words.add(BUSY)  # the event is deferred, and applying it twice changes nothing
        except (SessionNotFound, CorruptSession, errors.NewerSchema):
            continue  # no run can be changed
        except SessionsError as error:
            failed = failed or error
    if failed:
        raise failed
    return EventResult(next(word for word in (BUSY, "settled", KNOWN) if word in words))


def _change_run(store: Store, event: Event, timeout: float, rule: RunRule, agent_id: str, number: int) -> str:
    def under_lock(record: Record) -> tuple[Record, Entry | None]:
        run = runs.run_by_number(record, number)
        changed = record if run is None else rule(record, run)
        return changed, None if run is None or changed is record else changed_run_entry(event, changed, run)

    before = store.read(agent_id)
    run = runs.run_by_number(before, number)
    if run is None or rule(before, run) is before:
        return KNOWN
    store.change(agent_id, under_lock, timeout=timeout)
    return "settled"


def records_of_conversation(store: Store, host_session_id: str) -> Iterator[Record]:
    """The open sessions with a run in this conversation, apart from those that only a later version understands."""
    for _, record in store.scan(active_only=True, host_session_id=host_session_id):
        if isinstance(record, SessionsError) or has_newer_schema(record):
            continue
        if any(runs.conversation_of(run) == host_session_id for run in record.get("runs", ())):
            yield record


def _runs_of_conversation(store: Store, event: Event, now: datetime) -> Iterator[RunRef]:
    """The open runs and the latest run of each session of this conversation, but none that began after the event.

    An event may have waited, and says nothing about what began since.
    """
    for record in records_of_conversation(store, event["host_session_id"]):
        for run in record["runs"]:
            began = runs.started_or_claimed_at(run)
            is_open_or_latest = not runs.has_ended(run) or runs.is_latest(record, run)
            in_conversation = runs.conversation_of(run) == event["host_session_id"]
            if is_open_or_latest and in_conversation and (began is None or began <= now):
                yield record["agent_id"], run["run"]
