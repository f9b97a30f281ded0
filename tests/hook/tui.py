"""Scenarios for the interactive client, in the form of the harness's own; run as ``tui.py HARNESS SCENARIO``.

Each scenario lists what is typed and what the scripted API answers. The API counts the answers of each conversation
from 0, so ``swapmain`` exchanges the answers for the main agent when the conversation changes.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

FIRST = "[[main]] Please delegate the work."
GO_ON = "Approved, go on."
ASKS = "The plan of alpha has three steps.\n[gaia-sessions: approval] may I apply it?"
STEP = {"tools": [{"name": "Bash", "input": {"command": "echo step", "description": "Run a command"}}]}
LEAVES: list[dict[str, Any]] = [{"say": "/exit"}, {"exited": 1}]
# The tmux server ends with its last session, and accepts no new session while it ends.
STARTS_AGAIN: list[dict[str, Any]] = [{"endtmux": 1}, {"sleep": 1}, {"start": []}]


def delegation(name: str, more: str = "", *, background: bool = True) -> dict[str, Any]:
    asked = {
        "description": f"Job {name}",
        "prompt": f"[[sub:{name}]] Do the job called {name}.{more}",
        "subagent_type": "general-purpose",
        "run_in_background": background,
    }
    return {"tools": [{"name": "Agent", "input": asked}]}


LAUNCHED = {"text": "Launched."}
RESUMES = [delegation("beta", "\n[gaia-sessions: resume {{gaia}}]"), LAUNCHED, {"text": "All done."}]
SUBS = {"alpha": [STEP, {"text": ASKS, "delay": 14}], "beta": [{"text": "Applied."}]}
APPROVES: list[dict[str, Any]] = [
    {"event": "SubagentStop", "limit": 30},
    {"event": ["Stop", 3]},
    {"sleep": 1},
    {"say": GO_ON},
    {"event": ["SubagentStop", 2], "limit": 30},
    {"event": ["Stop", 5]},
    {"sleep": 1},
]

LATE = {"alpha": [STEP, {"text": "Never seen.", "delay": 40}], "beta": [{"text": "Applied."}]}
FOREGROUND = {"CLAUDE_CODE_FORK_SUBAGENT": "0"}


def stopped_by(*keys: dict[str, Any]) -> dict[str, Any]:
    """The user stops a background agent with ``keys``, leaves, and begins another conversation."""
    return {
        "product": True,
        "main": [delegation("alpha"), LAUNCHED, {"text": "It was stopped."}],
        "subs": LATE,
        "steps": [
            {"say": FIRST},
            {"event": "Stop"},
            {"sleep": 2},
            *keys,
            {"sleep": 2},
            {"say": "Leave that."},
            {"event": ["Stop", 3], "limit": 8},
            {"sleep": 1},
            *LEAVES,
            *STARTS_AGAIN,
            {"swapmain": [{"text": "Hello."}]},
            {"say": "[[main]] Hello again."},
            {"event": ["Stop", 4], "limit": 8},
            *LEAVES,
        ],
    }


ASKED = "Do you want|proceed|Allow"
"""The text of the client above the answers to a permission request."""

NEEDS_PERMISSION = {"tools": [{"name": "Bash", "input": {"command": "python3 -c 'print(6*7)'", "description": "Six"}}]}


def lists(name: str) -> dict[str, Any]:
    return {"cmd": f"{{{{gaia-sessions}}}} list --json > {name}.json"}


def asked(*answer: dict[str, Any]) -> dict[str, Any]:
    """A background agent asks for a permission. The sessions are listed before and after the user types ``answer``."""
    return {
        "product": True,
        "allowed": ["Agent"],
        "main": [delegation("alpha"), LAUNCHED, {"text": "All done."}],
        "subs": {"alpha": [NEEDS_PERMISSION, {"text": "Report of alpha.", "delay": 6}]},
        "steps": [
            {"say": FIRST},
            {"screen": ASKED},
            {"sleep": 2},
            lists("asked"),
            *answer,
            {"sleep": 3},
            lists("answered"),
            {"event": "SubagentStop", "limit": 15},
            {"event": ["Stop", 2], "limit": 15},
            {"sleep": 1},
            *LEAVES,
        ],
    }


STOP_ALL = {"keys": ["C-x", "C-k"], "gap": 0.15}

SCENARIOS: dict[str, dict[str, Any]] = {
    "escaped": {
        "product": True,
        "env": FOREGROUND,
        "main": [
            delegation("alpha", background=False),
            {"text": "Something else, then."},
            delegation("beta", "\n[gaia-sessions: resume {{gaia}}]", background=False),
            {"text": "All done."},
        ],
        "subs": LATE,
        "steps": [
            {"say": FIRST},
            {"event": "PostToolBatch"},
            {"sleep": 2},
            {"keys": "Escape"},
            {"sleep": 1},
            {"say": "Leave that, something else."},
            {"event": "Stop"},
            {"sleep": 1},
            {"say": "Now go on with it."},
            {"event": ["Stop", 2]},
            {"sleep": 1},
            *LEAVES,
        ],
    },
    "permitted": asked({"keys": "1"}),
    "refused": asked({"keys": "Up"}, {"keys": "Enter"}),  # the last of the answers
    "hung-up": {
        "product": True,
        "main": [delegation("alpha"), LAUNCHED, *RESUMES],
        "subs": LATE,
        "steps": [
            {"say": FIRST},
            {"event": "Stop"},
            {"sleep": 2},
            {"killpane": 1},
            {"sleep": 1},
            {"start": ["--continue"]},
            {"sleep": 1},
            {"say": "Go on with that."},
            {"event": ["Stop", 3], "limit": 30},
            {"sleep": 1},
            *LEAVES,
        ],
    },
    "stopped-in-panel": stopped_by({"keys": ["Down", "Down", "x"], "gap": 1}, {"keys": "Escape"}),
    "all-stopped": stopped_by(STOP_ALL, STOP_ALL),
    "cleared": {
        "product": True,
        "main": [delegation("alpha"), LAUNCHED],
        "subs": SUBS,
        "steps": [
            {"say": FIRST},
            {"event": "Stop"},
            {"sleep": 2},
            {"say": "/clear"},
            {"sleep": 2},
            {"swapmain": [{"text": "Something else."}, {"text": "It waits for you."}, *RESUMES]},
            {"say": "[[main]] And now something else."},
            {"event": ["Stop", 2]},
            *APPROVES,
            *LEAVES,
        ],
    },
    "another-resumed": {
        "product": True,
        "main": [{"text": "Hello."}],
        "subs": SUBS,
        "steps": [
            {"say": "[[main]] First talk, hello."},
            {"event": "Stop"},
            {"sleep": 1},
            *LEAVES,
            *STARTS_AGAIN,
            {"swapmain": [delegation("alpha"), LAUNCHED]},
            {"say": FIRST},
            {"event": ["Stop", 2]},
            {"sleep": 2},
            {"swapmain": [{"text": "Hello."}, {"text": "It waits for you."}, *RESUMES]},
            {"say": "/resume"},
            {"sleep": 2},
            {"keys": "Enter"},
            *APPROVES,
            *LEAVES,
        ],
    },
    "moved-to-background": {
        "product": True,
        "main": [delegation("alpha"), LAUNCHED, {"text": "It waits for you."}],
        "subs": SUBS,
        "steps": [
            {"say": FIRST},
            {"event": "Stop"},
            {"sleep": 3},
            {"say": "/exit"},
            {"sleep": 1},
            {"keys": "2"},
            {"sleep": 1},
            {"exited": 1, "limit": 8},
            {"event": "SubagentStop", "limit": 30},
            {"event": ["Stop", 2]},
            {"sleep": 1},
        ],
    },
}


def main(harness: str, scenario: str) -> None:
    driver = Path(harness, "tui", "drive_tui.py")
    sys.path.insert(0, str(driver.parent))
    import scenarios_tui  # type: ignore[import-not-found]  # the harness's own

    scenarios_tui.SCENARIOS.update(SCENARIOS)
    sys.argv = [str(driver), scenario]
    runpy.run_path(str(driver), run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
