"""How the verdicts on unended runs are said: one line per run, the evidence with it."""

from __future__ import annotations

from gaia_sessions.errors import plural
from gaia_sessions.usecases.reconcile_rules import CLOSING_VERDICTS

from .words import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.usecases.cleanup import Report
    from gaia_sessions.usecases.reconcile import Reconciled, SkippedSession, Verdict

_LONGEST_EVIDENCE = 500


def reconcile_lines(report: Reconciled) -> Iterator[str]:
    """How many runs were closed, or would be; then every run judged, and whatever could not be."""
    verdicts = report["verdicts"]
    closed = [verdict for verdict in verdicts if verdict["verdict"] in CLOSING_VERDICTS]
    yield f"{'would close' if report['dry_run'] else 'closed'} {plural(len(closed), 'run')}"
    yield from (verdict_line(verdict) for verdict in sorted(verdicts, key=_sort_key))
    yield from unchanged_lines(report)


def verdict_line(verdict: Verdict) -> str:
    """``lost: agent-1, run 2: no process 123, its host; the session is abandoned``."""
    line = f"{verdict['verdict']}: {verdict['agent_id']}, run {verdict['run']}: "
    line += safe(verdict["evidence"], _LONGEST_EVIDENCE)
    return f"{line}; the session is {verdict['phase']}" if verdict["verdict"] in CLOSING_VERDICTS else line


def _sort_key(verdict: Verdict) -> tuple[bool, str, int]:
    return verdict["verdict"] not in CLOSING_VERDICTS, verdict["agent_id"], verdict["run"]


def unchanged_lines(report: Reconciled | Report) -> Iterator[str]:
    """A line for each session that was left as it is: somebody is at work on it, or why else."""
    yield from (f"busy: {agent_id}" for agent_id in report["busy"])
    yield from _reason_lines("kept", report["kept"])
    yield from _reason_lines("corrupt", report["corrupt"])
    yield from _reason_lines("failed", report["failed"])


def _reason_lines(word: str, sessions: list[SkippedSession]) -> Iterator[str]:
    yield from (f"{word}: {left['agent_id']}: {safe(left['reason'])}" for left in sessions)
