"""Removes sessions that nobody has used for a long time, in any phase, after it closes runs that have ended.

Each session is judged twice, the second time under its lock.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial

from gaia_sessions import errors
from gaia_sessions.config import DEFAULT_HOURS
from gaia_sessions.errors import CorruptSession, LockTimeout, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.hosts.evidence import latest_write
from gaia_sessions.session.clock import is_ahead, parse_time
from gaia_sessions.session.phases import is_resumable, waits_for_approval
from gaia_sessions.session.policy import resting_since
from gaia_sessions.session.record import is_open, is_stand_in
from gaia_sessions.session.transcript import generation_of
from gaia_sessions.session.verdicts import CLOSING_VERDICTS
from gaia_sessions.system import utc_now

from . import at
from .reconciling import close_runs
from .removal import Judge, Leaving, may_run, remove_each
from .standing import decide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime
    from typing import NotRequired, TypedDict

    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.above import Above
    from gaia_sessions.store.port import RecordOrError, Store

    from .at import Place, Reading
    from .reconciling import Reconciled, SkippedSession, Verdict

    class CleanupReport(TypedDict):
        """What was done, or with ``dry_run`` would be done. Sessions are named by ID.

        Keys:
            keep_days: how many days a session stays that a person perhaps still needs.
            corrupt_too: whether sessions that cannot be read were removed too.
            closed: the verdicts on runs that were closed before the removal.
            recent: how many stayed because they were used within ``hours``.
            kept: other sessions that stayed, each with the code of the reason.
            busy: sessions that another process is changing.
            corrupt: sessions that cannot be read and stayed, each with the reason.
            failed: sessions that the system refused to read, change or remove, each with the reason.
            swept: the paths of removed leftovers of killed processes.
            left_out: how many sessions of each app were not looked at; only if you named no app.
        """

        dry_run: bool
        hours: float
        keep_days: float
        corrupt_too: bool
        closed: list[Verdict]
        removed: list[str]
        recent: int
        kept: list[SkippedSession]
        busy: list[str]
        corrupt: list[SkippedSession]
        failed: list[SkippedSession]
        swept: list[str]
        left_out: NotRequired[dict[str, int]]


_MAX_HOURS = 1_000_000
_YOUNG = "young"
"""The reason for which most sessions stay; sessions with this reason are only counted."""


def cleanup(
    place: Place,
    hours: float = DEFAULT_HOURS,
    *,
    dry_run: bool = False,
    corrupt: bool = False,
    app: str | None = None,
) -> CleanupReport:
    """[Removes](ci-and-cron.md#clean-up-by-cron) sessions that were not updated for ``hours``.

    First, runs are closed as ``reconcile`` does.

    These sessions stay: sessions that can be resumed; sessions whose [run](record.md#runs) has perhaps not ended; and
    for ``keep_days`` (a [setting](settings.md); on a server, of ``store init``), open sessions that have turns, or
    asked for an approval and were not denied. If your own program works on a session, only the program's writes show
    that.

    Args:
        dry_run: returns the report and removes nothing.
        corrupt: also removes all sessions that cannot be read, at any age.
        app: removes only sessions of this app; without it, only sessions that belong to no app.

    Raises:
        BadArgument: ``hours`` is below 0 or above 1,000,000.

    Example:
        sessions.create("reviewer")
        print(sessions.cleanup(hours=24, dry_run=True)["removed"])
    """
    now, settings = utc_now(), place.config
    policy = CleanupPolicy(now, hours, settings.limits, keep_days=at.read(place, _keep_days), corrupt=corrupt, app=app)
    with at.store_of(place, dry_run=dry_run) as store:
        report = remove_unused(store, policy, place.folder)
    return {**report, "dry_run": dry_run}


def _keep_days(at: Reading) -> float:
    """Returns the number of the server, or on files the setting."""
    days = at.store.keep_days()
    return at.config.keep_days if days is None else days


class CleanupPolicy:
    """The rule of ``cleanup`` at ``now``; without an ``app``, it is for sessions without an app."""

    __slots__ = ("age", "app", "corrupt", "fenced", "keep_days", "keeps_continued", "limits", "named", "now")

    def __init__(
        self,
        now: datetime,
        hours: float,
        limits: Limits,
        *,
        keep_days: float,
        corrupt: bool = False,
        app: str | None = None,
    ) -> None:
        if not (isinstance(hours, int | float) and 0 <= hours <= _MAX_HOURS):  # type: ignore[redundant-expr]  # users call this
            raise errors.BadArgument("hours", hours, f"a number from 0 to {_MAX_HOURS} (114 years)")
        self.now = now
        self.app = app
        self.age = timedelta(hours=hours)
        self.keep_days = keep_days
        self.limits = limits
        self.corrupt = corrupt
        self.named: Collection[str] = ()
        self.fenced = False
        self.keeps_continued = True

    def by_age(self, record: Record) -> str | None:
        """Returns why the session is not old enough (it was used lately, or its time is in the future), or None."""
        updated = parse_time(record["last_updated"])
        if is_ahead(updated, self.now):
            return "clock_skew"
        if self.now - updated < self.age:  # true for nearly all sessions; other activity makes no session older
            return _YOUNG
        if is_stand_in(record):  # nothing is written to it while its command works
            return _YOUNG if self.now - updated < timedelta(days=self.keep_days) else None
        rested = self.now - resting_since(record, self.now, latest_write(record))
        return None if rested >= self.age else _YOUNG

    def by_work(self, record: Record, above: Above) -> str | None:
        """Returns why the session is not over (it may run or be resumed, or a person may need it), or None."""
        # Never removed: resumable, waits for a limit, live run, above an open one, continued by one, uncertain age.
        if may_run(record, self.now, self.age):
            return "running"
        is_wanted = is_open(record) and _may_be_turned_to(record)
        if not (is_wanted or is_resumable(record["phase"])):  # the policy would say the same at a higher cost
            return None
        decision = decide(above.proved_cancellation, record["agent_id"], record, self.now, self.limits)
        if decision["should_resume"]:
            return "resumable"
        is_recent = timedelta(seconds=decision["idle_seconds"] or 0) < timedelta(days=self.keep_days)
        return "keep_days" if is_wanted and is_recent and "cancellation" not in decision else None


def _may_be_turned_to(record: Record) -> bool:
    """Returns whether a person talked with the agent, or was asked by the agent and has not denied."""
    has_talked = record.get("turns", 0) > 0 or generation_of(record) > 0
    return has_talked or (waits_for_approval(record["phase"]) and "denial" not in record)


def remove_unused(store: Store, cleanup_policy: CleanupPolicy, root: str | None = None) -> CleanupReport:
    """Closes the runs whose end is proved, removes what ``cleanup_policy`` allows, and reports both."""
    reconciled = close_runs(store, cleanup_policy.now, root)
    report = _new_report(cleanup_policy, reconciled)
    judge, leaving = Judge(cleanup_policy, store), Leaving(store, cleanup_policy.now, cleanup_policy.limits)
    removable = _look_through(judge, cleanup_policy.app, leaving, report)
    if removable:
        _remove(store, judge, leaving, report, removable)
    _add_unclosed(report, reconciled)
    report["swept"] = [errors.well_formed(path) for path in store.sweep(cleanup_policy.now)]
    return report


def _look_through(judge: Judge, app: str | None, leaving: Leaving, report: CleanupReport) -> list[str]:
    """Returns the IDs of removable sessions. Adds their figures to ``leaving``, and to ``report`` why others stay."""
    old: dict[str, tuple[SessionsError | None, str | None]] = {}
    left_out = Counter[str]()
    for agent_id, found in judge.look_through():
        error, own_app = (found, None) if isinstance(found, SessionsError) else (None, found.get("app"))
        if own_app != app:
            left_out.update([own_app] if own_app is not None and app is None else [])
            continue
        reason = judge.by_itself(found)
        if reason is None:
            by_work = _or_unread(partial(judge.by_work, found))
            old[agent_id] = error, by_work
            if by_work is None:
                leaving.note(found, judge.above)
        elif reason == _YOUNG:
            report["recent"] += not is_stand_in(found)  # type: ignore[arg-type]  # an error is never young
        else:
            _report_kept(report, agent_id, error, reason)
    if left_out:
        report["left_out"] = {**left_out}
    removable = []
    for agent_id, (error, by_work) in old.items():
        reason = _or_unread(partial(judge.by_tree, agent_id, error, by_work))
        if reason is None:
            removable.append(agent_id)
        else:
            leaving.forget(agent_id)
            _report_kept(report, agent_id, error, reason)
    return removable


def _or_unread(judge: Callable[[], str | None]) -> str | None:
    try:
        return judge()
    except StoreFailure:
        return "mark_unread"


def _new_report(cleanup_policy: CleanupPolicy, reconciled: Reconciled) -> CleanupReport:
    return {
        "dry_run": reconciled["dry_run"],
        "hours": cleanup_policy.age.total_seconds() / 3600,
        "keep_days": cleanup_policy.keep_days,
        "corrupt_too": cleanup_policy.corrupt,
        "closed": [verdict for verdict in reconciled["verdicts"] if verdict["verdict"] in CLOSING_VERDICTS],
        "removed": [],
        "recent": 0,
        "kept": [],
        "busy": [],
        "corrupt": [],
        "failed": [],
        "swept": [],
    }


def _add_unclosed(report: CleanupReport, reconciled: Reconciled) -> None:
    """Adds why runs were not closed, for sessions that still exist and are not in the report."""
    reported_ids = {*report["removed"], *report["busy"], *(failed["agent_id"] for failed in report["failed"])}
    report["busy"] += [agent_id for agent_id in reconciled["busy"] if agent_id not in reported_ids]
    report["failed"] += [{**left} for left in reconciled["failed"] if left["agent_id"] not in reported_ids]


def _remove(store: Store, judge: Judge, leaving: Leaving, report: CleanupReport, removable: list[str]) -> None:
    """Removes the ``removable`` sessions, and reports which could not be removed, and why."""

    def may_go(agent_id: str, found: RecordOrError) -> bool:
        return _or_unread(partial(judge.reason_to_keep, agent_id, found)) is None

    leaving.write()
    for agent_id, outcome in remove_each(store, removable, may_go, leaving, judge=judge):
        if outcome is True:
            report["removed"].append(agent_id)
        elif isinstance(outcome, LockTimeout):
            report["busy"].append(agent_id)
        elif isinstance(outcome, StoreFailure):
            report["failed"].append({"agent_id": agent_id, "reason": str(outcome)})
        elif isinstance(outcome, SessionsError) and not isinstance(outcome, SessionNotFound):
            raise outcome


def _report_kept(report: CleanupReport, agent_id: str, error: SessionsError | None, reason: str) -> None:
    if error is None:
        report["kept"].append({"agent_id": agent_id, "reason": reason})
    else:
        target = report["corrupt"] if isinstance(error, CorruptSession) else report["failed"]
        target.append({"agent_id": agent_id, "reason": str(error)})
