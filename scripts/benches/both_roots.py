"""How long a command takes on files and on a server, from its start to its end.

The server and the files are on one disk, and the server is reached by a socket: add the time of your network.
"""

from __future__ import annotations

import os
import subprocess
import time
from statistics import median

from gaia_sessions.system import utc_now

from . import samples
from .findings import Finding
from .server import started
from .starts import COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUNDS = 21
_OPEN = 50
"""How many sessions wait for a person."""

_LINES = {
    "create": "create --agent worker",
    "update": "update one --phase approval",
    "list": "list",
    "pending": "pending",
    "should-resume": "should-resume one",
    "run": "run -- true",
}


def commands(folder: str) -> Iterator[Finding]:
    """Measures each command on both roots in turn."""
    with started(folder) as own:
        if own is None:
            return
        from gaia_sessions.postgres.setup import init

        init(own.url)
        roots = {"on files": os.path.join(folder, "session"), "on a server": own.url}
        for root in roots.values():
            _put_sessions(root)
        for name, line in _LINES.items():
            spent: dict[str, list[float]] = {where: [] for where in roots}
            for number in range(_ROUNDS):
                for where in sorted(roots, reverse=bool(number % 2)):
                    spent[where].append(_seconds(folder, roots[where], line))
            for where, seconds in spent.items():
                yield Finding(f"{name} {where}", 1000 * median(seconds), None, "ms")


def _put_sessions(root: str) -> None:
    from gaia_sessions.api.sessions import Sessions

    sessions, now = Sessions(root), utc_now()
    with sessions.store as store:
        for _ in range(_OPEN - 1):
            samples.create_paused(store, now)
    sessions.create("worker", "the one", agent_id="one")
    sessions.update("one", "approval")


def _seconds(folder: str, root: str, line: str) -> float:
    began = time.perf_counter()
    command = [str(COMMAND), "--root", root, *line.split()]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - began
