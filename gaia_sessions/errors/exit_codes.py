"""The exit code that each error ends a command with, and the codes of commands that end without an error.

Owns the one table of exit codes.
"""

from __future__ import annotations

from .conflicts import Cancelled, Conflict
from .files import DurabilityUnknown
from .main_branches import CorruptSession, InvalidInput, LockTimeout, SessionNotFound, StoreFailure
from .usage import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .main_branches import SessionsError

EXIT_DONE = 0
EXIT_NO = 1
EXIT_WORK_FAILED = 11
EXIT_BUG = 70
EXIT_TIMEOUT = 124
EXIT_INTERRUPTED = 130

EXIT_CODES: dict[type[SessionsError], int] = {
    UsageError: 2,
    SessionNotFound: 3,
    Conflict: 4,
    LockTimeout: 5,
    CorruptSession: 6,
    InvalidInput: 7,
    StoreFailure: 8,
    DurabilityUnknown: 9,
    Cancelled: 10,
}


def exit_code(error: SessionsError) -> int:
    """The documented exit code of ``error``: that of its nearest ancestor in the table."""
    return next(EXIT_CODES[error_type] for error_type in type(error).__mro__ if error_type in EXIT_CODES)
