"""The checks of a record: every known key of ``state.json``, with as few instructions as a hook may spend.

Owns how a run can end, and which documents hooks and commands accept as a record. The eleven keys of the users'
documents come first, in their order; unknown keys are kept and must never be looked at. ``record_types`` has the same
keys as types, and a property test compares the two.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput

from .checks import (
    array_of,
    check_flag,
    check_object,
    check_seconds,
    check_string,
    check_time,
    integer_from,
    nullable,
    object_with,
    one_of,
)
from .clock import are_canonical_times
from .phases import PHASES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NotRequired, TypedDict, final

    from . import record_types

    Denial = record_types.Denial
    HostProcess = record_types.HostProcess
    LastError = record_types.LastError
    Move = record_types.Move
    Record = record_types.Record
    Run = record_types.Run
    Tools = record_types.Tools

    class ResumeSummary(TypedDict):
        """The policy's answer. until: when the session can no longer be resumed; None if it cannot be resumed now."""

        should_resume: bool
        reason: str
        until: str | None

    @final
    class Summary(TypedDict):
        """running: whether an agent is at work on it, as far as can be told."""

        agent_id: str
        agent_name: str
        purpose: str
        phase: str
        status: str
        created_at: str
        last_updated: str
        resume_ready: bool
        error_count: int
        resume: ResumeSummary
        running: bool
        denied: NotRequired[bool]

    @final
    class CorruptSummary(TypedDict):
        agent_id: str
        status: str
        problem: str


KILLED = "killed"
FAILED = "failed"
STOPPED = "stopped"
RETURNED = "returned"
ENDED_WITH_HOST = "ended_with_host"
LOST = "lost"
DENIED = "denied"

ENDS = (KILLED, FAILED, STOPPED, RETURNED, ENDED_WITH_HOST, LOST, DENIED)
"""How a run can end, the strongest evidence first."""

MARKED_DETAIL = "said so in its last line"
"""The detail of a run whose agent said by the marker how it ends."""

MAX_MESSAGE_LENGTH = 4000
"""Characters kept of what an agent said last, and of what is told of a failure."""

_check_phase = one_of(PHASES)

_check_timed_message = object_with({"message": check_string, "timestamp": check_time}, {})

_run_string_keys = (
    "host",
    "host_session_id",
    "current_host_session_id",
    "host_agent_id",
    "tool_use_id",
    "parent_host_agent_id",
    "detail",
    "last_message",
    "transcript_path",
)

check_host_process = object_with(
    {}, {"pid": integer_from(1)} | dict.fromkeys(("started", "boot_id", "pid_ns", "machine"), check_string)
)

_check_run_keys = object_with(
    {"run": integer_from(1)},
    dict.fromkeys(_run_string_keys, check_string)
    | dict.fromkeys(("claimed_at", "started_at", "ended_at"), check_time)
    | dict.fromkeys(("background", "unannounced"), check_flag)
    | {
        "mentioned": array_of(check_string),
        "host_process": check_host_process,
        "end": one_of(ENDS),
        "reported": _check_phase,
        "inferred": _check_phase,
    },
)


def _check_run(value: object, where: str) -> None:
    _check_run_keys(value, where)
    check_run_end(value, f"{where}.")  # type: ignore[arg-type]  # just checked


def check_run_end(run: Run, prefix: str) -> None:
    """Raises ``InvalidInput`` unless a run that has ended says how and when."""
    end, has_ended = run.get("end"), "ended_at" in run
    if has_ended and end is None:
        raise InvalidInput("missing, though the run has ended", f"{prefix}end")
    if not has_ended and end not in (None, STOPPED):  # an agent that stopped without a message may go on
        raise InvalidInput(f"missing, though the run ended: {end}", f"{prefix}ended_at")


_check_count = integer_from(1)


def _check_tool_counts(value: object, where: str) -> None:
    check_object(value, where)
    for name, number in value.items():  # type: ignore[attr-defined]  # just checked
        _check_count(number, f"{where}.{name}")


_check_each_move = array_of(
    object_with({"from_phase": _check_phase, "to_phase": _check_phase, "timestamp": check_time}, {})
)
_all_phases = frozenset(PHASES)


def _check_history(value: object, where: str) -> None:
    """Hundreds, and nearly always as we wrote them: only others are looked at one by one, to name what is wrong."""
    if not (isinstance(value, list) and _are_canonical_moves(value)):
        _check_each_move(value, where)


def _are_canonical_moves(moves: list[Move]) -> bool:
    try:
        phases = {move["from_phase"] for move in moves}.union([move["to_phase"] for move in moves])
        return phases <= _all_phases and are_canonical_times([move["timestamp"] for move in moves])
    except (TypeError, KeyError):
        return False


_check_record_keys = object_with(
    {
        "agent_id": check_string,
        "agent_name": check_string,
        "purpose": check_string,
        "created_at": check_time,
        "last_updated": check_time,
        "phase": _check_phase,
        "metadata": check_object,
        "resume_ready": check_flag,
        "history": _check_history,
        "error_count": integer_from(0),
        "last_error": nullable(_check_timed_message),
        "schema": integer_from(1),
        "revision": integer_from(0),
    },
    {
        "history_dropped": integer_from(0),
        "continues": check_string,
        "denial": _check_timed_message,
        "runs": array_of(_check_run),
        "runs_dropped": integer_from(0),
        "tools": object_with({"counts": _check_tool_counts, "recent": array_of(check_string)}, {}),
        "finalized_at": check_time,
        "duration_seconds": check_seconds,
        "summary": check_string,
    },
)


def check_record(value: object, where: str) -> None:
    """Nothing for a record of this version; ``InvalidInput`` names the first bad key of anything else."""
    _check_record_keys(value, where)
    check_run_numbers(value, f"{where}." if where else "")  # type: ignore[arg-type]  # just checked


def check_run_numbers(record: Record, prefix: str) -> None:
    """The numbers of runs rise, and the last says how many there were, those that were dropped included."""
    runs, dropped = record.get("runs", ()), record.get("runs_dropped", 0)
    number = 0
    for position, run in enumerate(runs, 1):
        most = position + dropped
        least = most if position == len(runs) else number + 1
        number = run["run"]
        if not least <= number <= most:
            expectation = f"must be {most}" if least == most else f"must be from {least} to {most}"
            raise InvalidInput(
                f"runs are numbered from 1 in their order: {expectation}", f"{prefix}runs[{position - 1}].run"
            )
