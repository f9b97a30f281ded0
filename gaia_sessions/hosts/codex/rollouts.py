"""Whether the latest turn of an agent of Codex was aborted, by the file of its conversation, which is untrusted.
Lines: {"timestamp", "type": "turn_context", ...}: a turn begins. {"timestamp", "type": "event_msg", "payload":
{"type": "task_started" | "user_message" | "task_complete"}} or {"type": "turn_aborted", "reason": "interrupted"}.
"""

from __future__ import annotations

from gaia_sessions.hosts import CODEX
from gaia_sessions.hosts.agent_files import lines_backwards
from gaia_sessions.hosts.payload import object_in, object_in_bytes, text_in
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.run_ends import is_before
from gaia_sessions.session.schema import INTERRUPTED, KILLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.session.run_ends import ReportedEnd
    from gaia_sessions.session.schema import Run

_LAST_BYTES = 1 << 18
_ABORTED = "turn_aborted"
_OF_TURNS = (_ABORTED, "task_started", "turn_started", "task_complete", "turn_complete", "user_message")
_TURN_BEGINS = "turn_context"


def end_in_rollout(run: Run) -> ReportedEnd | None:
    """Returns the end of a run whose agent's latest turn was aborted; None if that was before the run."""
    try:
        newest_first = lines_backwards(CODEX, run.get("transcript_path", ""), _LAST_BYTES)
        latest = next((entry for line in newest_first if _is_of_turn(entry := _entry(line))), {})
    except OSError:
        return None
    if text_in(object_in(latest, "payload"), "type") != _ABORTED or is_before(_time_of(latest), run):
        return None
    return KILLED, {"detail": "interrupted", "interruption": INTERRUPTED}


def _entry(line: bytes) -> Payload:
    """Returns the entry in ``line``. A line may be long, so one that says nothing about turns is not parsed: empty."""
    return object_in_bytes(line) if any(name.encode() in line for name in (*_OF_TURNS, _TURN_BEGINS)) else {}


def _is_of_turn(entry: Payload) -> bool:
    kind = text_in(entry, "type")
    return kind == _TURN_BEGINS or (kind == "event_msg" and text_in(object_in(entry, "payload"), "type") in _OF_TURNS)


def _time_of(entry: Payload) -> str | None:
    try:
        return format_time(parse_time(entry.get("timestamp")))
    except ValueError:
        return None
