"""``hook``: the one entry for every event of a host.

Only ``--help`` gets here from a shell: what a host calls is answered by ``cli.start`` without a command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli.call import declare
from gaia_sessions.hosts import HOOK

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("hook < event.json")
def command(call: Call) -> int:
    """Handle one event of a host: JSON on standard input.

    Prints at most one JSON object; the exit code is always 0. Hosts call it: see gaia-sessions hooks --help.
    """
    from gaia_sessions.hook.run import main

    return main(HOOK, ["--root", call.root] if call.root else [])
