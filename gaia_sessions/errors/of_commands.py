"""The errors of the tree that only commands and the Python API raise.

Owns their data and words; they are imported from ``gaia_sessions.errors`` like all others.
"""

from __future__ import annotations

from . import Conflict, CorruptSession, InvalidInput, SessionsError, UsageError, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_LISTED = 5


class UnknownHost(UsageError):
    code = "unknown_host"

    def __init__(self, host: object, known: Iterable[str]) -> None:
        self.host = host
        self.known = tuple(known)
        super().__init__(f"unknown host {shorten(repr(host))}", "the hosts are " + ", ".join(self.known))


class BadArgument(UsageError):
    """An argument outside what its command or function can mean."""

    code = "bad_argument"

    def __init__(self, name: str, value: object, wanted: str) -> None:
        self.name = name
        self.value = value
        super().__init__(f"{name} {shorten(repr(value))} is not valid", f"must be {wanted}")


class NoSuchFolder(UsageError):
    """The folder that was named does not exist, or is not a folder."""

    code = "no_such_folder"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path!r} is not a folder",
            "name the folder that has one folder per session, for example /path/to/project/.claude/session",
        )


class AmbiguousId(UsageError):
    """What was typed for an id is a part of several: ``candidates``."""

    code = "ambiguous_id"

    def __init__(self, typed: str, candidates: Iterable[str]) -> None:
        self.typed = typed
        self.candidates = tuple(candidates)
        listed = ", ".join(self.candidates[:_MAX_LISTED])
        more = len(self.candidates) - _MAX_LISTED
        rest = f" and {more} more" if more > 0 else ""
        super().__init__(
            f"{typed!r} is the beginning or end of {len(self.candidates)} ids: {listed}{rest}",
            "type more of the id: `gaia-sessions list` shows those that exist",
        )


class HooksElsewhere(Conflict):
    """Another settings file of the project has the hooks: in two, they would be told of each event twice."""

    code = "hooks_elsewhere"

    def __init__(self, host: str, path: str, scope: str) -> None:
        self.host = host
        self.path = path
        self.scope = scope
        super().__init__(
            f"{path} already has the hooks for {host}",
            f"update them there with --{scope}, or remove them first: gaia-sessions hooks uninstall --{scope}",
        )


class NothingReadable(CorruptSession):
    """A folder has sessions, and none of them can be read; they are kept as they are."""

    code = "nothing_readable"

    def __init__(self, folder: str, number: int) -> None:
        self.folder = folder
        self.number = number
        SessionsError.__init__(
            self,
            f"{folder}: {'its only session cannot' if number == 1 else f'none of its {number} sessions can'} be read",
            "the report says what is wrong with each; correct the files and import again",
        )


class SettingsUnreadable(InvalidInput):
    """A host's settings file that does not say what it must; it is left as it is."""

    code = "settings_unreadable"

    def __init__(self, path: str, problem: str, place: str) -> None:
        self.path = path
        super().__init__(
            problem, f"{path}: {place}" if place else path, "correct the file; it was left untouched, byte for byte"
        )


class NothingToDeny(Conflict):
    code = "nothing_to_deny"

    def __init__(self, agent_id: str, phase: str) -> None:
        self.agent_id = agent_id
        self.phase = phase
        super().__init__(
            f"session {agent_id!r} does not wait for an approval: it is {phase}",
            "only a session in phase approval can be denied",
        )


class ResumeNotAllowed(Conflict):
    code = "resume_not_allowed"

    def __init__(self, agent_id: str, phase: str) -> None:
        self.agent_id = agent_id
        self.phase = phase
        super().__init__(
            f"session {agent_id!r} cannot be made ready to resume while {phase}",
            "move it to investigating, planning or approval first",
        )


class RevisionChanged(Conflict):
    code = "revision_changed"

    def __init__(self, agent_id: str, asked: int, actual: int) -> None:
        self.agent_id = agent_id
        self.asked = asked
        self.actual = actual
        super().__init__(
            f"session {agent_id!r} is at revision {actual}, not {asked}",
            "read it again, then update it with its revision",
        )


ERRORS: dict[str, type[SessionsError]] = {
    kind.__name__: kind
    for kind in (
        AmbiguousId,
        BadArgument,
        HooksElsewhere,
        NoSuchFolder,
        NothingReadable,
        NothingToDeny,
        ResumeNotAllowed,
        RevisionChanged,
        SettingsUnreadable,
        UnknownHost,
    )
}
