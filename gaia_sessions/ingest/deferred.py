"""The events that wait in the inbox: which of them a call tries to apply, and which are dropped.
An event leaves the inbox only after it is safely in its record: applying it twice changes nothing.
"""

from __future__ import annotations

import os

from gaia_sessions import errors
from gaia_sessions.errors import InvalidInput, LockTimeout, SessionsError, StoreFailure
from gaia_sessions.hosts import noted_since
from gaia_sessions.session.clock import parse_time, timedelta
from gaia_sessions.session.event_checks import REQUIRED_FIELDS, check_event
from gaia_sessions.session.host_events import MOST_RUNNING, MOST_TASKS
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.record import has_newer_schema

from . import BUSY, EARLY, NO_KEY, Terms
from .dispatch import apply_event, may_join_later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.inbox_keys import WaitingEvent
    from gaia_sessions.store.port import Store

MAX_WAIT = timedelta(hours=24)
"""How long an event waits for its session before it is dropped."""

MAX_WAIT_FOR_KEY = timedelta(minutes=10)
"""How long an event waits for its key in a host's file. Measured: a fifth of a second."""

REFUSALS = frozenset([BUSY, LockTimeout.code, StoreFailure.code, "lock_unsupported", "durability_unknown"])
"""An event that found its session, but met a lock or a refusal of the system, is never dropped."""

_SPELLED_WAITS = {MAX_WAIT: "a day", MAX_WAIT_FOR_KEY: "ten minutes"}

TRY_ALL_LIMIT = 8
"""Each call of a hook tries up to this many waiting events."""

OTHERS_PER_CALL = 3
"""If more wait, a call tries those that concern its own events, and at most this many others."""


def apply_deferred(
    store: Store,
    now: datetime,
    config: Config,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    waiting: list[WaitingEvent] | None = None,
    new_events: Sequence[Event] = (),
) -> list[str]:
    """Applies the events of the inbox without waiting for locks; returns a line about each event that was tried."""
    outcomes: list[str] = []
    try:
        if waiting is None:
            names = [name for name, _ in store.waiting()]
            if names:  # without an index, each key would need a look at all sessions
                store.ensure_index()
        else:
            # A hook tries only events of the sessions of its ``new_events``, and a few others. Other calls try more.
            names = _names_to_try(store, waiting, new_events)
        if not names:
            return outcomes
        for name, event in store.deferred(names):
            if should_stop():
                break
            word = _apply_one(store, name, event, now, config, should_stop)
            outcomes.append(f"{name} {word}")  # stays in the list if the next event fails
    except SessionsError as error:
        outcomes.append(f"unread: {error}")
    return outcomes


def _names_to_try(store: Store, waiting: list[WaitingEvent], new_events: Sequence[Event]) -> list[str]:
    """Returns the names of the waiting events that this call tries to apply, together with ``new_events``."""
    if len(waiting) <= TRY_ALL_LIMIT:
        return [name for name, _ in waiting]
    from gaia_sessions.store import inbox_keys

    keys = {key for event in new_events for key in inbox_keys.keys_named_in(event)}
    if any(inbox_keys.may_concern_others(event) for event in new_events):
        keys |= _keys_in_records(store, new_events)
    return inbox_keys.events_to_try(waiting, keys, OTHERS_PER_CALL, int.from_bytes(os.urandom(4)))


def _apply_one(
    store: Store,
    name: str,
    event: dict[str, Json] | SessionsError,
    now: datetime,
    config: Config,
    should_stop: Callable[[], bool],
) -> str:
    if isinstance(event, StoreFailure):
        return f"waits: {event.code}"
    try:
        checked = checked_event(event)
        applied, word = try_to_apply(store, checked, config, should_stop)
        if word == NO_KEY and (noted := noted_since(checked, config)) is not checked:
            applied, word = try_to_apply(store, noted, config, should_stop)
    except SessionsError as error:
        store.dismiss(name)
        return f"dropped: {error}"
    if not applied and (should_stop() or word in REFUSALS or not has_waited_too_long(checked, now, word)):
        return f"waits: {word}"
    store.dismiss(name)
    return word if applied else f"dropped after {_SPELLED_WAITS[_max_wait(word)]}: {word}"


def has_waited_too_long(event: Mapping[str, object], now: datetime, word: str | None = None) -> bool:
    """Returns whether a waiting ``event`` is dropped. ``word``: why it was not applied; None if it was not tried."""
    return now - parse_time(event.get("at")) >= _max_wait(word)


def _max_wait(word: str | None) -> timedelta:
    return MAX_WAIT_FOR_KEY if word == NO_KEY else MAX_WAIT


def try_to_apply(store: Store, event: Event, config: Config, should_stop: Callable[[], bool]) -> tuple[bool, str]:
    """Applies ``event``; returns whether that succeeded, and the word for what was done or for what prevented it."""
    try:
        terms = Terms(parse_time(event["at"]), config, 0, should_stop, is_waiting=True)
        result = apply_event(store, event, terms)
    except (LockTimeout, StoreFailure, errors.DurabilityUnknown, errors.TooLarge) as error:
        return False, error.code
    except SessionsError:
        raise
    except Exception as error:  # noqa: BLE001  # one event must not block all others
        return False, f"{type(error).__name__}: {error}"
    return result.word not in (BUSY, EARLY) and not may_join_later(event, result), result.word


def checked_event(event: Mapping[str, object] | SessionsError) -> Event:
    """Returns ``event`` if it was read and is valid; otherwise raises why not."""
    if isinstance(event, SessionsError):
        raise event
    check_event(event, "")
    missing = next((key for key in REQUIRED_FIELDS[str(event["kind"])] if key not in event), None)
    if missing:
        raise InvalidInput("missing", missing)
    checked: Event = event  # type: ignore[assignment]  # just checked
    checked.get("host_process", {}).pop("lock", None)  # a host holds none of our locks
    for key in ("running", "commands"):
        del checked.get(key, [])[MOST_RUNNING:]  # type: ignore[attr-defined]  # just checked
    if "own_work" in checked:
        del checked["own_work"]["tasks"][MOST_TASKS:]
    return checked


def _keys_in_records(store: Store, events: Sequence[Event]) -> set[str]:
    """Returns the inbox keys of the sessions of ``events``, from their records."""
    from gaia_sessions.store import inbox_keys

    return {
        key
        for event in events
        for record in _records_of_event(store, event)
        for key in inbox_keys.keys_of_record(record)
    }


def _records_of_event(store: Store, event: Event) -> Iterator[Record]:
    from gaia_sessions.store import inbox_keys

    if event["kind"] in inbox_keys.CONVERSATION_KINDS:
        from .many_runs import records_of_conversation

        yield from records_of_conversation(store, event["host_session_id"])
    for agent_id in dict.fromkeys(inbox_keys.sessions_named_in(event)):
        try:
            record = store.read(agent_id) if is_agent_id(agent_id) else None
        except SessionsError:  # a session that cannot be read cannot be changed
            continue
        if record is not None and not has_newer_schema(record):
            yield record
