"""Plain text about an update, a list of sessions or their directory, for pipes, logs, agents and people alike.

Owns that wording.
"""

from __future__ import annotations

import shlex

from gaia_sessions.errors import plural
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.policy import is_running
from gaia_sessions.session.record import answer_of
from gaia_sessions.session.state import BY_HAND

from .words import ago, left_text, local_time, overlap_text, resume_text, safe, state_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.api.listing import CorruptSummary, Line, Summary
    from gaia_sessions.api.removal import RemovedSession
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.schema import Record


NO_PURPOSE = "general"
"""The purpose of a session that was created without one."""

_LONGEST_EVENT = 500
_LONGEST_PATH = 4096
_MOST_APPS = 5


def update_line(record: Record, decision: Decision, now: datetime) -> str:
    """The state of the session after an update."""
    facts = [f"phase {record['phase']}", f"revision {record['revision']}"]
    if record["error_count"]:
        facts.append(plural(record["error_count"], "error"))
    facts += filter(None, [resume_text(decision, record["phase"], now, running=is_running(decision))])
    answer = answer_of(record)
    if answer:
        facts.append(answer[0])
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


def list_lines(lines: Iterable[Line], now: datetime) -> Iterator[str]:
    """A line for each session, with two blanks between columns."""
    for line in lines:
        yield "  ".join([safe(line["agent_id"]), *columns(line, now)]).rstrip()


def no_sessions_line(root: str, left_out: int, apps: Mapping[str, int] | None = None, *, exists: bool = True) -> str:
    """Which folder was searched, whether it exists, and how many sessions the options of the command excluded.

    ``apps`` has how many of them are of which app: without an option for that they are excluded.
    """
    if not exists:
        return f"No sessions found: {safe(root, _LONGEST_PATH)} does not exist"
    message = f"No sessions found in {safe(root, _LONGEST_PATH)}"
    if not left_out:
        return message
    apps = apps or {}
    others = left_out - sum(apps.values())
    told = [f"without them, there {'is' if others == 1 else 'are'} {others}"] if others else []
    return f"{message} with these options; {', '.join([*told, *_of_apps(apps)])}"


def nobody_worked_line(start: datetime, end: datetime, now: datetime) -> str:
    """Which span was asked for, in which nobody worked; a time alone may be that of yesterday."""
    span = f"from {local_time(format_time(start))} to {local_time(format_time(end))}"
    return f"No session worked {span}{': that is still to come' * (start > now)}"


def left_out_line(apps: Mapping[str, int]) -> str:
    """How many sessions of ``apps`` are left out, and how to see them."""
    left_out = f"left out: {plural(sum(apps.values()), 'session')} of {'an app' if len(apps) == 1 else 'apps'}"
    return f"{left_out}; {', '.join(_of_apps(apps))}"


def _of_apps(apps: Mapping[str, int]) -> list[str]:
    """The options that show the sessions of apps, with how many each shows; of many apps those that have most."""
    most = sorted(apps.items(), key=lambda app: (-app[1], app[0]))
    told = [f"--app {shlex.quote(safe(app))} has {number}" for app, number in most[:_MOST_APPS]]
    return told if len(most) <= _MOST_APPS else [*told, f"and {len(most) - _MOST_APPS} more apps"]


def columns(line: Line, now: datetime) -> list[str]:
    """The columns of one session after its id: agent and purpose, state, last activity, whether it may be resumed.

    Before the last activity how much of a span it worked, if that was asked.
    """
    if "problem" in line:
        return ["-", line["status"], "-", safe(line["problem"])]
    is_told = left_text(line["resume"], now) and "turns" not in line  # a person may ask at any time
    resume = resume_text(line["resume"], line["phase"], now) if is_told else ""
    return [
        agent_and_purpose(line["agent_name"], line["purpose"]),
        state_cell(line),
        *([overlap_text(line["overlap"])] if "overlap" in line else []),
        ago(line.get("last_activity", line["last_updated"]), now),
        resume,
    ]


def problem_text(line: CorruptSummary) -> str:
    """Why there is no more to say of a session, without the path of its file, which has its id."""
    return safe(line["problem"], 500).rpartition(f"/{line['agent_id']}/state.json: ")[2]


def agent_and_purpose(agent_name: str, purpose: str, longest: int = 200) -> str:
    """The agent and, if one was given, the purpose, which distinguishes agents of one kind."""
    name = safe(agent_name)
    return name if purpose == NO_PURPOSE else f"{name}: {safe(purpose, longest)}"


def removed_lines(removed: Sequence[RemovedSession]) -> Iterator[str]:
    """``removed agent-1  Explore: read the code``."""
    for session in removed:
        who = agent_and_purpose(session["agent_name"], session["purpose"]) if "purpose" in session else "unreadable"
        yield f"removed {session['agent_id']}  {who}"


def repaired_lines(repaired: Iterable[Mapping[str, str | None]]) -> Iterator[str]:
    """``repaired agent-1; its file as it was: PATH``."""
    for session in repaired:
        aside = session["kept_aside"]
        if aside is None:
            yield f"nothing to repair: the record of {session['agent_id']} can be read"
        else:
            yield f"repaired {session['agent_id']}; its file as it was: {safe(aside)}"


def state_cell(line: Summary) -> str:
    """The state and what stands beside it; of a session that a later version wrote, that it is newer.

    Of a conversation also how many turns it has.
    """
    if "state" not in line:
        return line["status"]
    if "turns" in line and line["state"] == BY_HAND:  # by ``turn`` alone, which says nothing of a phase
        return f"{BY_HAND}, {plural(line['turns'], 'turn')}"
    text = state_text(line["state"], line["phase"], line.get("liveness"), cancelled=line.get("cancelled", False))
    return f"{text}, {plural(line['turns'], 'turn')}" if "turns" in line else text


def tree_notes(line: Summary) -> Iterator[str]:
    """Why a session stands in a tree where it does, if that is not because of its parent alone."""
    if line.get("parent_status") == "circle":
        yield "(its parents form a circle)"
    if not line.get("selected", True):
        yield "(parent only)"


def event_line(entry: Json) -> str:
    """One entry of a session's events: time, kind, run, phase at that time, evidence, number."""
    if not isinstance(entry, dict):
        return safe(entry)
    parts = [f"{local_time(str(entry.get('at')))}  {entry.get('kind')}"]
    parts += [f"run {entry['run']}"] if "run" in entry else []
    parts += [f"phase {entry.get('phase')}"]
    parts += [str(entry[key]) for key in ("end", "detail") if key in entry]
    evidence = entry.get("evidence")
    keys = evidence.items() if isinstance(evidence, dict) else ()
    text = safe(", ".join([*parts, *(f"{key}={value}" for key, value in keys)]), _LONGEST_EVENT)
    return f"{text} (event {entry['seq']})" if "seq" in entry else text
