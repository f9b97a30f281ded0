"""The end of the main agent's turn or conversation, and what it says about the agents that it started."""

from __future__ import annotations

from itertools import chain, takewhile

from gaia_sessions.session import runs
from gaia_sessions.session.run_ends import with_end, with_end_of_gone_host, with_settled_return
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST, INTERRUPTED, KILLED

from . import BUSY, EventResult
from .join import alive_in_conversation, may_be_of_host, newest_of_agent
from .many_runs import change_each_run, runs_of_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    from . import Terms
    from .join import JoinedRun, RunRule


def main_stop(store: Store, event: Event, terms: Terms) -> EventResult:
    """Settles the delegations of the turn: a delegation that never started counts as denied."""
    # An agent that the host names is alive in this conversation, and so are the agents that it started. Any other agent
    # without an end was interrupted. A delegation that was neither launched nor named was denied. If the host says
    # nothing about its agents, background agents and agents that others started stay at work.
    live = _LiveAgents(store, event, terms)
    rule = _rule_by_live_agents(store, event, live, terms) if "running" in event else _rule_without_live_agents(terms)
    if terms.should_stop():  # not all agents were looked up
        return EventResult(BUSY)
    return change_each_run(store, event, terms, rule, chain(runs_of_conversation(store, event, terms.now), live.runs()))


class _LiveAgents:
    """The agents that the host names as alive, each with its session, whichever conversation began the session."""

    def __init__(self, store: Store, event: Event, terms: Terms) -> None:
        self.event = event
        named = takewhile(lambda _: not terms.should_stop(), event.get("running", ()))
        sessions = {agent: self._session(store, agent) for agent in named}
        self.has_unknown = None in sessions.values()
        """Whether an agent is alive that no session has yet. Such an agent can belong to any delegation."""
        self.records = [(agent, record) for agent, record in sessions.items() if record]

    def _session(self, store: Store, agent: str) -> Record | None:
        return newest_of_agent(store, self.event.get("host"), self.event["host_session_id"], agent)

    def runs(self) -> Iterator[JoinedRun]:
        """Yields the runs of these agents."""
        for agent, record in self.records:
            run = runs.run_of_agent(record, self.event["host_session_id"], agent)
            if run and may_be_of_host(run, self.event):
                yield record, run

    def workflow_ids(self) -> Iterator[str]:
        """Yields the host's IDs of workflows that are alive, also the IDs from before the host resumed them."""
        for _, record in self.records:
            for run in record.get("runs", ()):
                # The agents of a resumed workflow start again one by one. Until an agent starts, nothing is known of
                # its earlier run. Its start ends that run.
                if "workflow" in run and "host_agent_id" in run:
                    yield run["host_agent_id"]


def _rule_by_live_agents(store: Store, event: Event, live: _LiveAgents, terms: Terms) -> RunRule:
    named, now = frozenset(event["running"]), terms.now
    going_on = named.union(event.get("commands", ()))
    alive = {*named, *live.workflow_ids()}
    if named:
        alive |= _with_those_they_started(store, event, terms, lambda run: run["host_agent_id"] in named)

    def rule(record: Record, run: Run) -> Record:
        agent = run.get("host_agent_id")
        if agent in named:
            return _in_background(*alive_in_conversation(record, run, event["host_session_id"], now))
        if run.get("parent_host_agent_id") in alive:
            return record
        if "own_work" in run and not runs.has_ended(run):
            return _with_end_of_wait(record, run, going_on, now)
        if not runs.has_started(run):
            return record if live.has_unknown else _with_end_before_start(record, run, terms, "never started")
        if agent is None or runs.has_ended(run) or _is_of_unknown_workflow(run):
            return with_settled_return(record, run, now)
        return with_end(record, run, KILLED, {"detail": "interrupted", "interruption": INTERRUPTED}, now)

    return rule


def _with_end_of_wait(record: Record, run: Run, going_on: Collection[str], now: datetime) -> Record:
    """Ends the wait of an agent that nobody wakes: its client is gone, or the agent was stopped or had finished."""
    from gaia_sessions.session.own_work import is_wait_over, with_end_of_wait

    if not is_wait_over(run, going_on, now):
        return record
    from gaia_sessions.hosts import end_in_files
    from gaia_sessions.hosts.evidence import written_at
    from gaia_sessions.system.processes import gone_and_reason

    is_gone = gone_and_reason(run["host_process"])[0] if "host_process" in run else False
    if is_gone:
        return with_end_of_gone_host(record, run, now, written_at(run))
    reported = end_in_files(run)
    if reported:
        return with_end(record, run, *reported, now)
    return with_end_of_wait(record, run, now, may_have_finished=is_gone is False)


def _rule_without_live_agents(terms: Terms) -> RunRule:
    def rule(record: Record, run: Run) -> Record:
        if run.get("background") or "parent_host_agent_id" in run:
            return record
        if runs.has_started(run):
            return with_settled_return(record, run, terms.now)
        return _with_end_before_start(record, run, terms, "never started")

    return rule


def _with_end_before_start(record: Record, run: Run, terms: Terms, detail: str) -> Record:
    """Ends a delegation that never started, as denied, unless its client is gone and another one reports this turn."""
    if run["run"] == 1 and "host_process" in run and not runs.has_ended(run) and not terms.is_waiting:
        from gaia_sessions.system import gone_runs  # few delegations never start

        if run["run"] in gone_runs(record):
            return with_end_of_gone_host(record, run, terms.now, None)
    return with_end(record, run, DENIED, {"detail": detail}, terms.now)


def _is_of_unknown_workflow(run: Run) -> bool:
    """Returns whether the agent belongs to a workflow whose launch was not reported, so its launcher is unknown."""
    return "key" in run.get("workflow", ()) and "parent_host_agent_id" not in run


def _in_background(record: Record, run: Run) -> Record:
    """Marks an agent that is alive when the main agent's turn ends as working in the background, however it began."""
    if runs.has_ended(run) or run.get("background"):
        return record
    return runs.with_run(record, {**run, "background": True})


def session_end(store: Store, event: Event, terms: Terms) -> EventResult:
    """Ends all agents of a conversation that is over, also those whose start was not reported."""

    def rule(record: Record, run: Run) -> Record:
        return _end_with_conversation(record, run, terms)

    return change_each_run(store, event, terms, rule, runs_of_conversation(store, event, terms.now))


def session_left(store: Store, event: Event, terms: Terms) -> EventResult:
    """Ends the agents of a conversation that is over. Its background agents continue in another conversation."""
    background_agents = _with_those_they_started(store, event, terms, lambda run: run.get("background"))

    def rule(record: Record, run: Run) -> Record:
        goes_on = run.get("background") or run.get("parent_host_agent_id") in background_agents
        return record if goes_on else _end_with_conversation(record, run, terms)

    return change_each_run(store, event, terms, rule, runs_of_conversation(store, event, terms.now))


def _with_those_they_started(store: Store, event: Event, terms: Terms, is_chosen: Callable[[Run], object]) -> set[str]:
    """Returns the agents at work here whose runs are chosen, and all agents that the chosen agents started."""
    # If the time of the call ends too early, some are missing. Then no run changes.
    parents: dict[str, str | None] = {}
    found: set[str] = set()
    for _, run in runs_of_conversation(store, event, terms.now):
        if terms.should_stop():
            break
        if "host_agent_id" in run and not runs.has_ended(run):
            parents[run["host_agent_id"]] = run.get("parent_host_agent_id")
            if is_chosen(run):
                found.add(run["host_agent_id"])
    started: dict[str | None, set[str]] = {}
    for agent, parent in parents.items():
        started.setdefault(parent, set()).add(agent)
    waiting = [*found]
    while waiting:
        more = started.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found


def _end_with_conversation(record: Record, run: Run, terms: Terms) -> Record:
    written, now, detail = None, terms.now, "the host's session ended"
    if not runs.has_ended(run):
        from gaia_sessions.hosts.evidence import written_at  # few turns end with agents at work

        record = runs.with_presumed_start(record, run, now)
        run, written = runs.updated_run(record, run), written_at(run)
    if runs.has_started(run):
        record = with_end(record, run, ENDED_WITH_HOST, {"detail": detail}, now, written)
    else:
        record = _with_end_before_start(record, run, terms, detail)
    return with_settled_return(record, runs.updated_run(record, run), now)
