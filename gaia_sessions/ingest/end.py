"""A run ends: what each piece of news says about it, and what becomes of its session.

Owns which evidence is which end. What an end does is in ``endings``.
"""

from __future__ import annotations

from gaia_sessions.session import events, runs
from gaia_sessions.session.clock import read_time, write_time
from gaia_sessions.session.phases import ABANDONED, FAILED, is_final
from gaia_sessions.session.run_ends import (
    ended,
    is_news,
    is_silent,
    may_be_rejudged,
    restopped,
    reworded,
    said,
    settled,
    stopped_silently,
    undenied,
)
from gaia_sessions.session.schema import DENIED, KILLED, LONGEST_MESSAGE, RETURNED, STOPPED
from gaia_sessions.session.schema import FAILED as RUN_FAILED
from gaia_sessions.store.journal import EVENTS

from .join import (
    change_joined,
    change_run,
    entry_of,
    find_run,
    find_stretch,
    is_of_agent,
    is_of_dropped_run,
    not_joined,
)
from .result import KEYS_DISAGREE, KNOWN, Done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

_TOLD = ("last_message", "transcript_path")


def stop(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """``paused``, ``finalized``; ``joined`` for a stop without a last message, which leaves the run open."""
    return change_joined(store, event, timeout, _News(event, now).stop, _standing)


def fail(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """``paused``, ``finalized``; a delegation that failed before its agent started was denied."""
    return change_joined(store, event, timeout, _News(event, now).fail, _standing)


def returned(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """``paused``, ``finalized``, or ``returned`` while no stop has come."""
    return change_joined(store, event, timeout, _News(event, now).returned, _standing)


def over(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """A delegation that is dealt with and never started was denied; about any other this says nothing."""
    return change_joined(store, event, timeout, _News(event, now).over, _standing)


def notify(store: Store, event: Event, now: datetime, timeout: float) -> Done:
    """The main agent is told what became of an agent in the background, maybe for the first time.

    An agent may have been woken since: then its delegation tells which stretch is meant. What woke it has
    a key of its own, which leads nowhere, and then the latest is meant. The key of a run that was dropped leads
    nowhere either, and that is over.
    """
    by_delegation, by_agent = _without(event, "host_agent_id"), _without(event, "tool_use_id")
    found = find_run(store, by_delegation)
    if isinstance(found, Done):
        stretch = find_stretch(store, event)
        if stretch:
            return change_run(store, event, stretch, timeout, _News(event, now).notified, _standing)
        if _is_of_dropped_run(store, event, by_agent):
            return Done(KNOWN)
        return change_joined(store, by_agent, timeout, _News(event, now).notified, _standing)
    run = runs.run_numbered(store.read(found[0]), found[1])
    if run and not is_of_agent(run, event):
        return Done(KEYS_DISAGREE)
    return change_joined(store, by_delegation, timeout, _News(event, now).notified, _standing)


def _is_of_dropped_run(store: Store, event: Event, by_agent: Event) -> bool:
    found = find_run(store, by_agent)
    return not isinstance(found, Done) and is_of_dropped_run(store, store.read(found[0]), event, "tool_use_id")


def message(store: Store, event: Event, now: datetime, timeout: float) -> Done:  # noqa: ARG001  # all take it
    """Somebody wrote to the agent: kept as evidence, once. If that wakes it, its start says so."""
    found = find_run(store, event)
    if isinstance(found, Done):
        return found
    agent_id, number = found
    with store.exclusive(("message", event["host_agent_id"]), timeout):
        record = store.read(agent_id)
        told = entry_of(event, number)(record)
        if told is None:
            return not_joined(event)
        if any(_is_same_call(entry, told) for entry in store.entries(agent_id, EVENTS)):
            return Done(KNOWN, record=record)
        store.append(agent_id, EVENTS, [told], timeout=timeout)
    return Done("noted", record=record)


def _is_same_call(entry: object, told: dict[str, Json]) -> bool:
    """Whether ``entry`` of a journal is about the very call of a tool that ``told`` is about."""
    evidence: Json = told["evidence"]
    named = isinstance(evidence, dict) and "call" in evidence
    return named and isinstance(entry, dict) and (entry.get("kind"), entry.get("evidence")) == (told["kind"], evidence)


class _News:
    """The rules of one piece of news, each by what it is."""

    def __init__(self, event: Event, now: datetime) -> None:
        self.event = event
        self.now = now

    def stop(self, record: Record, run: Run) -> Record:
        told: Run = {**self._told(), **said(self.event.get("marked"))}
        if self._comes_again_after(run) and may_be_rejudged(record, run):
            return record if _said_before(run, told) else restopped(record, run, told, self.now)
        record, run = self._begun(record, run)
        if not self.event.get("spoke"):
            return stopped_silently(record, run, self.now)
        return ended(record, run, STOPPED, told, self.now)

    def fail(self, record: Record, run: Run) -> Record:
        record, run = self._begun(record, run)
        begun = runs.has_begun(run)
        if self.event.get("interrupted") and (begun or run["run"] == 1):  # what was only claimed is left as it was
            return ended(record, run, KILLED, self._detail("interrupted"), self.now)
        if not begun:
            return ended(record, run, DENIED, self._detail("never started"), self.now)
        if self.event.get("spoke") and not is_news(run, RUN_FAILED):
            return reworded(record, run, self._detail("failed")["detail"])
        return ended(record, run, RUN_FAILED, self._detail("failed"), self.now)

    def returned(self, record: Record, run: Run) -> Record:
        record, run = self._begun(record, run)
        return ended(record, run, STOPPED if is_silent(run) else RETURNED, {}, self.now)

    def over(self, record: Record, run: Run) -> Record:
        record, run = self._begun(record, run)
        return record if runs.has_begun(run) else ended(record, run, DENIED, self._detail("never started"), self.now)

    def notified(self, record: Record, run: Run) -> Record:
        record, run = self._begun(record, run)
        outcome = self.event.get("outcome")
        if outcome == ABANDONED:
            return ended(record, run, KILLED, self._detail("stopped"), self.now)
        if outcome == FAILED:
            return ended(record, run, RUN_FAILED, self._detail("failed"), self.now)
        record = self.returned(record, run)
        return settled(record, runs.run_now(record, run), self.now)

    def _comes_again_after(self, run: Run) -> bool:
        """Whether the agent had been kept going after the stop that ended ``run``, and now said something new."""
        news = self.event.get("again") and self.event.get("spoke") and runs.has_ended(run)
        return bool(news) and self.now >= read_time(run["ended_at"])

    def _begun(self, record: Record, run: Run) -> tuple[Record, Run]:
        """Whoever names an agent for the run, or tells of its work, knows that it started."""
        known = self._start_of(run)
        if not known:
            return record, run
        record = undenied(record, run, self.now)
        run = runs.run_now(record, run)
        record = runs.begun(record, run, known, self.now)
        return record, runs.run_now(record, run)

    def _start_of(self, run: Run) -> Run:
        """What the news adds to what is known of the start: an agent nobody told of began when it was delegated."""
        if "host_agent_id" in self.event:
            return {} if "host_agent_id" in run else {"host_agent_id": self.event["host_agent_id"]}
        if "worked" not in self.event or runs.has_begun(run):
            return {}
        return {"started_at": run.get("claimed_at") or write_time(self.now)}

    def _told(self) -> Run:
        return {key: self.event[key] for key in _TOLD if key in self.event}  # type: ignore[literal-required, return-value]

    def _detail(self, otherwise: str) -> Run:
        return {"detail": (self.event.get("error") or otherwise)[:LONGEST_MESSAGE]}


def _said_before(run: Run, told: Run) -> bool:
    """Whether a stop tells again, word for word, what the last one told: then there is nothing to judge anew."""
    return bool(told) and told.items() <= run.items() and run.get("detail") == told.get("detail")


def _standing(record: Record) -> str:
    if is_final(record["phase"]):
        return "finalized"
    return "paused" if record["resume_ready"] and runs.has_ended(record["runs"][-1]) else "joined"


def _without(event: Event, key: str) -> Event:
    return {name: value for name, value in event.items() if name != key}  # type: ignore[return-value]


USE_CASES = {
    events.STOP: stop,
    events.FAIL: fail,
    events.RETURNED: returned,
    events.OVER: over,
    events.NOTIFICATION: notify,
    events.MESSAGE: message,
}
"""What takes in which kind of event."""
