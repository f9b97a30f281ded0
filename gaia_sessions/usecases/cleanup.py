"""Removes sessions that nobody has used for a long time, whatever their phase, once runs are closed that have an end.

Must never remove one that may be resumed, waits for a limit, has a live run, is above an open one, or has an uncertain
age. Each is judged twice, the second time under its lock.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from gaia_sessions import errors
from gaia_sessions.errors import BadArgument, CorruptSession, LockTimeout, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session.clock import is_ahead, parse_time
from gaia_sessions.session.phases import is_resumable
from gaia_sessions.session.policy import resting_since
from gaia_sessions.session.record import has_newer_schema, is_open, parent_id_of
from gaia_sessions.session.runs import has_ended, latest_transcript, started_or_claimed_at
from gaia_sessions.store.above import Above
from gaia_sessions.system import gone_runs, written_at

from .reconcile import reconcile
from .reconcile_rules import CLOSING_VERDICTS
from .resume import decide
from .sessions import remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import TypedDict, TypeGuard

    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Reader, RecordOrError, Store

    from .reconcile import Reconciled, SkippedSession, Verdict

    class CleanupReport(TypedDict):
        """What was done, or with ``dry_run`` would be; sessions are named by their ids.

        hours: how long a session must have been unused to be removed.
        corrupt_too: whether sessions that cannot be read were removed as well.
        closed: the verdicts on the runs that were closed first.
        kept: those that are old, or may be, and were kept, each with the code of the reason.
        busy: those that another process is changing.
        corrupt: those that cannot be read, each with the reason in words; without those that were removed.
        failed: those that the system refused to read, change or remove, each with the reason in words.
        swept: the paths of what killed processes had left behind.
        """

        dry_run: bool
        hours: float
        corrupt_too: bool
        closed: list[Verdict]
        removed: list[str]
        kept: list[SkippedSession]
        busy: list[str]
        corrupt: list[SkippedSession]
        failed: list[SkippedSession]
        swept: list[str]


_MAX_HOURS = 1_000_000
_UNKNOWN_RUN_LIFETIME = timedelta(hours=24)


def _is_valid_hours(hours: object) -> bool:
    return isinstance(hours, int | float) and 0 <= hours <= _MAX_HOURS  # false for NaN as well


class CleanupPolicy:
    """What may be removed at ``now``: not updated for ``hours``; with ``corrupt`` also what cannot be read."""

    __slots__ = ("age", "corrupt", "limits", "now")

    def __init__(self, now: datetime, hours: float, limits: Limits, *, corrupt: bool = False) -> None:
        if not _is_valid_hours(hours):
            raise BadArgument("hours", hours, f"a number from 0 to {_MAX_HOURS}")
        self.now = now
        self.age = timedelta(hours=hours)
        self.limits = limits
        self.corrupt = corrupt


class _Judge:
    """Judges ``sessions`` by a policy. above_open: those that an open one has among its ancestors."""

    def __init__(self, policy: CleanupPolicy, sessions: Reader) -> None:
        self.policy = policy
        self.now = policy.now
        self.above = Above(sessions)
        self.above_open, self.has_unread = _ids_above_open(sessions, self.above)

    def allows(self, found: RecordOrError, children: Sequence[Record] = ()) -> bool:
        """Whether the session may be removed; ``children``: those that it has got by then, of which one may be open."""
        if any(map(is_open, children)):
            return False
        if isinstance(found, SessionsError):
            return self.policy.corrupt and isinstance(found, CorruptSession)
        return self.is_old(found) and self.reason_to_keep(found) is None

    def depth(self, found: RecordOrError) -> int:
        """How many sessions are above this one."""
        place = None if isinstance(found, SessionsError) else self.above.place(found)
        return place[1] if place else 0

    def is_old(self, record: Record) -> bool:
        """Whether nobody has used the session for long enough; never so for the record of a later version."""
        if has_newer_schema(record):
            return False
        return self.now - resting_since(record, self.now, written_at(latest_transcript(record))) >= self.policy.age

    def reason_to_keep(self, record: Record) -> str | None:
        """Why an old session must be kept, or why its age is uncertain; None if there is no such reason."""
        if has_newer_schema(record):
            return "newer_schema"
        if is_ahead(parse_time(record["last_updated"]), self.now):
            return "clock_skew"
        try:
            return self._reason_to_keep_old(record) if self.is_old(record) else None
        except StoreFailure:  # whether it is cancelled
            return "mark_unread"

    def _reason_to_keep_old(self, record: Record) -> str | None:
        is_above_unread = self.has_unread and self.above.handed_down(record["agent_id"])
        if is_above_unread or record["agent_id"] in self.above_open:
            return "above_open"
        gone = gone_runs(record)
        if any(run["run"] not in gone and self._may_run(run) for run in record.get("runs", ())):
            return "running"
        if not is_resumable(record["phase"]):  # the policy would find the same, at a higher cost
            return None
        decision = decide(self.above.proved_cancellation, record["agent_id"], record, self.now, self.policy.limits)
        return "resumable" if decision["should_resume"] else None

    def _may_run(self, run: Run) -> bool:
        began = started_or_claimed_at(run)
        longest = max(self.policy.age, _UNKNOWN_RUN_LIFETIME)
        return not has_ended(run) and began is not None and self.now - began < longest


def cleanup(
    store: Store,
    cleanup_policy: CleanupPolicy,
    root: str | None = None,
    *,
    dry_run: bool,
    sessions: Reader | None = None,
) -> CleanupReport:
    """Removes what ``cleanup_policy`` allows, and reports what was removed, or with ``dry_run`` would be.

    First ``reconcile`` closes the runs whose end is proved; ``closed`` has its verdicts on those. ``sessions`` is where
    the sessions are read, if not in ``store``: a ``Preview`` for a dry run. Locked sessions are skipped as busy, and a
    session that the system refuses to remove stops no other. Raises ``StoreFailure`` for the store as a whole.
    """
    reconciled = reconcile(store, cleanup_policy.now, root, dry_run=dry_run, sessions=sessions)
    report = _new_report(cleanup_policy, reconciled, dry_run=dry_run)
    judge, doomed, active = _Judge(cleanup_policy, sessions or store), [], set()
    for agent_id, found in (sessions or store).scan():
        if judge.allows(found):
            doomed.append((judge.depth(found), agent_id))
        else:
            _report_kept(judge, report, agent_id, found)
        if _is_active(found):
            active.add(agent_id)
    active -= _remove_all(store, judge, report, doomed)
    _add_unclosed(report, reconciled)
    if not dry_run:
        store.purge_trash()
        report["swept"] = [errors.well_formed(path) for path in store.sweep(cleanup_policy.now, active)]
    return report


def _remove_all(store: Store, judge: _Judge, report: CleanupReport, doomed: list[tuple[int, str]]) -> set[str]:
    """Removes the sessions of ``doomed``, each with its depth, or reports why not; the ids of those that are gone."""
    if doomed and not report["dry_run"]:
        with suppress(StoreFailure):  # the children of each are looked for, which is cheap only with a complete index
            store.ensure_index()
    deepest_first = [agent_id for _, agent_id in sorted(doomed, reverse=True)]  # what goes too needs no mark from above
    return {agent_id for agent_id in deepest_first if not _remove_or_report(store, judge, report, agent_id)}


def _new_report(cleanup_policy: CleanupPolicy, reconciled: Reconciled, *, dry_run: bool) -> CleanupReport:
    """The report before any session is judged."""
    return {
        "dry_run": dry_run,
        "hours": cleanup_policy.age.total_seconds() / 3600,
        "corrupt_too": cleanup_policy.corrupt,
        "closed": [verdict for verdict in reconciled["verdicts"] if verdict["verdict"] in CLOSING_VERDICTS],
        "removed": [],
        "kept": [],
        "busy": [],
        "corrupt": [],
        "failed": [],
        "swept": [],
    }


def _ids_above_open(sessions: Reader, above: Above) -> tuple[frozenset[str], bool]:
    """The sessions that an open one has among its ancestors, and whether there is any of which that cannot be read."""
    above_open: set[str] = set()
    has_unread = False
    for _, found in sessions.scan(active_only=True):
        has_unread = has_unread or isinstance(found, StoreFailure)
        parent_id = parent_id_of(found) if _is_active(found) else None
        with suppress(StoreFailure):  # what is above one that the system refuses to read is not known
            while parent_id is not None and parent_id not in above_open:
                above_open.add(parent_id)
                parent_id = above.parent_of(parent_id)
    return frozenset(above_open), has_unread


def _add_unclosed(report: CleanupReport, reconciled: Reconciled) -> None:
    """Adds what prevented a run from being closed, for sessions that still exist and are not in the report."""
    reported_ids = {*report["removed"], *report["busy"], *(failed["agent_id"] for failed in report["failed"])}
    report["busy"] += [agent_id for agent_id in reconciled["busy"] if agent_id not in reported_ids]
    report["failed"] += [{**left} for left in reconciled["failed"] if left["agent_id"] not in reported_ids]


def _remove_or_report(store: Store, judge: _Judge, report: CleanupReport, agent_id: str) -> bool:
    """Removes the session or reports why not; returns whether it still exists afterwards."""
    try:
        if report["dry_run"] or remove(store, agent_id, judge.allows):
            report["removed"].append(agent_id)
            return report["dry_run"]
    except SessionNotFound:
        return False
    except LockTimeout:
        report["busy"].append(agent_id)
    except StoreFailure as error:
        report["failed"].append({"agent_id": agent_id, "reason": str(error)})
    return True


def _report_kept(judge: _Judge, report: CleanupReport, agent_id: str, found: RecordOrError) -> None:
    if isinstance(found, SessionsError):
        target = report["corrupt"] if isinstance(found, CorruptSession) else report["failed"]
        target.append({"agent_id": agent_id, "reason": str(found)})
        return
    reason = judge.reason_to_keep(found)
    if reason:
        report["kept"].append({"agent_id": agent_id, "reason": reason})


def _is_active(found: RecordOrError) -> TypeGuard[Record]:
    return not isinstance(found, SessionsError) and is_open(found)
