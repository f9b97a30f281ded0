"""The exit codes of commands: what ``--help`` calls each one, and what the page says that it means.

An error has the number of its own as ``exit_code``.
"""

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
"""The exit code of each status that ``report`` and ``wait`` know, the worst last."""

EXIT_CODES = {
    EXIT_DONE: ("done, yes", "done, or the answer is yes"),
    EXIT_NO: ("no", "the answer is no"),
    2: ("usage", "usage: an unknown command, option, phase, outcome, setting or value"),
    3: ("not found", "no such session"),
    4: ("conflict", "conflict: exists already, is final, no such move, changed since, newer schema, still open (`rm`)"),
    5: ("lock timeout", "the session stayed locked by another process"),
    6: ("corrupt", "`state.json` is not a valid record; it is kept as it is"),
    7: ("invalid input", "invalid input: an invalid ID, bad JSON, no room in the record"),
    8: (
        "I/O error",
        "the system refused the operation, or the sessions belong to another user; nothing was changed",
    ),
    9: ("written, durability unknown", "applied, but the disk did not confirm it"),
    10: ("cancelled", "the session is cancelled, by itself or with one above it"),
    EXIT_WORK_FAILED: ("the work failed", "`report`, `wait`: the work failed"),
    EXIT_BUG: ("bug", "a bug in gaia-sessions: one line, and the path of a log"),
    EXIT_TIMEOUT: ("not ended", "`report`, `wait`: the work has not ended, or not in time"),
    EXIT_INTERRUPTED: ("interrupted", "interrupted"),
}
