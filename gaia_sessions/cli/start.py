"""The door of the console script and of ``python -m gaia_sessions``.

Owns what only a process of our own may do: switch garbage collection off before the first import, and end
without tearing the interpreter down. Together they are an eighth of what a command costs.
"""

from __future__ import annotations

import gc
import os
import sys

_FOR_PEOPLE = frozenset(["-h", "--help", "--root"])


def main() -> None:
    """Runs the command line and ends the process; never returns.

    What a host calls with every event, ``gaia-sessions hook``, is spared the command line, and no mistake in its
    arguments may end with 2: hosts take that for a veto.
    """
    gc.disable()  # starting up makes many objects and no garbage
    if sys.argv[1:2] == ["hook"] and not _FOR_PEOPLE.intersection(sys.argv):
        from gaia_sessions.hooks import HOOK
        from gaia_sessions.hooks.run import main as hear

        os._exit(hear(HOOK, sys.argv[2:]))
    from .main import main as run

    code = run()
    try:
        sys.stdout.flush()  # what a command wrote before it failed
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads it; the code is told all the same
        pass
    os._exit(code)
