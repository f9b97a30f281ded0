"""What a sub-agent does with its tools, as far as its host is set up to report it.

Owns what each such event does to the session that has the agent by the host's own id. There are many of these events,
so none is deferred: one that meets a held lock, or an agent that no session has, is dropped. They come in any order.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.errors import CorruptSession, SessionNotFound
from gaia_sessions.session import tool_inference
from gaia_sessions.session.permission_requests import renewed, request_at, with_request, with_use
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.runs import run_of_agent, updated_run
from gaia_sessions.session.updates import Change

from . import KNOWN, NO_KEY, EventResult
from .join import alive_in_conversation, changed_run_entry, may_be_of_host, newest_of_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.permission_requests import SeenCalls
    from gaia_sessions.session.schema import Asked, Record, Run
    from gaia_sessions.store.port import OpenSession, Store

    from . import Terms
    from .join import RunRule


def permission_request(store: Store, event: Event, terms: Terms) -> EventResult:
    """The host asks a person whether a sub-agent may use a tool."""

    def rule(record: Record, run: Run) -> Record:
        asked = tool_inference.with_permission_request(record, run, terms.now) if event.get("tracked") else record
        run = renewed(updated_run(asked, run), event.get("transcript_path"))
        return with_request(asked, run, _use_of(event, terms), _calls_seen(run))

    return _change_session_of_agent(store, event, terms, rule)


def tool_used(store: Store, event: Event, terms: Terms) -> EventResult:
    """A sub-agent has used a tool."""
    writes = event.get("writes", False)

    def rule(record: Record, run: Run) -> Record:
        record = with_use(record, run, _use_of(event, terms), _calls_seen(run))
        run = updated_run(record, run)
        return tool_inference.with_tool_use(record, run, event["call"], event["tool_name"], terms.now, writes=writes)

    return _change_session_of_agent(store, event, terms, rule)


def _use_of(event: Event, terms: Terms) -> Asked:
    return request_at(terms.now, event["tool_name"], event.get("asked"), event.get("call"))


def _calls_seen(run: Run) -> SeenCalls | None:
    """What the transcript of an agent says that has asked for something; few have."""
    if "waiting" not in run:
        return None
    from gaia_sessions.hosts import calls_seen

    return calls_seen(run)


def _change_session_of_agent(store: Store, event: Event, terms: Terms, rule: RunRule) -> EventResult:
    """``noted``; ``inferred`` if a phase was inferred; ``known``; ``no_key`` if no session has the agent.

    ``full`` if the record has only the room that is reserved for the end of the work. Only an inferred phase gets a
    journal entry. Raises ``LockTimeout``.
    """
    record = newest_of_agent(store, event.get("host"), event["host_session_id"], event["host_agent_id"])
    if record is None:
        return EventResult(NO_KEY)
    agent_id = record["agent_id"]

    try:
        with store.open(agent_id, timeout=terms.timeout) as session:
            return _change_run_of_agent(session, event, terms.now, rule)
    except (SessionNotFound, CorruptSession, errors.NewerSchema):
        # the index was outdated, or the session cannot be changed
        return EventResult(NO_KEY)
    except errors.TooLarge:  # the rest is reserved for the end
        return EventResult("full", agent_id)


def _change_run_of_agent(session: OpenSession, event: Event, now: datetime, rule: RunRule) -> EventResult:
    record = session.record
    run = run_of_agent(record, event["host_session_id"], event["host_agent_id"])
    if run is None or not may_be_of_host(run, event):
        return EventResult(NO_KEY, record=record)
    changed = rule(*alive_in_conversation(record, run, event["host_session_id"], now))
    if changed is record:
        return EventResult(KNOWN, record=record)
    is_inferred = changed["phase"] != record["phase"]
    entries = [changed_run_entry(event, changed, changed["runs"][-1])] if is_inferred else []
    record = session.commit(Change(changed, entries), reserved=RESERVED_BYTES)
    return EventResult("inferred" if is_inferred else "noted", record=record)
