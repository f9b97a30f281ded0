"""Closes runs that have no end because their host was killed, or because its last event never came.

Owns which runs are judged, how the evidence on a run is gathered (the process of its host, the log of the hooks, the
time of its transcript), and that each run is judged again under its session's lock before anything is written. A run
whose end cannot be proved is reported and left as it is. Must never judge evidence itself: ``reconcile_rules`` does.
"""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime

from gaia_sessions.errors import CorruptSession, LockTimeout, SessionNotFound, SessionsError
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.run_ends import with_end
from gaia_sessions.session.runs import conversation_of, has_ended, run_by_number, updated_run
from gaia_sessions.store import change_with_result
from gaia_sessions.store.hook_log import MAX_LOGGED_ID_LENGTH
from gaia_sessions.store.journal import event_entry
from gaia_sessions.system import processes

from .reconcile_rules import CLOSING_VERDICTS, Evidence, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypedDict

    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, Reader, RecordOrError, Store

    from .reconcile_rules import Judged

    ReadSessionEnds = Callable[[], Mapping[tuple[str, str], datetime]]
    """Reads when main sessions ended, by host and session id as the log of the hooks has them."""

    class SkippedSession(TypedDict):
        agent_id: str
        reason: str

    class Verdict(TypedDict):
        """phase: that of its session once the run was closed, or would be; closed: whether it was."""

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
"""The kind of the journal entry of a closed run."""

_EVIDENCE_FIELDS = ("host", "host_session_id", "host_agent_id", "tool_use_id")


def no_session_ends() -> Mapping[tuple[str, str], datetime]:
    """Reads no log: no host's session is known to have ended."""
    return {}


def reconcile(
    store: Store,
    now: datetime,
    read_session_ends: ReadSessionEnds = no_session_ends,
    *,
    dry_run: bool,
    sessions: Reader | None = None,
) -> Reconciled:
    """Judges every run without an end in a session that is not final, and closes those whose end is proved.

    With ``dry_run`` nothing is written. ``sessions`` are read instead of ``store`` if given: a ``Preview`` for a dry
    run. Waits for no lock: a session whose lock is held is ``busy``. One that cannot be written is ``failed``, and the
    others are still judged. A second call changes nothing more.
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
    """The record, if its runs can be judged and its work is still open; else None, and the report says why."""
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
    """Judges the run with this ``number``, closes it if its end is proved, and adds the verdict to ``report``."""
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
    """The record with the run closed and the journal entry, or ``record`` itself and no entry without proof.

    The third value is the verdict, None if the run has an end by now.
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


class EvidenceReader:
    """Gathers the evidence on runs, afresh for each call; only the log is read at most once, and only if needed."""

    __slots__ = ("_read_session_ends", "_session_ends")

    def __init__(self, read_session_ends: ReadSessionEnds) -> None:
        self._read_session_ends = read_session_ends
        self._session_ends: Mapping[tuple[str, str], datetime] | None = None

    def of(self, run: Run) -> Evidence:
        """The evidence on ``run`` as it is now."""
        over_at = self._end_of(run.get("host"), conversation_of(run))
        written_at = _written_at(run.get("transcript_path"))
        if "host_process" not in run:
            return Evidence(over_at=over_at, written_at=written_at)
        host_gone, host_statement = processes.gone_and_reason(run["host_process"])
        return Evidence(host_statement, host_gone=host_gone, over_at=over_at, written_at=written_at)

    def _end_of(self, host: str | None, host_session_id: str | None) -> datetime | None:
        if host is None or host_session_id is None:
            return None
        if len(host_session_id) >= MAX_LOGGED_ID_LENGTH:  # the log cuts such ids, and a cut id is not unique
            return None
        if self._session_ends is None:
            self._session_ends = self._read_session_ends()
        return self._session_ends.get((host, host_session_id))


def _written_at(path: str | None) -> datetime | None:
    """When the file at ``path`` was last written to; None if it does not exist or may not be examined."""
    if path is None or not os.path.isabs(path):
        return None
    try:
        found = os.stat(path)
        return datetime.fromtimestamp(found.st_mtime, UTC) if stat.S_ISREG(found.st_mode) else None
    except (OSError, ValueError, OverflowError):  # the path comes from a record, so it can be any text
        return None
