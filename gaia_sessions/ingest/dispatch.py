"""The entry to this package: each event goes to the handler of its kind, or to the inbox if it must wait."""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.session.host_events import (
    DELEGATE,
    DELEGATION_CLOSED,
    FAIL,
    FINALIZE,
    MAIN_STOP,
    MAX_MESSAGE_LENGTH,
    MESSAGE,
    NOTIFICATION,
    PERMISSION_REQUEST,
    RETURNED,
    SESSION_END,
    SESSION_LEFT,
    SESSION_START,
    SEVERAL,
    START,
    STOP,
)

from . import BUSY, DEFERRED, NO_KEY, NOT_JOINED, WAITS_FOR_APPROVAL, EventResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    from . import Handler, Terms


def handle_event(store: Store, event: Event, terms: Terms) -> EventResult:
    """Applies ``event``, or defers it durably if it cannot be applied yet."""
    # An event that concerns many runs is in the inbox before the first one changes, and stays there if time runs out.
    held = _HeldEvent(store, event, terms.now)
    terms.hold = held.hold
    try:
        result = apply_event(store, event, terms)
    except (errors.LockTimeout, errors.StoreFailure):
        result = EventResult(BUSY, event.get("agent_id"))
    except errors.TooLarge:  # an end waits, since the record may get smaller
        if event["kind"] not in _END_KINDS:
            raise
        result = EventResult(BUSY)
    # A request for permission that meets a held lock is dropped, since more uses of tools follow.
    if event["kind"] == PERMISSION_REQUEST or (result.word != BUSY and not may_join_later(event, result)):
        held.release()
        return result
    held.keep()
    return EventResult(DEFERRED, result.agent_id)


class _HeldEvent:
    """An event that is being applied. If that can take long, the event is in the inbox under ``name`` meanwhile."""

    def __init__(self, store: Store, event: Event, now: datetime) -> None:
        self.store, self.event, self.now = store, event, now
        self.name: str | None = None

    def hold(self) -> None:
        """Puts the event into the inbox. If that fails, as much of the event is applied as there is time for."""
        try:
            self.keep()
        except (errors.StoreFailure, errors.DurabilityUnknown, errors.TooLarge):
            return

    def keep(self) -> None:
        if self.name is None:
            self.name = self.store.defer(self.event, self.now)

    def release(self) -> None:
        if self.name is not None:
            self.store.dismiss(self.name)


def may_join_later(event: Event, result: EventResult) -> bool:
    """Returns whether ``event`` can be early: before its session, or before its host wrote its key to a file."""
    is_key_pending = "key_file" in event or "key_pending" in event
    is_early = result.word == NOT_JOINED or (result.word == NO_KEY and is_key_pending)
    return is_early and event["kind"] in EARLY_KINDS


def apply_event(store: Store, event: Event, terms: Terms) -> EventResult:
    """Applies ``event`` at once, or raises what prevents it. Imports only the module of its kind."""
    handlers = WORKFLOW_HANDLERS if "workflow" in event else HANDLERS
    module, name = handlers[event["kind"]]
    handler: Handler = getattr(__import__(f"{__package__}.{module}", fromlist=[name]), name)
    event = with_key(event)
    result = handler(store, event, terms)
    if result.word in (NOT_JOINED, NO_KEY) and not (terms.is_waiting and may_join_later(event, result)):
        from .missed_delegation import may_be_missed, record_agent

        if may_be_missed(event):
            record_agent(store, event, terms)
            result = handler(store, event, terms)
    if result.record and event["kind"] in EARLY_KINDS and "host_agent_id" in event:
        return _with_orphans_adopted(store, result.record, event, terms, result)
    return result


def _with_orphans_adopted(store: Store, parent: Record, event: Event, terms: Terms, result: EventResult) -> EventResult:
    """Puts the sessions that the agent of ``event`` began before below its own; ``busy`` if that takes too long."""
    from gaia_sessions.session.runs import orphan_alias

    alias = orphan_alias(event["host_session_id"], event["host_agent_id"], event.get("host"))
    if store.find(alias) is None:
        return result
    from .parent_session import KeptParent, with_parent_known

    with KeptParent(store, parent, terms.timeout) as kept:
        for orphan in store.having(alias):
            if kept is not None and orphan["agent_id"] == kept["agent_id"]:
                continue
            if terms.should_stop():
                return EventResult(BUSY, result.agent_id)
            store.change(
                orphan["agent_id"], lambda record: with_parent_known(store, record, kept), timeout=terms.timeout
            )
    return result


def with_key(event: Event) -> Event:
    """Returns ``event`` with the key of its delegation, if its host has written the key to a file by now."""
    if "tool_use_id" in event or "key_file" not in event:
        return event
    from gaia_sessions.hosts.agent_files import noted_delegation

    tool_use_id = noted_delegation(event)
    return {**event, "tool_use_id": tool_use_id} if tool_use_id else event


def session_start(store: Store, event: Event, terms: Terms) -> EventResult:  # noqa: ARG001  # as every handler
    """Changes no session. But it is the first event after a reboot, which invalidates the index."""
    store.ensure_index()
    return EventResult("conversation_started")


def finalize(store: Store, event: Event, terms: Terms) -> EventResult:
    """Returns ``finalized`` or ``waits_for_approval``."""
    # Texts that do not fit are shortened: a hook gets no second chance.
    for max_length in _TEXT_LIMITS:
        try:
            return _finalize_with_texts(store, event, terms, max_length)
        except errors.TooLarge:
            continue
    return _finalize_with_texts(store, event, terms, 0)


def _finalize_with_texts(store: Store, event: Event, terms: Terms, max_length: int | None) -> EventResult:
    from gaia_sessions.session import stated_ends
    from gaia_sessions.session.phases import is_final, waits_for_approval
    from gaia_sessions.session.record import is_stand_in

    texts = (event.get("summary"), event.get("error"))
    summary, error = (None if text is None or max_length == 0 else text[:max_length] for text in texts)
    outcome, is_assumed = event["outcome"], event.get("outcome_assumed", False)
    stated_ends.check_ending(outcome, summary, error)

    def rule(record: Record) -> Record:
        if is_stand_in(record):  # nobody here can end its session
            raise errors.SessionNotFound(record["agent_id"])
        if is_assumed and waits_for_approval(record["phase"]):  # nobody stated the outcome, so it still waits
            return record
        return stated_ends.with_ending(record, outcome, terms.now, summary, error)

    reserved = stated_ends.reserved_for_texts(summary, error)
    record = store.change(event["agent_id"], rule, timeout=terms.timeout, reserved=reserved)
    return EventResult("finalized" if is_final(record["phase"]) else WAITS_FOR_APPROVAL, record=record)


HANDLERS = {
    DELEGATE: ("delegate", "delegate"),
    START: ("agent_start", "start"),
    STOP: ("end", "stop"),
    FAIL: ("end", "fail"),
    RETURNED: ("end", "returned"),
    DELEGATION_CLOSED: ("end", "delegation_closed"),
    NOTIFICATION: ("end", "notification"),
    MESSAGE: ("message", "message_sent"),
    MAIN_STOP: ("main_agent", "main_stop"),
    SESSION_START: ("dispatch", "session_start"),
    SESSION_END: ("main_agent", "session_end"),
    SESSION_LEFT: ("main_agent", "session_left"),
    FINALIZE: ("dispatch", "finalize"),
    PERMISSION_REQUEST: ("asking", "permission_request"),
    SEVERAL: ("several", "several"),
}
"""The module and the name of the handler for each kind of event. A call imports only the module that it needs."""

WORKFLOW_HANDLERS = HANDLERS | {DELEGATE: ("workflow", "delegate"), START: ("workflow", "start")}
"""The same for an event that names a workflow. Other events find such runs by their keys."""

_TEXT_LIMITS = (None, MAX_MESSAGE_LENGTH, 200)
"""How many characters of each text of an end are tried in turn if the whole text does not fit."""

EARLY_KINDS = frozenset([START, STOP, FAIL, RETURNED])
"""Events whose delegation may itself still wait in the inbox."""

_END_KINDS = frozenset([STOP, FAIL, RETURNED, DELEGATION_CLOSED, NOTIFICATION, MAIN_STOP, SESSION_END, SESSION_LEFT])
"""Events that a host sends once about the end of work. They wait if the record has no room for them."""
