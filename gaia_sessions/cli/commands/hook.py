"""``hook``: the one entry for every event of a host.

Only ``--help`` and misspelt calls get here: what a host calls is answered by ``cli.start`` without a command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli.call import declare
from gaia_sessions.hooks import HOOK

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("hook < event.json")
def command(call: Call) -> int:  # noqa: ARG001  # a host has no options for us
    """Take in one event of a host: its JSON on stdin, at most one JSON object on stdout, exit code 0 always."""
    from gaia_sessions.hooks.run import main

    return main(HOOK, [])
