"""The checks of a record: first each key alone, then runs and times. They are fast, because hooks run them.

The checks of keys are made from ``shapes``. Unknown keys stay in the record, and nobody looks at them.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput

from .checks import (
    array_of,
    check_count,
    check_flag,
    check_integer,
    check_number,
    check_object,
    check_seconds,
    check_string,
    check_time,
    map_of,
    nullable,
    object_with,
    one_of,
)
from .clock import are_canonical_times
from .phases import PHASES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from . import shapes

    AnswerKey = Literal["approval", "denial"]
    Answer = shapes.Answer
    Below = shapes.Below
    Moving = shapes.Moving
    GivenAnswer = shapes.GivenAnswer
    Compaction = shapes.Compaction
    Conversation = shapes.Conversation
    HostProcess = shapes.HostProcess
    LastError = shapes.LastError
    Move = shapes.Move
    OwnWork = shapes.OwnWork
    Record = shapes.Record
    Run = shapes.Run
    Todo = shapes.Todo
    Usage = shapes.Usage
    Asked = shapes.Asked
    Waiting = shapes.Waiting
    Workflow = shapes.Workflow
    Worktree = shapes.Worktree


KILLED = "killed"
RUN_FAILED = "failed"
STOPPED = "stopped"
RUN_RETURNED = "returned"
ENDED_WITH_HOST = "ended_with_host"
LOST = "lost"
DENIED = "denied"

ENDS = (KILLED, RUN_FAILED, STOPPED, RUN_RETURNED, ENDED_WITH_HOST, LOST, DENIED)
"""How a run can end, the strongest evidence first."""

INTERRUPTED = "interrupted"
STOPPED_BY_USER = "stopped_by_user"
USAGE_LIMIT = "usage_limit"
OVERLOADED = "overloaded"
CONNECTION_LOST = "connection_lost"

# We presume ``INTERRUPTED`` if a host reports no end and no longer names the agent as alive.
INTERRUPTIONS = (INTERRUPTED, STOPPED_BY_USER, USAGE_LIMIT, OVERLOADED, CONNECTION_LOST)
"""Why a run was ``killed`` although nobody gave up its work: the session can be resumed."""

AGENT_STATES = WORKING, WAITING, QUIET = ("working", "waiting", "quiet")
"""What is known of an agent at work: it is active, waits for a person, or was silent for a while."""

TIMED_OUT = "timeout"
OUT_OF_TOKENS = "max_tokens"
CANCELLED = "cancelled"
"""The details of runs of commands that failed because they reached a limit."""

UNWOKEN_DETAIL = "what it waited for is over, and it was not woken"
STOPPED_MEANWHILE = "stopped while it waited"
"""The detail of a run whose agent was taken for interrupted while it waited for its own work."""

MARKER_DETAIL = "said so in its last line"
"""The detail of a run whose agent stated its end with the marker."""

TODO_PENDING = "pending"
TODO_COMPLETED = "completed"
TODO_CANCELLED = "cancelled"
TODO_STATUSES = (TODO_PENDING, "in_progress", TODO_COMPLETED, TODO_CANCELLED)

_check_phase = one_of(PHASES)
_check_end = one_of(ENDS)
_check_interruption = one_of(INTERRUPTIONS)
_check_todo_status = one_of(TODO_STATUSES)

# Made by scripts/render_models of shapes.py: never change it by hand.
check_move = object_with({"from_phase": _check_phase, "to_phase": _check_phase, "timestamp": check_time}, {})
check_last_error = object_with({"message": check_string, "timestamp": check_time}, {})
check_answer = object_with({"message": check_string, "timestamp": check_time}, {})
check_given_answer = object_with(
    {"answer": check_string, "by": check_string, "timestamp": check_time},
    {"message": check_string, "shell": check_string, "after_run": check_count},
)
check_host_process = object_with(
    {},
    {
        "pid": check_number,
        "started": check_string,
        "boot_id": check_string,
        "pid_ns": check_string,
        "machine": check_string,
        "lock": check_string,
        "lease": check_string,
        "lock_folder": check_string,
    },
)
check_workflow = object_with({"run_id": check_string}, {"key": check_string})
check_usage = object_with(
    {},
    {
        "input_tokens": check_count,
        "output_tokens": check_count,
        "cache_read_tokens": check_count,
        "cache_creation_tokens": check_count,
        "total_tokens": check_count,
        "tool_uses": check_count,
        "duration_ms": check_count,
    },
)
check_worktree = object_with({}, {"path": check_string, "branch": check_string})
check_conversation = object_with(
    {"preset": check_string, "id": check_string, "cwd": check_string, "generation": check_count, "seq": check_count},
    {},
)
check_asked = object_with({"since": check_time, "for": check_string}, {"asked": check_string, "call": check_string})
check_waiting = object_with(
    {"since": check_time, "for": check_string},
    {"asked": check_string, "call": check_string, "others": array_of(check_asked)},
)
check_own_work = object_with(
    {"since": check_time, "kind": check_string, "tasks": array_of(check_string)},
    {"assumed": check_flag},
)
check_below = object_with({"agents": check_count, "states": map_of(check_count)}, {"tokens": check_count})
check_moving = object_with({"source": check_string, "target": check_string, "token": check_string}, {})
check_run = object_with(
    {"run": check_number},
    {
        "host": check_string,
        "host_session_id": check_string,
        "current_host_session_id": check_string,
        "host_agent_id": check_string,
        "tool_use_id": check_string,
        "parent_host_agent_id": check_string,
        "workflow": check_workflow,
        "host_process": check_host_process,
        "wrapper": check_host_process,
        "turn": check_number,
        "depth": check_count,
        "timeout_secs": check_seconds,
        "hard_timeout_secs": check_seconds,
        "background": check_flag,
        "unannounced": check_flag,
        "enforced": check_flag,
        "mentioned": array_of(check_string),
        "end": _check_end,
        "waiting": check_waiting,
        "unanswered": check_flag,
        "own_work": check_own_work,
        "interruption": _check_interruption,
        "detail": check_string,
        "exit_code": check_integer,
        "reported": _check_phase,
        "last_message": check_string,
        "transcript_path": check_string,
        "output_path": check_string,
        "model": check_string,
        "searches": array_of(check_string),
        "held": array_of(check_string),
        "conversation": check_conversation,
        "worktree": check_worktree,
        "usage": check_usage,
        "consumed": check_usage,
        "below": check_below,
    },
)
check_todo = object_with({"description": check_string, "status": _check_todo_status}, {})
check_app_session = object_with({}, {"id": check_string, "event_time": check_seconds})
check_compaction = object_with({"summary": check_string, "through": check_number, "messages": check_number}, {})
check_record_keys = object_with(
    {
        "agent_id": check_string,
        "agent_name": check_string,
        "purpose": check_string,
        "phase": _check_phase,
        "metadata": check_object,
        "resume_ready": check_flag,
        "error_count": check_count,
        "last_error": nullable(check_last_error),
        "schema": check_number,
        "revision": check_count,
    },
    {
        "history_dropped": check_count,
        "continues": check_string,
        "imported_from": check_string,
        "parent_id": check_string,
        "stand_in": check_flag,
        "moving": check_moving,
        "max_depth": check_count,
        "max_tokens": check_count,
        "allowed_tools": array_of(check_string),
        "app": check_string,
        "user": check_string,
        "app_session": check_app_session,
        "session_state": check_object,
        "question": check_string,
        "approval": check_answer,
        "denial": check_answer,
        "answers": array_of(check_given_answer),
        "runs": array_of(check_run),
        "runs_dropped": check_count,
        "usage": check_usage,
        "charged_tokens": check_count,
        "token_correction": check_integer,
        "skills": map_of(check_count),
        "todos": array_of(check_todo),
        "turns": check_count,
        "transcript_bytes": check_count,
        "last_seq": check_count,
        "compaction": check_compaction,
        "transcripts_archived": check_count,
        "duration_seconds": check_seconds,
        "summary": check_string,
    },
)
FIGURES = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_creation_tokens",
    "total_tokens",
    "tool_uses",
    "duration_ms",
)
RUN_TIMES = ("claimed_at", "started_at", "ended_at", "warned_at")
OPTIONAL_TIMES = ("paused_until", "finalized_at")
DEFAULTS = {"schema": 1, "revision": 0}
# The end of what scripts/render_models makes.

_check_times = object_with(
    {"created_at": check_time, "last_updated": check_time, "history": array_of(check_move)},
    {
        "runs": array_of(object_with({}, dict.fromkeys(RUN_TIMES, check_time))),
        **dict.fromkeys(OPTIONAL_TIMES, check_time),
    },
)
"""The checks of times and moves, which the checks of keys and of runs leave out."""

_all_phases = frozenset(PHASES)


def check_record(value: object, where: str) -> None:
    """Refuses ``value`` if it is not a record of this version; the error names the bad key."""
    check_record_keys(value, where)
    record: Record = value  # type: ignore[assignment]  # just checked
    if "runs" in record:
        _check_runs(record, f"{where}." if where else "")
    check_owner_keys(record, f"{where}." if where else "")
    if not _has_canonical_times(record):
        _check_times(value, where)


def _has_canonical_times(record: Record) -> bool:
    """Whether all times are in the form that we write, and all moves are between known phases."""
    # A record may have hundreds of times. Nearly all are in this form, so they are checked together.
    try:
        moves, phases = record["history"], set()
        times = [record["created_at"], record["last_updated"]]
        for move in moves:
            times.append(move["timestamp"])
            phases.add(move["from_phase"])
            phases.add(move["to_phase"])
        if "runs" in record:
            times += [run[key] for run in record["runs"] for key in RUN_TIMES if key in run]  # type: ignore[literal-required]  # keys of a run
        times += [record[key] for key in OPTIONAL_TIMES if key in record]  # type: ignore[literal-required]  # keys of a record
        is_array = isinstance(moves, list)  # an empty object would pass
        return is_array and phases <= _all_phases and are_canonical_times(times)
    except (TypeError, KeyError):
        return False


def _check_runs(record: Record, prefix: str) -> None:
    for position, run in enumerate(record.get("runs", ())):
        check_run_end(run, f"{prefix}runs[{position}].")
    check_run_numbers(record, prefix)


def check_owner_keys(record: Record, prefix: str) -> None:
    """Refuses an app without its user, and a user without an app."""
    if ("app" in record) != ("user" in record):
        raise InvalidInput(
            "missing: a record has an app and a user, or neither", prefix + ("user" if "app" in record else "app")
        )


def check_run_end(run: Run, prefix: str) -> None:
    """Refuses a run with an end and no time, or with a time and no end."""
    end, has_ended = run.get("end"), "ended_at" in run
    if has_ended and end is None:
        raise InvalidInput("missing, though the run has ended", f"{prefix}end")
    if not has_ended and end not in (None, STOPPED):  # the end of a silent stop may still come
        raise InvalidInput(f"missing, though the run has the end {end!r}", f"{prefix}ended_at")


def check_run_numbers(record: Record, prefix: str) -> None:
    """Refuses runs whose numbers do not rise; the last number must be the count of all runs, dropped runs included."""
    runs, dropped = record.get("runs", ()), record.get("runs_dropped", 0)
    number = 0
    for position, run in enumerate(runs, 1):
        most = position + dropped
        least = most if position == len(runs) else number + 1
        number = run["run"]
        if not least <= number <= most:
            expectation = f"must be {most}" if least == most else f"must be from {least} to {most}"
            raise InvalidInput(
                f"{expectation}: runs are numbered in order, from 1", f"{prefix}runs[{position - 1}].run"
            )
