"""A sub-agent is at work: for the first time, or again because a message woke it.

Owns what the waking of an agent means: a new run if its session is still open, a new session that continues the old one
if not. A start that is reported late belongs to the run that has ended since. Must never end a run because of a report
of its host.
"""

from __future__ import annotations

from gaia_sessions.session import runs
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.ids import new_agent_id
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import new_record
from gaia_sessions.session.run_ends import with_agent_in_conversation, with_end_of_gone_host, without_denied_end
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST
from gaia_sessions.store import create_under_new_id
from gaia_sessions.system import processes

from . import EventResult
from .join import change_run, entry_of_event, find_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store import RandomBytes
    from gaia_sessions.store.port import Store

_AGENT_FIELDS = (
    *("host", "host_session_id", "host_agent_id", "parent_host_agent_id", "host_process"),
    *("background", "transcript_path"),
)


def start(store: Store, event: Event, now: datetime, random_bytes: RandomBytes, timeout: float) -> EventResult:
    """``started``, in a run that was found or in a new one; ``continued`` in a new session; else as ``change_run``."""
    key = ("agent", event["host_agent_id"])
    with store.lock_key(key, timeout):
        found = find_run(store, event)
        if isinstance(found, EventResult):
            return found
        record, run = found
        if is_final(record["phase"]) and _is_wake(run, event, now):
            return _continue_in_new_session(store, event, record, now, random_bytes)
        result = change_run(store, event, found, timeout, _StartRule(event, now).rule, lambda _: "started")
        changed_run = runs.run_by_number(result.record, run["run"]) if result.record else None
        if result.record and changed_run and is_final(result.record["phase"]) and _is_wake(changed_run, event, now):
            return _continue_in_new_session(store, event, result.record, now, random_bytes)  # its host was gone
        return result


class _StartRule:
    """The rule for one start."""

    def __init__(self, event: Event, now: datetime) -> None:
        self.event = event
        self.now = now

    def rule(self, record: Record, run: Run) -> Record:
        if (
            self._is_in_own_conversation(run)
            and runs.has_started(run)
            and run["run"] in processes.runs_of_gone_hosts(record)
        ):
            record = with_end_of_gone_host(record, run, self.now)
            run = runs.updated_run(record, run)
        if _is_wake(run, self.event, self.now):
            return record if is_final(record["phase"]) or _has_live_run(record) else self._with_new_run(record)
        record = without_denied_end(record, run, self.now)
        record = with_agent_in_conversation(
            record, runs.updated_run(record, run), self.event["host_session_id"], self.now
        )
        run = runs.updated_run(record, run)
        return runs.with_start(record, run, self._known(run), self.now)

    def _with_new_run(self, record: Record) -> Record:
        record = runs.with_new_run(record, {})
        run = record["runs"][-1]
        return runs.with_start(record, run, self._known(run), self.now)

    def _known(self, run: Run) -> Run:
        fields = _agent_fields(self.event)
        if "host_session_id" in run:  # it is part of the delegation's key; the present conversation has its own field
            del fields["host_session_id"]
        return fields if "started_at" in run else {**fields, "started_at": format_time(self.now)}

    def _is_in_own_conversation(self, run: Run) -> bool:
        """Whether the event comes in the run's own conversation, not in one in which its agent continued."""
        return runs.conversation_of(run) == self.event["host_session_id"]


def _is_wake(run: Run, event: Event, now: datetime) -> bool:
    """Whether the start wakes an agent whose run had ended before the event."""
    if event.get("launch") or run.get("host_agent_id") != event["host_agent_id"]:
        return False
    if run.get("end") == ENDED_WITH_HOST and runs.conversation_of(run) != event["host_session_id"]:
        return False  # only its conversation ended, and it works on in another one
    return runs.has_ended(run) and run["end"] != DENIED and now >= parse_time(run["ended_at"])


def _has_live_run(record: Record) -> bool:
    """Whether an agent is at work on the session."""
    gone = processes.runs_of_gone_hosts(record)
    return any(runs.is_live(run) and run["run"] not in gone for run in record["runs"])


def _continue_in_new_session(
    store: Store, event: Event, earlier: Record, now: datetime, random_bytes: RandomBytes
) -> EventResult:
    new = new_record(new_agent_id(now, random_bytes(4)), earlier["agent_name"], earlier["purpose"], {}, now)
    run: Run = {**_agent_fields(event), "run": 1, "started_at": format_time(now)}
    continuation: Record = {**new, "continues": earlier["agent_id"], "runs": [run]}
    record = runs.with_start(continuation, {"run": 1}, run, now)
    entry = entry_of_event(event, record, record["runs"][0], record["revision"])
    return EventResult("continued", record=create_under_new_id(store, record, now, random_bytes, entry))


def _agent_fields(event: Event) -> Run:
    return {key: event[key] for key in _AGENT_FIELDS if key in event}  # type: ignore[literal-required, return-value]
