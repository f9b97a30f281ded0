"""``hook``: handle one event of a host.

From a shell, only ``--help`` runs this: ``cli.start`` handles the calls of hosts without click.
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
    from gaia_sessions.hook import argument_words
    from gaia_sessions.hook.run import main

    return main(HOOK, argument_words(root=call.root))
