"""What a sub-agent does with its tools, as far as its host was asked to tell.

Owns what each piece of such news does to the session it belongs to: the one that knows the agent by the
host's own id, and no other. There are many, so none is worth waiting for: what meets a held lock, or an
agent that no session knows, is let go.
"""

from __future__ import annotations

from gaia_sessions.errors import CorruptSession, NewerSchema, SessionNotFound, TooLarge
from gaia_sessions.session import events, tool_inference
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.runs import run_of_agent

from .join import alive_in_conversation, may_be_of_host, session_id_of_agent
from .result import KNOWN, NO_KEY, EventResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    ToolRule = Callable[[Record, Run, Event, datetime], Record]

_INFERRED = "inferred"


def handle_tool_event(store: Store, event: Event, now: datetime, timeout: float) -> EventResult:
    """``noted``; ``inferred`` if the work is seen to stand elsewhere now; ``known``; ``no_key`` if it is nobody's,
    ``full`` if only the room for the end of the work is left in the record.
    Only an inferred phase is worth a line of the journal, written with it. Raises ``LockTimeout``.
    """
    agent_id = session_id_of_agent(store, event.get("host"), event["host_session_id"], event["host_agent_id"])
    if agent_id is None:
        return EventResult(NO_KEY)
    change = _ToolChange(event, now)
    try:
        record = store.change(agent_id, change.apply, timeout=timeout, make_entry=change.entry, spare=RESERVED_BYTES)
    except (SessionNotFound, CorruptSession, NewerSchema):  # the hint led to nothing that can be followed
        return EventResult(NO_KEY)
    except TooLarge:  # what is left is for the end
        return EventResult("full", agent_id)
    return EventResult(change.word, record=record)


class _ToolChange:
    def __init__(self, event: Event, now: datetime) -> None:
        self.event = event
        self.now = now
        self.word = NO_KEY

    def apply(self, record: Record) -> Record:
        run = run_of_agent(record, self.event["host_session_id"], self.event["host_agent_id"])
        if run is None or not may_be_of_host(run, self.event):
            return record
        changed = _RULES[self.event["kind"]](
            *alive_in_conversation(record, run, self.event["host_session_id"], self.now), self.event, self.now
        )
        self.word = KNOWN if changed is record else _INFERRED if changed["phase"] != record["phase"] else "noted"
        return changed

    def entry(self, record: Record) -> dict[str, Json] | None:
        if self.word != _INFERRED:
            return None
        from .join import LATEST_RUN, make_entry_for

        return make_entry_for(self.event, LATEST_RUN)(record)


def _alive(record: Record, run: Run, _event: Event, now: datetime) -> Record:
    return tool_inference.with_heartbeat(record, run, now)


def _asked(record: Record, run: Run, _event: Event, now: datetime) -> Record:
    return tool_inference.with_permission_request(record, run, now)


def _used(record: Record, run: Run, event: Event, now: datetime) -> Record:
    return tool_inference.with_tool_use(
        record, run, event["call"], event["tool_name"], now, writes=event.get("writes", False)
    )


_RULES: dict[str, ToolRule] = {events.TOOL_CALL: _alive, events.PERMISSION_REQUEST: _asked, events.TOOL_USED: _used}
