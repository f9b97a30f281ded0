"""What a sub-agent asks a person to permit. There may be many of these events, in any order, so none waits:
an event that meets a held lock, or whose agent has no session, is dropped.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.errors import CorruptSession, SessionNotFound
from gaia_sessions.session.permission_requests import renewed, request_at, with_request
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.runs import run_of_agent

from . import KNOWN, NO_KEY, EventResult
from .join import alive_in_conversation, may_be_of_host, newest_of_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.permission_requests import SeenCalls
    from gaia_sessions.session.schema import Run
    from gaia_sessions.store.port import OpenSession, Store

    from . import Terms


def permission_request(store: Store, event: Event, terms: Terms) -> EventResult:
    """Returns ``noted``; ``known``; ``no_key`` if no session has the agent; ``full`` if the record has no more room."""
    record = newest_of_agent(store, event.get("host"), event["host_session_id"], event["host_agent_id"])
    if record is None:
        return EventResult(NO_KEY)
    try:
        with store.open(record["agent_id"], timeout=terms.timeout) as session:
            return _note_request(session, event, terms.now)
    except (SessionNotFound, CorruptSession, errors.NewerSchema):
        # The index was outdated, or the session cannot be changed.
        return EventResult(NO_KEY)
    except errors.TooLarge:  # the room that is left is reserved for the end
        return EventResult("full", record["agent_id"])


def _note_request(session: OpenSession, event: Event, now: datetime) -> EventResult:
    record = session.record
    run = run_of_agent(record, event["host_session_id"], event["host_agent_id"])
    if run is None or not may_be_of_host(run, event):
        return EventResult(NO_KEY, record=record)
    alive, run = alive_in_conversation(record, run, event["host_session_id"], now)
    run = renewed(run, event.get("transcript_path"))
    request = request_at(now, event["tool_name"], event.get("asked"), event.get("call"))
    changed = with_request(alive, run, request, _calls_seen(run))
    if changed is record:
        return EventResult(KNOWN, record=record)
    return EventResult("noted", record=session.commit(changed, reserved=RESERVED_BYTES))


def _calls_seen(run: Run) -> SeenCalls | None:
    """Returns the calls in the transcript of an agent that has asked for something."""
    if "waiting" not in run:  # few agents ask
        return None
    from gaia_sessions.hosts import calls_seen

    return calls_seen(run)
