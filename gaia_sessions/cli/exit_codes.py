"""The exit codes of commands, with their words for ``--help`` and for the page. Errors have an ``exit_code`` too."""

from __future__ import annotations

EXIT_DONE = 0
EXIT_NO = 1
EXIT_WORK_FAILED = 11
EXIT_BUG = 70
EXIT_TIMEOUT = 124
EXIT_INTERRUPTED = 130

CODES_OF_REPORTS = {
    "success": EXIT_DONE,
    "cancelled": 10,
    "error": EXIT_WORK_FAILED,
    "running": EXIT_TIMEOUT,
    "timeout": EXIT_TIMEOUT,
    "not_found": 3,
}
"""The exit code for each status in ``report`` and ``wait``, the worst last."""

EXIT_CODES = {
    EXIT_DONE: ("done, yes", "done, or the answer is yes"),
    EXIT_NO: ("no", "the answer is no"),
    2: ("usage", "wrong usage: an unknown command, option, phase, outcome, setting or value"),
    3: ("not found", "no such session"),
    4: (
        "conflict",
        "conflict: the session exists already, is open or final, changed, has a newer schema, or cannot get the phase",
    ),
    5: ("lock timeout", "the session stayed locked by another process"),
    6: ("corrupt", "`state.json` is not a valid record; the file stays as it is"),
    7: ("invalid input", "invalid input: an invalid ID, bad JSON, a value that is too large, or no room in the record"),
    8: (
        "I/O error",
        "the system refused the operation, or the sessions belong to another user; nothing was changed",
    ),
    9: ("written, durability unknown", "the change is written, but the disk did not confirm it"),
    10: ("cancelled", "the session, or a session above it, is cancelled"),
    EXIT_WORK_FAILED: ("the work failed", "`run`, `send`, `report`, `wait`: the work failed"),
    EXIT_BUG: ("bug", "a bug in gaia-sessions: stderr names a log"),
    EXIT_TIMEOUT: ("not ended", "`run`, `send`, `report`, `wait`: the work reached its time limit, or has not ended"),
    EXIT_INTERRUPTED: ("interrupted", "interrupted, for example by Ctrl-C"),
}
