"""The command with which a sub-agent reports where it stands, as a permission rule and our words name it.

Owns that both name the very same words: the rule lets through what begins like the command, and nothing else. The
command is named whole, with its root: a Bash call has no variable from which the project could be known.
"""

from __future__ import annotations

import os
import shlex
import sys

from gaia_sessions.hosts.marker import NOTE
from gaia_sessions.system.project_root import find_root, working_directory

from .messages import LONGEST_NOTE

PROGRAM = "gaia-sessions"
UPDATE = "update"


def find_program() -> str | None:
    """The console script beside the interpreter that runs this; None if there is none."""
    path = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), PROGRAM)
    return path if os.path.isfile(path) else None


def update_command(path: str) -> str:
    """How a shell is told to run the command."""
    return f"{shlex.quote(path)} {UPDATE}"


def instructions_for_session(*session: str) -> list[str]:
    """The sentence that tells a sub-agent; none if there is no command, or it does not fit beside the note.

    ``session`` are the words by which the command is told which one is meant.
    """
    path = find_program()
    if path is None:
        return []
    root = find_root(None, os.environ, working_directory())
    command = f"{update_command(path)} {shlex.join(session)} --root {shlex.quote(root)} --phase planning"
    sentence = f"While you work, report where you stand with: {command} (or investigating, executing, validating)."
    return [sentence] if len(NOTE) + 1 + len(sentence) <= LONGEST_NOTE else []
