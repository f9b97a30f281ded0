"""Plain text about one session: its facts, its phases as a timeline, its runs.

Owns that wording, of ``show`` in a pipe, and of its parts on a terminal.
"""

from __future__ import annotations

from gaia_sessions.errors import plural
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.record import answer_of

from .figures import run_figures, usage_text
from .plain import decision_text
from .words import WHY_STOPPED, ago, cancellation_text, duration, liveness_text, local_time, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record, Run, Tools
    from gaia_sessions.usecases.showing import View

    Section = tuple[str, list[str]]
    """A heading, and the lines below it."""


def session_lines(view: View, now: datetime) -> Iterator[str]:
    """One session: its facts, its phases as a timeline, its runs."""
    record = view.record
    yield f"{record['agent_id']}: {safe(record['agent_name'])}, {safe(record['purpose'])}"
    yield from (f"  {name}: {value}" for name, value in facts(view, now))
    yield "phases"
    yield from (f"  {moment}  {step}" for moment, step in timeline(record))
    if record.get("runs"):
        yield "runs"
        yield from (f"  {line}" for line in run_lines(record))


def section_lines(sections: Iterable[Section]) -> Iterator[str]:
    """Each heading, and the lines below it."""
    for heading, lines in sections:
        yield heading
        yield from (f"  {line}" for line in lines)


def facts(view: View, now: datetime) -> Iterator[tuple[str, str]]:
    """Name and value of each fact about a session, and about the agent that is at work on it."""
    record, decision = view.record, view.standing.decision
    yield "phase", record["phase"]
    if text := decision_text(record, decision, now):
        yield "resume", text
    if "cancellation" in decision:
        yield "cancelled", cancellation_text(decision["cancellation"], now)
    if view.standing.alive:
        yield "agent", liveness_text(view.standing.alive, now)
    yield "created", f"{local_time(record['created_at'])}, {ago(record['created_at'], now)}"
    active = decision.get("last_activity", record["last_updated"])
    yield "last activity", f"{local_time(active)}, {ago(active, now)}"
    if record["last_error"]:
        message = safe(record["last_error"]["message"])
        yield "errors", f"{record['error_count']}, the last {ago(record['last_error']['timestamp'], now)}: {message}"
    yield from _answer(record, now)
    if "tools" in record:
        yield "tools", _tool_counts(record["tools"])
    if "usage" in record:
        yield "usage", usage_text(record["usage"])
    yield from _depth_limit(record)
    if "duration_seconds" in record:
        yield "duration", duration(record["duration_seconds"])
    if "summary" in record:
        yield "summary", safe(record["summary"])
    yield from ((f"metadata {safe(key, 40)}", safe(_value_text(value))) for key, value in record["metadata"].items())
    yield "revision", str(record["revision"])


def _answer(record: Record, now: datetime) -> Iterator[tuple[str, str]]:
    if answered := answer_of(record):
        word, answer = answered
        when = ago(answer["timestamp"], now)
        yield word, f"{when}: {safe(answer['message'])}" if answer["message"] else when


def _depth_limit(record: Record) -> Iterator[tuple[str, str]]:
    if "max_depth" in record:
        yield "max depth", str(record["max_depth"])


def _tool_counts(tools: Tools) -> str:
    """``12 calls: Bash 7, Read 5``, the most used tool first."""
    counts = sorted(tools["counts"].items(), key=lambda counted: (-counted[1], counted[0]))
    by_tool = ", ".join(f"{name} {number}" for name, number in counts)
    return safe(f"{plural(sum(tools['counts'].values()), 'call')}: {by_tool}")


def _value_text(value: Json) -> str:
    return value if isinstance(value, str) else dump_line(value).decode()


def timeline(record: Record) -> Iterator[tuple[str, str]]:
    """When the work entered each phase, and how many changes are no longer kept."""
    yield local_time(record["created_at"]), "initializing"
    if record.get("history_dropped"):
        yield "…", f"{plural(record['history_dropped'], 'earlier phase change')} discarded"
    for move in record["history"]:
        yield local_time(move["timestamp"]), f"{move['from_phase']} → {move['to_phase']}"


def run_lines(record: Record) -> Iterator[str]:
    """A line for each run, and how many runs are no longer kept."""
    if record.get("runs_dropped"):
        dropped = plural(record["runs_dropped"], "earlier run")
        yield f"{dropped} discarded; for their ends: gaia-sessions events {record['agent_id']}"
    no_end = "end not reported" if is_final(record["phase"]) else "not ended"
    yield from (run_line(run, no_end) for run in record["runs"])


def run_line(run: Run, no_end: str) -> str:
    """One run in a line: number, host, start, end, details; ``no_end`` is printed where no end is known."""
    began = run.get("started_at") or run.get("claimed_at")
    start = f"from {local_time(began)}" if began else "start unknown"
    parts = [f"{run['run']}", safe(run.get("host", "unknown host")), start]
    parts.append(f"{run.get('end', 'ended')} {local_time(run['ended_at'])}" if "ended_at" in run else no_end)
    if "interruption" in run:
        parts.append(WHY_STOPPED.get(run["interruption"], safe(run["interruption"])))
    if "detail" in run:
        parts.append(safe(run["detail"]))
    if "inferred" in run:
        parts.append(f"{run['inferred']} inferred from its tools")
    parts += run_figures(run)
    if "last_message" in run:
        parts.append(f"last message: {safe(run['last_message'], 80)}")
    return ", ".join(parts)
