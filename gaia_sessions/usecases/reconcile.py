"""Runs that nobody ended, since their host was killed or its last word never came: judged by evidence, and closed.

Owns which runs are judged, and that each is judged a second time under its session's lock before anything is
written. What cannot be proved is left alone and said. Sessions that are final have nothing to lose.
"""

from __future__ import annotations

from gaia_sessions.errors import CorruptSession, LockTimeout, SessionNotFound, SessionsError
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.run_ends import with_end
from gaia_sessions.session.runs import has_ended, run_by_number, updated_run
from gaia_sessions.store.journal import event_entry
from gaia_sessions.store.writes import change_with_result

from .evidence import EvidenceReader
from .reconcile_rules import CLOSING_VERDICTS, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, Reader, RecordOrError, Store

    from .evidence import ReadSessionEnds
    from .reconcile_rules import Evidence, Judged

    class SkippedSession(TypedDict):
        agent_id: str
        reason: str

    class Verdict(TypedDict):
        """One unended run. phase: that of its session afterwards, or as it would be; closed: whether it has its end."""

        agent_id: str
        run: int
        verdict: str
        evidence: str
        phase: str
        closed: bool

    class Reconciled(TypedDict):
        dry_run: bool
        verdicts: list[Verdict]
        busy: list[str]
        kept: list[SkippedSession]
        corrupt: list[SkippedSession]
        failed: list[SkippedSession]


RECONCILE = "reconcile"
"""The kind of entry that a closed run leaves in its session's events."""

_EVIDENCE_FIELDS = ("host", "host_session_id", "host_agent_id", "tool_use_id")


def no_session_ends() -> Mapping[tuple[str, str], datetime]:
    """No host's session is known to have ended."""
    return {}


def reconcile(
    store: Store,
    now: datetime,
    read_session_ends: ReadSessionEnds = no_session_ends,
    *,
    dry_run: bool,
    sessions: Reader | None = None,
) -> Reconciled:
    """Judges every unended run of what is not final; closes those with proof, or with ``dry_run`` none.

    ``sessions`` is where they are looked for, if not in ``store``: a ``Preview`` for a dry run.

    Waits for nobody: whoever holds a session is at work on it, so it is ``busy``. What cannot be written is
    ``failed`` and stops no other. Doing it again changes nothing more.
    """
    evidence_reader = EvidenceReader(read_session_ends)
    report: Reconciled = {"dry_run": dry_run, "verdicts": [], "busy": [], "kept": [], "corrupt": [], "failed": []}
    for agent_id, found in (sessions or store).scan(active_only=True):
        record = _record_to_judge(report, agent_id, found)
        for run in record.get("runs", ()) if record else ():
            if record and not has_ended(run):
                _judge_and_close(store, record, run["run"], evidence_reader, now, report)
    return report


def _record_to_judge(report: Reconciled, agent_id: str, found: RecordOrError) -> Record | None:
    """The record, if its runs can be judged and somebody may wait for their end."""
    if isinstance(found, SessionsError):
        report["corrupt" if isinstance(found, CorruptSession) else "failed"].append(_skipped(agent_id, str(found)))
        return None
    if has_newer_schema(found):
        report["kept"].append(_skipped(agent_id, "newer_schema"))
        return None
    return None if is_final(found["phase"]) else found


def _judge_and_close(
    store: Store, record: Record, number: int, evidence_reader: EvidenceReader, now: datetime, report: Reconciled
) -> None:
    """Adds to ``report`` what became of the run with this ``number``."""
    agent_id = record["agent_id"]

    def rule(record: Record) -> tuple[Record, Entry | None, Judged | None]:
        return _closed_if_proved(record, number, evidence_reader, now)

    closed, _, judged = rule(record)
    if closed is record or report["dry_run"]:
        _add_verdict(report, closed, number, judged, closed=False)
        return
    try:
        after, judged = change_with_result(store, agent_id, rule, timeout=0)
        run = run_by_number(after, number)
        _add_verdict(report, after, number, judged, closed=run is None or has_ended(run))
    except LockTimeout:
        report["busy"] += [agent_id] * (agent_id not in report["busy"])
    except SessionNotFound:
        return
    except SessionsError as error:
        report["failed"].append(_skipped(agent_id, str(error)))


def _closed_if_proved(
    record: Record, number: int, evidence_reader: EvidenceReader, now: datetime
) -> tuple[Record, Entry | None, Judged | None]:
    """The record with the run closed and its journal entry, or ``record`` itself if nothing proves its end.

    The last is the verdict, None for a run that has its end by now.
    """
    run = run_by_number(record, number)
    if run is None or has_ended(run):
        return record, None, None
    evidence = evidence_reader.of(run)
    verdict, detail = judged = judge(run, evidence, now)
    if verdict not in CLOSING_VERDICTS:
        return record, None, judged
    closed = with_end(record, run, verdict, {"detail": detail}, now)
    return closed, _entry(closed, updated_run(closed, run), evidence, now), judged


def _entry(record: Record, run: Run, evidence: Evidence, now: datetime) -> Entry:
    """What the journal keeps of a closed run."""
    facts: Entry = {key: run[key] for key in _EVIDENCE_FIELDS if key in run}  # type: ignore[literal-required]
    facts["host_gone"] = evidence.host_gone
    moments = {"session_end": evidence.over_at, "transcript": evidence.written_at}
    facts |= {key: format_time(moment) for key, moment in moments.items() if moment}
    return event_entry(format_time(now), RECONCILE, run, record, record["revision"] + 1, facts)


def _add_verdict(report: Reconciled, record: Record, number: int, judged: Judged | None, *, closed: bool) -> None:
    if judged is None:  # somebody else ended it meanwhile
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
