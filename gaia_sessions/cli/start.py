"""The door of the console script and of ``python -m gaia_sessions``.

Owns what only a process of our own may do: switch garbage collection off before the first import, and end
without tearing the interpreter down. Together they are an eighth of what a command costs.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_HELP_OPTIONS = frozenset(["-h", "--help"])
_OPTIONS_WITH_VALUE = ("--root", "--lock-timeout")


def main() -> None:
    """Runs the command line and ends the process; never returns.

    What a host calls with every event, ``gaia-sessions hook``, is spared the command line, and no mistake in its
    arguments may end with 2: hosts take that for a veto.
    """
    gc.disable()  # starting up makes many objects and no garbage
    arguments = _hook_arguments(sys.argv[1:])
    if arguments is not None and _HELP_OPTIONS.isdisjoint(arguments):
        from gaia_sessions.hook.run import main as hear
        from gaia_sessions.hosts import HOOK

        os._exit(hear(HOOK, arguments))
    from .main import main as run

    exit_process(run())


def exit_process(code: int) -> NoReturn:
    """Ends the process with what was written."""
    try:
        sys.stdout.flush()  # what a command wrote before it failed
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads it; the code is told all the same
        pass
    os._exit(code)


def _hook_arguments(words: list[str]) -> list[str] | None:
    """The words before and behind ``hook``, if that is the command."""
    position = 0
    while words[position : position + 1] and words[position].startswith("-"):
        position += 2 if words[position] in _OPTIONS_WITH_VALUE else 1
    return [*words[:position], *words[position + 1 :]] if words[position : position + 1] == ["hook"] else None
