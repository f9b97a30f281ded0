"""What a sub-agent does with its tools, as far as its host is set up to report it.

Owns what each such event does to the session that has the agent by the host's own id. There are many of these events,
so none is deferred: one that meets a held lock, or an agent that no session has, is dropped. Must never end a run.
"""

from __future__ import annotations

from gaia_sessions.errors import CorruptSession, NewerSchema, SessionNotFound, TooLarge
from gaia_sessions.session import events, tool_inference
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.runs import run_of_agent
from gaia_sessions.store import change_with_result

from . import KNOWN, NO_KEY, EventResult
from .join import alive_in_conversation, changed_run_entry, may_be_of_host, session_id_of_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, Store

    ToolRule = Callable[[Record, Run, Event, datetime], Record]


def handle_tool_event(store: Store, event: Event, now: datetime, timeout: float) -> EventResult:
    """``noted``; ``inferred`` if a phase was inferred; ``known``; ``no_key`` if no session has the agent.

    ``full`` if the record has only the room that is reserved for the end of the work. Only an inferred phase gets a
    journal entry. Raises ``LockTimeout``.
    """
    agent_id = session_id_of_agent(store, event.get("host"), event["host_session_id"], event["host_agent_id"])
    if agent_id is None:
        return EventResult(NO_KEY)

    def change(record: Record) -> tuple[Record, Entry | None, str]:
        return _with_tool_event(record, event, now)

    try:
        record, word = change_with_result(store, agent_id, change, timeout=timeout, reserved=RESERVED_BYTES)
    except (SessionNotFound, CorruptSession, NewerSchema):  # the index was outdated, or the session cannot be changed
        return EventResult(NO_KEY)
    except TooLarge:  # the rest is reserved for the end
        return EventResult("full", agent_id)
    return EventResult(word, record=record)


def _with_tool_event(record: Record, event: Event, now: datetime) -> tuple[Record, Entry | None, str]:
    run = run_of_agent(record, event["host_session_id"], event["host_agent_id"])
    if run is None or not may_be_of_host(run, event):
        return record, None, NO_KEY
    rule = _RULES[event["kind"]]
    changed = rule(*alive_in_conversation(record, run, event["host_session_id"], now), event, now)
    if changed is record:
        return record, None, KNOWN
    if changed["phase"] == record["phase"]:
        return changed, None, "noted"
    return changed, changed_run_entry(event, changed, changed["runs"][-1]), "inferred"


def _alive(record: Record, run: Run, _event: Event, now: datetime) -> Record:
    return tool_inference.with_heartbeat(record, run, now)


def _asked(record: Record, run: Run, _event: Event, now: datetime) -> Record:
    return tool_inference.with_permission_request(record, run, now)


def _used(record: Record, run: Run, event: Event, now: datetime) -> Record:
    return tool_inference.with_tool_use(
        record, run, event["call"], event["tool_name"], now, writes=event.get("writes", False)
    )


_RULES: dict[str, ToolRule] = {events.TOOL_CALL: _alive, events.PERMISSION_REQUEST: _asked, events.TOOL_USED: _used}
