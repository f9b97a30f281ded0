"""The process that reads the output of background processes of a command, until they end.

Their stdout and stderr are pipes of the wrapper: they would die of a write that nobody reads.
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
    """Starts the reader for ``pipes`` and the ``output`` of the run; returns whether the output is stored."""
    files = output.handed_over()  # None if the session was removed
    process = subprocess.Popen(  # noqa: S603  # this interpreter
        interpreter_for("runner.keeper", f"reads the background output of {agent_id}"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(*(files or ()), *pipes),
        start_new_session=True,
    )
    process.returncode = 0  # nobody waits for it
    with process.stdin or open(os.devnull, "wb") as stdin:
        stdin.write(pickle.dumps((NoLog() if files is None else output, pipes)))
    return files is not None


def main() -> None:
    """Reads from stdin what to read, and where it goes."""
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
    """Returns what is in ``pipe``, empty at its end; None if another process has read it."""
    with suppress(BlockingIOError):
        return os.read(pipe, _CHUNK)
    return None
