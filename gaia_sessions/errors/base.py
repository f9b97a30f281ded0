"""The root of the tree of errors, its main branches, and the errors that any hook call may have to catch.

Every hook loads this module, and each class costs it time: an error that a hook only ever raises is in a module next
door, which is loaded when the error is first named. Must never import another module of the package at its start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


_PACKAGE = __name__.rpartition(".")[0]


class SessionsError(Exception):
    """The root of the tree: ``code`` is for programs, the message for people; ``hint`` says what to do next."""

    code = "error"

    def __init_subclass__(cls) -> None:
        """Gives each error the public path: programs and tracebacks name it by that one."""
        if cls.__module__.startswith(_PACKAGE):
            cls.__module__ = _PACKAGE

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(well_formed(message))
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the error with all its data, whatever its constructor takes: process pools do that."""
        return _restore, (type(self), self.args, self.__dict__)


def well_formed(text: str) -> str:
    """``text`` with everything escaped that UTF-8 cannot encode, since messages name files and those hold any bytes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """``1 session``, ``2 sessions``; ``nouns`` is the plural form where it is not ``noun`` with an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or noun + 's'}"


def shorten(text: str, longest: int = 80) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _restore(error_type: type[SessionsError], args: tuple[object, ...], data: dict[str, object]) -> SessionsError:
    error = error_type.__new__(error_type, *args)
    error.args = args
    error.__dict__.update(data)
    return error


SessionsError.__module__ = _PACKAGE


class UsageError(SessionsError):
    """The request itself is wrong; nothing was read or written."""

    code = "usage"


class BadSetting(UsageError):
    """An unknown configuration key or an invalid value; ``origin`` is the file or variable that has it.

    The message names the origin only once, even if ``problem`` does so too.
    """

    code = "bad_setting"

    def __init__(self, origin: str, problem: str, hint: str) -> None:
        self.origin = origin
        text = shorten(problem, 500)
        super().__init__(text if origin in problem.split() else f"{origin}: {text}", hint)


class SessionNotFound(SessionsError):
    """No session has the id; ``root`` is the directory that was searched, None until ``set_root``."""

    code = "not_found"

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.root: str | None = None
        super().__init__(f"no session {agent_id!r}", "`gaia-sessions list` shows the existing sessions")

    @classmethod
    def of_agent(cls, host_session_id: str, host_agent_id: str) -> Self:
        """The error for a session that was named by the ids of the host's agent; ``agent_id`` is empty."""
        error = cls("")
        agent, conversation = shorten(repr(host_agent_id)), shorten(repr(host_session_id))
        error.args = (well_formed(f"no session of agent {agent} in the host's session {conversation}"),)
        error.hint = "use the ID of the session: `gaia-sessions list` shows the existing sessions"
        return error

    def set_root(self, root: str, hint: str) -> None:
        """Names ``root`` in the message, and replaces the hint."""
        self.root = root
        self.args = (well_formed(f"{self} in {root}"),)
        self.hint = hint


class Conflict(SessionsError):
    """The record is valid and does not allow the request; nothing was written."""

    code = "conflict"


class SessionExists(Conflict):
    code = "exists"

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        super().__init__(f"session {agent_id!r} already exists", "leave out the ID to have one generated")


class NewerSchema(Conflict):
    code = "newer_schema"

    def __init__(self, agent_id: str, schema: int, known: int) -> None:
        self.agent_id = agent_id
        self.schema = schema
        super().__init__(
            f"session {agent_id!r} has schema {schema}; this version writes {known} and can only show newer ones",
            "update gaia-sessions",
        )


class LockTimeout(SessionsError):
    """Another process held the lock for the whole time; ``holder`` is its pid where the system can tell."""

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
    """The file at ``path`` is not a valid record; ``problem`` says what is wrong and where. The file is kept."""

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
    """A value that was passed in is not acceptable; ``where`` is the place in it, empty for the whole value."""

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
            f"{what} is over the limit of {limit} bytes", hint="keep long texts in a file and store its name"
        )


class StoreFailure(SessionsError):
    """The system refused ``action`` on ``path``; what was stored before is unchanged."""

    code = "io_error"

    def __init__(
        self, action: str, path: str, reason: str, hint: str = "fix the reported problem and try again"
    ) -> None:
        self.action = action
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: cannot {action}: {reason}", hint)


class LockUnsupported(StoreFailure):
    code = "lock_unsupported"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__("lock", path, reason, "keep the sessions on a local file system")


class DurabilityUnknown(SessionsError):
    """The change is in place and visible, but the directory could not be synced: a power failure may undo it."""

    code = "durability_unknown"

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path}: written, but the sync to disk failed: {reason}", "check the disk; the change is visible"
        )
