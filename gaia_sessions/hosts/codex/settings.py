"""Codex's settings, as seen in runs of 0.169.0. Only ``install`` imports this module.

No matcher is set: the name of a tool with its namespace is not matched, so the hook reads every tool and passes over
those that start no agent.
"""

from __future__ import annotations

from gaia_sessions.hosts import CODEX
from gaia_sessions.hosts.settings import PROJECT, USER, HostSettings

SETTINGS = HostSettings(
    CODEX,
    ".codex",
    {USER: "hooks.json", PROJECT: "hooks.json"},
    dict.fromkeys(
        [
            *("SessionStart", "SessionEnd", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "Stop"),
            *("UserPromptSubmit", "Interrupt"),
        ]
    ),
    delegation=("spawn_agent", "Agent"),
    home="CODEX_HOME",
)
