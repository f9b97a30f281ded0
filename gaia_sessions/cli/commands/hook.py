"""``hook``: the one entry for every event of a host.

Only ``--help`` and ``--root`` get here: what a host calls is answered by ``cli.start`` without a command line.
"""

from __future__ import annotations

import os
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

    if call.root:
        os.environ["GAIA_SESSIONS_ROOT"] = os.path.abspath(call.root)
    return main(HOOK, [])
