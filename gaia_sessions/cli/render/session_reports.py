"""Plain text about how the work of sessions stands or ended.

Owns that wording, for ``report`` and ``wait``.
"""

from __future__ import annotations

from .words import duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gaia_sessions.api.waiting import NoReport
    from gaia_sessions.session.report import Report

_LONGEST_TEXT = 4000
_LONGEST_ANSWER = 200


def report_lines(report: Report) -> Iterator[str]:
    """The whole report, a fact on each line; what does not apply is left out."""
    yield f"{report['agent_id']}: {report['status']}, phase {report['phase']}"
    yield f"  task: {report['task_id']}" if report["task_id"] else "  task: not started by a host"
    yield f"  time: {duration(report['elapsed_secs'])}"
    yield f"  tokens: {report['tokens']:,} of {report['max_tokens']:,}"
    if report["iterations"] is not None:
        yield f"  turns: {report['iterations']}"
    if report["result"] is not None:
        yield f"  result: {safe(report['result'], _LONGEST_TEXT)}"
    if report["error"] is not None:
        yield f"  error: {safe(report['error'], _LONGEST_TEXT)}"
    if report["note"] is not None:
        yield f"  note: {report['note']}"
    for place, todo in enumerate(report["todos"], 1):
        yield f"  todo {place}: {todo['status']}: {safe(todo['description'])}"
    for message in report["recent_messages"]:
        source = f"{message['role']} {safe(message['tool_name'])}" if message["tool_name"] else message["role"]
        yield f"  {source}: {safe(message['content'], _LONGEST_TEXT)}"


def wait_lines(reports: Iterable[Report | NoReport]) -> Iterator[str]:
    """A line for each session that was waited for."""
    for report in reports:
        if report["status"] == "not_found":
            yield f"{safe(report['agent_id'])}: not found"
        else:
            answer = report["result"] if report["error"] is None else report["error"]
            end = f": {safe(answer, _LONGEST_ANSWER)}" if answer else ""
            yield f"{report['agent_id']}: {report['status']}, phase {report['phase']}{end}"
