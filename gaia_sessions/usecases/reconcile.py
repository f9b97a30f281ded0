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
from gaia_sessions.session.runs import has_ended, run_by_number

from .evidence import EvidenceReader
from .reconcile_rules import CLOSING_VERDICTS, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Reader, RecordOrError, Store

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
                _RunCase(agent_id, run["run"], evidence_reader, now).judge_and_close(store, record, report)
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


class _RunCase:
    """One run, judged at ``now``: as a rule that closes it if there is proof."""

    def __init__(self, agent_id: str, number: int, evidence_reader: EvidenceReader, now: datetime) -> None:
        self.agent_id = agent_id
        self.number = number
        self.evidence_reader = evidence_reader
        self.now = now
        self.evidence: Evidence | None = None
        self.judged: Judged | None = None

    def judge_and_close(self, store: Store, record: Record, report: Reconciled) -> None:
        """Adds to ``told`` what became of the run."""
        closed = self.rule(record)
        if closed is record or report["dry_run"]:
            self._tell(report, closed, closed=False)
            return
        try:
            after = store.change(self.agent_id, self.rule, timeout=0, make_entry=self.entry)
            self._tell(report, after, closed=self._is_closed(after))
        except LockTimeout:
            report["busy"] += [self.agent_id] * (self.agent_id not in report["busy"])
        except SessionNotFound:
            return
        except SessionsError as error:
            report["failed"].append(_skipped(self.agent_id, str(error)))

    def _is_closed(self, record: Record) -> bool:
        run = run_by_number(record, self.number)
        return run is None or has_ended(run)

    def rule(self, record: Record) -> Record:
        """The record with the run closed; ``record`` itself if nothing proves its end, or it has one by now."""
        self.judged = None
        run = run_by_number(record, self.number)
        if run is None or has_ended(run):
            return record
        self.evidence = self.evidence_reader.of(run)
        self.judged = judge(run, self.evidence, self.now)
        verdict, detail = self.judged
        return with_end(record, run, verdict, {"detail": detail}, self.now) if verdict in CLOSING_VERDICTS else record

    def entry(self, record: Record) -> dict[str, Json] | None:
        """What the events of the session are to say of it, in the shape of every other entry."""
        run = run_by_number(record, self.number)
        if run is None:
            return None
        when: dict[str, Json] = {"at": format_time(self.now), "kind": RECONCILE, "run": self.number}
        position: dict[str, Json] = {"phase": record["phase"], "end": run["end"], "detail": run["detail"]}
        return {**when, **position, "revision": record["revision"], "evidence": self._facts(run)}

    def _facts(self, run: Run) -> dict[str, Json]:
        facts: dict[str, Json] = {key: run[key] for key in _EVIDENCE_FIELDS if key in run}  # type: ignore[literal-required]
        if self.evidence is None:
            return facts
        facts["host_gone"] = self.evidence.host_gone
        moments = {"session_end": self.evidence.over_at, "transcript": self.evidence.written_at}
        return facts | {key: format_time(moment) for key, moment in moments.items() if moment}

    def _tell(self, report: Reconciled, record: Record, *, closed: bool) -> None:
        if self.judged is None:  # somebody else ended it meanwhile
            return
        verdict, evidence = self.judged
        report["verdicts"].append(
            {
                "agent_id": self.agent_id,
                "run": self.number,
                "verdict": verdict,
                "evidence": evidence,
                "phase": record["phase"],
                "closed": closed,
            }
        )


def _skipped(agent_id: str, reason: str) -> SkippedSession:
    return {"agent_id": agent_id, "reason": reason}
