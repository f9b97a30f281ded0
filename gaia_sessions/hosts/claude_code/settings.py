"""Claude Code's settings, as seen in runs of 2.1.197 and 2.1.330. Only ``install`` imports this module.

Both versions obey ``args``, refuse comments, take a byte order mark, and pass over the whole file without a message
when it cannot be parsed. Both start a hook with ``async`` and go on at once, and take a matcher that is no list of
names for a regular expression, in which ``(?!...)`` excludes. What a hook that nobody waits for prints would reach the
model later: ours print nothing for these events.
"""

from __future__ import annotations

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import LOCAL, SHARED_FILES, HostSettings

SETTINGS = HostSettings(
    CLAUDE_CODE,
    {**SHARED_FILES, LOCAL: "settings.local.json"},
    {
        "SessionStart": None,
        "UserPromptSubmit": None,
        "PreToolUse": "Agent|Task|Workflow|SendMessage",
        "PostToolUse": "Agent|Task|Workflow|TaskStop",
        "PostToolUseFailure": "Agent|Task|Workflow",
        "SubagentStart": None,
        "SubagentStop": None,
        "StopFailure": None,
        "Stop": None,
        "SessionEnd": None,
    },
    delegation=("Agent", "Task"),
    unawaited={"PermissionRequest": None},
    enforced={"PreToolUse": "^(?!(Agent|Task|Workflow|SendMessage)$)"},
    exec_form=True,
)
