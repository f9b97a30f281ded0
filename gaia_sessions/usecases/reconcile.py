"""Closes runs that have no end because their host was killed, or because its last event never came.

Owns which runs are judged, and that each is judged again under its session's lock before anything is written. A run
whose end cannot be proved is reported and left as it is.
"""

from __future__ import annotations

from contextlib import contextmanager

from gaia_sessions.errors import CorruptSession, LockTimeout, SessionNotFound, SessionsError
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import has_newer_schema, is_open
from gaia_sessions.session.run_ends import with_end
from gaia_sessions.session.runs import has_ended, is_of_command, run_by_number, updated_run
from gaia_sessions.session.updates import Change
from gaia_sessions.store import subagent_events
from gaia_sessions.store.above import Above
from gaia_sessions.store.journal import event_entry
from gaia_sessions.system import gone_runs

from .cancellation import settled
from .reconcile_evidence import EvidenceReader
from .reconcile_rules import CLOSING_VERDICTS, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.ingest.consumption import CountedRun
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, RecordOrError, Store

    from .reconcile_rules import Evidence, Judged

    class SkippedSession(TypedDict):
        """A session, and why it was left alone, by a code or in words."""

        agent_id: str
        reason: str

    class Verdict(TypedDict):
        """The verdict on one run.

        run: its number in the session.
        verdict: the end that is proved, or ``running`` or ``unsure``.
        evidence: what the verdict is based on, in words.
        phase: that of its session once the run was closed.
        closed: whether it was closed, or in a dry run would be.
        """

        agent_id: str
        run: int
        verdict: str
        evidence: str
        phase: str
        closed: bool

    class Reconciled(TypedDict):
        """counted: the runs of which it is known now what they used, with those that had ended before.

        abandoned: the cancelled sessions that nobody is at work on any more, and that have become ``abandoned``.
        """

        dry_run: bool
        verdicts: list[Verdict]
        abandoned: list[str]
        busy: list[str]
        kept: list[SkippedSession]
        corrupt: list[SkippedSession]
        failed: list[SkippedSession]
        counted: list[CountedRun]


RECONCILE = "reconcile"
"""The kind of the journal entry of a closed run."""

_EVIDENCE_FIELDS = ("host", "host_session_id", "host_agent_id", "tool_use_id")


def reconcile(store: Store, now: datetime, root: str | None = None) -> Reconciled:
    """Judges every run without an end in a session that is not final, and closes those whose end is proved.

    ``root`` has the log of the hooks. A dry run is this on a store that writes in memory. Waits for no lock: a session
    whose lock is held is ``busy``. One that cannot be written is ``failed``, and the others are still judged. A second
    call changes nothing more.
    """
    evidence_reader = EvidenceReader(root)
    report = _new_report()
    above = Above(store)
    for agent_id, found in store.scan(active_only=True):
        record = _record_to_judge(report, agent_id, found)
        for run in record.get("runs", ()) if record else ():
            if record and not has_ended(run):
                _judge_and_close(store, record, run["run"], evidence_reader, now, report)
        if record:
            _abandon_cancelled(store, above, record, now, report)
    return report


def _new_report() -> Reconciled:
    """The report before any session is judged."""
    return {
        "dry_run": False,
        "verdicts": [],
        "abandoned": [],
        "busy": [],
        "kept": [],
        "corrupt": [],
        "failed": [],
        "counted": [],
    }


def _record_to_judge(report: Reconciled, agent_id: str, found: RecordOrError) -> Record | None:
    """The record, if its runs can be judged and its work is still open; else None, and the report says why."""
    if isinstance(found, SessionsError):
        report["corrupt" if isinstance(found, CorruptSession) else "failed"].append(_skipped(agent_id, str(found)))
        return None
    if has_newer_schema(found):
        report["kept"].append(_skipped(agent_id, "newer_schema"))
        return None
    return None if is_final(found["phase"]) else found


def _abandon_cancelled(store: Store, above: Above, record: Record, now: datetime, report: Reconciled) -> None:
    """Ends the session if it is cancelled and nobody is at work on it; closing its last run did that already."""
    agent_id = record["agent_id"]

    def rule(record: Record) -> Record:
        return settled(record, cancellation, now, gone_runs(record))

    with _refusals_in(report, agent_id):
        cancellation = above.proved_cancellation(record)
        if cancellation is None:
            return
        before = store.read(agent_id)
        is_changed = rule(before) is not before and not is_open(store.change(agent_id, rule, timeout=0))
        report["abandoned"] += [agent_id] if is_changed else []


@contextmanager
def _refusals_in(report: Reconciled, agent_id: str) -> Iterator[None]:
    """A block whose write may be refused, which ``report`` then says; a session that is gone needs no word."""
    try:
        yield
    except LockTimeout:
        if agent_id not in report["busy"]:
            report["busy"].append(agent_id)
    except SessionNotFound:
        return
    except SessionsError as error:
        report["failed"].append(_skipped(agent_id, str(error)))


def _judge_and_close(
    store: Store,
    record: Record,
    number: int,
    evidence_reader: EvidenceReader,
    now: datetime,
    report: Reconciled,
) -> None:
    """Judges the run with this ``number``, closes it if its end is proved, and adds the verdict to ``report``."""
    agent_id = record["agent_id"]

    change, judged = _closed_if_proved(store, record, number, evidence_reader, now)
    with _refusals_in(report, agent_id):
        if change.record is record:
            _add_verdict(report, record, number, judged, closed=False)
            return
        with store.open(agent_id, timeout=0) as session:
            change, judged = _closed_if_proved(store, session.record, number, evidence_reader, now)
            after = session.commit(change)
        run = run_by_number(after, number)
        _add_verdict(report, after, number, judged, closed=run is None or has_ended(run))


def _closed_if_proved(
    store: Store, record: Record, number: int, evidence_reader: EvidenceReader, now: datetime
) -> tuple[Change, Judged | None]:
    """The record with the run closed and the journal entry, or ``record`` itself and no entry without proof.

    The second value is the verdict, None if the run has an end by now.
    """
    run = run_by_number(record, number)
    if run is None or has_ended(run):
        return Change(record), None
    evidence = evidence_reader.of(run)
    verdict, detail = judged = judge(run, evidence, now)
    if verdict not in CLOSING_VERDICTS:
        return Change(record), judged
    fields: Run = evidence.reported[1] if evidence.reported else {"detail": detail}
    closed = with_end(record, run, verdict, fields, now, evidence.written_at)
    if is_of_command(run):
        return Change(closed, [subagent_events.lost(store, record, closed, run, now)]), judged
    return Change(closed, [_entry(closed, updated_run(closed, run), evidence, now)]), judged


def _entry(record: Record, run: Run, evidence: Evidence, now: datetime) -> Entry:
    """The journal entry of a closed run."""
    facts: Entry = {key: run[key] for key in _EVIDENCE_FIELDS if key in run}  # type: ignore[literal-required]
    facts["host_gone"] = evidence.host_gone
    moments = {"session_end": evidence.over_at, "transcript": evidence.written_at}
    facts |= {key: format_time(moment) for key, moment in moments.items() if moment}
    return event_entry(format_time(now), RECONCILE, run, record, record["revision"] + 1, facts)


def _add_verdict(report: Reconciled, record: Record, number: int, judged: Judged | None, *, closed: bool) -> None:
    if judged is None:  # another process has written its end
        return
    verdict, evidence = judged
    report["verdicts"].append(
        {
            "agent_id": record["agent_id"],
            "run": number,
            "verdict": verdict,
            "evidence": evidence,
            "phase": record["phase"],
            "closed": closed,
        }
    )


def _skipped(agent_id: str, reason: str) -> SkippedSession:
    return {"agent_id": agent_id, "reason": reason}
