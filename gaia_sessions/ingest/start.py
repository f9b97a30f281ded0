"""A sub-agent is at work: for the first time, or again because somebody wrote to it.

Owns what an agent that wakes means: in a session that is still open a new run, after a finished one a new
session that continues it. A start told late belongs to the run that has ended since.
"""

from __future__ import annotations

from gaia_sessions.session import runs
from gaia_sessions.session.clock import read_time, write_time
from gaia_sessions.session.ids import new_agent_id
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import new_record
from gaia_sessions.session.run_ends import ended, heard_in, undenied
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST, LOST
from gaia_sessions.store.new_id import create_under_new_id
from gaia_sessions.system import processes

from .join import change_joined, entry_of, find_run
from .result import Done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.new_id import Chance
    from gaia_sessions.store.port import Store

_OF_THE_AGENT = (
    *("host", "host_session_id", "host_agent_id", "parent_host_agent_id", "host_process"),
    *("background", "transcript_path"),
)


def start(store: Store, event: Event, now: datetime, chance: Chance, timeout: float) -> Done:
    """``started``; ``woken`` for a new run, ``continued`` for a new session; else as ``change_joined`` says."""
    key = ("agent", event["host_agent_id"])
    with store.exclusive(key, timeout):
        found = find_run(store, event)
        if isinstance(found, Done):
            return found
        starting = _Starting(event, now)
        record = store.read(found[0])
        if starting.comes_after_the_end(record, found[1]):
            return _continued(store, event, record, now, chance)
        done = change_joined(store, event, timeout, starting.rule, lambda _: "started")
        if done.record and starting.comes_after_the_end(done.record, found[1]):  # gone with its host
            return _continued(store, event, done.record, now, chance)
        return done


class _Starting:
    """The rule of one start."""

    def __init__(self, event: Event, now: datetime) -> None:
        self.event = event
        self.now = now

    def comes_after_the_end(self, record: Record, number: int) -> bool:
        """Whether the agent wakes for work that is final."""
        run = runs.run_numbered(record, number)
        return run is not None and is_final(record["phase"]) and _wakes(run, self.event, self.now)

    def rule(self, record: Record, run: Run) -> Record:
        if self._is_at_home(run) and runs.has_begun(run) and run["run"] in processes.runs_gone(record):
            record = ended(record, run, LOST, {"detail": "its host was gone"}, self.now)
            run = runs.run_now(record, run)
        if _wakes(run, self.event, self.now):
            return record if is_final(record["phase"]) or _is_busy(record) else self._woken(record)
        record = undenied(record, run, self.now)
        record = heard_in(record, runs.run_now(record, run), self.event["host_session_id"], self.now)
        run = runs.run_now(record, run)
        return runs.begun(record, run, self._known(run), self.now)

    def _woken(self, record: Record) -> Record:
        record = runs.with_new_run(record, {})
        run = record["runs"][-1]
        return runs.begun(record, run, self._known(run), self.now)

    def _known(self, run: Run) -> Run:
        known = _keys(self.event)
        if "host_session_id" in run:  # the key of its delegation; where it is heard of now is kept beside it
            del known["host_session_id"]
        return known if "started_at" in run else {**known, "started_at": write_time(self.now)}

    def _is_at_home(self, run: Run) -> bool:
        """Whether the news comes in the run's own conversation, and not in one that took its agent over."""
        return runs.conversation_of(run) == self.event["host_session_id"]


def _wakes(run: Run, event: Event, now: datetime) -> bool:
    """Whether the agent was at rest: its last run is over, and that before the news."""
    if event.get("launch") or run.get("host_agent_id") != event["host_agent_id"]:
        return False
    if run.get("end") == ENDED_WITH_HOST and runs.conversation_of(run) != event["host_session_id"]:
        return False  # its conversation ended, and it works on in another one
    return runs.has_ended(run) and run["end"] != DENIED and now >= read_time(run["ended_at"])


def _is_busy(record: Record) -> bool:
    """Whether another agent is at work on the session by now."""
    gone = processes.runs_gone(record)
    return any(runs.is_live(run) and run["run"] not in gone for run in record["runs"])


def _continued(store: Store, event: Event, earlier: Record, now: datetime, chance: Chance) -> Done:
    fresh = new_record(new_agent_id(now, chance(4)), earlier["agent_name"], earlier["purpose"], {}, now)
    run: Run = {**_keys(event), "run": 1, "started_at": write_time(now)}
    begun: Record = {**fresh, "continues": earlier["agent_id"], "runs": [run]}
    record = runs.begun(begun, {"run": 1}, run, now)
    return Done("continued", record=create_under_new_id(store, record, now, chance, entry_of(event, 1)))


def _keys(event: Event) -> Run:
    return {key: event[key] for key in _OF_THE_AGENT if key in event}  # type: ignore[literal-required, return-value]
