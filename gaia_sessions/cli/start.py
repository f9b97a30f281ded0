"""The entry point of the console script and of ``python -m gaia_sessions``; it imports no click for a hook.

No garbage collection, and an end without finalizing the interpreter, save an eighth of the cost of a command.
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
    """Runs the command line and ends the process."""
    gc.disable()  # a start makes many objects, and hardly any garbage
    words = sys.argv[1:]
    # A hook bypasses click: that is faster, and a wrong argument cannot end with 2, which hosts read as a refusal.
    arguments = _hook_arguments(words)
    if arguments is not None:
        words = _run_hook(arguments)
    from .main import main as run

    exit_process(run(words))


def _run_hook(arguments: list[str]) -> list[str]:
    """Runs the hook and ends the process with 0; returns the words for click if a person typed them."""
    try:  # a module can be missing while the package is replaced
        from gaia_sessions.hook import read_arguments
        from gaia_sessions.hook.run import main as run_hook
        from gaia_sessions.hosts import HOOK

        told = read_arguments(arguments)
        is_typed = not told["test"] and os.isatty(0) and os.isatty(2)  # hosts capture the output of hooks
        if told["help"] or is_typed:
            return [HOOK, *(arguments if told["help"] or told["ignored"] else ())]
        os._exit(run_hook(HOOK, arguments))
    except Exception:
        if "--test" in arguments or os.isatty(2):
            raise
        os._exit(0)


def exit_process(code: int) -> NoReturn:
    """Flushes the output and ends the process."""
    try:
        sys.stdout.flush()  # a command can write a part of its result before it fails
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads the output, but the exit code counts
        pass
    os._exit(code)


def _hook_arguments(words: list[str]) -> list[str] | None:
    """Returns the words before and after ``hook``; None if the command is not ``hook``."""
    position = 0
    while words[position : position + 1] and words[position].startswith("-"):
        position += 2 if words[position] in _OPTIONS_WITH_VALUE else 1
    return [*words[:position], *words[position + 1 :]] if words[position : position + 1] == ["hook"] else None
