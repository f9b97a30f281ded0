"""A sub-agent is at work: for the first time, or again because somebody wrote to it.

Owns what an agent that wakes means: in a session that is still open a new run, after a finished one a new
session that continues it. A start told late belongs to the run that has ended since.
"""

from __future__ import annotations

from gaia_sessions import processes, runs
from gaia_sessions.clock import read_time, write_time
from gaia_sessions.endings import ended
from gaia_sessions.ids import new_agent_id
from gaia_sessions.phases import is_final
from gaia_sessions.record import new_record
from gaia_sessions.shape import DENIED, LOST

from .beginning import create_under_new_id
from .done import Done
from .joins import aliases_of, change_joined, entry_of, find_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.events import Event
    from gaia_sessions.shape import Record, Run
    from gaia_sessions.stores.port import Store

    from .beginning import Chance

_OF_THE_AGENT = ("host", "host_session_id", "host_agent_id", "parent_host_agent_id", "host_process", "background")
_DENIAL = ("ended_at", "end", "detail")


def start(store: Store, event: Event, now: datetime, chance: Chance, timeout: float) -> Done:
    """``started``; ``woken`` for a new run, ``continued`` for a new session; else as ``change_joined`` says."""
    key = ("agent", event["host_session_id"], event["host_agent_id"])
    with store.exclusive(key, timeout):
        found = find_run(store, event)
        if isinstance(found, Done):
            return found
        record = store.read(found[0])
        run = record["runs"][found[1] - 1]
        if is_final(record["phase"]) and _wakes(record, run, event, now):
            return _continued(store, event, record, now, chance)
        return change_joined(store, event, timeout, _Starting(event, now).rule, lambda _: "started")


class _Starting:
    """The rule of one start."""

    def __init__(self, event: Event, now: datetime) -> None:
        self.event = event
        self.now = now

    def rule(self, record: Record, run: Run) -> Record:
        if _wakes(record, run, self.event, self.now):
            return self._woken(ended(record, run, LOST, {"detail": "its host was gone"}, self.now))
        if run.get("end") == DENIED:  # so it was not: what starts was no refused delegation
            run = {key: value for key, value in run.items() if key not in _DENIAL}  # type: ignore[assignment]
        return runs.begun(record, run, self._known(run), self.now)

    def _woken(self, record: Record) -> Record:
        run: Run = {**_keys(self.event), "run": len(record["runs"]) + 1}
        record = {**record, "runs": [*record["runs"], run]}
        return record if is_final(record["phase"]) else runs.begun(record, run, self._known(run), self.now)

    def _known(self, run: Run) -> Run:
        started: Run = {} if "started_at" in run else {"started_at": write_time(self.now)}
        return {**_keys(self.event), **started}


def _wakes(record: Record, run: Run, event: Event, now: datetime) -> bool:
    """Whether the agent was at rest: its last run is over, or the host that ran it is gone."""
    if event.get("launch") or run.get("host_agent_id") != event["host_agent_id"]:
        return False
    if runs.has_ended(run):
        return run.get("end") != DENIED and now > read_time(run["ended_at"])
    return run["run"] in processes.runs_gone(record)


def _continued(store: Store, event: Event, earlier: Record, now: datetime, chance: Chance) -> Done:
    fresh = new_record(new_agent_id(now, chance(4)), earlier["agent_name"], earlier["purpose"], {}, now)
    run: Run = {**_keys(event), "run": 1, "started_at": write_time(now)}
    begun: Record = {**fresh, "continues": earlier["agent_id"], "runs": [run]}
    record = runs.begun(begun, {"run": 1}, run, now)
    aliases = aliases_of(event)
    return Done("continued", record=create_under_new_id(store, record, now, chance, aliases, entry_of(event, 1)))


def _keys(event: Event) -> Run:
    return {key: event[key] for key in _OF_THE_AGENT if key in event}  # type: ignore[literal-required, return-value]
