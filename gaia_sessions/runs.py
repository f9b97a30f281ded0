"""The runs of a session: when a host really ran its sub-agent, and how each run ended.

Owns how runs begin, are found by a host's exact keys, start and end. Never guesses: keys either
match or they do not. Pure, like ``changes``; knows hosts only by the ids they give.
"""

from __future__ import annotations

from datetime import timedelta

from .changes import active_at, finalized, in_phase, rejudged
from .clock import FUTURE_TOLERANCE, read_time, write_time
from .phases import APPROVAL, COMPLETED, FAILED, INITIALIZING, INVESTIGATING, is_final, is_resumable
from .record import has_newer_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from .shape import Record, Run

    Alias = tuple[str, tuple[str, ...]]
    """A kind of key, and the exact strings of one."""

CLAIM_LAPSES = timedelta(minutes=10)
"""A claim without a start holds the session for so long."""

LONGEST_MESSAGE = 4000
"""Characters kept of what an agent said last."""

_BEGUN = frozenset(["started_at", "host_agent_id", "reported"])


def has_ended(run: Run) -> bool:
    return "ended_at" in run


def is_live(run: Run) -> bool:
    """Known to have begun and not known to have ended. Nothing is known of its host process, so it counts as alive."""
    return not has_ended(run) and not _BEGUN.isdisjoint(run)


def began_at(run: Run) -> datetime | None:
    """When the run is known to have begun, or else to have been delegated."""
    known = run.get("started_at") or run.get("claimed_at")
    return read_time(known) if known else None


def is_claimed(run: Run, now: datetime) -> bool:
    """Delegated a moment ago and not yet begun: the claim still holds."""
    if has_ended(run) or is_live(run) or "claimed_at" not in run:
        return False
    return -FUTURE_TOLERANCE <= now - read_time(run["claimed_at"]) < CLAIM_LAPSES


def delegated(record: Record, keys: Run, now: datetime) -> Record:
    """A run is claimed for the delegation that ``keys`` tell of. Moves neither phase nor ``last_updated``."""
    runs = record.get("runs", [])
    run: Run = {**keys, "run": len(runs) + 1, "claimed_at": write_time(now)}
    return {**record, "runs": [*runs, run]}


def run_of_delegation(record: Record, host_session_id: str, tool_use_id: str) -> Run | None:
    """The run that belongs to exactly this delegation, ended or not."""
    return _last(record, {"host_session_id": host_session_id, "tool_use_id": tool_use_id})


def run_of_agent(record: Record, host_session_id: str, host_agent_id: str) -> Run | None:
    """The latest run of exactly this agent of the host, ended or not."""
    return _last(record, {"host_session_id": host_session_id, "host_agent_id": host_agent_id})


def unended_run_of_host(record: Record, host_session_id: str) -> Run | None:
    """The latest unended run in this main session of the host."""
    runs = (run for run in reversed(record.get("runs", [])) if not has_ended(run))
    return next((run for run in runs if run.get("host_session_id") == host_session_id), None)


def delegation_alias(host_session_id: str, tool_use_id: str) -> Alias:
    """The key by which a store finds the session of this delegation."""
    return "delegation", (host_session_id, tool_use_id)


def agent_alias(host_session_id: str, host_agent_id: str) -> Alias:
    """The key by which a store finds the session of this agent of a host."""
    return "agent", (host_session_id, host_agent_id)


def aliases_of(record: Record) -> list[Alias]:
    """Every key by which ``record`` must be found."""
    aliases: list[Alias] = []
    if has_newer_schema(record):
        return aliases
    for run in record.get("runs", ()):
        if "host_session_id" in run and "tool_use_id" in run:
            aliases.append(delegation_alias(run["host_session_id"], run["tool_use_id"]))
        if "host_session_id" in run and "host_agent_id" in run:
            aliases.append(agent_alias(run["host_session_id"], run["host_agent_id"]))
    return aliases


def _last(record: Record, keys: dict[str, str]) -> Run | None:
    return next((run for run in reversed(record.get("runs", [])) if keys.items() <= run.items()), None)


def reported(record: Record, phase: str) -> Record:
    """Whoever works on the session said where it stands: that is kept with its unended run, if it has one."""
    run = record.get("runs", [])[-1:]
    if not run or has_ended(run[0]):
        return record
    return _with_run(record, {**run[0], "reported": phase})


def joined(record: Record, run: Run, host_agent_id: str, now: datetime) -> Record:
    """The agent ``host_agent_id`` turned out to be at work for ``run``: the first news of that is its start."""
    if run.get("host_agent_id") == host_agent_id:
        return record
    known = _with_run(record, {**run, "host_agent_id": host_agent_id})
    if is_final(record["phase"]):
        return known
    known = active_at(known, now)
    return in_phase(known, INVESTIGATING, now) if known["phase"] == INITIALIZING else known


def stopped(record: Record, run: Run, marked: str | None, told: Run, now: datetime) -> Record:
    """``run`` ended with a stop, and the session pauses or is finalized with it.

    ``told`` is what else the stop told of the run, ``marked`` the phase that the agent's own last line
    names. The session pauses when that is a resumable one, or when ``approval`` was the last reported in
    this run; it fails when it is ``failed``; else it is completed. A finalization made here is
    provisional: see ``restopped``. Of a session finalized otherwise only the run is closed.
    """
    phase = _phase_after_stop(run, marked)
    known = _with_run(record, _stopped_run(run, marked, told, now))
    if is_final(record["phase"]):
        return known
    known = active_at(known, now)
    return finalized(known, phase, None, now) if is_final(phase) else in_phase(known, phase, now)


def may_be_rejudged(record: Record, run: Run) -> bool:
    """Whether ``run`` is the latest and stopped, and, if the session is final, that stop made it so."""
    if run["run"] != len(record["runs"]) or run.get("end") != "stopped":
        return False
    return not is_final(record["phase"]) or record.get("finalized_at") == run["ended_at"]


def restopped(record: Record, run: Run, marked: str | None, told: Run, now: datetime) -> Record:
    """The same run stopped again, because somebody kept its agent going after the first stop: judged afresh.

    A phase reported by the marker of the first stop no longer counts; one reported by command does.
    """
    earlier = run if "detail" not in run else _without(run, "reported", "detail")
    settled = rejudged(record, _phase_after_stop(earlier, marked), now)
    return active_at(_with_run(settled, _stopped_run(earlier, marked, told, now)), now)


def _phase_after_stop(run: Run, marked: str | None) -> str:
    if marked is None:
        return APPROVAL if run.get("reported") == APPROVAL else COMPLETED
    return marked if is_resumable(marked) else FAILED


def _stopped_run(run: Run, marked: str | None, told: Run, now: datetime) -> Run:
    ended: Run = {**run, **told, "ended_at": write_time(now), "end": "stopped"}
    if marked is not None:
        ended["reported"] = marked
        ended["detail"] = "said so in its last line"
    return ended


def _without(run: Run, *keys: str) -> Run:
    return {key: value for key, value in run.items() if key not in keys}  # type: ignore[return-value]


def _with_run(record: Record, run: Run) -> Record:
    runs = list(record["runs"])
    runs[run["run"] - 1] = run
    return {**record, "runs": runs}
