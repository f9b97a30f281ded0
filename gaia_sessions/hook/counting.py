"""Counts what runs used, at the end of a hook call, when the reply is written.

The time for it is short: transcripts may have many MB, and a host waits for its hooks.
"""

from __future__ import annotations

import time

from gaia_sessions.ingest.consumption import count_run_of_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.ingest import EventResult
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.store.port import Store

    from . import TimeLimits

COUNTING_TIMEOUT = 0.25
"""Seconds of a call for reading transcripts. ``reconcile`` counts the rest."""


def count_runs(results: list[tuple[Store, Event, EventResult]], limits: TimeLimits) -> None:
    """Counts the runs that the events of this call ended, until the time is over."""
    until = time.monotonic() + COUNTING_TIMEOUT

    def is_late() -> bool:
        return limits.is_late() or time.monotonic() > until

    for store, event, result in results:
        if not is_late():
            count_run_of_event(store, event, result, is_late, COUNTING_TIMEOUT)
