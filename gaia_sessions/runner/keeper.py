"""The process that reads on what a command has left in the background, into the output of its run, until that ends.

Whatever is kept has pipes of its wrapper as stdout and stderr: it would die of what it writes once nobody reads them.
"""

from __future__ import annotations

import os
import pickle
import selectors
import subprocess
import sys
from contextlib import suppress

from gaia_sessions.api.command import interpreter_for
from gaia_sessions.errors import SessionsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gaia_sessions.api.sessions import Sessions

_CHUNK = 1 << 16


def read_on(sessions: Sessions, agent_id: str, number: int, pipes: Sequence[int]) -> None:
    """Starts it for ``pipes`` and the output of the run with this ``number``, which nobody writes any more.

    It has nothing else of this process, and outlives it. Raises ``OSError`` if it cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603  # this interpreter
        interpreter_for("runner.keeper", f"reads what {agent_id} left in the background"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=pipes,
        start_new_session=True,
    )
    process.returncode = 0  # nobody waits for it
    with process.stdin or open(os.devnull, "wb") as stdin:
        stdin.write(pickle.dumps((sessions, agent_id, number, pipes)))


def main() -> None:
    """Reads from stdin what is to be read, and where it goes; where that is not possible, it is read all the same."""
    sessions, agent_id, number, pipes = pickle.load(sys.stdin.buffer)  # noqa: S301  # ``read_on`` made it
    output = None
    with suppress(SessionsError):
        output = sessions.open_output(agent_id, number, is_continued=True)
    os.chdir("/")  # so that no folder is in use
    selector = selectors.DefaultSelector()
    for pipe in pipes:
        selector.register(pipe, selectors.EVENT_READ)
    while selector.get_map():
        for key, _ in selector.select():
            data = _read(key.fd)
            if data and output:
                output.write(data)
            elif data == b"":
                selector.unregister(key.fd)
    if output:
        output.close()


def _read(pipe: int) -> bytes | None:
    """What stands in ``pipe``, nothing at its end; None if somebody else has read that."""
    with suppress(BlockingIOError):
        return os.read(pipe, _CHUNK)
    return None
