"""What ``show`` says about a session: its question, error and last message come first, its IDs last."""

from __future__ import annotations

from gaia_sessions.api.questions import question_of
from gaia_sessions.api.reporting import why_failed
from gaia_sessions.errors import plural
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.session import state
from gaia_sessions.session.budget import consumed_tokens
from gaia_sessions.session.clock import format_time, parse_time, seconds_between
from gaia_sessions.session.held_stops import open_text
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.policy import claimed_runs, is_only_expired, is_running, live_runs
from gaia_sessions.session.record import given_answers, has_newer_schema, is_asking, is_stand_in, moving_of
from gaia_sessions.session.runs import (
    crash_text,
    has_ended,
    is_conversation,
    is_work_of_command,
    may_be_at_work,
    times_held,
)
from gaia_sessions.session.schema import (
    CANCELLED,
    DENIED,
    INTERRUPTED,
    KILLED,
    LOST,
    MARKER_DETAIL,
    OUT_OF_TOKENS,
    STOPPED,
    TIMED_OUT,
)
from gaia_sessions.session.todos import numbered_todos, open_todos

from .answers import given_text
from .budgets import budget_text, todo_lines
from .decisions import (
    app_lines,
    approves,
    failed_sentences,
    is_of_conversation,
    may_be_asked,
    needs_new_session,
)
from .plain import agent_and_purpose, state_cell
from .words import (
    WHY_STOPPED,
    Hint,
    Prose,
    ago,
    cancellation_text,
    client_text,
    duration,
    listed,
    local_time,
    prose,
    safe,
    safe_lines,
    short_duration,
    state_text,
    time_left,
    time_limit_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from gaia_sessions.api.listing import Line
    from gaia_sessions.api.showing import View
    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.schema import Record, Run

    Fact = tuple[str, str]
    """The name of a fact, and its text."""

_LONGEST = 1000
_MOST_CHILDREN = 50
_MOST_ANSWERS = 5
_SHORTEST_NAMES = 9
"""The least width of the column of names, so that all texts begin in one column."""

_ENDS = {STOPPED: "ended", KILLED: "killed", DENIED: "not started"}
"""The words for ends that are not shown as an interruption."""

_MOST_OUTPUT_LINES = 10
"""How many of the last lines of output are shown, unless the output asks a question; a file has all lines."""

_SAID_ANYWAY = (MARKER_DETAIL, INTERRUPTED, CANCELLED, TIMED_OUT, OUT_OF_TOKENS)
"""Details that other lines say already."""

_COLUMNS = ("run", "end", "began", "took", "   tokens")

_HAVE_SECTIONS = frozenset(["answers", "metadata", "history", "runs", "session_state", "todos"])
"""The keys of a record that have their own sections."""


def session_lines(view: View, now: datetime, *, verbose: bool = False) -> Iterator[str]:
    """Yields one session; with ``verbose`` also its phase changes, and every key of its record and its runs."""
    record = view.record
    yield Prose(agent_and_purpose(record["agent_name"], record["purpose"], _LONGEST), 2)
    sections = [
        _fact_lines(_state_and_reasons(view, now)),
        _last_message_lines(view),
        listed("todos", todo_lines(numbered_todos(record))),
        _run_lines(view, now),
        listed("children", _child_lines(view)),
        listed("keys", _fact_lines(_key_facts(record))),
        listed("metadata", _fact_lines(_metadata(record, verbose=verbose))),
        _fact_lines(_figures_and_ids(view, now)),
    ]
    if verbose:
        sections += [listed("phases", _timeline(record)), *_keys_of_programs(record)]
    for section in sections:
        lines = list(section)
        if lines:
            yield ""
            yield from lines


def _fact_lines(facts: Iterable[Fact]) -> Iterator[Prose | Hint]:
    """Yields a line for each fact, and for each further line of its text; all texts begin in one column."""
    pairs = list(facts)
    room = max(_SHORTEST_NAMES, *(len(name) for name, _ in pairs), 0) + 2
    for name, text in pairs:
        for number, line in enumerate(safe_lines(text) or [""]):
            fact = f"{'' if number else name:<{room}}{line}".rstrip()
            yield Hint(fact) if isinstance(text, Hint) else Prose(fact, room)


def _state_and_reasons(view: View, now: datetime) -> Iterator[Fact]:
    """Yields the state and its reason, the question, and what went wrong; no text is cut."""
    record, decision = view.record, view.standing.decision
    yield "state", _state(view, now)
    if why := _why(view):
        yield "why", why
    if asked := _asked(view):
        yield "question", asked
    if (
        is_asking(record)
        and not has_newer_schema(record)
        and not is_running(decision)
        and "cancellation" not in decision
    ):
        yield (
            "to answer",
            Hint(f"`gaia-sessions approve {record['agent_id']}`, or `gaia-sessions deny {record['agent_id']}`"),
        )
    if view.standing.alive is not None and "for" in view.standing.alive:
        tool, client = safe(view.standing.alive["for"], 80), client_text(_latest_run(view) or {})
        yield "question", f"may it use {tool}? Answer in {client}"
    if record["last_error"]:
        last = record["last_error"]
        which = f"the last of {record['error_count']}, " if record["error_count"] > 1 else ""
        yield "error", f"{which}{ago(last['timestamp'], now)}: {last['message']}"
    if "app" in decision and "cancellation" not in decision:
        yield from (("to resume", line) for line in app_lines(decision))
    else:
        yield from _whether_it_goes_on(decision, now)
    for given in given_answers(record)[-_MOST_ANSWERS:]:
        yield given["answer"], given_text(given, now)
    if (left := len(open_todos(record))) and (times_held(record) or is_final(record["phase"])):
        label = "todos open" if is_running(decision) else "left open"
        yield label, open_text(left, len(record["todos"]), times_held(record))
    if record.get("summary"):
        yield "summary", record["summary"]


def _whether_it_goes_on(decision: Decision, now: datetime) -> Iterator[Fact]:
    """Yields whether the work can be resumed; for the work of a command, also how."""
    phase = decision["phase"] or ""
    if is_of_conversation(decision) and may_be_asked(decision):  # the policy is for agents of hosts
        yield "to continue" if is_final(phase) else "to send", Hint(f"`{decision['run_command']}`")
        if not is_final(phase):
            yield "", f'or SubAgentSession(agent, agent_id="{decision["agent_id"]}")'
        return
    if "cancellation" in decision:
        yield "cancelled", cancellation_text(decision["cancellation"], now)
    elif decision["until"] is not None:
        yield "resumable", f"for {time_left(decision['until'], now)}"
    elif not (is_final(phase) or is_running(decision) or decision["reason"] == "claimed"):
        yield "resumable", f"no: {'; '.join(failed_sentences(decision, 'it'))}"
    if is_of_conversation(decision):
        return
    is_lost = needs_new_session(decision) and not is_final(phase)
    if "run_command" in decision and (decision["should_resume"] or is_lost):
        approving = ", which approves it" if approves(decision) else ""
        yield "to continue" if is_lost else "to resume", Hint(f"`{decision['run_command']}`{approving}")
    elif "run_command" in decision and is_only_expired(decision):
        yield "next", f"{decision['advice']}"
        yield "", Hint(f"then `{decision['run_command']}`")


def _state(view: View, now: datetime) -> str:
    stands, phase = view.standing, view.record["phase"]
    if moving := moving_of(view.record):
        return f"{phase}, being moved to {safe(moving['target'], 500)}"
    if "state" not in stands.state:
        return f"{phase}, written by a later version"
    if is_stand_in(view.record):
        return "on the server"
    word = state_text(stands.state["state"], phase, stands.alive, cancelled="cancellation" in stands.decision)
    if is_running(stands.decision) and "wrapper" in (run := _latest_run(view) or {}):
        from gaia_sessions.system.processes import elsewhere  # few sessions are the work of a command

        word = f"{word} {elsewhere(run['wrapper'])}".rstrip()
    since = stands.state.get("state_since")
    return f"{word}, since {_minute(since, now)}" if since else word


def _minute(moment: str, now: datetime) -> str:
    return f"{local_time(moment)[:16]}, {ago(moment, now)}"


def _latest_run(view: View) -> Run | None:
    return state.run_of(view.record, view.standing.dead_runs)


def _why(view: View) -> str:
    """Returns why the work stopped; empty if another line says it."""
    run = _latest_run(view)
    if view.standing.state.get("state") == state.CRASHED:
        return crash_text(run or {})
    return why_failed(view.record) or _why_ended(run, view.record)


def _why_ended(run: Run | None, record: Record) -> str:
    """Returns what stopped the run from outside, and details of its end that no other line says."""
    if run is None:
        return ""
    how = run.get("interruption", run.get("end", ""))
    if how == LOST:
        return crash_text(run)
    parts = [WHY_STOPPED.get(how) if how != INTERRUPTED else None, run.get("detail")]
    last_error = record["last_error"] or {"message": None}
    return ": ".join(part for part in parts if part and part not in (*_SAID_ANYWAY, last_error["message"]))


def _asked(view: View) -> str:
    """Returns what the agent asked when it stopped; empty if the agent works again or the session has ended."""
    is_over = is_final(view.record["phase"]) or is_running(view.standing.decision)
    return "" if is_over else (view.question or question_of(view.record)).asked


def _last_message_lines(view: View) -> Iterator[Prose]:
    """Yields the last message of the agent, without the part that is shown as the question or the error."""
    question = view.question or question_of(view.record)
    if view.last_turn:
        yield from listed("last question", [*safe_lines(view.last_turn.question.strip("\n"))])
        yield from listed("last answer", [*safe_lines(view.last_turn.answer.strip("\n"))])
        return
    message = question.before if _asked(view) or why_failed(view.record) else question.message
    lines = [*safe_lines(message.strip("\n"))]
    if is_work_of_command(view.record):
        yield from listed("end of its output", lines if view.question else lines[-_MOST_OUTPUT_LINES:])
    else:
        yield from listed("last message", lines)


def _run_lines(view: View, now: datetime) -> Iterator[str]:
    """Yields a table of the runs; a line below a stopped run says why the run stopped, except for the latest run."""
    record = view.record
    if record.get("runs_dropped"):
        are, they = ("was", "it") if record["runs_dropped"] == 1 else ("were", "they")
        dropped = f"{plural(record['runs_dropped'], 'older run')} {are} dropped"
        yield Hint(f"{dropped}; how {they} ended: gaia-sessions events {record['agent_id']}")
    runs = record.get("runs", [])
    if not runs:
        return
    latest, decision = _latest_run(view), view.standing.decision
    at_work = dict.fromkeys(claimed_runs(decision), state.STARTING) | dict.fromkeys(live_runs(decision), state.WORKING)
    heading, *rows = _aligned(_COLUMNS, [_row_of_run(run, view, at_work.get(run["run"]), now) for run in runs])
    yield Prose(heading)
    for run, row in zip(runs, rows, strict=True):
        yield Prose(row, 5)
        if run is not latest:
            yield from prose(_why_ended(run, record), 5)


def _row_of_run(run: Run, view: View, at_work: str | None, now: datetime) -> tuple[str, ...]:
    """Returns the cells of ``run``; ``at_work`` is the state of its agent, if the agent works or is starting."""
    began, tokens = run.get("started_at") or run.get("claimed_at"), consumed_tokens(run.get("consumed", {}))
    end = run.get("ended_at") or (format_time(now) if at_work == state.WORKING else None)
    took = seconds_between(parse_time(began), parse_time(end)) if began and end else None
    return (
        f"{run['run']:>3}",
        _end_of(run, view, at_work),
        local_time(began)[:16] if began else "",
        short_duration(took) if took is not None else "",
        f"{tokens:>9,}" if tokens else "",
    )


def _end_of(run: Run, view: View, at_work: str | None) -> str:
    if has_ended(run):
        is_named = run["end"] in _ENDS and "interruption" not in run
        return _ENDS[run["end"]] if is_named else state.broken_off(run) or run["end"]
    if is_final(view.record["phase"]):
        return "not reported"
    return at_work or (state.CRASHED if may_be_at_work(run) else _ENDS[DENIED])


def _aligned(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the heading and the rows in columns, without empty columns."""
    columns = [(name, *cells) for name, *cells in zip(heading, *rows, strict=True) if any(cells)]
    widths = [max(map(len, column)) for column in columns]
    lines = zip(*columns, strict=True)
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def _child_lines(view: View) -> Iterator[str]:
    """Yields the number of older children that are not shown, then a line for each of the newest children."""
    children = view.children[-_MOST_CHILDREN:]
    if left_out := len(view.children) - len(children):
        yield Hint(f"{left_out} older not shown; all IDs: gaia-sessions show {view.record['agent_id']} --json")
    yield from _aligned(("", "", ""), [*map(_relative, children)])[1:]


def _relative(line: Line) -> tuple[str, str, str]:
    """Returns ID, state, agent and purpose of a parent or child; no agent and purpose if it cannot be read."""
    agent_id = safe(line["agent_id"])  # a record can name any text as its parent
    if "problem" in line:
        return agent_id, line["status"], ""
    return agent_id, state_cell(line), agent_and_purpose(line["agent_name"], line["purpose"], _LONGEST)


def _key_facts(record: Record) -> Iterator[Fact]:
    """Returns the keys that agents share in this session alone, with their values."""
    keys = record.get("session_state", {})
    return ((safe(key, 40), safe(dump_line(value).decode().strip(), 200)) for key, value in keys.items())


def _metadata(record: Record, *, verbose: bool) -> Iterator[Fact]:
    """Yields the metadata; objects and arrays, which programs write, only if ``verbose``."""
    for key, value in record["metadata"].items():
        if verbose or not isinstance(value, dict | list):
            yield safe(key, 40), _value_text(value)


def _tokens_and_tools(view: View) -> Iterator[Fact]:
    record = view.record
    if view.usage["tokens"]:
        yield "tokens", _tokens(view)
    if below := next((run["below"] for run in reversed(record.get("runs", [])) if "below" in run), None):
        from .trees import agents_line  # few sessions are on a server

        yield "below it", agents_line(below)
    if skills := record.get("skills"):
        yield "skills", ", ".join(f"{safe(name)} ({tokens:,})" for name, tokens in skills.items())
    if view.usable_tools is not None:
        yield "may use", safe(", ".join(view.usable_tools) or "no tools", _LONGEST)


def _tokens(view: View) -> str:
    """Returns the used tokens and the limit, and says if the limit is not enforced."""
    if view.usage["max_tokens"] is not None:
        return budget_text(view.usage)
    wanted = view.record.get("max_tokens")
    return f"{view.usage['tokens']:,}" + (f"; the limit of {wanted:,} is not enforced" if wanted is not None else "")


def _figures_and_ids(view: View, now: datetime) -> Iterator[Fact]:
    record = view.record
    yield from _tokens_and_tools(view)
    if worktrees := [run["worktree"] for run in record.get("runs", []) if "worktree" in run]:
        yield "worktree", worktrees[-1].get("path", worktrees[-1].get("branch", "unknown"))
    if view.standing.state.get("state") != state.BY_HAND and not is_final(record["phase"]):
        yield "phase", record["phase"]
    run = record.get("runs", [])[-1] if is_work_of_command(record) else {}
    if "exit_code" in run:
        yield "exit code", str(run["exit_code"])
    if "turns" in record and is_conversation(record):
        yield "turns", f"{record['turns']}"
    if "timeout_secs" in run:
        yield "time limit", time_limit_text(run["timeout_secs"], run.get("hard_timeout_secs"))
    yield from _times_and_ids(view, now)
    if run:
        yield "output", run.get("output_path") or Hint(f"`gaia-sessions report {record['agent_id']} --output`")


def _times_and_ids(view: View, now: datetime) -> Iterator[Fact]:
    record = view.record
    yield "created", _minute(record["created_at"], now)
    yield "active", _minute(view.standing.decision.get("last_activity", record["last_updated"]), now)
    if "duration_seconds" in record:
        yield "lasted", duration(record["duration_seconds"], 2)
    if view.parent is not None:
        yield "parent", "  ".join(filter(None, _relative(view.parent)))
    if "app" in record:
        known_as = record.get("app_session", {}).get("id")
        there = "" if known_as is None else f"; its ID there is {safe(known_as)}"
        yield "app", f"{safe(record['app'])}, user {safe(record['user'])}{there}"
    if "continues" in record:
        yield "continues", safe(record["continues"])
    yield "id", record["agent_id"]


def _timeline(record: Record) -> Iterator[str]:
    """Yields when the work entered each phase, and how many changes were dropped."""
    yield f"{local_time(record['created_at'])}  initializing"
    if record.get("history_dropped"):
        are = "was" if record["history_dropped"] == 1 else "were"
        yield f"{plural(record['history_dropped'], 'older phase change')} {are} dropped"
    for move in record["history"]:
        yield f"{local_time(move['timestamp'])}  {move['from_phase']} → {move['to_phase']}"


def _keys_of_programs(record: Record) -> Iterator[Iterator[Prose]]:
    """Yields the keys of the record and of its runs, without the keys that are shown above."""
    yield listed("record", _fact_lines(_texts(record, _HAVE_SECTIONS)))
    said = question_of(record).message
    for run in record.get("runs", []):
        yield listed(f"run {run['run']}", _fact_lines(_texts(run, frozenset(), said)))


def _texts(keys: Record | Run, left_out: frozenset[str], said: str = "") -> Iterator[Fact]:
    texts = ((safe(key, 40), _value_text(value)) for key, value in keys.items() if key not in left_out)
    return ((key, text) for key, text in texts if text != said)


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else dump_line(value).decode()
