"""Every error this package raises, and the exit code each one ends a command with.

Owns the tree below and the one table that turns an error into an exit code. Knows nothing of
files, commands or hosts: an error carries its data as attributes, builds its own message, and
says in ``hint`` what to do next. Those that no hook can raise are next door, and are loaded when somebody names them:
each class costs a hook more than many a check.

    SessionsError
    ├── UsageError              2   asked in a way that can never be answered
    │   ├── UnknownPhase
    │   ├── UnknownOutcome
    │   ├── UnknownHost
    │   ├── BadArgument
    │   ├── NoSuchFolder
    │   ├── AmbiguousId
    │   └── BadSetting
    ├── SessionNotFound         3
    ├── Conflict                4   a true record says no
    │   ├── SessionExists
    │   ├── SessionFinal
    │   ├── IllegalMove
    │   ├── ResumeNotAllowed
    │   ├── NothingToDeny
    │   ├── RevisionChanged
    │   ├── NewerSchema
    │   └── HooksElsewhere
    ├── LockTimeout             5
    ├── CorruptSession          6
    │   └── NothingReadable         a whole folder of them
    ├── InvalidInput            7   the text or value handed in is not acceptable
    │   ├── InvalidId
    │   ├── SettingsUnreadable
    │   └── TooLarge
    ├── StoreFailure            8   the system refused the operation; nothing was changed
    │   ├── LockUnsupported
    │   └── OwnedByAnother          the sessions belong to another user
    └── DurabilityUnknown       9   applied, but the disk did not confirm it
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .of_commands import AmbiguousId as AmbiguousId
    from .of_commands import BadArgument as BadArgument
    from .of_commands import HooksElsewhere as HooksElsewhere
    from .of_commands import NoSuchFolder as NoSuchFolder
    from .of_commands import NothingReadable as NothingReadable
    from .of_commands import NothingToDeny as NothingToDeny
    from .of_commands import ResumeNotAllowed as ResumeNotAllowed
    from .of_commands import RevisionChanged as RevisionChanged
    from .of_commands import SettingsUnreadable as SettingsUnreadable
    from .of_commands import UnknownHost as UnknownHost

EXPORT_ROOT_COMMAND = 'export GAIA_SESSIONS_ROOT="$HOME/gaia-sessions"'
"""What a user types who may not use the sessions here; said to the host as well, its hooks use that place too."""


class SessionsError(Exception):
    """The root of the tree: ``code`` for programs, the message for people, ``hint`` for what to do next."""

    code = "error"

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(well_formed(message))
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process pools whole, whatever their constructors take."""
        return _restore, (type(self), self.args, self.__dict__)


def well_formed(text: str) -> str:
    """``text`` as UTF-8 can have it: names of files may hold any bytes, and messages name files."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """``1 session``, ``2 sessions``; ``nouns`` is the plural form where it is not ``noun`` with an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or noun + 's'}"


def _restore(error_type: type[SessionsError], args: tuple[object, ...], data: dict[str, object]) -> SessionsError:
    error = error_type.__new__(error_type, *args)
    error.args = args
    error.__dict__.update(data)
    return error


class UsageError(SessionsError):
    """The request itself is wrong; nothing was read or written."""

    code = "usage"


class UnknownPhase(UsageError):
    code = "unknown_phase"

    def __init__(self, phase: object, known: Iterable[str]) -> None:
        self.phase = phase
        self.known = tuple(known)
        super().__init__(f"unknown phase {shorten(repr(phase))}", "the phases are " + ", ".join(self.known))


class UnknownOutcome(UsageError):
    code = "unknown_outcome"

    def __init__(self, outcome: object, known: Iterable[str]) -> None:
        self.outcome = outcome
        self.known = tuple(known)
        super().__init__(f"unknown outcome {shorten(repr(outcome))}", "the outcomes are " + ", ".join(self.known))


class BadSetting(UsageError):
    """A configuration key or value that means nothing; ``origin`` is the file or variable it stands in.

    The message names it once, even if ``problem`` is about its name.
    """

    code = "bad_setting"

    def __init__(self, origin: str, problem: str, hint: str) -> None:
        self.origin = origin
        text = shorten(problem, 500)
        super().__init__(text if origin in problem.split() else f"{origin}: {text}", hint)


class SessionNotFound(SessionsError):
    """``root`` is the folder that it was looked for in; None until somebody says so."""

    code = "not_found"

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.root: str | None = None
        super().__init__(f"no session {agent_id!r}", "`gaia-sessions list` shows those that exist")

    @classmethod
    def of_agent(cls, host_session_id: str, host_agent_id: str) -> SessionNotFound:
        """The same of a session that was named by the ids of the host's agent; ``agent_id`` is empty."""
        error = cls("")
        agent, conversation = shorten(repr(host_agent_id)), shorten(repr(host_session_id))
        error.args = (well_formed(f"no session of agent {agent} in the host's session {conversation}"),)
        error.hint = "name the session by its own id: `gaia-sessions list` shows those that exist"
        return error

    def set_root(self, root: str, hint: str) -> None:
        """Names ``root`` in the message, and what to type instead."""
        self.root = root
        self.args = (well_formed(f"{self} in {root}"),)
        self.hint = hint


class Conflict(SessionsError):
    """The record is sound and does not allow what was asked; nothing was written."""

    code = "conflict"


class SessionExists(Conflict):
    code = "exists"

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        super().__init__(f"session {agent_id!r} exists already", "leave out the ID to have one generated")


class SessionFinal(Conflict):
    code = "final"

    def __init__(self, agent_id: str, phase: str) -> None:
        self.agent_id = agent_id
        self.phase = phase
        super().__init__(
            f"session {agent_id!r} is {phase} and takes no more changes", "create a new session for further work"
        )


class IllegalMove(Conflict):
    code = "illegal_move"

    def __init__(self, from_phase: str, to_phase: str, allowed: Iterable[str]) -> None:
        self.from_phase = from_phase
        self.to_phase = to_phase
        self.allowed = tuple(allowed)
        ways = ", ".join(self.allowed) or "nothing: it is final"
        super().__init__(
            f"a session cannot go from {from_phase} to {to_phase}", f"from {from_phase} it can go to {ways}"
        )


class NewerSchema(Conflict):
    code = "newer_schema"

    def __init__(self, agent_id: str, schema: int, supported: int) -> None:
        self.agent_id = agent_id
        self.schema = schema
        super().__init__(
            f"session {agent_id!r} has schema {schema}; this version writes {supported} and only shows newer ones",
            "update gaia-sessions",
        )


class LockTimeout(SessionsError):
    """Somebody else held the lock all the while; ``holder`` is their pid where the system can tell."""

    code = "lock_timeout"

    def __init__(self, path: str, seconds: float, holder: int | None) -> None:
        self.path = path
        self.seconds = seconds
        self.holder = holder
        holder_name = f"process {holder}" if holder else "another process"
        super().__init__(
            f"{path}: locked by {holder_name} for more than {seconds:g} s",
            "try again, or wait longer with --lock-timeout",
        )


class CorruptSession(SessionsError):
    """``path`` is not a record; ``problem`` names what and where. The file is kept as it is."""

    code = "corrupt"

    def __init__(self, agent_id: str, path: str, problem: str) -> None:
        self.agent_id = agent_id
        self.path = path
        self.problem = problem
        super().__init__(
            f"{path}: {problem}",
            "fix the file, or remove its directory; cleanup --corrupt removes all corrupt sessions",
        )


class InvalidInput(SessionsError):
    """What was handed in is refused; ``where`` is the place in it, empty for the whole."""

    code = "invalid_input"

    def __init__(self, problem: str, where: str = "", hint: str = "correct the input and try again") -> None:
        self.problem = problem
        self.where = where
        super().__init__(f"{where}: {problem}" if where else problem, hint)


class InvalidId(InvalidInput):
    code = "invalid_id"

    def __init__(self, value: object, problem: str) -> None:
        self.value = value
        super().__init__(
            f"{shorten(repr(value))} is not a session ID: {problem}",
            hint="an ID looks like agent-123: letters, digits, . _ -",
        )


class TooLarge(InvalidInput):
    code = "too_large"

    def __init__(self, what: str, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(
            f"{what} is over the limit of {limit} bytes", hint="keep long texts in a file and name the file"
        )


class StoreFailure(SessionsError):
    """The system refused ``action`` on ``path``; what was there before is there still."""

    code = "io_error"

    def __init__(
        self, action: str, path: str, reason: str, hint: str = "correct what the system reports and try again"
    ) -> None:
        self.action = action
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: cannot {action}: {reason}", hint)


class LockUnsupported(StoreFailure):
    code = "lock_unsupported"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__("lock", path, reason, "keep the sessions on a local file system")


class OwnedByAnother(StoreFailure):
    """The sessions, or the project they would be in, belong to another user: nothing was read or made."""

    code = "other_user"

    def __init__(self, path: str, owner: str, user: str) -> None:
        self.owner = owner
        self.user = user
        super().__init__(
            "use the sessions",
            path,
            f"it belongs to {owner}, and you are {user}",
            f"sessions are private to a user; keep yours elsewhere: {EXPORT_ROOT_COMMAND}",
        )


class DurabilityUnknown(SessionsError):
    """The change is in place and visible, but the directory could not be synced: a power cut may undo it."""

    code = "durability_unknown"

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path}: applied, but not confirmed by the disk: {reason}", "check the disk; the change is visible"
        )


def shorten(text: str, longest: int = 80) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


EXIT_DONE = 0
EXIT_NO = 1
EXIT_BUG = 70
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
}


def exit_code(error: SessionsError) -> int:
    """The documented exit code of ``error``: that of its nearest ancestor in the table."""
    return next(EXIT_CODES[error_type] for error_type in type(error).__mro__ if error_type in EXIT_CODES)


def __getattr__(name: str) -> type[SessionsError]:
    """An error of commands, when it is first named."""
    from .of_commands import ERRORS

    if name not in ERRORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return ERRORS[name]
