"""A workflow of a host, and the agents that it starts: a session for the workflow, and one below it for each agent.
Every change runs under a lock on the workflow run: its launch and the starts of its first agents come in any order.
"""

from __future__ import annotations

from gaia_sessions.session import runs
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import NO_PURPOSE
from gaia_sessions.session.retention import check_room_for_run
from gaia_sessions.session.run_ends import with_earlier_runs_lost, with_end
from gaia_sessions.session.schema import KILLED
from gaia_sessions.session.updates import Change
from gaia_sessions.store.journal import answer_entries

from . import BUSY, KNOWN, NO_KEY, EventResult
from . import agent_start as starts
from . import delegate as delegations
from .join import changed_run_entry
from .many_runs import began_after, change_each_run, records_of_conversation
from .parent_session import KeptParent, session_of_workflow, with_parent_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    from . import Terms
    from .join import JoinedRun

_RESUMED_DETAIL = "its host resumed the work"
"""Why earlier runs count as lost: a host resumes work only if nobody is at work on it any more."""

_STOPPED_DETAIL = "stopped with its workflow"


def delegate(store: Store, event: Event, terms: Terms) -> EventResult:
    """Records that the host resumes a workflow: in its session if that is open, else in a session that continues it."""
    with store.lock_key(_lock_key(event), terms.timeout):
        if delegations.session_of_delegation(store, event):
            return EventResult(KNOWN)
        earlier = session_of_workflow(store, event["host"], event["workflow"]["run_id"])
        # No policy is asked: the host has decided to resume.
        if earlier and not is_final(earlier["phase"]):
            return EventResult("claimed", record=_with_resumed_run(store, event, earlier, terms))
        result = delegations.create_session(store, event, terms, earlier=earlier)
        return EventResult(result.word, record=result.record)  # nothing is added to the script of a workflow


def start(store: Store, event: Event, terms: Terms) -> EventResult:
    """Applies the launch of a workflow, or the start of one of the workflow's agents."""
    with store.lock_key(_lock_key(event), terms.timeout):
        if "key" in event["workflow"]:
            return _start_agent(store, event, terms)
        result = starts.start(store, event, terms)
        if result.record:
            _adopt_agents(store, result.record, event, terms.timeout)
        return result


def end_agents(store: Store, event: Event, terms: Terms, workflow: Record) -> bool:
    """Ends the agents of ``workflow`` if the workflow was killed; returns False if that must be tried again."""
    workflow_run = workflow["runs"][-1]
    if workflow_run.get("end") != KILLED:
        return True
    # The host says nothing about these agents. If the workflow was only interrupted, so were they: the host resumes
    # them with it.
    fields: Run = {"detail": _STOPPED_DETAIL}
    if "interruption" in workflow_run:
        fields["interruption"] = workflow_run["interruption"]

    def rule(record: Record, run: Run) -> Record:
        return with_end(record, run, KILLED, fields, terms.now)

    joined_runs = _agents_at_work(store, event, workflow["agent_id"], terms.now)
    return change_each_run(store, event, terms, rule, joined_runs).word != BUSY


def _agents_at_work(store: Store, event: Event, workflow_id: str, now: datetime) -> Iterator[JoinedRun]:
    """Yields the open runs of this workflow's agents that began before the event."""
    for record in records_of_conversation(store, event["host_session_id"]):
        for run in record["runs"] if record.get("parent_id") == workflow_id else ():
            if "workflow" in run and not runs.has_ended(run) and not began_after(run, now):
                yield record, run


def _lock_key(event: Event) -> tuple[str, str]:
    return "workflow", event["workflow"]["run_id"]


def _with_resumed_run(store: Store, event: Event, earlier: Record, terms: Terms) -> Record:
    def claim(record: Record) -> Change:
        claimed = runs.with_claimed_run(record, delegations.run_fields_of(event), terms.now)
        claimed = check_room_for_run(with_earlier_runs_lost(claimed, _RESUMED_DETAIL, terms.now))
        return Change(claimed, [changed_run_entry(event, claimed, claimed["runs"][-1])])

    return store.change(earlier["agent_id"], claim, timeout=terms.timeout)


def _start_agent(store: Store, event: Event, terms: Terms) -> EventResult:
    run_id, key = event["workflow"]["run_id"], event["workflow"]["key"]
    workflow = session_of_workflow(store, event["host"], run_id)
    event = _with_parent_agent(event, workflow)
    result = starts.start(store, event, terms)
    if result.word != NO_KEY or "agent_name" not in event:
        return result
    # When the host resumes a workflow, the ID of the workflow run and the agent's key stay the same. The agent's own ID
    # changes.
    earlier = session_of_workflow(store, event["host"], run_id, key)
    if earlier is None or is_final(earlier["phase"]):
        return _begin_session(store, event, terms, workflow, earlier)

    answered: list[Record] = []

    def rule(before: Record) -> Change:
        answered[:] = [before] if runs.untold_answers(before) else []
        record = with_earlier_runs_lost(runs.with_new_run(before, {}), _RESUMED_DETAIL, terms.now)
        run, fields = record["runs"][-1], starts.first_fields(event, terms.now)
        started = runs.with_start(record, run, fields, terms.now, decides=terms.config.approvals != "explicit")
        started = starts.with_question_held(started)
        entries = [*answer_entries(before, started), changed_run_entry(event, started, run)]
        return Change(with_parent_known(store, started, parent), entries)

    known = None if "parent_id" in earlier else workflow
    with KeptParent(store, known, terms.timeout, earlier["agent_id"]) as parent:
        resumed = store.change(earlier["agent_id"], rule, timeout=terms.timeout)
    return EventResult("started", record=resumed, resumed=answered[0] if answered else None)


def _begin_session(
    store: Store, event: Event, terms: Terms, workflow: Record | None, earlier: Record | None
) -> EventResult:
    """Creates a session for an agent of ``workflow``. The session continues ``earlier``, whose phase is final."""
    purpose = event.get("purpose") or (earlier["purpose"] if earlier else NO_PURPOSE)
    event, fields = {**event, "purpose": purpose}, starts.first_fields(event, terms.now)
    kept = delegations.begin_session(
        store, event, terms, starts.first_start(fields, terms.now), above=workflow, earlier=earlier
    )
    return EventResult("continued" if earlier else "created", record=kept)


def _with_parent_agent(event: Event, workflow: Record | None) -> Event:
    """Returns ``event`` with the workflow's task, if it is known, as the agent that started the event's agent."""
    task = workflow["runs"][-1].get("host_agent_id") if workflow else None
    return {**event, "parent_host_agent_id": task} if task else event


def _adopt_agents(store: Store, workflow: Record, event: Event, timeout: float) -> None:
    """Puts agents that started before the launch was reported below the session of the workflow."""
    task = event["host_agent_id"]
    records = records_of_conversation(store, event["host_session_id"])
    others = (record for record in records if record["agent_id"] != workflow["agent_id"])
    orphans = [record["agent_id"] for record in others if any(_is_orphan(run, event) for run in record["runs"])]

    def rule(record: Record) -> Record:
        for run in record["runs"]:
            if _is_orphan(run, event):
                record = runs.with_run(record, {**run, "parent_host_agent_id": task})
        return with_parent_known(store, record, parent)

    if orphans:
        with KeptParent(store, workflow, timeout) as parent:
            for agent_id in orphans:
                store.change(agent_id, rule, timeout=timeout)


def _is_orphan(run: Run, event: Event) -> bool:
    workflow = run.get("workflow", {})
    is_of_workflow = workflow.get("run_id") == event["workflow"]["run_id"] and "key" in workflow
    return is_of_workflow and not runs.has_ended(run) and "parent_host_agent_id" not in run
