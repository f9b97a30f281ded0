"""``hook``: the one entry for every event of a host.

Only ``--help`` gets here from a shell: what a host calls is answered by ``cli.start`` without a command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli.call import declare
from gaia_sessions.hooks import HOOK

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("hook < event.json")
def command(call: Call) -> int:
    """Take in one event of a host: JSON on stdin.

    Answers with at most one JSON object on stdout; the exit code is always 0.
    """
    from gaia_sessions.hooks.run import main

    return main(HOOK, ["--root", call.root] if call.root else [])
