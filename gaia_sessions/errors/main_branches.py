"""The root of the tree of errors, its main branches, and how a text is made fit for a message.

Every hook loads this module, and each class costs it time. ``InvalidId`` is here since hooks catch it wherever a record
may be gone; any other error is in ``others``. Modules that hooks load name such an error as an attribute of the
package, where it is raised or caught (``errors.TooLarge``), and do not import it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


_PACKAGE = __name__.rpartition(".")[0]
_HINT = "Hint: "


class SessionsError(Exception):
    """The root of the tree: ``code`` is for programs, the message for people; ``hint`` says what to do next.

    exit_code: what a command ends with that the error stops; ``cli/exit_codes.py`` says what each number means. The
    hint, empty where the message says all, is the first of the error's notes, which Python prints below the message.
    """

    code = "error"
    exit_code: int

    def __init_subclass__(cls) -> None:
        """Gives each error the public path: programs and tracebacks name it by that one."""
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
        """Lines of what is wrong, each with a mark below the place: the other notes."""
        return [note for note in self.__notes__ if not note.startswith(_HINT)]

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the error with all its data, whatever its constructor takes: process pools do that."""
        return _restore, (type(self), self.args, {**self.__dict__, "__notes__": [*self.__notes__]})


def well_formed(text: str) -> str:
    """``text`` with everything escaped that our JSON refuses, since messages name files and those hold any bytes.

    That is what UTF-8 cannot encode, and NUL.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


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


class SessionNotFound(SessionsError):
    """No session has the id; ``root`` is the directory that was searched, None until ``set_root``."""

    code = "not_found"
    exit_code = 3

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

    @classmethod
    def of_conversation(cls, host_session_id: str) -> Self:
        """The error for a conversation of a host that has no session; ``agent_id`` is empty."""
        error = cls("")
        error.args = (well_formed(f"no session belongs to the conversation {shorten(repr(host_session_id))}"),)
        return error

    def set_root(self, root: str, hint: str) -> None:
        """Names ``root`` in the message, and replaces the hint."""
        self.root = root
        self.args = (well_formed(f"{self} in {root}"),)
        self.hint = hint


class LockTimeout(SessionsError):
    """Another process held the lock for the whole time; ``holder`` is its pid where the system can tell."""

    code = "lock_timeout"
    exit_code = 5

    def __init__(self, path: str, seconds: float, holder: int | None) -> None:
        self.path = path
        self.seconds = seconds
        self.holder = holder
        holder_name = f"process {holder}" if holder else "another process"
        super().__init__(
            f"{path}: locked by {holder_name} for more than {seconds:g} second{'s' * (seconds != 1)}",
            "try again, or wait longer with --lock-timeout",
        )


class CorruptSession(SessionsError):
    """The file at ``path`` is not a valid record; ``problem`` says what is wrong and where. The file is kept."""

    code = "corrupt"
    exit_code = 6

    def __init__(self, agent_id: str, path: str, problem: str) -> None:
        self.agent_id = agent_id
        self.path = path
        self.problem = problem
        super().__init__(
            f"{path}: {problem}",
            "`gaia-sessions doctor` has the command that repairs or removes it, or the file to fix",
        )


class InvalidInput(SessionsError):
    """A value that was passed in is not acceptable; ``where`` is the place in it, empty for the whole value."""

    code = "invalid_input"
    exit_code = 7

    def __init__(self, problem: str, where: str = "", hint: str = "") -> None:
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
