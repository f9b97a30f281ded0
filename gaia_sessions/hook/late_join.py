"""The hook of a start that its host does not wait for: it joins the start once the host has noted its delegation.

The host writes that note right after the hooks of the start that it does wait for, 3 to 166 ms later in runs of Claude
Code 2.1.197 and 2.1.330. The journal of a workflow names an agent before its start, but on a busy machine a moment
after it. One of the hooks that are waited for has reported the start, which is in the inbox by then. Owns how long this
call waits for the note, for the report, and for a lock. Must never apply an event of its own: this call may be late,
and the start of an agent that has stopped by then would mean that it was woken.
"""

from __future__ import annotations

import time

from gaia_sessions.errors import LockTimeout
from gaia_sessions.ingest import KNOWN, NO_KEY
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.events import START
from gaia_sessions.system import utc_now

from . import apply_waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.store.file_store import FileStore

    from . import TimeLimits

_SECONDS_TO_APPLY = 0.5
_PAUSE = 0.005
_LONGEST_PAUSE = 0.08


def join_starts(
    events: list[Event], reread_events: Callable[[], list[Event]], root: str, config: Config, limits: TimeLimits
) -> dict[str, object]:
    """Joins the starts among ``events`` that wait in the inbox; the fields of the line in the log.

    reread_events: reads the events once more from the payload, with what its host has noted by then. A note of a
    delegation that does not come in time is not missed here: the next process that writes tries again.
    """
    starts = _starts_with_keys(events, reread_events, limits)
    if starts is None:
        return {"decision": NO_KEY}
    if not starts:
        return {}
    store = limits.open_store(root, config)
    for event in starts:
        if "workflow" in event:
            _complete_report(store, event, limits)
    applied = _apply(store, starts, config, limits)
    return {"decision": KNOWN, **({"inbox": applied} if applied else {})}


def _starts_with_keys(
    events: list[Event], reread_events: Callable[[], list[Event]], limits: TimeLimits
) -> list[Event] | None:
    """The starts, as soon as it is noted of each who started the agent; None if that does not come in time."""
    pause = _PAUSE
    while True:
        starts = [event for event in events if event["kind"] == START and _may_have_key(event)]
        if not any("key_file" in event for event in starts):  # which stands in place of the key
            return starts
        if limits.seconds_left() < _SECONDS_TO_APPLY:
            return None
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
        events = reread_events()


def _may_have_key(event: Event) -> bool:
    return any(name in event for name in ("key_file", "tool_use_id", "workflow"))


def _complete_report(store: FileStore, event: Event, limits: TimeLimits) -> None:
    """If the start of ``event`` was reported without its workflow and waits for it, it waits with it from now on.

    Returns at once if the start is in a session, and waits for the report if there is neither.
    """
    while not _has_replaced_report(store, event) and not _has_session(store, event):
        if limits.seconds_left() < _SECONDS_TO_APPLY:
            return
        time.sleep(_PAUSE)


def _has_replaced_report(store: FileStore, event: Event) -> bool:
    """Whether the report waited. The complete one is there before the other is removed: both are one start."""
    from gaia_sessions.store import inbox_keys

    waiting = inbox_keys.matching_events(store.waiting(), set(inbox_keys.keys_named_in(event)))
    for name, report in store.deferred([name for name, _ in waiting]):
        if isinstance(report, dict) and _is_report_of(report, event):
            at = parse_time(report["at"])
            store.defer({**event, "at": report["at"]}, at)  # type: ignore[typeddict-item]  # just read as a time
            store.dismiss(name)
            return True
    return False


def _is_report_of(report: dict[str, Json], event: Event) -> bool:
    keys = ("kind", "host", "host_session_id", "host_agent_id")
    return "key_file" in report and all(report.get(key) == event.get(key) for key in keys)


def _has_session(store: FileStore, event: Event) -> bool:
    from gaia_sessions.ingest.join import session_id_of_agent

    return session_id_of_agent(store, event.get("host"), event["host_session_id"], event["host_agent_id"]) is not None


def _apply(store: FileStore, starts: list[Event], config: Config, limits: TimeLimits) -> list[str]:
    """A line on each waiting event that was tried; where another process held a session, they are tried again."""
    while True:
        applied = apply_waiting(store, utc_now(), config, starts, lambda: limits.seconds_left() < 0)
        if not any(line.endswith(LockTimeout.code) for line in applied) or limits.seconds_left() < _PAUSE:
            return applied
        time.sleep(_PAUSE)
