"""One call of a hook: the arguments of its command, and how long the call may take.

A hook fails open and silent, except for limits that a user asked to enforce. A host waits for its hooks, so a call ends
within three seconds.
"""

from __future__ import annotations

import os
import time

from gaia_sessions.errors import well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import TypedDict, TypeVar

    from gaia_sessions.config import Config
    from gaia_sessions.hosts import Host
    from gaia_sessions.hosts.payload import HookPayload
    from gaia_sessions.ingest import EventResult
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.directory import Directory
    from gaia_sessions.store.locks import Release
    from gaia_sessions.store.port import Store

    Applied = TypeVar("Applied")

    class Arguments(TypedDict):
        """What the words of the command say. ``ignored`` has the words that mean nothing."""

        host: str | None
        root: str | None
        reports: bool
        enforce: bool
        test: bool
        help: bool
        ignored: list[str]


ALLOW_REPORT, ENFORCE = "--allow-report", "--enforce"
VALUES = {"--host": "host", "--root": "root"}
FLAGS = {
    ALLOW_REPORT: "reports",
    ENFORCE: "enforce",
    "--test": "test",
    "-h": "help",
    "--help": "help",
}
"""The options of the hook command: options in the settings of hosts, and options that only people type."""

_LONGEST_WORD = 128

READ_TIMEOUT = 1.5
"""Seconds that a call waits for its input."""

LOCK_TIMEOUT = 2.0
"""Seconds that a call waits for locks at most."""

TOTAL_TIMEOUT = 2.6
"""Seconds that a call may work. The rest of its three seconds starts and ends the interpreter."""

_SECONDS_TO_END = 0.4
"""Seconds of ``TOTAL_TIMEOUT`` that are reserved for a write that has begun, the reply and the log."""


def read_arguments(words: list[str]) -> Arguments:
    """Returns what ``words`` say. If an option comes twice, the last one counts."""
    # This never raises: a host would take the error for a refusal.
    told: Arguments
    told = {"host": None, "root": None, **dict.fromkeys(FLAGS.values(), False), "ignored": []}  # type: ignore[typeddict-item]  # its keys
    rest = words[::-1]
    while rest:
        word = rest.pop()
        name, glued, value = word.partition("=")
        if name in VALUES and not glued and rest and not rest[-1].startswith("--"):
            value = rest.pop()
        if name in VALUES and value:
            told[VALUES[name]] = value  # type: ignore[literal-required]  # a key of it
        elif word in FLAGS:
            told[FLAGS[word]] = True  # type: ignore[literal-required]  # a key of it
        else:
            told["ignored"].append(well_formed(word[:_LONGEST_WORD]))
    return told


def argument_words(**told: str | bool | None) -> list[str]:
    """Returns the words that ``read_arguments`` reads as these values."""
    values = [word for name, key in VALUES.items() if (value := told.get(key)) for word in (name, str(value))]
    return [*values, *(name for name, key in FLAGS.items() if told.get(key))]


def apply_waiting(
    store: Store, now: datetime, config: Config, events: list[Event], is_late: Callable[[], bool]
) -> list[str]:
    """Applies events of the inbox until ``is_late``, first those that concern ``events``; returns a line for each."""
    from gaia_sessions.errors import SessionsError

    # In most calls no event waits, and nothing more is imported.
    try:
        waiting = store.waiting()
    except SessionsError as error:
        return [f"unread: {error}"]
    if not waiting:
        return []
    from gaia_sessions.ingest.deferred import apply_deferred

    return apply_deferred(store, now, config, is_late, waiting=waiting, new_events=events)


def apply_each(
    store: Store, events: list[Event], now: datetime, is_over: Callable[[], bool], apply: Callable[[Event], Applied]
) -> tuple[list[Applied], list[Exception]]:
    """Applies each of ``events``, even if another one fails; returns the results and the errors."""
    from gaia_sessions.ingest import AT_ONCE

    # Many events are in the inbox until the last one is applied. They stay there if one fails or the time is over.
    names = []
    if len(events) > AT_ONCE:
        from gaia_sessions.ingest import several

        names = several.hold(store, events, now)
    applied: list[Applied] = []
    failed: list[Exception] = []
    for event in events:
        if names and is_over():
            return applied, failed
        try:
            applied.append(apply(event))
        except Exception as error:  # noqa: BLE001  # the caller logs it; the next event may work
            failed.append(error)
    for name in () if failed else names:
        store.dismiss(name)
    return applied, failed


def handle_event(
    store: Store, event: Event, payload: HookPayload, host: Host, is_over: Callable[[], bool]
) -> EventResult:
    """Applies ``event``. If no session has its agent, records the start of the agent first, if possible."""
    from gaia_sessions.ingest import NO_KEY, Terms, dispatch

    terms = Terms(payload.now, payload.config, LOCK_TIMEOUT, is_over, may_refuse=host.denies is not None)
    result = dispatch.handle_event(store, event, terms)
    has_orphan = "parent_host_agent_id" in event and result.record is not None and "parent_id" not in result.record
    if not (result.word == NO_KEY or has_orphan) or "agent_id" not in payload.raw:
        return result
    from gaia_sessions.errors import SessionsError

    from .first_news import starts_of_sender

    starts = starts_of_sender(payload, host)
    try:
        for start in starts:
            dispatch.apply_event(store, start, terms)
    except SessionsError:  # the agent's next news tries again
        return result
    if not starts or result.word != NO_KEY:
        return result
    return dispatch.handle_event(store, event, terms)


def is_countable(event: Event, result: EventResult) -> bool:
    """Returns whether the tokens of the run of ``event`` can be counted now."""
    from gaia_sessions.session.host_events import DELEGATE, FAIL, NOTIFICATION, RETURNED, START
    from gaia_sessions.session.schema import LOST

    runs = result.record.get("runs", []) if result.record else []
    if event["kind"] in (DELEGATE, START):
        # If a client was killed, its run is counted when the next run begins.
        is_new = [run for run in runs[-2:-1] if run.get("end") == LOST and "consumed" not in run]
        return bool(is_new) and os.path.isfile(is_new[0].get("transcript_path", ""))
    # At a stop the transcript is not complete yet.
    if event["kind"] not in (FAIL, NOTIFICATION, RETURNED) or "has_message" in event:
        return False
    return bool(runs) and os.path.isfile(runs[-1].get("transcript_path", ""))  # whether it may be read is checked later


class TimeLimits:
    """The time of one call. It begins when this object is made."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def restart(self) -> None:
        """Begins again: the time in which a person typed does not count."""
        self.started = time.monotonic()

    def milliseconds(self) -> float:
        return round((time.monotonic() - self.started) * 1000, 1)

    def seconds_left(self) -> float:
        return self.started + TOTAL_TIMEOUT - time.monotonic()

    def is_late(self) -> bool:
        """Returns whether the events of this call need the time that is left."""
        return time.monotonic() > self.started + READ_TIMEOUT

    def is_over(self) -> bool:
        """Returns whether this call must change no other run. The next call then applies the events that are left."""
        return self.seconds_left() < _SECONDS_TO_END

    def open_store(self, root: str, config: Config) -> Store:
        """Returns the store at ``root``, which waits for locks no longer than this call has time."""
        from gaia_sessions.store.file_store import open_store

        return open_store(root, config, lock_timeout=LOCK_TIMEOUT, wait=self._wait, seconds_left=self.seconds_left)

    def _wait(self, folder: Directory, name: str, seconds: float) -> Release | None:
        from gaia_sessions.store.locks import sleep_and_retry

        return sleep_and_retry(folder, name, min(seconds, self.seconds_left()))


def may_have_reply(event: Event, result: EventResult, host: Host) -> bool:
    """Returns whether a reply is possible. The code for replies is imported only in that case."""
    from gaia_sessions.ingest import REFUSED
    from gaia_sessions.session.host_events import DELEGATE, NOTIFICATION, RETURNED

    if event["kind"] not in host.replies:
        return result.word == REFUSED
    if event["kind"] in (RETURNED, NOTIFICATION):
        return result.record is not None and _may_need_reply(result.record)
    # A delegation of new work gets no reply.
    return event["kind"] != DELEGATE or result.resumed is not None or result.word == REFUSED


def _may_need_reply(record: Record) -> bool:
    """Returns whether the main agent may need news: of open or paused work, of open todos, or of a named session."""
    from gaia_sessions.session.record import is_open
    from gaia_sessions.session.runs import times_held

    is_mentioning = any("mentioned" in run for run in record.get("runs", ()))
    return is_mentioning or times_held(record) > 0 or "paused_until" in record or is_open(record)
