"""Closes runs that have no end because their host was killed, or because the host's last event never came.

Each run is judged twice, the second time under its session's lock. A run without a proved end stays open.
"""

from __future__ import annotations

from contextlib import contextmanager

from gaia_sessions.errors import CorruptSession, LockTimeout, SessionNotFound, SessionsError
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import has_newer_schema, is_open
from gaia_sessions.session.run_ends import with_end
from gaia_sessions.session.runs import has_ended, is_own_run, run_by_number, updated_run
from gaia_sessions.session.updates import Change
from gaia_sessions.session.verdicts import CLOSING_VERDICTS, judge
from gaia_sessions.store import subagent_events
from gaia_sessions.store.above import Above
from gaia_sessions.store.journal import RECONCILE, event_entry
from gaia_sessions.system import gone_runs, utc_now

from . import at
from .cancelling import settled
from .reconcile_evidence import EvidenceReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.ingest.consumption import CountedRun
    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.session.verdicts import Evidence, Judged
    from gaia_sessions.store.port import Entry, RecordOrError, Store

    from .at import Place

    class SkippedSession(TypedDict):
        """A session that was left alone.

        Keys:
            reason: a code or words.
        """

        agent_id: str
        reason: str

    class Verdict(TypedDict):
        """The verdict on one run, by its number in the session.

        Keys:
            verdict: the proved end, or ``running`` or ``unsure``.
            phase: the phase of the session afterwards.
            closed: whether the run was closed, or in a dry run would be closed.
        """

        agent_id: str
        run: int
        verdict: str
        evidence: str
        phase: str
        closed: bool

    class Reconciled(TypedDict):
        """The report of ``reconcile``. ``busy``, ``corrupt`` and ``failed`` are as in ``CleanupReport``.

        Keys:
            abandoned: cancelled sessions that are now ``abandoned``, because nobody is at work on them.
            counted: runs whose usage is now known.
        """

        dry_run: bool
        verdicts: list[Verdict]
        abandoned: list[str]
        busy: list[str]
        kept: list[SkippedSession]
        corrupt: list[SkippedSession]
        failed: list[SkippedSession]
        counted: list[CountedRun]


_EVIDENCE_FIELDS = ("host", "host_session_id", "host_agent_id", "tool_use_id")


def reconcile(place: Place, *, dry_run: bool = False) -> Reconciled:
    """[Judges](ci-and-cron.md#close-runs-without-an-end) every run without an end, and closes runs that provably ended.

    It also records what ended runs used. Each verdict names its evidence. ``lost``, ``ended_with_host`` and ``denied``
    close the run; ``running`` and ``unsure`` leave it alone.
    """
    from gaia_sessions.ingest.consumption import count_ended_runs  # closing runs alone does not count usage

    with at.store_of(place, dry_run=dry_run) as store:
        report = close_runs(store, utc_now(), place.folder)
        counted = count_ended_runs(store)
    return {**report, "dry_run": dry_run, "counted": counted}


def close_runs(store: Store, now: datetime, root: str | None = None) -> Reconciled:
    """Judges every run without an end in open sessions, closes those whose end is proved, and waits for no lock."""
    evidence_reader = EvidenceReader(root)
    report = _new_report()
    above = Above(store)
    for agent_id, found in store.scan(active_only=True):
        record = _record_to_judge(report, agent_id, found)
        if record:
            _judge_and_close(store, above, record, evidence_reader, now, report)
            _abandon_cancelled(store, above, record, now, report)
    return report


def _new_report() -> Reconciled:
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


def _record_to_judge(report: Reconciled, agent_id: str, record: RecordOrError) -> Record | None:
    """Returns the record if its runs can be judged and its work is open; otherwise ``report`` gets the reason."""
    if isinstance(record, SessionsError):
        report["corrupt" if isinstance(record, CorruptSession) else "failed"].append(_skipped(agent_id, str(record)))
        return None
    if has_newer_schema(record):
        report["kept"].append(_skipped(agent_id, "newer_schema"))
        return None
    return None if is_final(record["phase"]) else record


def _abandon_cancelled(store: Store, above: Above, record: Record, now: datetime, report: Reconciled) -> None:
    """Ends the session if it is cancelled and nobody is at work on it."""
    agent_id = record["agent_id"]

    def rule(current: Record) -> Record:
        is_same = current["created_at"] == record["created_at"]  # a session that was created since is not cancelled
        return settled(current, cancellation, now, gone_runs(current)) if is_same else current

    with _refusals_in(report, agent_id):
        cancellation = above.proved_cancellation(record)
        if cancellation is None:
            return
        before = store.read(agent_id)
        if rule(before) is before:
            return
        with store.open(agent_id, timeout=0) as session:
            ended = session.commit(rule(session.record), proved=cancellation)
        report["abandoned"] += [] if is_open(ended) else [agent_id]


@contextmanager
def _refusals_in(report: Reconciled, agent_id: str) -> Iterator[None]:
    """Adds a refused write of the ``with`` block to ``report``; a session that is gone needs no entry."""
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
    store: Store, above: Above, record: Record, evidence_reader: EvidenceReader, now: datetime, report: Reconciled
) -> None:
    """Judges the open runs, closes those whose end is proved, and adds the verdicts to ``report``."""
    verdicts, proved = [], []
    for run in record.get("runs", ()):
        if not has_ended(run):
            judged = judge(run, evidence_reader.of(run), now)
            if judged[0] in CLOSING_VERDICTS:
                proved.append(run["run"])
            else:
                verdicts.append(_verdict(record, run["run"], judged, closed=False))
    with _refusals_in(report, record["agent_id"]):
        if proved:  # all in one write: a record may have thousands
            verdicts += _closed(store, record, above.proved_cancellation(record), proved, evidence_reader, now)
    report["verdicts"] += sorted(verdicts, key=lambda verdict: verdict["run"])


def _closed(
    store: Store,
    seen: Record,
    cancellation: Cancellation | None,
    numbers: Iterable[int],
    evidence_reader: EvidenceReader,
    now: datetime,
) -> list[Verdict]:
    """Judges the runs again under the lock, closes them if the end is proved, and returns the verdicts."""
    found, entries = [], []
    with store.open(seen["agent_id"], timeout=0) as session:
        before = record = session.record
        if before["created_at"] != seen["created_at"]:
            cancellation = None
        for number in numbers:
            run = run_by_number(record, number)
            if run is None or has_ended(run):  # another process has written its end
                continue
            evidence = evidence_reader.of(run)
            verdict, detail = judged = judge(run, evidence, now)
            found.append((number, judged))
            if verdict in CLOSING_VERDICTS:
                fields: Run = evidence.reported[1] if evidence.reported else {"detail": detail}
                record = with_end(record, run, verdict, fields, now, evidence.written_at)
                entries.append(
                    subagent_events.lost(store, before, record, run, now)
                    if is_own_run(run)
                    else _entry(record, updated_run(record, run), evidence, now)
                )
        after = session.commit(Change(record, entries), proved=cancellation)
    runs = ((run_by_number(after, number), number, judged) for number, judged in found)
    return [_verdict(after, number, judged, closed=run is None or has_ended(run)) for run, number, judged in runs]


def _entry(record: Record, run: Run, evidence: Evidence, now: datetime) -> Entry:
    """Returns the journal entry of a closed run."""
    facts: Entry = {key: run[key] for key in _EVIDENCE_FIELDS if key in run}  # type: ignore[literal-required]
    facts["host_gone"] = evidence.host_gone
    moments = {"session_end": evidence.over_at, "transcript": evidence.written_at}
    facts |= {key: format_time(moment) for key, moment in moments.items() if moment}
    return event_entry(format_time(now), RECONCILE, run, record, record["revision"] + 1, facts)


def _verdict(record: Record, number: int, judged: Judged, *, closed: bool) -> Verdict:
    verdict, evidence = judged
    return {
        "agent_id": record["agent_id"],
        "run": number,
        "verdict": verdict,
        "evidence": evidence,
        "phase": record["phase"],
        "closed": closed,
    }


def _skipped(agent_id: str, reason: str) -> SkippedSession:
    return {"agent_id": agent_id, "reason": reason}
