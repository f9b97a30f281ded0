"""Codex's settings, as seen in runs of 0.169.0. Only ``install`` imports this module."""

from __future__ import annotations

from gaia_sessions.hosts import CODEX
from gaia_sessions.hosts.settings import PROJECT, USER, HostSettings

SETTINGS = HostSettings(
    CODEX,
    {USER: "hooks.json", PROJECT: "hooks.json"},
    {
        "SessionStart": None,
        "SessionEnd": None,
        # A bare name does not match a tool with its namespace in front (``multi_agent_v1wait_agent``,
        # ``collaborationspawn_agent``). A regular expression does.
        "PreToolUse": "^.*(spawn_agent|send_input)$",
        "PostToolUse": "^.*(spawn_agent|wait_agent|close_agent|interrupt_agent)$",
        "SubagentStart": None,
        "SubagentStop": None,
        "Stop": None,
        "UserPromptSubmit": None,
        "Interrupt": None,
    },
    delegation=("spawn_agent", "Agent"),
)
