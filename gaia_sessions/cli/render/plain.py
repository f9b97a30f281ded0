"""Plain text about one session, a list or their directory, one fact per line, for pipes, logs, agents and people alike.

Owns that wording. Must never know a terminal: ``tables`` does.
"""

from __future__ import annotations

from gaia_sessions.errors import plural
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.policy import is_running, resume_summary

from .figures import run_figures, usage_text
from .words import WHY_STOPPED, ago, cancellation_text, duration, liveness_text, local_time, resume_text, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.schema import Record, Run, Tools
    from gaia_sessions.usecases.listing import Line, Summary
    from gaia_sessions.usecases.tree import TreeLine

    Section = tuple[str, list[str]]
    """A heading, and the lines below it."""


NO_PURPOSE = "general"
"""The purpose of a session that was created without one."""

_LONGEST_EVENT = 500
_LONGEST_PATH = 4096


def update_line(record: Record, decision: Decision, now: datetime) -> str:
    """The state of the session after an update."""
    facts = [f"phase {record['phase']}", f"revision {record['revision']}"]
    if record["error_count"]:
        facts.append(plural(record["error_count"], "error"))
    facts += filter(None, [decision_text(record, decision, now)])
    if "denial" in record:
        facts.append("denied")
    return f"{record['agent_id']}: {', '.join(facts)}"


def new_root_notice(root: str) -> tuple[str, str]:
    """That the directory of the sessions was created, and how to choose another."""
    return f"{root} was created for the sessions", "to keep them elsewhere, use --root DIR or set GAIA_SESSIONS_ROOT"


def network_warning(root: str, kind: str) -> str:
    """Why a network file system of this ``kind`` is no place for sessions."""
    return f"Warning: {root} is on {kind}: locks are not reliable there; keep sessions on a local disk"


def unchanged_line(record: Record, texts: dict[str, str | None]) -> str:
    """That the session had already ended, and which of ``texts``, named by their options, the record does not have."""
    last_error = record["last_error"]
    stored = (record.get("summary"), last_error["message"] if last_error else None)
    not_stored = [f"the {name}" for name, text in texts.items() if text and text not in stored]
    result = (
        f"{' and '.join(not_stored)} {'were' if len(not_stored) > 1 else 'was'} not stored"
        if not_stored
        else "nothing was changed"
    )
    return f"already {record['phase']}: {result}"


def show_hint(record: Record) -> str:
    """Which command prints what is stored."""
    return f"`gaia-sessions show {record['agent_id']}` shows what is stored"


def decision_text(record: Record, decision: Decision, now: datetime) -> str:
    """The policy's decision in a few words; empty for a final session."""
    return resume_text(resume_summary(decision), record["phase"], now, running=is_running(decision))


def list_lines(lines: Iterable[TreeLine], now: datetime) -> Iterator[str]:
    """A line for each session, indented by its level, with two blanks between columns."""
    for level, line in lines:
        yield "  " * level + "  ".join([safe(line["agent_id"]), *columns(line, now)]).rstrip()


def no_sessions_line(root: str, left_out: int, *, exists: bool = True) -> str:
    """Which folder was searched, whether it exists, and how many sessions the options of the command excluded."""
    if not exists:
        return f"No sessions found: {safe(root, _LONGEST_PATH)} does not exist"
    message = f"No sessions found in {safe(root, _LONGEST_PATH)}"
    if not left_out:
        return message
    return f"{message} with these options; without them, there {'is' if left_out == 1 else 'are'} {left_out}"


def columns(line: Line, now: datetime) -> list[str]:
    """The columns of one session after its id: agent and purpose, phase, last activity, notes."""
    if "problem" in line:
        return ["-", line["status"], "-", safe(line["problem"])]
    return [
        agent_and_purpose(line),
        line["phase"],
        ago(line["last_updated"], now),
        ", ".join(_status_notes(line, now)),
    ]


def agent_and_purpose(line: Summary) -> str:
    """The agent and, if one was given, the purpose, which distinguishes agents of one kind."""
    name = safe(line["agent_name"], 40)
    return name if line["purpose"] == NO_PURPOSE else f"{name}: {safe(line['purpose'], 40)}"


def _status_notes(line: Summary, now: datetime) -> Iterator[str]:
    yield from filter(None, [state_text(line, now), *session_notes(line)])


def state_text(line: Summary, now: datetime) -> str:
    """What is known of the agent at work, else whether the session may be resumed; empty for a final one."""
    if "liveness" in line and not is_final(line["phase"]):
        return liveness_text(line["liveness"], now)
    return resume_text(line["resume"], line["phase"], now, running=line["running"])


def session_notes(line: Summary) -> Iterator[str]:
    """What is worth knowing of a session besides its phase and the policy's decision."""
    if line.get("cancelled") and ("liveness" in line or is_final(line["phase"])):  # else the decision says so
        yield "cancelled"
    if line.get("denied"):
        yield "denied"
    if line["error_count"]:
        yield plural(line["error_count"], "error")
    if line["status"] == "newer":
        yield "written by a later version"
    if line.get("parent_status") == "circle":
        yield "its parents form a circle"
    if not line.get("selected", True):
        yield "excluded"


def session_lines(record: Record, decision: Decision, now: datetime, alive: Liveness | None = None) -> Iterator[str]:
    """One session: its facts, its phases as a timeline, its runs."""
    yield f"{record['agent_id']}: {safe(record['agent_name'])}, {safe(record['purpose'])}"
    yield from (f"  {name}: {value}" for name, value in facts(record, decision, now, alive))
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


def facts(
    record: Record, decision: Decision, now: datetime, alive: Liveness | None = None
) -> Iterator[tuple[str, str]]:
    """Name and value of each fact about a session, and about the agent that is at work on it."""
    yield "phase", record["phase"]
    if text := decision_text(record, decision, now):
        yield "resume", text
    if "cancellation" in decision:
        yield "cancelled", cancellation_text(decision["cancellation"], now)
    if alive:
        yield "agent", liveness_text(alive, now)
    yield "created", f"{local_time(record['created_at'])}, {ago(record['created_at'], now)}"
    yield "last activity", f"{local_time(record['last_updated'])}, {ago(record['last_updated'], now)}"
    if record["last_error"]:
        message = safe(record["last_error"]["message"])
        yield "errors", f"{record['error_count']}, the last {ago(record['last_error']['timestamp'], now)}: {message}"
    if "denial" in record:
        yield "denied", f"{ago(record['denial']['timestamp'], now)}: {safe(record['denial']['message'])}"
    if "tools" in record:
        yield "tools", _tool_counts(record["tools"])
    if "usage" in record:
        yield "usage", usage_text(record["usage"])
    yield from _limits(record)
    if "duration_seconds" in record:
        yield "duration", duration(record["duration_seconds"])
    if "summary" in record:
        yield "summary", safe(record["summary"])
    yield from ((f"metadata {safe(key, 40)}", safe(_value_text(value))) for key, value in record["metadata"].items())
    yield "revision", str(record["revision"])


def _limits(record: Record) -> Iterator[tuple[str, str]]:
    for key in ("max_depth", "max_tokens"):
        if key in record:
            yield key.replace("_", " "), str(record[key])


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


def event_line(entry: Json) -> str:
    """One entry of a session's events: time, kind, run, phase at that time, evidence."""
    if not isinstance(entry, dict):
        return safe(entry)
    parts = [f"{local_time(str(entry.get('at')))}  {entry.get('kind')}"]
    parts += [f"run {entry['run']}"] if "run" in entry else []
    parts += [f"phase {entry.get('phase')}"]
    parts += [str(entry[key]) for key in ("end", "detail") if key in entry]
    evidence = entry.get("evidence")
    keys = evidence.items() if isinstance(evidence, dict) else ()
    return safe(", ".join([*parts, *(f"{key}={value}" for key, value in keys)]), _LONGEST_EVENT)


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
