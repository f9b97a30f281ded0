"""What ``reconcile``, ``cleanup`` and ``import`` did: one line for each session or run."""

from __future__ import annotations

import shlex

from gaia_sessions.errors import plural
from gaia_sessions.session.verdicts import CLOSING_VERDICTS

from .plain import left_out_line
from .words import duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gaia_sessions.api.cleaning import CleanupReport
    from gaia_sessions.api.importing import Imported
    from gaia_sessions.api.reconciling import Reconciled, SkippedSession, Verdict

_LONGEST = 500
_KEPT = {
    "newer_schema": "of a later version, or being moved",
    "clock_skew": "whose last activity is in the future",
    "mark_unread": "whose cancellation mark cannot be read",
    "above_open": "above a session that is, or perhaps is, open",
    "continued": "that an open session continues",
    "keep_days": "with turns or in approval, for {keep_days} (setting keep_days)",
    "running": "whose agent may still be at work",
    "resumable": "that can be resumed",
}
"""Why ``cleanup`` and ``reconcile`` leave sessions unchanged, in words that follow the number of sessions."""


def reconcile_lines(report: Reconciled) -> Iterator[str]:
    """Yields how many runs were closed, then each run that was judged, and each session that was left unchanged."""
    verdicts = report["verdicts"]
    closed = [verdict for verdict in verdicts if verdict["verdict"] in CLOSING_VERDICTS]
    yield f"{'would close' if report['dry_run'] else 'closed'} {plural(len(closed), 'run')}"
    if report["counted"]:
        runs = plural(len(report["counted"]), "run")
        yield f"{'would count' if report['dry_run'] else 'counted'} the usage of {runs}"
    if report["abandoned"]:
        sessions = plural(len(report["abandoned"]), "cancelled session")
        yield f"{'would abandon' if report['dry_run'] else 'abandoned'} {sessions}: {', '.join(report['abandoned'])}"
    yield from (verdict_line(verdict) for verdict in sorted(verdicts, key=_sort_key))
    for line, named in _unchanged(report):
        yield line
        yield from named


def verdict_line(verdict: Verdict) -> str:
    """Returns ``lost: agent-1, run 2: no process 123, its host; the session is abandoned``."""
    line = f"{verdict['verdict']}: {verdict['agent_id']}, run {verdict['run']}: "
    line += safe(verdict["evidence"], _LONGEST)
    return f"{line}; the session is {verdict['phase']}" if verdict["verdict"] in CLOSING_VERDICTS else line


def _sort_key(verdict: Verdict) -> tuple[bool, str, int]:
    return verdict["verdict"] not in CLOSING_VERDICTS, verdict["agent_id"], verdict["run"]


def _unchanged(report: Reconciled | CleanupReport, keep_days: float = 0) -> Iterator[tuple[str, list[str]]]:
    """Yields for each reason to leave sessions unchanged a line with their number, and lines that name the sessions."""
    keep = "would keep" if report["dry_run"] else "kept"
    kept_for = duration(round(keep_days * 86400), 2)
    for reason, why in _KEPT.items():
        ids = [left["agent_id"] for left in report["kept"] if left["reason"] == reason]
        if ids:
            yield f"{keep} {plural(len(ids), 'session')} {why.format(keep_days=kept_for)}", _indented(ids)
    if report["corrupt"]:
        yield (
            f"{keep} {plural(len(report['corrupt']), 'session')} that cannot be read",
            _with_reasons(report["corrupt"]),
        )
    if report["busy"]:
        yield f"skipped {plural(len(report['busy']), 'session')} locked by another process", _indented(report["busy"])
    if report["failed"]:
        refused = f"failed: the system refused access to {plural(len(report['failed']), 'session')}"
        yield refused, _with_reasons(report["failed"])


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _with_reasons(sessions: Sequence[SkippedSession]) -> list[str]:
    return _indented(f"{left['agent_id']}: {safe(left['reason'], _LONGEST)}" for left in sessions)


def cleanup_lines(report: CleanupReport, *, is_verbose: bool) -> Iterator[str]:
    """Yields how many sessions were removed and how many were not; with ``is_verbose`` also their IDs."""
    named_any = False
    for line, named in _cleaned(report):
        yield line
        yield from named if is_verbose else ()
        named_any = named_any or bool(named)
    if report["dry_run"] and named_any and not is_verbose:
        yield "to see which, add --verbose"


def _cleaned(report: CleanupReport) -> Iterator[tuple[str, list[str]]]:
    remove, close, keep = (
        ("would remove", "would close", "would keep") if report["dry_run"] else ("removed", "closed", "kept")
    )
    span = duration(round(report["hours"] * 3600), 2)
    condition = f"not updated for {span}" + (", or unreadable" if report["corrupt_too"] else "")
    yield f"{remove} {plural(len(report['removed']), 'session')} {condition}", _indented(sorted(report["removed"]))
    if report["closed"]:
        runs = plural(len(report["closed"]), "run")
        yield f"{close} {runs} that ended without a report", _indented(map(verdict_line, report["closed"]))
    if report["recent"]:
        yield f"{keep} {plural(report['recent'], 'session')} updated since then", []
    yield from _unchanged(report, report["keep_days"])
    if report["swept"]:
        left = plural(len(report["swept"]), "file")
        yield f"swept {left} that killed processes left behind", _indented(map(safe, report["swept"]))
    if "left_out" in report:
        yield left_out_line(report["left_out"]), []


def import_lines(report: Imported) -> Iterator[str]:
    """Yields what was imported, then what already exists here."""
    directories, root = safe(", ".join(report["directories"]), _LONGEST), safe(report["root"], _LONGEST)
    if report["imported"] or report["already_there"] or report["failed"]:
        verb = "would import" if report["dry_run"] else "imported"
        yield f"{verb} {plural(len(report['imported']), 'session')} from {directories} into {root}"
    else:
        yield f"nothing to import: no folder in {directories} contains a state.json"
    yield from (f"  {agent_id}" for agent_id in report["imported"])
    yield from (f"already exists: {agent_id}" for agent_id in report["already_there"])
    for directory, number in report["waiting"].items():
        yield f"not imported: {plural(number, 'event')} waiting in {safe(directory, _LONGEST)}."
        yield "Events that fit no session are dropped after a day. To apply the others, type this; then import again:"
        yield f"  {safe(shlex.join(['gaia-sessions', 'reconcile', '--root', directory]), _LONGEST)}"
