"""What a command on many sessions did: ``reconcile``, ``cleanup`` and ``import``, one line for each session or run.

Owns the wording of those reports.
"""

from __future__ import annotations

from gaia_sessions.errors import plural
from gaia_sessions.usecases.reconcile_rules import CLOSING_VERDICTS

from .plain import agent_and_purpose
from .words import duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gaia_sessions.usecases.cleanup import CleanupReport
    from gaia_sessions.usecases.importing import Imported
    from gaia_sessions.usecases.reconcile import Reconciled, SkippedSession, Verdict
    from gaia_sessions.usecases.removal import RemovedSession

_LONGEST = 500
_WHY_KEPT = {
    "newer_schema": "a later version wrote it",
    "clock_skew": "its last activity lies in the future",
    "mark_unread": "it cannot be read whether it is cancelled",
    "above_open": "a session below it is open, or may be",
    "running": "an agent may still be at work on it",
    "resumable": "it may be resumed",
}
"""Each reason for which ``cleanup`` and ``reconcile`` leave a session as it is."""


def reconcile_lines(report: Reconciled) -> Iterator[str]:
    """How many runs were closed, or would be; then each run that was judged, and each session that was not."""
    verdicts = report["verdicts"]
    closed = [verdict for verdict in verdicts if verdict["verdict"] in CLOSING_VERDICTS]
    yield f"{'would close' if report['dry_run'] else 'closed'} {plural(len(closed), 'run')}"
    if report["counted"]:
        yield f"{'would count' if report['dry_run'] else 'counted'} what {plural(len(report['counted']), 'run')} used"
    if report["abandoned"]:
        sessions = plural(len(report["abandoned"]), "cancelled session")
        yield f"{'would abandon' if report['dry_run'] else 'abandoned'} {sessions}: {', '.join(report['abandoned'])}"
    yield from (verdict_line(verdict) for verdict in sorted(verdicts, key=_sort_key))
    yield from unchanged_lines(report)


def verdict_line(verdict: Verdict) -> str:
    """``lost: agent-1, run 2: no process 123, its host; the session is abandoned``."""
    line = f"{verdict['verdict']}: {verdict['agent_id']}, run {verdict['run']}: "
    line += safe(verdict["evidence"], _LONGEST)
    return f"{line}; the session is {verdict['phase']}" if verdict["verdict"] in CLOSING_VERDICTS else line


def _sort_key(verdict: Verdict) -> tuple[bool, str, int]:
    return verdict["verdict"] not in CLOSING_VERDICTS, verdict["agent_id"], verdict["run"]


def unchanged_lines(report: Reconciled | CleanupReport) -> Iterator[str]:
    """A line for each session that was left unchanged, with the reason."""
    yield from (f"busy: {agent_id}" for agent_id in report["busy"])
    yield from (f"kept: {left['agent_id']}: {_WHY_KEPT[left['reason']]}" for left in report["kept"])
    yield from _reason_lines("corrupt", report["corrupt"])
    yield from _reason_lines("failed", report["failed"])


def _reason_lines(word: str, sessions: list[SkippedSession]) -> Iterator[str]:
    yield from (f"{word}: {left['agent_id']}: {safe(left['reason'])}" for left in sessions)


def cleanup_lines(report: CleanupReport) -> Iterator[str]:
    """What was removed, or would be; then what was not."""
    verb = "would remove" if report["dry_run"] else "removed"
    span = duration(round(report["hours"] * 3600), 2)
    condition = f"not updated for {span}" + (", or unreadable" if report["corrupt_too"] else "")
    yield f"{verb} {plural(len(report['removed']), 'session')} {condition}"
    yield from (f"  {agent_id}" for agent_id in report["removed"])
    closed = "would close" if report["dry_run"] else "closed"
    yield from (f"{closed}: {verdict_line(verdict)}" for verdict in report["closed"])
    yield from unchanged_lines(report)
    yield from (f"swept: {safe(path)}" for path in report["swept"])


def removed_lines(removed: Sequence[RemovedSession]) -> Iterator[str]:
    """``removed agent-1  Explore: read the code``."""
    for session in removed:
        who = agent_and_purpose(session["agent_name"], session["purpose"]) if "purpose" in session else "unreadable"
        yield f"removed {session['agent_id']}  {who}"


def import_lines(report: Imported) -> Iterator[str]:
    """What was imported, or would be; then what is here already."""
    directories, root = safe(", ".join(report["directories"]), _LONGEST), safe(report["root"], _LONGEST)
    if not (report["imported"] or report["already_there"] or report["failed"]):
        yield f"nothing to import: no folder in {directories} contains a state.json"
        return
    verb = "would import" if report["dry_run"] else "imported"
    yield f"{verb} {plural(len(report['imported']), 'session')} from {directories} into {root}"
    yield from (f"  {agent_id}" for agent_id in report["imported"])
    yield from (f"already exists: {agent_id}" for agent_id in report["already_there"])
