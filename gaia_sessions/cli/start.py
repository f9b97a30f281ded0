"""The entry point of the console script and of ``python -m gaia_sessions``.

Owns what only a whole process may do: disable garbage collection before the first import, and end without finalizing
the interpreter. Together these save an eighth of the cost of a command. Must never import click for a hook.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_OPTIONS_WITH_VALUE = ("--root", "--lock-timeout")


def main() -> None:
    """Runs the command line and ends the process; never returns.

    ``gaia-sessions hook``, which a host calls with every event, bypasses click: that is faster, and an error in its
    arguments cannot end with exit code 2, which hosts take for a veto. A person who types it is answered by click, and
    is told apart by the terminal: a host that lends its own to a hook still captures what the hook says.
    """
    gc.disable()  # a start makes many objects and hardly any garbage
    words = sys.argv[1:]
    arguments = _hook_arguments(words)
    if arguments is not None:
        words = _run_hook(arguments)
    from .main import main as run

    exit_process(run(words))


def _run_hook(arguments: list[str]) -> list[str]:
    """Runs the hook and ends the process with 0, whatever part of the package is missing, as while it is replaced.

    Returns the words for click if a person typed them.
    """
    try:
        from gaia_sessions.hook import read_arguments
        from gaia_sessions.hook.run import main as run_hook
        from gaia_sessions.hosts import HOOK

        told = read_arguments(arguments)
        is_typed = not told["test"] and os.isatty(0) and os.isatty(2)
        if told["help"] or is_typed:
            return [HOOK, *(arguments if told["help"] or told["ignored"] else ())]
        os._exit(run_hook(HOOK, arguments))
    except Exception:
        if "--test" in arguments or os.isatty(2):
            raise
        os._exit(0)


def exit_process(code: int) -> NoReturn:
    """Flushes what was written and ends the process."""
    try:
        sys.stdout.flush()  # a command may have written some of its result before it failed
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads the output; the exit code still counts
        pass
    os._exit(code)


def _hook_arguments(words: list[str]) -> list[str] | None:
    """The words before and after ``hook``, if that is the command; None if it is not."""
    position = 0
    while words[position : position + 1] and words[position].startswith("-"):
        position += 2 if words[position] in _OPTIONS_WITH_VALUE else 1
    return [*words[:position], *words[position + 1 :]] if words[position : position + 1] == ["hook"] else None
