"""News from hosts, taken in now or later.

Owns which use case each kind of event goes to, and the inbox: what meets a held lock or comes before
its session waits there and is applied by the next one who writes; a hook, which must be quick, tries only some of
many. Applied twice it changes nothing, so an event is dismissed only after it is safely in the record.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import DurabilityUnknown, InvalidInput, LockTimeout, SessionsError, StoreFailure, TooLarge
from gaia_sessions.session.clock import read_time, timedelta
from gaia_sessions.session.events import (
    CALL,
    DELEGATE,
    FAIL,
    FINALIZE,
    MAIN_STOP,
    MESSAGE,
    NOTIFICATION,
    OVER,
    PERMISSION,
    RETURNED,
    SESSION_END,
    SESSION_LEFT,
    SESSION_START,
    START,
    STOP,
    TOOL,
    check_event,
)
from gaia_sessions.session.schema import LONGEST_MESSAGE

from .result import BUSY, DEFERRED, NO_KEY, NOT_JOINED, WAITS_FOR_APPROVAL, Done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.store.port import Store

WAITS = timedelta(hours=24)
"""So long an event waits for its session; then it is dropped."""

WAITS_FOR_KEY = timedelta(minutes=10)
"""So long it waits for a host to note its key, which was seen to take a fifth of a second."""


FEW = 8
"""While at most this many events wait, each call of a hook tries all of them."""

SOME = 3
"""While more of them wait, it tries those that concern its own news, and at most this many others."""


def take_in(store: Store, event: Event, now: datetime, config: Config, timeout: float) -> Done:
    """What was done with ``event``; what cannot be done yet is ``deferred``, durably.

    Waits at most ``timeout`` seconds for whoever holds its session; what an agent does with its tools is
    let go after that, since there is always more of it. An end that does not fit into its record waits, too.
    Raises what the use cases raise, but never ``LockTimeout``, and ``StoreFailure`` only if not even deferring is
    possible.
    """
    try:
        done = _apply(store, event, now, config, timeout)
    except (LockTimeout, StoreFailure):
        done = Done(BUSY, event.get("agent_id"))
    except TooLarge:  # somebody may make room yet
        if event["kind"] not in _ENDS:
            raise
        done = Done(BUSY)
    if event["kind"] in _OF_TOOLS or (done.word != BUSY and not _may_be_joined(event, done)):
        return done
    store.defer(event, now)
    return Done(DEFERRED, done.agent_id)


def apply_deferred(
    store: Store,
    now: datetime,
    config: Config,
    enough: Callable[[], bool] = lambda: False,
    *,
    before: list[Event] | None = None,
) -> list[str]:
    """Applies what waits in the inbox and can be applied without waiting; says what became of each.

    With ``before``, the news at hand, only what concerns it and a few others are tried: each of them in one of the next
    calls. What can never be applied is dropped, and so is what could not be applied for a day. An inbox that
    cannot be read stops nobody; what is left when it is ``enough`` waits for the next.
    """
    done = []
    try:
        for name, event in store.deferred(None if before is None else names_to_try(store, before)):
            if enough():
                break
            done.append(f"{name} {_apply_one(store, name, event, now, config)}")  # kept if the next one fails
    except SessionsError as error:
        done.append(f"unread: {error}")
    return done


def names_to_try(store: Store, before: list[Event]) -> list[str]:
    """The names of those events of the inbox that a call tries when it has the news ``before`` at hand."""
    waiting = store.waiting()
    if len(waiting) <= FEW:
        return [name for name, _ in waiting]
    from gaia_sessions.store import inbox_keys

    keys = {key for event in before for key in inbox_keys.keys_of_news(event)}
    if any(inbox_keys.is_of_others(event) for event in before):
        from .concerned import keys_in_records

        keys |= keys_in_records(store, before)
    return inbox_keys.chosen(waiting, keys, SOME, int.from_bytes(os.urandom(4)))


def _apply_one(store: Store, name: str, event: dict[str, Json] | SessionsError, now: datetime, config: Config) -> str:
    if isinstance(event, StoreFailure):
        return f"waits: {event.code}"
    try:
        checked = _checked(event)
    except SessionsError as error:
        store.dismiss(name)
        return f"dropped: {error}"
    try:
        applied, word = _tried(store, checked, config)
    except SessionsError as error:
        store.dismiss(name)
        return f"dropped: {error}"
    except Exception as error:  # noqa: BLE001  # one that we cannot handle must not keep all others from being applied
        applied, word = False, f"{type(error).__name__}: {error}"
    if not applied and not has_waited_too_long(checked, now, word):
        return f"waits: {word}"
    store.dismiss(name)
    so_long = "ten minutes" if word == NO_KEY else "a day"
    return word if applied else f"dropped after {so_long}: {word}"


def has_waited_too_long(event: Mapping[str, object], now: datetime, word: str | None = None) -> bool:
    """Whether ``event`` of the inbox is dropped if it still cannot be applied.

    word: what kept it from that; None if it was not tried. Raises ``ValueError`` for one that does not say since when.
    """
    return now - read_time(event.get("at")) >= (WAITS_FOR_KEY if word == NO_KEY else WAITS)


def _tried(store: Store, event: Event, config: Config) -> tuple[bool, str]:
    """Whether ``event`` was applied, and what was done or what kept it from being applied for the moment."""
    try:
        done = _not_yet_joined(store, event) or _apply(store, event, read_time(event["at"]), config, 0)
    except (LockTimeout, StoreFailure, DurabilityUnknown, TooLarge) as error:
        return False, error.code
    return done.word != BUSY and not _may_be_joined(event, done), done.word


def _not_yet_joined(store: Store, event: Event) -> Done | None:
    """Why there is still nothing to which ``event`` could be applied: a look that takes no lock; None if there is."""
    if event["kind"] not in _MAY_COME_EARLY:
        return None
    from .join import find_run

    found = find_run(store, _with_key(event))
    return found if isinstance(found, Done) and _may_be_joined(event, found) else None


def _may_be_joined(event: Event, done: Done) -> bool:
    """Whether the news may only have come too early: before its session, or before the host noted its key."""
    keyed_later = "key_file" in event or "unkeyed" in event
    early = done.word == NOT_JOINED or (done.word == NO_KEY and keyed_later)
    return early and event["kind"] in _MAY_COME_EARLY


def _checked(event: dict[str, Json] | SessionsError) -> Event:
    if isinstance(event, SessionsError):
        raise event
    check_event(event, "")
    missing = next((key for key in _NEEDED[str(event["kind"])] if key not in event), None)
    if missing:
        raise InvalidInput("missing", missing)
    return event  # type: ignore[return-value]  # just checked


def _apply(store: Store, event: Event, now: datetime, config: Config, timeout: float) -> Done:
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

        return turn.USE_CASES[kind](store, event, now, timeout)
    if kind == SESSION_START:  # after a reboot the first news there is
        store.mend_hints()
        return Done("heard")
    if kind == FINALIZE:
        return _finalize(store, event, now, timeout)
    if kind in _OF_TOOLS:
        from .tools import follow as use_case
    else:
        from . import end

        use_case = end.USE_CASES[kind]
    return use_case(store, event, now, timeout)


def _with_key(event: Event) -> Event:
    """The host may have noted by now which delegation the news belongs to."""
    if "tool_use_id" in event or "key_file" not in event:
        return event
    from gaia_sessions.store.key_file import read_key

    found = read_key(event["key_file"], event["key_name"])
    return {**event, "tool_use_id": found} if found else event


def _finalize(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    from gaia_sessions.session.phases import is_final
    from gaia_sessions.usecases import sessions

    finalize = sessions.finalize_unless_waiting if event.get("outcome_assumed") else sessions.finalize

    def finalized(longest: int | None) -> Done:
        told = (event.get("summary"), event.get("error"))
        summary, error = (None if text is None or longest == 0 else text[:longest] for text in told)
        record = finalize(store, now, event["agent_id"], event["outcome"], summary, error, timeout=timeout)
        return Done("finalized" if is_final(record["phase"]) else WAITS_FOR_APPROVAL, record=record)

    for longest in _SHORTER:
        try:
            return finalized(longest)
        except TooLarge:  # a hook is not asked again with less
            continue
    return finalized(0)


_SHORTER = (None, LONGEST_MESSAGE, 200)
"""Characters kept of what a hook says of an end, where all of it does not fit."""

_MAY_COME_EARLY = frozenset([START, STOP, FAIL, RETURNED])
"""News with the key of a delegation that may itself still wait."""

_ENDS = frozenset([STOP, FAIL, RETURNED, OVER, NOTIFICATION, MAIN_STOP, SESSION_END, SESSION_LEFT])
"""What a host tells only once of how work ended: it waits where its record has no room for it."""

_OF_TOOLS = (CALL, PERMISSION, TOOL)

_NEEDED = {
    DELEGATE: ("host", "host_session_id", "tool_use_id", "agent_name", "purpose"),
    START: ("host_session_id", "host_agent_id"),
    STOP: ("host_session_id",),
    FAIL: ("host_session_id",),
    RETURNED: ("host_session_id",),
    OVER: ("host_session_id", "tool_use_id"),
    NOTIFICATION: ("host_session_id",),
    MESSAGE: ("host_session_id", "host_agent_id"),
    SESSION_START: (),
    SESSION_END: ("host_session_id",),
    SESSION_LEFT: ("host_session_id",),
    MAIN_STOP: ("host_session_id",),
    FINALIZE: ("agent_id", "outcome"),
    CALL: ("host_session_id", "host_agent_id"),
    PERMISSION: ("host_session_id", "host_agent_id"),
    TOOL: ("host_session_id", "host_agent_id", "tool_name", "call"),
}
