"""The entry to this package: each event goes to the function for its kind, or to the inbox if that must be later.

Owns which function applies each kind of event, and which events wait: those that meet a held lock, and those that come
before their session. How waiting events are applied is in ``deferred``. Must never judge what an event means.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import LockTimeout, StoreFailure, TooLarge
from gaia_sessions.session.events import (
    DELEGATE,
    DELEGATION_CLOSED,
    FAIL,
    FINALIZE,
    MAIN_STOP,
    MAX_MESSAGE_LENGTH,
    NOTIFICATION,
    PERMISSION_REQUEST,
    RETURNED,
    SESSION_END,
    SESSION_LEFT,
    SESSION_START,
    START,
    STOP,
    TOOL_CALL,
    TOOL_USED,
)

from . import BUSY, DEFERRED, NO_KEY, NOT_JOINED, WAITS_FOR_APPROVAL, EventResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.session.events import Event
    from gaia_sessions.store.port import Store


def handle_event(store: Store, event: Event, now: datetime, config: Config, timeout: float) -> EventResult:
    """Applies ``event`` and returns what was done; an event that cannot be applied yet is ``deferred``, durably.

    Waits at most ``timeout`` seconds for a lock. After that, the use of a tool is not recorded, since more uses follow;
    any other event is deferred, as is an end that does not fit into its record.
    Raises what the functions for each kind raise, but never ``LockTimeout``, and ``StoreFailure`` only if deferring is
    impossible too.
    """
    try:
        result = apply_event(store, event, now, config, timeout)
    except (LockTimeout, StoreFailure):
        result = EventResult(BUSY, event.get("agent_id"))
    except TooLarge:  # the record may get smaller
        if event["kind"] not in _END_KINDS:
            raise
        result = EventResult(BUSY)
    if event["kind"] in _TOOL_KINDS or (result.word != BUSY and not may_join_later(event, result)):
        return result
    store.defer(event, now)
    return EventResult(DEFERRED, result.agent_id)


def may_join_later(event: Event, result: EventResult) -> bool:
    """Whether ``event`` may only be too early: before its session, or before its host wrote its key to a file."""
    key_pending = "key_file" in event or "unkeyed" in event
    is_early = result.word == NOT_JOINED or (result.word == NO_KEY and key_pending)
    return is_early and event["kind"] in EARLY_KINDS


def apply_event(store: Store, event: Event, now: datetime, config: Config, timeout: float) -> EventResult:
    kind = event["kind"]
    event = with_key(event)
    if kind == DELEGATE:
        from .delegate import delegate

        return delegate(store, event, now, os.urandom, config, timeout)
    if kind == START:
        from .start import start

        return start(store, event, now, os.urandom, timeout)
    if kind in (MAIN_STOP, SESSION_END, SESSION_LEFT):
        from . import turn

        return turn.HANDLERS[kind](store, event, now, timeout)
    if kind == SESSION_START:  # the first event after a reboot, which invalidates the index
        store.ensure_index()
        return EventResult("heard")
    if kind == FINALIZE:
        return _finalize(store, event, now, timeout)
    if kind in _TOOL_KINDS:
        from .tools import handle_tool_event as handler
    else:
        from . import end

        handler = end.HANDLERS[kind]
    return handler(store, event, now, timeout)


def with_key(event: Event) -> Event:
    """``event`` with the key of its delegation, if its host has written that to a file by now."""
    if "tool_use_id" in event or "key_file" not in event:
        return event
    from gaia_sessions.store.key_file import read_key

    tool_use_id = read_key(event["key_file"], event["key_name"])
    return {**event, "tool_use_id": tool_use_id} if tool_use_id else event


def _finalize(store: Store, event: Event, now: datetime, timeout: float) -> EventResult:
    """``finalized``, or ``waits_for_approval``. Texts that do not fit are shortened: a hook is not asked again."""
    for max_length in _TEXT_LIMITS:
        try:
            return _finalize_with_texts(store, event, now, timeout, max_length)
        except TooLarge:
            continue
    return _finalize_with_texts(store, event, now, timeout, 0)


def _finalize_with_texts(
    store: Store, event: Event, now: datetime, timeout: float, max_length: int | None
) -> EventResult:
    from gaia_sessions.session import requests
    from gaia_sessions.session.phases import is_final

    texts = (event.get("summary"), event.get("error"))
    summary, error = (None if text is None or max_length == 0 else text[:max_length] for text in texts)
    rule = requests.finalize_rule(event["outcome"], summary, error, now)
    if event.get("outcome_assumed"):
        rule = requests.unless_waiting(rule)
    reserved = requests.reserved_for_texts(summary, error)
    record = store.change(event["agent_id"], rule, timeout=timeout, reserved=reserved)
    return EventResult("finalized" if is_final(record["phase"]) else WAITS_FOR_APPROVAL, record=record)


_TEXT_LIMITS = (None, MAX_MESSAGE_LENGTH, 200)
"""How many characters of each text of an end are tried in turn where all of it does not fit."""

EARLY_KINDS = frozenset([START, STOP, FAIL, RETURNED])
"""Events whose delegation may itself still wait in the inbox."""

_END_KINDS = frozenset([STOP, FAIL, RETURNED, DELEGATION_CLOSED, NOTIFICATION, MAIN_STOP, SESSION_END, SESSION_LEFT])
"""Events that a host sends once about the end of work: they wait if the record has no room for them."""

_TOOL_KINDS = (TOOL_CALL, PERMISSION_REQUEST, TOOL_USED)
