"""The journal entries that the users' document names: what happens to a sub-agent that a process of ours runs."""

from __future__ import annotations

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.runs import crash_text, process_of, updated_run
from gaia_sessions.session.updates import Change

from .above import Above
from .journal import event_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.schema import Record, Run

    from .port import Entry, ReaderAbove

SUBAGENT_STARTED = "SubAgentStarted"
SUBAGENT_REUSED = "SubAgentReused"
SUBAGENT_COMPLETED = "SubAgentCompleted"
SUBAGENT_FAILED = "SubAgentFailed"
SUBAGENT_CANCELLED = "SubAgentCancelled"
SESSION_RESET = "SessionReset"

_LIMITS = ("timeout_secs", "hard_timeout_secs")


def started(sessions: ReaderAbove, before: Record, record: Record) -> list[Entry]:
    """Returns the entries for the start of the latest run of ``record``, and for its reuse if it had turns."""
    run = record["runs"][-1]
    limits: Entry = {key: run[key] for key in _LIMITS if key in run}  # type: ignore[literal-required]  # keys of a run
    evidence = {**_who(sessions, record, run), **limits, **pid_of(run)}
    entries = [_entry(SUBAGENT_STARTED, run["started_at"], record, run, before, evidence)]
    turns = before.get("turns", 0)
    if turns:
        reused: Entry = {"name": record["agent_name"], "turn": turns}
        entries.append(_entry(SUBAGENT_REUSED, run["started_at"], record, run, before, reused))
    return entries


def ended(  # all that describes an end
    sessions: ReaderAbove,
    before: Record,
    record: Record,
    run: Run,
    kind: str,
    now: datetime,
    evidence: Entry | None = None,
) -> Entry:
    """Returns the entry for the end of ``run`` of ``before``, with facts of ``record``; ``kind`` says how it ended."""
    stored = updated_run(record, run)
    return _entry(kind, format_time(now), record, stored, before, {**_who(sessions, record, run), **(evidence or {})})


def lost(sessions: ReaderAbove, before: Record, record: Record, run: Run, now: datetime) -> Entry:
    """Returns the entry for a ``run`` whose process is gone without a report."""
    facts: Entry = {**pid_of(run), "error": crash_text(run)}
    return ended(sessions, before, record, run, SUBAGENT_FAILED, now, evidence=facts)


def with_reset_noted(before: Record, record: Record, now: datetime) -> Change:
    """Returns ``record``, made from ``before``, with the entry that its transcript begins again."""
    evidence: Entry = {"name": record["agent_name"], "turns": before.get("turns", 0)}
    return Change(
        record, [event_entry(format_time(now), SESSION_RESET, None, record, before["revision"] + 1, evidence)]
    )


def pid_of(run: Run) -> Entry:
    """Returns the pid of the process of ``run``, if it is known."""
    process = process_of(run) or {}
    return {"pid": process["pid"]} if "pid" in process else {}


def _who(sessions: ReaderAbove, record: Record, run: Run) -> Entry:
    place = Above(sessions).place(record)
    return {"name": record["agent_name"], "depth": max(place[1] if place else 0, run.get("depth", 0))}


def _entry(kind: str, at: str, record: Record, run: Run, before: Record, evidence: Entry) -> Entry:
    return event_entry(at, kind, run, record, before["revision"] + 1, evidence)
