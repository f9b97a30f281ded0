"""A run ends: which end each kind of event is evidence of.

Owns the rules that turn an event into an end. What an end does to a session is in ``session.run_ends``; which run the
event belongs to is in ``join``. Must never find a run.
"""

from __future__ import annotations

from gaia_sessions.session import events, runs
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.phases import ABANDONED, FAILED, is_final
from gaia_sessions.session.run_ends import (
    is_silent_stop,
    is_stronger_evidence,
    marker_fields,
    may_be_rejudged,
    with_end,
    with_failure_detail,
    with_later_stop,
    with_settled_return,
    with_silent_stop,
    without_denied_end,
)
from gaia_sessions.session.schema import DENIED, KILLED, RETURNED, STOPPED
from gaia_sessions.session.schema import FAILED as RUN_FAILED
from gaia_sessions.store.journal import EVENTS

from . import KEYS_DISAGREE, KNOWN, EventResult
from .join import (
    change_joined_run,
    change_run,
    entry_of_event,
    find_run,
    find_run_by_both_keys,
    is_of_dropped_run,
    may_be_of_agent,
    not_joined_result,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

_MESSAGE_FIELDS = ("last_message", "transcript_path")


def stop(store: Store, event: Event, now: datetime, timeout: float) -> EventResult:
    """``paused``, ``finalized``; ``joined`` for a stop without a last message, which leaves the run open."""
    return change_joined_run(store, event, timeout, _EndRules(event, now).stop, _word_for)


def fail(store: Store, event: Event, now: datetime, timeout: float) -> EventResult:
    """``paused``, ``finalized``; a delegation that failed before its agent started was denied."""
    return change_joined_run(store, event, timeout, _EndRules(event, now).fail, _word_for)


def returned(store: Store, event: Event, now: datetime, timeout: float) -> EventResult:
    """``paused``, ``finalized``, or ``returned`` while no stop has come."""
    return change_joined_run(store, event, timeout, _EndRules(event, now).returned, _word_for)


def delegation_closed(store: Store, event: Event, now: datetime, timeout: float) -> EventResult:
    """A delegation that is over and never started was denied; any other stays as it is."""
    return change_joined_run(store, event, timeout, _EndRules(event, now).delegation_closed, _word_for)


def notify(store: Store, event: Event, now: datetime, timeout: float) -> EventResult:
    """The host informs the main agent what became of an agent in the background.

    The agent may have been woken since, so the delegation decides which run is meant. If no run has the key of the
    delegation, it is that of what woke the agent, and the latest run is meant; or that of a dropped run, which needs no
    change.
    """
    by_delegation, by_agent = _without_key(event, "host_agent_id"), _without_key(event, "tool_use_id")
    rule = _EndRules(event, now).notification
    found = find_run(store, by_delegation)
    if not isinstance(found, EventResult):
        if not may_be_of_agent(found[1], event):
            return EventResult(KEYS_DISAGREE)
        return change_run(store, by_delegation, found, timeout, rule, _word_for)
    exact_run = find_run_by_both_keys(store, event)
    if exact_run:
        return change_run(store, event, exact_run, timeout, rule, _word_for)
    found = find_run(store, by_agent)
    if isinstance(found, EventResult):
        return found
    if is_of_dropped_run(store, found[0], event, "tool_use_id"):
        return EventResult(KNOWN)
    return change_run(store, by_agent, found, timeout, rule, _word_for)


def message(store: Store, event: Event, now: datetime, timeout: float) -> EventResult:  # noqa: ARG001  # all handlers take it
    """Somebody sent a message to the agent: noted in the journal, once. If it wakes the agent, a start follows."""
    found = find_run(store, event)
    if isinstance(found, EventResult):
        return found
    agent_id, number = found[0]["agent_id"], found[1]["run"]
    with store.lock_key(("message", event["host_agent_id"]), timeout):
        record = store.read(agent_id)
        run = runs.run_by_number(record, number)
        if run is None:
            return not_joined_result(event)
        new_entry = entry_of_event(event, record, run, record["revision"])
        if any(_is_same_call(entry, new_entry) for entry in store.entries(agent_id, EVENTS)):
            return EventResult(KNOWN, record=record)
        store.append(agent_id, EVENTS, [new_entry], timeout=timeout)
    return EventResult("noted", record=record)


def _is_same_call(entry: object, new_entry: dict[str, Json]) -> bool:
    """Whether ``entry`` of a journal is about the same call of a tool as ``new_entry``."""
    evidence: Json = new_entry["evidence"]
    has_call = isinstance(evidence, dict) and "call" in evidence
    return (
        has_call
        and isinstance(entry, dict)
        and (entry.get("kind"), entry.get("evidence")) == (new_entry["kind"], evidence)
    )


class _EndRules:
    """The rules for one event, one method for each kind."""

    def __init__(self, event: Event, now: datetime) -> None:
        self.event = event
        self.now = now

    def stop(self, record: Record, run: Run) -> Record:
        message_fields = self._message_fields()
        if self._is_after_block(run) and may_be_rejudged(record, run):
            return (
                record if _is_repeated(run, message_fields) else with_later_stop(record, run, message_fields, self.now)
            )
        record, run = self._with_start(record, run)
        if not self.event.get("spoke"):
            return with_silent_stop(record, run, self.now)
        return with_end(record, run, STOPPED, message_fields, self.now)

    def fail(self, record: Record, run: Run) -> Record:
        record, run = self._with_start(record, run)
        has_begun = runs.has_started(run)
        if self.event.get("interrupted") and (has_begun or run["run"] == 1):  # a mere claim is denied below
            return with_end(record, run, KILLED, self._detail("interrupted"), self.now)
        if not has_begun:
            return with_end(record, run, DENIED, self._detail("never started"), self.now)
        if self.event.get("spoke") and not is_stronger_evidence(run, RUN_FAILED):
            return with_failure_detail(record, run, self._detail("failed")["detail"])
        return with_end(record, run, RUN_FAILED, self._detail("failed"), self.now)

    def returned(self, record: Record, run: Run) -> Record:
        record, run = self._with_start(record, run)
        return with_end(record, run, STOPPED if is_silent_stop(run) else RETURNED, {}, self.now)

    def delegation_closed(self, record: Record, run: Run) -> Record:
        record, run = self._with_start(record, run)
        return (
            record if runs.has_started(run) else with_end(record, run, DENIED, self._detail("never started"), self.now)
        )

    def notification(self, record: Record, run: Run) -> Record:
        record, run = self._with_start(record, run)
        outcome = self.event.get("outcome")
        if outcome == ABANDONED:
            return with_end(record, run, KILLED, self._detail("stopped"), self.now)
        if outcome == FAILED:
            return with_end(record, run, RUN_FAILED, self._detail("failed"), self.now)
        record = self.returned(record, run)
        return with_settled_return(record, runs.updated_run(record, run), self.now)

    def _is_after_block(self, run: Run) -> bool:
        """Whether a hook kept the agent going after the stop that ended ``run``, and it has now sent a message."""
        has_new_message = self.event.get("again") and self.event.get("spoke") and runs.has_ended(run)
        return bool(has_new_message) and self.now >= parse_time(run["ended_at"])

    def _with_start(self, record: Record, run: Run) -> tuple[Record, Run]:
        """With the start of ``run`` if the event shows it: it names the agent, or says that the agent was at work."""
        start_fields = self._start_of(run)
        if not start_fields:
            return record, run
        record = without_denied_end(record, run, self.now)
        run = runs.updated_run(record, run)
        record = runs.with_start(record, run, start_fields, self.now)
        return record, runs.updated_run(record, run)

    def _start_of(self, run: Run) -> Run:
        """What the event adds to the start of ``run``; a start that is not reported is that of the delegation."""
        if "host_agent_id" in self.event:
            return {} if "host_agent_id" in run else {"host_agent_id": self.event["host_agent_id"]}
        if "worked" not in self.event or runs.has_started(run):
            return {}
        return {"started_at": run.get("claimed_at") or format_time(self.now)}

    def _message_fields(self) -> Run:
        fields: Run = {key: self.event[key] for key in _MESSAGE_FIELDS if key in self.event}  # type: ignore[literal-required, assignment]
        return {**fields, **marker_fields(self.event.get("marked"))}

    def _detail(self, default: str) -> Run:
        return {"detail": (self.event.get("error") or default)[: events.MAX_MESSAGE_LENGTH]}


def _is_repeated(run: Run, message_fields: Run) -> bool:
    """Whether a stop repeats the last one word for word, so that nothing changes."""
    return (
        bool(message_fields)
        and message_fields.items() <= run.items()
        and run.get("detail") == message_fields.get("detail")
    )


def _word_for(record: Record) -> str:
    if is_final(record["phase"]):
        return "finalized"
    return "paused" if record["resume_ready"] and runs.has_ended(record["runs"][-1]) else "joined"


def _without_key(event: Event, key: str) -> Event:
    return {name: value for name, value in event.items() if name != key}  # type: ignore[return-value]


HANDLERS = {
    events.STOP: stop,
    events.FAIL: fail,
    events.RETURNED: returned,
    events.DELEGATION_CLOSED: delegation_closed,
    events.NOTIFICATION: notify,
    events.MESSAGE: message,
}
"""The function for each kind of event."""
