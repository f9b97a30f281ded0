"""The process that runs a command for a program. It does nothing else, so it is allowed to end all its descendants."""

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
    """Reads from stdin what to run, and writes the report, or the error, to stdout."""
    sessions, start, command = pickle.load(sys.stdin.buffer)  # noqa: S301  # the program that started this made it
    answer: Report | SessionsError
    os.set_blocking(sys.stdin.fileno(), False)
    with open(os.devnull, "rb") as nothing:
        try:
            answer = run(sessions, start, command, stdin=nothing.fileno(), live={}, asked=_asked).report
        except SessionsError as error:
            answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))
    sys.stdout.flush()


def _asked() -> tuple[str | None] | None:
    """Returns the reason for which the program cancels the command; None while it does not."""
    has_come = sys.stdin.buffer.peek()  # type: ignore[union-attr]  # it is buffered
    return (pickle.load(sys.stdin.buffer),) if has_come else None  # noqa: S301  # as above
