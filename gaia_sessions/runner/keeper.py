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

from .command_output import NoLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gaia_sessions.store.port import Output

_CHUNK = 1 << 16


def read_on(agent_id: str, output: Output, pipes: Sequence[int]) -> bool:
    """Starts it for ``pipes`` and the ``output`` of the run, to which nothing is written here any more.

    It has nothing else of this process, and outlives it. Raises ``OSError`` if it cannot be started. Returns whether
    what it reads is kept: not if the session was removed, whatever stands in its place.
    """
    files = output.handed_over()
    process = subprocess.Popen(  # noqa: S603  # this interpreter
        interpreter_for("runner.keeper", f"reads what {agent_id} left in the background"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(*files, *pipes),
        start_new_session=True,
    )
    process.returncode = 0  # nobody waits for it
    with process.stdin or open(os.devnull, "wb") as stdin:
        stdin.write(pickle.dumps((output if files else NoLog(), pipes)))
    return bool(files)


def main() -> None:
    """Reads from stdin what is to be read, and where it goes."""
    output, pipes = pickle.load(sys.stdin.buffer)  # noqa: S301  # ``read_on`` made it
    os.chdir("/")  # so that no folder is in use
    selector = selectors.DefaultSelector()
    for pipe in pipes:
        selector.register(pipe, selectors.EVENT_READ)
    while selector.get_map():
        for key, _ in selector.select():
            data = _read(key.fd)
            if data:
                output.write(data)
            elif data == b"":
                selector.unregister(key.fd)
    output.close()


def _read(pipe: int) -> bytes | None:
    """What stands in ``pipe``, nothing at its end; None if somebody else has read that."""
    with suppress(BlockingIOError):
        return os.read(pipe, _CHUNK)
    return None
