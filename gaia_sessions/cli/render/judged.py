"""How the verdicts on unended runs are said: one line per run, the evidence with it."""

from __future__ import annotations

from gaia_sessions.usecases.reconcile_rules import CLOSING

from .words import plural, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.usecases.cleanup import Report
    from gaia_sessions.usecases.reconcile import Left, Reconciled, Verdict

_LONGEST_EVIDENCE = 500


def reconciled(report: Reconciled) -> Iterator[str]:
    """How many runs were closed, or would be; then every run judged, and whatever could not be."""
    verdicts = report["verdicts"]
    closed = [verdict for verdict in verdicts if verdict["verdict"] in CLOSING]
    yield f"{'would close' if report['dry_run'] else 'closed'} {plural(len(closed), 'run')}"
    yield from (described(verdict) for verdict in sorted(verdicts, key=_closed_first))
    yield from left_alone(report)


def described(verdict: Verdict) -> str:
    """``lost: agent-1, run 2: no process 123, its host; the session is abandoned``."""
    line = f"{verdict['verdict']}: {verdict['agent_id']}, run {verdict['run']}: "
    line += safe(verdict["evidence"], _LONGEST_EVIDENCE)
    return f"{line}; the session is {verdict['phase']}" if verdict["verdict"] in CLOSING else line


def _closed_first(verdict: Verdict) -> tuple[bool, str, int]:
    return verdict["verdict"] not in CLOSING, verdict["agent_id"], verdict["run"]


def left_alone(report: Reconciled | Report) -> Iterator[str]:
    """A line for each session that was left as it is: somebody is at work on it, or why else."""
    yield from (f"busy: {agent_id}" for agent_id in report["busy"])
    yield from _left("kept", report["kept"])
    yield from _left("corrupt", report["corrupt"])
    yield from _left("failed", report["failed"])


def _left(word: str, sessions: list[Left]) -> Iterator[str]:
    yield from (f"{word}: {left['agent_id']}: {safe(left['reason'])}" for left in sessions)
