"""The process that runs a command for a program: it owns nothing else, so it may end all that descends from it."""

from __future__ import annotations

import os
import pickle
import sys

from gaia_sessions.errors import SessionsError

from .run import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.report import Report


def main() -> None:
    """Reads from stdin what is to be run, and writes the report, or the error, to stdout."""
    sessions, start, command = pickle.load(sys.stdin.buffer)  # noqa: S301  # the program that started this made it
    answer: Report | SessionsError
    with open(os.devnull, "rb") as nothing:
        try:
            answer = run(sessions, start, command, stdin=nothing.fileno(), live={}).report
        except SessionsError as error:
            answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))
    sys.stdout.flush()
