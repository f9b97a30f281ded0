"""A delegation that was not reported, because the hooks were installed while its agent was at work.
Look-up and creation run under the lock of the delegation, so no agent is recorded twice.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError
from gaia_sessions.session import runs
from gaia_sessions.session.concluded_ends import with_agent_in_conversation
from gaia_sessions.session.host_events import FAIL, RETURNED, START, STOP
from gaia_sessions.session.record import NO_PURPOSE, has_newer_schema
from gaia_sessions.session.updates import Change

from . import EventResult
from .agent_start import first_start
from .delegate import begin_session
from .join import changed_run_entry, find_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    from . import Terms

_KINDS = (START, STOP, FAIL, RETURNED)
_RUN_FIELDS = (
    *("host", "host_session_id", "host_agent_id", "tool_use_id", "parent_host_agent_id", "host_process"),
    *("background", "enforced", "transcript_path"),
)


def may_be_missed(event: Event) -> bool:
    """Returns whether ``event`` is enough to record its agent: on hosts with unique agents, ID, type and a key."""
    if event["kind"] not in _KINDS or event.get("host") not in runs.HOSTS_WITH_UNIQUE_AGENTS:
        return False
    # If the host may still note the delegation of an event, the event must wait.
    is_named = "host_agent_id" in event and "agent_name" in event
    return is_named and ("tool_use_id" in event or "key" in event.get("workflow", ()))


def record_agent(store: Store, event: Event, terms: Terms) -> None:
    """Creates the session of the agent of ``event``, unless another process has done that meanwhile."""
    if "workflow" in event:  # the journal did not have the agent yet when the agent started
        from . import workflow

        workflow.start(store, {**event, "kind": START}, terms)
        return
    key = ("delegation", event["host_session_id"], event["tool_use_id"])
    with store.lock_key(key, terms.timeout):
        if not isinstance(find_run(store, event), EventResult):
            return
        delegated_id = _session_delegated_elsewhere(store, event)
        if delegated_id:
            _join(store, delegated_id, event, terms)
        else:
            fields: Run = {key: event[key] for key in _RUN_FIELDS if key in event}  # type: ignore[literal-required, assignment]
            event = {"purpose": NO_PURPOSE, **event}
            begin_session(store, event, terms, first_start(fields, terms.now))


def _session_delegated_elsewhere(store: Store, event: Event) -> str | None:
    """Returns the open session of this delegation in another conversation, from before its agent was reported."""
    for agent_id, record in store.scan(active_only=True):
        if not isinstance(record, SessionsError) and not has_newer_schema(record) and _run_of(record, event):
            return agent_id
    return None


def _run_of(record: Record, event: Event) -> Run | None:
    candidates = (run for run in record.get("runs", ()) if "host_agent_id" not in run)
    delegation = (event.get("host"), event["tool_use_id"])
    return next((run for run in candidates if (run.get("host"), run.get("tool_use_id")) == delegation), None)


def _join(store: Store, agent_id: str, event: Event, terms: Terms) -> None:
    """Puts the agent of ``event`` into the run of its delegation, alive in the conversation that reported the agent."""

    def join(record: Record) -> Record | Change:
        run = _run_of(record, event)
        if run is None:
            return record
        joined = runs.with_start(record, run, {"host_agent_id": event["host_agent_id"]}, terms.now)
        joined = with_agent_in_conversation(joined, runs.updated_run(joined, run), event["host_session_id"], terms.now)
        return Change(joined, [changed_run_entry(event, joined, run)])

    store.change(agent_id, join, timeout=terms.timeout)
