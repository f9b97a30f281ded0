"""The root of the errors, its main branches, and helpers for messages.

Every hook loads this module, so it has only what hooks raise or catch often; all other errors are in ``others``.
Modules that hooks load write ``errors.TooLarge`` instead of importing the class, so that ``others`` stays unloaded.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


_PACKAGE = __name__.rpartition(".")[0]
_HINT = "Hint: "


class SessionsError(Exception):
    """The root of all errors; the message says what is wrong.

    code: a word for programs.
    exit_code: the exit code of a command that fails with this error.
    hint: what to do next, or an empty text. Python prints the hint below the message.
    """

    code = "error"
    exit_code: int

    def __init_subclass__(cls) -> None:
        """Sets the public path ``gaia_sessions.errors`` for tracebacks and pickles."""
        if cls.__module__.startswith(_PACKAGE):
            cls.__module__ = _PACKAGE

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(well_formed(message))
        self.__notes__: list[str] = []
        self.hint = hint

    @property
    def hint(self) -> str:
        return next((note.removeprefix(_HINT) for note in self.__notes__ if note.startswith(_HINT)), "")

    @hint.setter
    def hint(self, hint: str) -> None:
        self.__notes__ = [_HINT + hint, *self.excerpts] if hint else self.excerpts

    @property
    def excerpts(self) -> list[str]:
        """Lines of the wrong text, each with a mark below the place."""
        return [note for note in self.__notes__ if not note.startswith(_HINT)]

    def __reduce__(self) -> tuple[object, ...]:
        """Makes unpickling skip the constructor (process pools pickle errors)."""
        return _restore, (type(self), self.args, {**self.__dict__, "__notes__": [*self.__notes__]})


def well_formed(text: str) -> str:
    """Returns ``text`` with escapes for NUL and for what UTF-8 cannot encode: a file name can have any bytes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Returns ``1 session`` or ``2 sessions``; ``nouns`` is an irregular plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or noun + 's'}"


def shorten(text: str, longest: int = 80) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _restore(error_type: type[SessionsError], args: tuple[object, ...], data: dict[str, object]) -> SessionsError:
    error = error_type.__new__(error_type, *args)
    error.args = args
    error.__dict__.update(data)
    return error


SessionsError.__module__ = _PACKAGE


class SessionNotFound(SessionsError):
    """No session has the ID.

    root: the folder that was searched; None if ``set_root`` was not called.
    """

    code = "not_found"
    exit_code = 3

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.root: str | None = None
        super().__init__(f"no session {agent_id!r}", "`gaia-sessions list` shows the existing sessions")

    @classmethod
    def of_agent(cls, host_session_id: str, host_agent_id: str) -> Self:
        """Returns the error if no session belongs to these IDs of the client; its ``agent_id`` is empty."""
        error = cls("")
        agent, conversation = shorten(repr(host_agent_id)), shorten(repr(host_session_id))
        error.args = (well_formed(f"no session of agent {agent} in conversation {conversation}"),)
        error.hint = "give the ID of the session instead: `gaia-sessions list` shows the existing sessions"
        return error

    @classmethod
    def of_conversation(cls, host_session_id: str) -> Self:
        """Returns the error if a conversation of a client has no session; its ``agent_id`` is empty."""
        error = cls("")
        error.args = (well_formed(f"no session of conversation {shorten(repr(host_session_id))}"),)
        return error

    def set_root(self, root: str, hint: str) -> None:
        """Adds ``root`` to the message, and replaces the hint."""
        self.root = root
        self.args = (well_formed(f"{self} in {root}"),)
        self.hint = hint


class LockTimeout(SessionsError):
    """Another process held the lock for longer than ``lock_timeout``; nothing was changed.

    holder: the process ID of the other process, or None if it is unknown.
    """

    code = "lock_timeout"
    exit_code = 5

    def __init__(self, path: str, seconds: float, holder: int | None) -> None:
        self.path = path
        self.seconds = seconds
        self.holder = holder
        holder_name = f"process {holder}" if holder else "another process"
        super().__init__(
            f"{path}: locked by {holder_name} for more than {seconds:g} second{'s' * (seconds != 1)}",
            "try again, or wait longer, for example with --lock-timeout 1m",
        )


class CorruptSession(SessionsError):
    """The file ``path`` is not a valid record; the file is not changed.

    problem: what is wrong, and where in the file.
    """

    code = "corrupt"
    exit_code = 6

    def __init__(self, agent_id: str, path: str, problem: str) -> None:
        self.agent_id = agent_id
        self.path = path
        self.problem = problem
        super().__init__(
            f"{path}: {problem}",
            "`gaia-sessions doctor` says how to repair or remove this session",
        )


class InvalidInput(SessionsError):
    """A text or value that was passed in is not acceptable.

    where: the place in the value, or an empty text for the whole value.
    """

    code = "invalid_input"
    exit_code = 7

    def __init__(self, problem: str, where: str = "", hint: str = "") -> None:
        self.problem = problem
        self.where = where
        super().__init__(f"{where}: {problem}" if where else problem, hint)


class InvalidId(InvalidInput):
    """The text cannot be the ID of a session."""

    code = "invalid_id"

    def __init__(self, value: object, problem: str) -> None:
        self.value = value
        super().__init__(
            f"{shorten(repr(value))} is not a session ID: {problem}",
            hint="use letters, digits, . _ and - only, for example agent-123",
        )


class StoreFailure(SessionsError):
    """The system refused ``action`` on ``path``; what was stored before is unchanged."""

    code = "io_error"
    exit_code = 8

    def __init__(
        self, action: str, path: str, reason: str, hint: str = "fix the reported problem and try again"
    ) -> None:
        self.action = action
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: cannot {action}: {reason}", hint)
