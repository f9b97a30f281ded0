"""The hook of a start that its host does not wait for: it joins the start once the host has noted the delegation.

The host writes that note right after the hooks of the start that it does wait for, 3 to 166 ms later in runs of Claude
Code 2.1.197 and 2.1.330. One of those hooks has reported the start, which is in the inbox by then. Owns how long this
call waits for the note, and for a lock. Must never apply an event of its own: this call may be late, and the start of
an agent that has stopped by then would mean that it was woken.
"""

from __future__ import annotations

import time

from gaia_sessions.errors import LockTimeout
from gaia_sessions.ingest import KNOWN, NO_KEY
from gaia_sessions.ingest.dispatch import with_key
from gaia_sessions.session.events import START
from gaia_sessions.system import utc_now

from . import apply_waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.config import Config
    from gaia_sessions.session.events import Event

    from . import TimeLimits

_SECONDS_TO_APPLY = 0.5
_PAUSE = 0.005


def join_starts(events: list[Event], root: str, config: Config, limits: TimeLimits) -> dict[str, object]:
    """Joins the starts among ``events`` that wait in the inbox; the fields of the line in the log.

    Nothing is done about a start that needs no note, such as that of an agent of a workflow. A note that does not come
    in time is not missed here: the next process that writes tries again.
    """
    starts = [event for event in events if event["kind"] == START and ("key_file" in event or "tool_use_id" in event)]
    if not starts:
        return {}
    if not all(_has_key_in_time(event, limits) for event in starts):
        return {"decision": NO_KEY}
    applied = _apply(starts, root, config, limits)
    return {"decision": KNOWN, **({"inbox": applied} if applied else {})}


def _has_key_in_time(event: Event, limits: TimeLimits) -> bool:
    while "tool_use_id" not in with_key(event):
        if limits.seconds_left() < _SECONDS_TO_APPLY:
            return False
        time.sleep(_PAUSE)
    return True


def _apply(starts: list[Event], root: str, config: Config, limits: TimeLimits) -> list[str]:
    """A line on each waiting event that was tried; where another process held a session, they are tried again."""
    store = limits.open_store(root, config)
    while True:
        applied = apply_waiting(store, utc_now(), config, starts, lambda: limits.seconds_left() < 0)
        if not any(line.endswith(LockTimeout.code) for line in applied) or limits.seconds_left() < _PAUSE:
            return applied
        time.sleep(_PAUSE)
