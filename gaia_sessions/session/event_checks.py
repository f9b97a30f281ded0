"""The checks of an event that is read back from the inbox. Loaded only if an event waits."""

from __future__ import annotations

from .checks import array_of, check_flag, check_string, check_time, object_with, one_of
from .host_events import (
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
)
from .phases import MARKER_PHASES, OUTCOMES
from .schema import INTERRUPTIONS, check_host_process, check_own_work, check_usage, check_workflow, check_worktree

_check_event_kind = one_of(KINDS)
_check_interruption = one_of(INTERRUPTIONS)
_check_marker_phase = one_of(MARKER_PHASES)
_check_outcome = one_of(OUTCOMES)
_check_part = object_with({"kind": check_string}, {})

# Made by scripts/render_models of shapes.py: never change it by hand.
check_event = object_with(
    {"kind": _check_event_kind, "at": check_time},
    {
        "host": check_string,
        "host_session_id": check_string,
        "host_agent_id": check_string,
        "tool_use_id": check_string,
        "parent_host_agent_id": check_string,
        "parent_id": check_string,
        "workflow": check_workflow,
        "key_file": check_string,
        "host_process": check_host_process,
        "agent_id": check_string,
        "agent_name": check_string,
        "purpose": check_string,
        "background": check_flag,
        "unannounced": check_flag,
        "enforced": check_flag,
        "resume": array_of(check_string),
        "mentioned": array_of(check_string),
        "transcript_path": check_string,
        "last_message": check_string,
        "marker_phase": _check_marker_phase,
        "marker_id": check_string,
        "briefed_id": check_string,
        "has_message": check_flag,
        "after_block": check_flag,
        "launch": check_flag,
        "interrupted": check_flag,
        "interruption": _check_interruption,
        "interrupted_at": check_time,
        "paused_until": check_time,
        "was_running": check_flag,
        "key_pending": check_flag,
        "reused_id": check_flag,
        "running": array_of(check_string),
        "commands": array_of(check_string),
        "own_work": check_own_work,
        "waits": check_flag,
        "source": check_string,
        "outcome": _check_outcome,
        "outcome_assumed": check_flag,
        "events": array_of(_check_part),
        "summary": check_string,
        "error": check_string,
        "tool_name": check_string,
        "call": check_string,
        "asked": check_string,
        "usage": check_usage,
        "consumed": check_usage,
        "model": check_string,
        "worktree": check_worktree,
    },
)
# The end of what scripts/render_models makes.

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
    SEVERAL: ("events",),
}
"""The fields that an event of each kind needs, besides those of every event."""
