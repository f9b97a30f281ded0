"""The report on a session: its status and its result, in one shape for every end.

If the session is open, the latest run that began decides. If the run's own agent stopped, that is a success.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NotRequired, TypedDict
from uuid import UUID

from .budget import usage_of
from .phases import is_failure, is_final, is_success
from .record import given_answers
from .runs import crash_text, has_agent, has_ended, is_own_run, is_send, times_held
from .schema import LOST, OUT_OF_TOKENS, RUN_FAILED, RUN_RETURNED, STOPPED, TIMED_OUT
from .state import run_of
from .todos import open_todos
from .transcript import generation_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from typing import Literal

    from .budget import TokenUsage
    from .cancellation import Cancellation
    from .context import TurnOf
    from .schema import GivenAnswer, Record, Run, Todo

    Status = Literal["success", "error", "timeout", "cancelled", "running"]

SCHEMA = 1
"""The version of this shape; versions only add keys."""

SUCCESS: Status = "success"
ERROR: Status = "error"
TIMEOUT: Status = "timeout"
CANCELLED: Status = "cancelled"
RUNNING: Status = "running"

RECENT_MESSAGES = 6
MAX_CONTENT_LENGTH = 800
"""The most characters of each recent message."""

_KILLED = 137
"""The exit code of a command that SIGKILL ended, as shells state it."""

UNFINISHED_NOTE = "Sub-agent did not finish the task. Use partial results below."

_ASSISTANT = "assistant"


class RecentMessage(TypedDict):
    """A message of the transcript. In a report, ``content`` is cut after 800 characters."""

    role: str
    content: str
    tool_name: str | None
    tool_call_id: str | None


class Report(TypedDict):
    """What is known of the work of one session. A key that does not apply is None.

    Keys:
        status: ``success``, ``error``, ``timeout``, ``cancelled`` or ``running``.
        task_id: of the latest run.
        result: the whole result of a success, as far as it is known.
        partial: without a success, what the agent said last, other than the error.
        note: a hint, if the work ended without a success.
        timeout_secs, hard_timeout_secs, exit_code: of the latest run, if it was a command.
        max_tokens: the budget, if it is enforced.
        iterations: how many turns the transcript has.
        open_todos: how many todos are neither completed nor cancelled.
        reminders: how often the latest agent was [kept at work](limits.md#open-todos).
        answers: what the session was [answered](approve.md#who-answered), in order.
        recent_messages: the last 6, the oldest first.
        state, state_since: [the state](phases.md#states), and since when.
        root_id, trace_id: as in ``Summary``; absent from the report of a turn.
    """

    schema: int
    status: Status
    agent_id: str
    task_id: str | None
    phase: str
    result: str | None
    partial: str | None
    error: str | None
    note: str | None
    timeout_secs: float | None
    hard_timeout_secs: float | None
    exit_code: int | None
    elapsed_secs: int
    tokens: int
    max_tokens: int | None
    limit_reached: bool
    iterations: int | None
    todos: list[Todo]
    open_todos: int
    reminders: int
    answers: list[GivenAnswer]
    recent_messages: list[RecentMessage]
    state: NotRequired[str]
    state_since: NotRequired[str]
    root_id: NotRequired[str]
    trace_id: NotRequired[str]


class Findings:
    """What a report needs besides the record."""

    __slots__ = ("cancellation", "dead_runs", "messages", "why_failed")

    def __init__(
        self,
        messages: Sequence[RecentMessage] = (),
        cancellation: Cancellation | None = None,
        dead_runs: Collection[int] = (),
        why_failed: str = "",
    ) -> None:
        self.messages = messages  # the latest in full, the oldest first
        self.cancellation = cancellation
        self.dead_runs = dead_runs  # the numbers of runs whose host is proved to be gone
        self.why_failed = why_failed  # what the agent said of its failure


def report(record: Record, findings: Findings, now: datetime, limit: int | None) -> Report:
    """Returns the report on the session of ``record``; ``limit`` is as in ``usage_of``."""
    run, used = run_of(record, findings.dead_runs), usage_of(record, now, limit)
    status = _status_of(record, run, findings, now)
    is_unfinished = status not in (SUCCESS, RUNNING)
    error = None
    if is_unfinished:
        limit_text = _limit_text(run or {}, used) if status != CANCELLED else None
        error = limit_text or _error_of(record, run or {}, findings, status)
    said = _said_last(run or {}, findings, error)
    return {
        "schema": SCHEMA,
        "status": status,
        "agent_id": record["agent_id"],
        "task_id": next((task_id_of(record, run["run"]) for run in record.get("runs", [])[-1:]), None),
        "phase": record["phase"],
        "result": record.get("summary") or said if status == SUCCESS else None,
        "partial": said if status != SUCCESS else None,
        "error": error,
        "note": UNFINISHED_NOTE if is_unfinished else None,
        "timeout_secs": (run or {}).get("timeout_secs"),
        "hard_timeout_secs": (run or {}).get("hard_timeout_secs"),
        "exit_code": (run or {}).get("exit_code"),
        "elapsed_secs": used["elapsed_secs"],
        "tokens": used["tokens"],
        "max_tokens": used["max_tokens"],
        "limit_reached": used["limit_reached"],
        "iterations": record.get("turns"),
        "todos": record.get("todos", []),
        "open_todos": len(open_todos(record)),
        "reminders": times_held(record),
        "answers": given_answers(record),
        "recent_messages": [
            {**message, "content": message["content"][:MAX_CONTENT_LENGTH]}
            for message in findings.messages[-RECENT_MESSAGES:]
        ],
    }


def _status_of(record: Record, run: Run | None, findings: Findings, now: datetime) -> Status:
    # A later cancellation does not change an outcome.
    if is_success(record["phase"]):
        return SUCCESS
    if findings.cancellation is not None and not is_failure(record["phase"]):
        return CANCELLED
    unfinished = TIMEOUT if run is not None and _has_timed_out(run) else ERROR
    if is_final(record["phase"]):
        return unfinished
    gone = findings.dead_runs
    if run is None or not (has_ended(run) or run["run"] in gone) or has_agent(record, now, gone):
        return RUNNING
    return SUCCESS if run.get("end") in (STOPPED, RUN_RETURNED) else unfinished


def _has_timed_out(run: Run) -> bool:
    """Whether the command of ``run`` reached its time limit, whatever the phase of the session is."""
    return is_own_run(run) and run.get("end") == RUN_FAILED and run.get("detail") == TIMED_OUT


def _limit_text(run: Run, used: TokenUsage) -> str | None:
    """Says which limit the command of ``run`` reached; None if it reached none."""
    if not is_own_run(run) or run.get("end") != RUN_FAILED:
        return None
    if run.get("detail") == OUT_OF_TOKENS:
        shared = "" if used["limit_reached"] else " and its own sub-agents"  # their usage is in their own records
        most = "" if used["max_tokens"] is None else f"{used['max_tokens']:,} "
        return f"Sub-agent{shared} used all of its {most}tokens"
    if run.get("detail") != TIMED_OUT:
        return None
    if run.get("exit_code") == _KILLED:
        return f"Sub-agent hard timed out after {run.get('hard_timeout_secs', 0):.10g} seconds"
    return f"Sub-agent timed out after {run.get('timeout_secs', 0):.10g} seconds, and ended within the grace period"


def turn_id_of(record: Record, turn: TurnOf) -> str:
    """Returns the ID of a turn: the task ID of its run, else the transcript's generation and the turn's number."""
    return task_id_of(record, turn["run"]) if "run" in turn else f"{generation_of(record)}.{turn['turn']}"


def task_id_of(record: Record, run: int) -> str:
    """Returns the ID of one run as a task: ``sub-`` and a UUID that is always the same for this run."""
    # Computed and not stored, so that runs in old records have an ID too.
    name = "\n".join((record["agent_id"], record["created_at"], str(run)))
    return f"sub-{UUID(bytes=sha256(name.encode()).digest()[:16], version=4)}"


def _said_last(run: Run, findings: Findings, error: str | None) -> str | None:
    """Returns the last words of the agent of ``run``, unless they are the ``error``."""
    # A command's last words are the end of its output. If there is no output, an earlier message is not its answer.
    if is_own_run(run) and (has_ended(run) or is_send(run)) and "last_message" not in run:
        return None
    said = (message for message in reversed(findings.messages) if message["role"] == _ASSISTANT)
    answers = [message["content"] for message in said if message["tool_name"] is None]
    answers.append(run.get("last_message", ""))
    return next((answer for answer in answers if answer and answer != error), None)


def _error_of(record: Record, run: Run, findings: Findings, status: Status) -> str:
    if status == CANCELLED:
        return (findings.cancellation or {}).get("reason", "cancelled")
    if run.get("run") in findings.dead_runs:
        return crash_text(run)
    if findings.why_failed:
        return findings.why_failed
    if is_failure(record["phase"]) and record["last_error"]:
        return record["last_error"]["message"]
    if run.get("end") == LOST:
        return crash_text(run)
    return run.get("detail") or record.get("summary") or run.get("end") or record["phase"]
