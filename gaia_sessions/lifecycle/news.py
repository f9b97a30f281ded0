"""News from hosts, taken in now or later.

Owns which use case each kind of event goes to, and the inbox: what meets a held lock or comes before
its session waits there and is applied by the next one who writes. Applied twice it changes nothing,
so an event is dismissed only after it is safely in the record.
"""

from __future__ import annotations

import os
from datetime import timedelta

from gaia_sessions.clock import read_time
from gaia_sessions.errors import DurabilityUnknown, InvalidInput, LockTimeout, SessionsError, StoreFailure
from gaia_sessions.events import check_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.events import Event
    from gaia_sessions.stores.port import Store
    from gaia_sessions.strictjson import Json

WAITS = timedelta(hours=24)
"""So long an event waits for its session; then it is dropped."""

DEFERRED = "deferred"
NOT_JOINED = "not_joined"
"""The event has a key, and no session has it yet: it may come too early."""


def take_in(store: Store, event: Event, now: datetime, timeout: float) -> tuple[str, str | None]:
    """What was done with ``event``, and to which session; what cannot be done yet is ``deferred``, durably.

    Waits at most ``timeout`` seconds for whoever holds its session. Raises what the use cases raise, but
    never ``LockTimeout``, and ``StoreFailure`` only if not even deferring is possible.
    """
    try:
        done, agent_id = _apply(store, event, now, timeout)
    except (LockTimeout, StoreFailure):
        done, agent_id = NOT_JOINED, event.get("agent_id")
    if done != NOT_JOINED:
        return done, agent_id
    store.defer(event, now)
    return DEFERRED, agent_id


def apply_deferred(store: Store, now: datetime) -> list[str]:
    """Applies what waits in the inbox and can be applied without waiting; says what became of each.

    What can never be applied is dropped, and so is what could not be applied for a day. An inbox that
    cannot be read stops nobody.
    """
    done = []
    try:
        for name, event in store.deferred():
            done.append(f"{name} {_apply_one(store, name, event, now)}")  # kept if the next one fails
    except StoreFailure as error:
        done.append(f"unread: {error}")
    return done


def _apply_one(store: Store, name: str, event: dict[str, Json] | SessionsError, now: datetime) -> str:
    if isinstance(event, StoreFailure):
        return f"waits: {event.code}"
    try:
        checked = _checked(event)
        applied, word = _tried(store, checked)
    except SessionsError as error:
        store.dismiss(name)
        return f"dropped: {error}"
    if not applied and now - read_time(checked["at"]) < WAITS:
        return f"waits: {word}"
    store.dismiss(name)
    return word if applied else f"dropped after a day: {word}"


def _tried(store: Store, event: Event) -> tuple[bool, str]:
    """Whether ``event`` was applied, and what was done or what kept it from being applied for the moment."""
    try:
        done, _ = _apply(store, event, read_time(event["at"]), 0)
    except (LockTimeout, StoreFailure, DurabilityUnknown) as error:
        return False, error.code
    return done != NOT_JOINED, done


def _checked(event: dict[str, Json] | SessionsError) -> Event:
    if isinstance(event, SessionsError):
        raise event
    check_event(event, "")
    missing = next((key for key in _NEEDED[str(event["kind"])] if key not in event), None)
    if missing:
        raise InvalidInput("missing", missing)
    return event  # type: ignore[return-value]  # just checked


def _apply(store: Store, event: Event, now: datetime, timeout: float) -> tuple[str, str | None]:
    return _USE_CASES[event["kind"]](store, event, now, timeout)


def _delegate(store: Store, event: Event, now: datetime, timeout: float) -> tuple[str, str | None]:
    from .delegations import delegate

    return delegate(store, event, now, os.urandom, timeout)


def _stop(store: Store, event: Event, now: datetime, timeout: float) -> tuple[str, str | None]:
    from .stops import stop

    return stop(store, event, now, timeout)


def _finalize(store: Store, event: Event, now: datetime, timeout: float) -> tuple[str, str | None]:
    from . import sessions

    agent_id = event["agent_id"]
    told = (event["outcome"], event.get("summary"), event.get("error"))
    sessions.finalize(store, now, agent_id, *told, timeout=timeout)
    return "finalized", agent_id


_USE_CASES = {"delegate": _delegate, "stop": _stop, "finalize": _finalize}

_NEEDED = {
    "delegate": ("host", "host_session_id", "tool_use_id", "agent_name", "purpose"),
    "stop": ("host_session_id", "host_agent_id"),
    "finalize": ("agent_id", "outcome"),
}
