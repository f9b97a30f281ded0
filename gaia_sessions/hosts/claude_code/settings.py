"""Claude Code's settings, as seen in runs of 2.1.197 and 2.1.330. Only ``install`` imports this module.
Both versions refuse comments, take a byte order mark, and ignore a file that they cannot parse, without a message.
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
    # Both versions do not wait for a hook with ``async``. Its output would reach the model later, so our hook
    # prints nothing for these events.
    unawaited={"PermissionRequest": None},
    # Both versions read a matcher that is no list of names as a regular expression, in which ``(?!...)`` excludes.
    enforced={"PreToolUse": "^(?!(Agent|Task|Workflow|SendMessage)$)"},
    exec_form=True,  # both versions obey ``args``
)
