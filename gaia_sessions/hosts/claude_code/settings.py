"""Claude Code's settings, as seen in runs of 2.1.197 and 2.1.330. Only ``install`` imports this module.

Both versions obey ``args``, refuse comments, take a byte order mark, and pass over the whole file without a message
when it cannot be parsed.
"""

from __future__ import annotations

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import LOCAL, SHARED_FILES, HostSettings

SETTINGS = HostSettings(
    CLAUDE_CODE,
    ".claude",
    {**SHARED_FILES, LOCAL: "settings.local.json"},
    {
        "SessionStart": None,
        "UserPromptSubmit": None,
        "PreToolUse": "Agent|Task|SendMessage",
        "PostToolUse": "Agent|Task|TaskStop",
        "PostToolUseFailure": "Agent|Task",
        "PostToolBatch": None,
        "SubagentStart": None,
        "SubagentStop": None,
        "StopFailure": None,
        "Stop": None,
        "SessionEnd": None,
    },
    delegation=("Agent", "Task"),
    tools={
        **dict.fromkeys(["PreToolUse", "PostToolUse", "PostToolUseFailure"], "*"),
        "PermissionRequest": None,
    },
    home="CLAUDE_CONFIG_DIR",
    exec_form=True,
)
