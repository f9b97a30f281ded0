"""Plain text about an update, a list of sessions or their root, for pipes, logs, agents and people alike."""

from __future__ import annotations

import shlex

from gaia_sessions.errors import plural
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.policy import is_running
from gaia_sessions.session.record import NO_PURPOSE, answer_of
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


_LONGEST_EVENT = 500
_LONGEST_PATH = 4096
_MOST_APPS = 5


def update_line(record: Record, decision: Decision, now: datetime) -> str:
    facts = [f"phase {record['phase']}", f"revision {record['revision']}"]
    if record["error_count"]:
        facts.append(plural(record["error_count"], "error"))
    facts += filter(None, [resume_text(decision, record["phase"], now, running=is_running(decision))])
    answer = answer_of(record)
    if answer:
        facts.append(answer[0])
    return f"{record['agent_id']}: {', '.join(facts)}"


def new_root_notice(root: str) -> tuple[str, str]:
    return f"created the folder {root} for sessions", "to use another one, add --root DIR or set GAIA_SESSIONS_ROOT"


def network_warning(root: str, kind: str) -> str:
    return f"Warning: {root} is on {kind}: locks are not reliable there; use a folder on a local disk"


def unchanged_line(record: Record, texts: dict[str, str | None]) -> str:
    """Returns a sentence: the session had already ended, and which ``texts`` (by option) are not in the record."""
    last_error = record["last_error"]
    stored = (record.get("summary"), last_error["message"] if last_error else None)
    not_stored = [f"the {name}" for name, text in texts.items() if text and text not in stored]
    result = (
        f"{' and '.join(not_stored)} {'were' if len(not_stored) > 1 else 'was'} not stored"
        if not_stored
        else "nothing was changed"
    )
    return f"the session had already ended ({record['phase']}); {result}"


def show_hint(record: Record) -> str:
    return f"`gaia-sessions show {record['agent_id']}` shows what is stored"


def list_lines(lines: Iterable[Line], now: datetime) -> Iterator[str]:
    """Yields a line for each session, with two spaces between columns."""
    for line in lines:
        yield "  ".join([safe(line["agent_id"]), *columns(line, now)]).rstrip()


def no_sessions_line(root: str, left_out: int, apps: Mapping[str, int] | None = None, *, exists: bool = True) -> str:
    """Returns a sentence: which root was searched, how many sessions the options excluded; ``apps``: by app."""
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
    """Returns a sentence: nobody worked in this span. It has both dates, because a time alone can mean yesterday."""
    span = f"from {local_time(format_time(start))} to {local_time(format_time(end))}"
    return f"No session worked {span}{', which is in the future' * (start > now)}"


def left_out_line(apps: Mapping[str, int]) -> str:
    """Returns how many sessions of ``apps`` are left out, and the options that show these sessions."""
    left_out = f"left out: {plural(sum(apps.values()), 'session')} of {'an app' if len(apps) == 1 else 'apps'}"
    return f"{left_out}; {', '.join(_of_apps(apps))}"


def _of_apps(apps: Mapping[str, int]) -> list[str]:
    """Returns the options that show the sessions of the largest apps, with the number of sessions."""
    most = sorted(apps.items(), key=lambda app: (-app[1], app[0]))
    told = [f"--app {shlex.quote(safe(app))} has {number}" for app, number in most[:_MOST_APPS]]
    return told if len(most) <= _MOST_APPS else [*told, f"and {len(most) - _MOST_APPS} more apps"]


def columns(line: Line, now: datetime) -> list[str]:
    """Returns the columns after the ID: agent and purpose, state, share of a span (if asked), last activity, resume."""
    if "problem" in line:
        return ["-", line["status"], "-", safe(line["problem"])]
    is_told = left_text(line["resume"], now) and "turns" not in line  # a person can send a message at any time
    resume = resume_text(line["resume"], line["phase"], now) if is_told else ""
    return [
        agent_and_purpose(line["agent_name"], line["purpose"]),
        state_cell(line),
        *([overlap_text(line["overlap"])] if "overlap" in line else []),
        ago(line.get("last_activity", line["last_updated"]), now),
        resume,
    ]


def problem_text(line: CorruptSummary) -> str:
    """Returns why the record cannot be read, without the path of its file: the ID is in another column."""
    return safe(line["problem"], 500).rpartition(f"/{line['agent_id']}/state.json: ")[2]


def agent_and_purpose(agent_name: str, purpose: str, longest: int = 200) -> str:
    """Returns the agent and, if there is one, the purpose."""
    name = safe(agent_name)
    return name if purpose == NO_PURPOSE else f"{name}: {safe(purpose, longest)}"


def removed_lines(removed: Sequence[RemovedSession]) -> Iterator[str]:
    """Yields ``removed agent-1  Explore: read the code``."""
    for session in removed:
        who = agent_and_purpose(session["agent_name"], session["purpose"]) if "purpose" in session else "unreadable"
        yield f"removed {session['agent_id']}  {who}"


def repaired_lines(repaired: Iterable[Mapping[str, str | None]]) -> Iterator[str]:
    """Yields ``repaired agent-1; the old file is now PATH``."""
    for session in repaired:
        aside = session["kept_aside"]
        if aside is None:
            yield f"nothing to repair: the record of {session['agent_id']} can be read"
        else:
            yield f"repaired {session['agent_id']}; the old file is now {safe(aside)}"


def taken_back_lines(taken: Iterable[Mapping[str, str | None]]) -> Iterator[str]:
    """Yields that the move of each session has ended."""
    yield from (f"{session['agent_id']} goes on in this root" for session in taken)


def state_cell(line: Summary) -> str:
    """Returns the state and its details, the turns of a conversation; ``newer`` for the record of a newer version."""
    if "stand_in" in line:
        return "on the server"
    if "state" not in line:
        return line["status"]
    if "turns" in line and line["state"] == BY_HAND:  # ``turn`` sets no phase
        return f"{BY_HAND}, {plural(line['turns'], 'turn')}"
    text = state_text(line["state"], line["phase"], line.get("liveness"), cancelled=line.get("cancelled", False))
    return f"{text}, {plural(line['turns'], 'turn')}" if "turns" in line else text


def tree_notes(line: Summary) -> Iterator[str]:
    """Yields why a session is at this place in a tree, if its parent is not the only reason."""
    if line.get("parent_status") == "circle":
        yield "(its parents form a circle)"
    if not line.get("selected", True) and "stand_in" not in line:
        yield "(parent only)"


def event_line(entry: Json) -> str:
    """Returns one entry of the journal: time, kind, run, phase at that time, evidence, number."""
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
