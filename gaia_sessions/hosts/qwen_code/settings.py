"""Qwen Code's settings, as seen in runs of 0.15.10 and 0.24.4. Only ``install`` imports this module."""

from __future__ import annotations

from gaia_sessions.hosts import QWEN_CODE
from gaia_sessions.hosts.settings import SHARED_FILES, HostSettings

SETTINGS = HostSettings(
    QWEN_CODE,
    SHARED_FILES,
    {
        "SessionStart": None,
        "PreToolUse": "agent",
        "PostToolUse": "agent",
        "PostToolUseFailure": "agent",
        "SubagentStart": None,
        "SubagentStop": None,
        "StopFailure": None,
        "Stop": None,
        "SessionEnd": None,
    },
    delegation=("agent",),
    per_second=1000,
    comments=True,  # the client removes comments before it parses
)
