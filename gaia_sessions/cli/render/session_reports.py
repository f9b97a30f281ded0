"""What ``report`` and ``wait`` print: the result as the agent wrote it, and lines about it."""

from __future__ import annotations

from gaia_sessions.session import report as reports
from gaia_sessions.session import state
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.held_stops import open_text
from gaia_sessions.session.ids import resume_line
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.policy import may_go_on
from gaia_sessions.session.visible import visible

from .answers import given_text
from .budgets import todo_lines, tokens_text
from .decisions import app_lines, command_lines
from .words import (
    GIVE,
    Command,
    Copyable,
    Hint,
    Prose,
    ago,
    duration,
    listed,
    prose,
    safe,
    safe_lines,
    state_text,
    time_limit_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.api.standing import Standing
    from gaia_sessions.api.waiting import NoReport
    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.report import Report

_LASTING = (state.WAITING, state.STARTING, state.LIMITED, state.PAUSED, state.NEW, state.BY_HAND)
"""The states that are printed with their duration, although no agent works."""

_MOST_ANSWERS = 5

_ASKS = Hint("`gaia-sessions pending` shows its question, and how to answer")


def head_line(report: Report, stands: Standing, now: datetime) -> str:
    """Returns the state, since when, and the used tokens; if the session works or has ended, also its time in all."""
    text = _state(report, stands.alive, cancelled="cancellation" in stands.decision)
    since = report.get("state_since")
    if since and (stands.alive or report.get("state") in _LASTING):
        text += f" for {duration(max(0, (now - parse_time(since)).total_seconds()))}"
    elif since:
        text += f" {ago(since, now)}"
    figures = [f"{duration(report['elapsed_secs'])} in all"] if stands.alive or is_final(report["phase"]) else []
    figures += [tokens_text(report["tokens"], report["max_tokens"])] if report["tokens"] else []
    return f"{report['agent_id']}: {'; '.join(filter(None, [text, ', '.join(figures)]))}"


def result_lines(report: Report) -> list[str]:
    """Returns the lines of the result; for unfinished work the error, and below the error what the agent said last."""
    if report["status"] == reports.RUNNING:
        return []
    if report["result"] is not None:
        return _lines(report["result"])
    error, partial = _lines(report["error"] or ""), _lines(report["partial"] or "")
    said = "its agent said last:" if report["timeout_secs"] is None else "its output ended with:"
    return [*error, "", said, "", *partial] if partial else error


def more_lines(report: Report) -> Iterator[str]:
    """Yields the phase, the task, the exit code, the limit, the turns, the todos and the latest messages."""
    yield f"phase: {report['phase']}"
    yield f"task: {report['task_id'] or 'no agent was started'}"
    if report["exit_code"] is not None:
        yield f"exit code: {report['exit_code']}"
    if report["timeout_secs"] is not None:
        yield f"time limit: {time_limit_text(report['timeout_secs'], report['hard_timeout_secs'])}"
    if report["iterations"] is not None:
        yield f"turns: {report['iterations']}"
    yield from listed("todos", todo_lines(report["todos"]))
    for message in report["recent_messages"]:
        yield f"{message['role']} {safe(message['tool_name'])}:" if message["tool_name"] else f"{message['role']}:"
        yield from prose(message["content"], 2)


def answer_lines(report: Report, now: datetime) -> Iterator[str]:
    """Yields the answers: when, how, and with which note. A line of a note cannot look like another answer."""
    for given in report["answers"][-_MOST_ANSWERS:]:
        first, *others = safe_lines(f"{given['answer']} {given_text(given, now)}")
        yield Prose(first, 2)
        yield from (Prose("  " + line, 2) for line in others)


def output_line(agent_id: str, path: str | None) -> Copyable:
    """Returns where the whole output is: in the file ``path``, or on a server."""
    before = "  whole output: "
    return Command(f"gaia-sessions report {agent_id} --output", before) if path is None else Copyable(path, before)


def next_lines(report: Report, stands: Standing) -> Iterator[str]:
    """Yields the todos that the agent left open, and what to do about work that has not ended well."""
    agent_id, is_running = report["agent_id"], report["status"] == reports.RUNNING
    if report["open_todos"] and (report["reminders"] or not is_running):
        words = open_text(report["open_todos"], len(report["todos"]), report["reminders"])
        yield f"todos {'' if is_running else 'left '}open: {words}"
        yield Hint(f"`gaia-sessions todo list {agent_id}` shows them")
    if report["status"] == reports.SUCCESS and is_final(report["phase"]):
        return
    if "app" in stands.decision:
        yield from app_lines(stands.decision)
        return
    if report["status"] == reports.RUNNING:
        yield from _lines_of_running(report, stands)
    if report.get("state") == state.WAITING:
        yield _ASKS
    is_of_agent = "run_command" not in stands.decision
    if is_of_agent and report.get("state") in (state.LIMITED, *state.BROKEN_OFF) and may_go_on(stands.decision):
        yield Hint(f"`gaia-sessions resume {agent_id}` says how to resume it, or why it cannot be resumed")
    elif stands.decision["should_resume"] and is_of_agent:
        is_sent = report.get("state") == state.WAITING
        yield f"to approve and resume it, {GIVE}:" if is_sent else f"to resume it, {GIVE}:"
        yield Copyable(resume_line(agent_id), before="  ")
    elif report["status"] != reports.RUNNING and not stands.decision["should_resume"]:
        yield safe(stands.decision["advice"])
    yield from command_lines(stands.decision)


def _lines_of_running(report: Report, stands: Standing) -> Iterator[str]:
    agent_id = report["agent_id"]
    if "state" not in report:  # nothing can change the record now
        yield safe(stands.decision["advice"])
    elif report["task_id"] is None:
        yield from map(Hint, not_started_notice(agent_id))
    else:
        yield Hint(f"`gaia-sessions wait {agent_id}` waits for its end")


def not_started_notice(agent_id: str) -> tuple[str, str]:
    return (
        f"no agent was started for {agent_id}, so only a command can end this session",
        f"when the work is done, type `gaia-sessions finalize {agent_id} completed`",
    )


def wait_lines(reports_: Iterable[Report | NoReport]) -> Iterator[str]:
    """Yields a line for each session, and its result below."""
    for report in reports_:
        if report["status"] == "not_found":
            yield f"{safe(report['agent_id'])}: not found"
        else:
            yield f"{report['agent_id']}: {_state(report)}"
            yield from prose(report["result"] or report["error"] or "", 2)
            if report.get("state") == state.WAITING:
                yield Hint(f"  {_ASKS}")


def _state(report: Report, alive: Liveness | None = None, *, cancelled: bool = False) -> str:
    return state_text(report.get("state", report["status"]), report["phase"], alive, cancelled=cancelled)


def _lines(text: str) -> list[str]:
    """Returns the visible characters of each line, with tabs and trailing blanks."""
    return [Prose(line) for line in visible(text).removesuffix("\n").split("\n")] if text else []
