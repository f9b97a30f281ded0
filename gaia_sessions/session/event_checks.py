"""The checks of an event that was read back from the inbox.

Owns which fields an event of each kind must have, and what each field may hold; ``events`` has the same fields as a
type. Loaded only where an event waits.
"""

from __future__ import annotations

from .checks import array_of, check_flag, check_string, check_time, object_with, one_of
from .events import (
    DELEGATE,
    DELEGATION_CLOSED,
    FAIL,
    FINALIZE,
    KINDS,
    MAIN_STOP,
    MESSAGE,
    NOTIFICATION,
    PERMISSION_REQUEST,
    RETURNED,
    SESSION_END,
    SESSION_LEFT,
    SESSION_START,
    SEVERAL,
    START,
    STOP,
    TOOL_USED,
)
from .phases import MARKER_PHASES, OUTCOMES
from .schema import INTERRUPTIONS, check_host_process, check_usage, check_workflow, check_worktree

_string_keys = (
    "host",
    "host_session_id",
    "host_agent_id",
    "tool_use_id",
    "parent_host_agent_id",
    "parent_id",
    "agent_id",
    "agent_name",
    "purpose",
    "transcript_path",
    "last_message",
    "marker_id",
    "briefed_id",
    "key_file",
    "key_name",
    "summary",
    "error",
    "tool_name",
    "call",
    "source",
    "model",
)

check_event = object_with(
    {"kind": one_of(KINDS), "at": check_time},
    dict.fromkeys(_string_keys, check_string)
    | dict.fromkeys(
        ("background", "has_message", "after_block", "launch", "interrupted", "writes", "tracked"), check_flag
    )
    | dict.fromkeys(("was_running", "key_pending", "reused_id", "unannounced", "outcome_assumed"), check_flag)
    | dict.fromkeys(("resume", "mentioned", "running"), array_of(check_string))
    | {"marker_phase": one_of(MARKER_PHASES), "outcome": one_of(OUTCOMES), "host_process": check_host_process}
    | {"workflow": check_workflow, "worktree": check_worktree, "usage": check_usage, "consumed": check_usage}
    | {"events": array_of(object_with({"kind": check_string}, {}))}
    | {"interruption": one_of(INTERRUPTIONS), "interrupted_at": check_time, "paused_until": check_time},
)
"""Returns for an event; raises ``InvalidInput``, which names the first bad key, for anything else."""

REQUIRED_FIELDS = {
    DELEGATE: ("host", "host_session_id", "tool_use_id", "agent_name", "purpose"),
    START: ("host_session_id", "host_agent_id"),
    STOP: ("host_session_id",),
    FAIL: ("host_session_id",),
    RETURNED: ("host_session_id",),
    DELEGATION_CLOSED: ("host_session_id", "tool_use_id"),
    NOTIFICATION: ("host_session_id",),
    MESSAGE: ("host_session_id", "host_agent_id"),
    SESSION_START: (),
    SESSION_END: ("host_session_id",),
    SESSION_LEFT: ("host_session_id",),
    MAIN_STOP: ("host_session_id",),
    FINALIZE: ("agent_id", "outcome"),
    PERMISSION_REQUEST: ("host_session_id", "host_agent_id", "tool_name"),
    TOOL_USED: ("host_session_id", "host_agent_id", "tool_name", "call"),
    SEVERAL: ("events",),
}
"""The fields without which an event of each kind cannot be applied, beside those that every event has."""
