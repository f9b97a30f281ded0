"""News from hosts, taken in now or later.

Owns which use case each kind of event goes to, and the inbox: what meets a held lock or comes before
its session waits there and is applied by the next one who writes; a hook, which must be quick, tries only some of
many. Applied twice it changes nothing, so an event is dismissed only after it is safely in the record.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import DurabilityUnknown, InvalidInput, LockTimeout, SessionsError, StoreFailure, TooLarge
from gaia_sessions.session.clock import parse_time, timedelta
from gaia_sessions.session.events import (
    DELEGATE,
    DELEGATION_CLOSED,
    FAIL,
    FINALIZE,
    MAIN_STOP,
    MESSAGE,
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
    check_event,
)
from gaia_sessions.session.schema import MAX_MESSAGE_LENGTH

from .result import BUSY, DEFERRED, NO_KEY, NOT_JOINED, WAITS_FOR_APPROVAL, EventResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.store.port import Store

MAX_WAIT = timedelta(hours=24)
"""So long an event waits for its session; then it is dropped."""

MAX_WAIT_FOR_KEY = timedelta(minutes=10)
"""So long it waits for a host to note its key, which was seen to take a fifth of a second."""


TRY_ALL_LIMIT = 8
"""While at most this many events wait, each call of a hook tries all of them."""

OTHERS_PER_CALL = 3
"""While more of them wait, it tries those that concern its own news, and at most this many others."""


def handle_event(store: Store, event: Event, now: datetime, config: Config, timeout: float) -> EventResult:
    """What was done with ``event``; what cannot be done yet is ``deferred``, durably.

    Waits at most ``timeout`` seconds for whoever holds its session; what an agent does with its tools is
    let go after that, since there is always more of it. An end that does not fit into its record waits, too.
    Raises what the use cases raise, but never ``LockTimeout``, and ``StoreFailure`` only if not even deferring is
    possible.
    """
    try:
        result = _apply(store, event, now, config, timeout)
    except (LockTimeout, StoreFailure):
        result = EventResult(BUSY, event.get("agent_id"))
    except TooLarge:  # somebody may make room yet
        if event["kind"] not in _END_KINDS:
            raise
        result = EventResult(BUSY)
    if event["kind"] in _TOOL_KINDS or (result.word != BUSY and not _may_join_later(event, result)):
        return result
    store.defer(event, now)
    return EventResult(DEFERRED, result.agent_id)


def apply_deferred(
    store: Store,
    now: datetime,
    config: Config,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    new_events: list[Event] | None = None,
) -> list[str]:
    """Applies what waits in the inbox and can be applied without waiting; says what became of each.

    With ``before``, the news at hand, only what concerns it and a few others are tried: each of them in one of the next
    calls. What can never be applied is dropped, and so is what could not be applied for a day. An inbox that
    cannot be read stops nobody; what is left when it is ``enough`` waits for the next.
    """
    outcomes = []
    try:
        for name, event in store.deferred(None if new_events is None else names_to_try(store, new_events)):
            if should_stop():
                break
            outcomes.append(f"{name} {_apply_one(store, name, event, now, config)}")  # kept if the next one fails
    except SessionsError as error:
        outcomes.append(f"unread: {error}")
    return outcomes


def names_to_try(store: Store, new_events: list[Event]) -> list[str]:
    """The names of those events of the inbox that a call tries when it has the news ``before`` at hand."""
    waiting = store.waiting()
    if len(waiting) <= TRY_ALL_LIMIT:
        return [name for name, _ in waiting]
    from gaia_sessions.store import inbox_keys

    keys = {key for event in new_events for key in inbox_keys.keys_named_in(event)}
    if any(inbox_keys.may_concern_others(event) for event in new_events):
        from .concerned import keys_in_records

        keys |= keys_in_records(store, new_events)
    return inbox_keys.events_to_try(waiting, keys, OTHERS_PER_CALL, int.from_bytes(os.urandom(4)))


def _apply_one(store: Store, name: str, event: dict[str, Json] | SessionsError, now: datetime, config: Config) -> str:
    if isinstance(event, StoreFailure):
        return f"waits: {event.code}"
    try:
        checked = _check_fields(event)
    except SessionsError as error:
        store.dismiss(name)
        return f"dropped: {error}"
    try:
        applied, word = _try_to_apply(store, checked, config)
    except SessionsError as error:
        store.dismiss(name)
        return f"dropped: {error}"
    except Exception as error:  # noqa: BLE001  # one that we cannot handle must not keep all others from being applied
        applied, word = False, f"{type(error).__name__}: {error}"
    if not applied and not has_waited_too_long(checked, now, word):
        return f"waits: {word}"
    store.dismiss(name)
    max_wait = "ten minutes" if word == NO_KEY else "a day"
    return word if applied else f"dropped after {max_wait}: {word}"


def has_waited_too_long(event: Mapping[str, object], now: datetime, word: str | None = None) -> bool:
    """Whether ``event`` of the inbox is dropped if it still cannot be applied.

    word: what kept it from that; None if it was not tried. Raises ``ValueError`` for one that does not say since when.
    """
    return now - parse_time(event.get("at")) >= (MAX_WAIT_FOR_KEY if word == NO_KEY else MAX_WAIT)


def _try_to_apply(store: Store, event: Event, config: Config) -> tuple[bool, str]:
    """Whether ``event`` was applied, and what was done or what kept it from being applied for the moment."""
    try:
        result = _join_failure(store, event) or _apply(store, event, parse_time(event["at"]), config, 0)
    except (LockTimeout, StoreFailure, DurabilityUnknown, TooLarge) as error:
        return False, error.code
    return result.word != BUSY and not _may_join_later(event, result), result.word


def _join_failure(store: Store, event: Event) -> EventResult | None:
    """Why there is still nothing to which ``event`` could be applied: a look that takes no lock; None if there is."""
    if event["kind"] not in _EARLY_KINDS:
        return None
    from .join import find_run

    found = find_run(store, _with_key(event))
    return found if isinstance(found, EventResult) and _may_join_later(event, found) else None


def _may_join_later(event: Event, result: EventResult) -> bool:
    """Whether the news may only have come too early: before its session, or before the host noted its key."""
    key_pending = "key_file" in event or "unkeyed" in event
    is_early = result.word == NOT_JOINED or (result.word == NO_KEY and key_pending)
    return is_early and event["kind"] in _EARLY_KINDS


def _check_fields(event: dict[str, Json] | SessionsError) -> Event:
    if isinstance(event, SessionsError):
        raise event
    check_event(event, "")
    missing = next((key for key in _REQUIRED_FIELDS[str(event["kind"])] if key not in event), None)
    if missing:
        raise InvalidInput("missing", missing)
    return event  # type: ignore[return-value]  # just checked


def _apply(store: Store, event: Event, now: datetime, config: Config, timeout: float) -> EventResult:
    kind = event["kind"]
    event = _with_key(event)
    if kind == DELEGATE:
        from .delegate import delegate

        return delegate(store, event, now, os.urandom, config, timeout)
    if kind == START:
        from .start import start

        return start(store, event, now, os.urandom, timeout)
    if kind in (MAIN_STOP, SESSION_END, SESSION_LEFT):
        from . import turn

        return turn.HANDLERS[kind](store, event, now, timeout)
    if kind == SESSION_START:  # after a reboot the first news there is
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


def _with_key(event: Event) -> Event:
    """The host may have noted by now which delegation the news belongs to."""
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
"""Characters kept of what a hook says of an end, where all of it does not fit."""

_EARLY_KINDS = frozenset([START, STOP, FAIL, RETURNED])
"""News with the key of a delegation that may itself still wait."""

_END_KINDS = frozenset([STOP, FAIL, RETURNED, DELEGATION_CLOSED, NOTIFICATION, MAIN_STOP, SESSION_END, SESSION_LEFT])
"""What a host tells only once of how work ended: it waits where its record has no room for it."""

_TOOL_KINDS = (TOOL_CALL, PERMISSION_REQUEST, TOOL_USED)

_REQUIRED_FIELDS = {
    DELEGATE: ("host", "host_session_id", "tool_use_id", "agent_name", "purpose"),
    START: ("host_session_id", "host_agent_id"),
    STOP: ("host_session_id",),
    FAIL: ("host_session_id",),
    RETURNED: ("host_session_id",),
    DELEGATION_CLOSED: ("host_session_id", "tool_use_id"),
    NOTIFICATION: ("host_session_id",),
    MESSAGE: ("host_session_id", "host_agent_id"),
    SESSION_START: (),
    SESSION_END: ("host_session_id",),
    SESSION_LEFT: ("host_session_id",),
    MAIN_STOP: ("host_session_id",),
    FINALIZE: ("agent_id", "outcome"),
    TOOL_CALL: ("host_session_id", "host_agent_id"),
    PERMISSION_REQUEST: ("host_session_id", "host_agent_id"),
    TOOL_USED: ("host_session_id", "host_agent_id", "tool_name", "call"),
}
