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

_FOR_PEOPLE = frozenset(["-h", "--help"])
_TAKE_A_VALUE = ("--root", "--lock-timeout")


def main() -> None:
    """Runs the command line and ends the process; never returns.

    What a host calls with every event, ``gaia-sessions hook``, is spared the command line, and no mistake in its
    arguments may end with 2: hosts take that for a veto.
    """
    gc.disable()  # starting up makes many objects and no garbage
    told = _told_to_the_hook(sys.argv[1:])
    if told is not None and _FOR_PEOPLE.isdisjoint(told):
        from gaia_sessions.hook.run import main as hear
        from gaia_sessions.hosts.protocol import HOOK

        os._exit(hear(HOOK, told))
    from .main import main as run

    end(run())


def end(code: int) -> NoReturn:
    """Ends the process with what was written."""
    try:
        sys.stdout.flush()  # what a command wrote before it failed
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads it; the code is told all the same
        pass
    os._exit(code)


def _told_to_the_hook(words: list[str]) -> list[str] | None:
    """The words before and behind ``hook``, if that is the command."""
    place = 0
    while words[place : place + 1] and words[place].startswith("-"):
        place += 2 if words[place] in _TAKE_A_VALUE else 1
    return [*words[:place], *words[place + 1 :]] if words[place : place + 1] == ["hook"] else None
