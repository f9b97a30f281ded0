"""Many events that a host reported at once, such as the ends of all agents of a workflow.
They are in the inbox, a few hundred to a file, before the first one is applied. If the time is over before the last
event of a file, the whole file is applied again: applying an event twice changes nothing.
"""

from __future__ import annotations

from itertools import count

from gaia_sessions import errors
from gaia_sessions.errors import SessionsError, StoreFailure
from gaia_sessions.session.clock import timedelta
from gaia_sessions.session.host_events import SEVERAL

from . import APPLIED, BUSY, EARLY, EventResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.store.port import Store

    from . import Terms

IN_ONE_FILE = 500
"""In one call, a hook has time to see that so many events were applied before, and to apply more events."""


def hold(store: Store, events: list[Event], now: datetime) -> list[str]:
    """Puts ``events`` into the inbox and returns their names there; none if that fails."""
    try:
        return list(_hold(store, events, IN_ONE_FILE, _moments_from(now)))
    except (StoreFailure, errors.DurabilityUnknown, errors.TooLarge):
        return []


def several(store: Store, event: Event, terms: Terms) -> EventResult:
    """Returns ``applied``; ``busy`` if one event was refused; ``early`` if one event still waits."""
    from .deferred import REFUSALS, checked_event, try_to_apply

    words = {APPLIED}
    for one in event["events"]:
        if terms.should_stop():
            return EventResult(BUSY)
        try:
            applied, word = try_to_apply(store, checked_event(one), terms.config, terms.should_stop)
        except SessionsError:  # it can never be applied
            continue
        words.add(APPLIED if applied else BUSY if word in REFUSALS else EARLY)
    return EventResult(next(word for word in (BUSY, EARLY, APPLIED) if word in words))


def _hold(store: Store, events: list[Event], most: int, moments: Iterator[datetime]) -> Iterator[str]:
    """Puts ``events`` into the inbox in order: at most ``most`` to a file, and fewer if they do not fit."""
    for start in range(0, len(events), most):
        part = events[start : start + most]
        try:
            yield store.defer({"kind": SEVERAL, "at": part[0]["at"], "events": part}, next(moments))
        except errors.TooLarge:
            if most == 1:
                raise
            yield from _hold(store, part, most // 2, moments)


def _moments_from(now: datetime) -> Iterator[datetime]:
    """Yields moments for the names of the files, so that the names have the order of the events."""
    return (now + timedelta(microseconds=number) for number in count())
