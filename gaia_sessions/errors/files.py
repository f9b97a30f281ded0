"""Files and folders that cannot be used: unreadable ones, those of another user, and a disk that fails.

Loaded when one of these errors is first named.
"""

from __future__ import annotations

from .main_branches import InvalidInput, SessionsError, StoreFailure, plural

EXPORT_ROOT_COMMAND = 'export GAIA_SESSIONS_ROOT="$HOME/gaia-sessions"'
"""What a user may type who cannot use the sessions here; a host started after it passes the value on to its hooks."""


class LockUnsupported(StoreFailure):
    code = "lock_unsupported"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__("lock", path, reason, "keep the sessions on a local file system")


class DurabilityUnknown(SessionsError):
    """The change is in place and visible, but the directory could not be synced: a power failure may undo it."""

    code = "durability_unknown"
    exit_code = 9

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path}: written, but the sync to disk failed: {reason}", "check the disk; the change is visible"
        )


class MessagesKeptAside(UserWarning):
    """A write found lines of a transcript that its record did not commit, and moved them to ``path``; it was done.

    No error: Python's ``warnings`` show it, or whoever catches them.
    """

    code = "kept_aside"

    def __init__(self, path: str, number: int) -> None:
        self.path = path
        self.number = number
        self.hint = "add each that you miss with 'gaia-sessions transcript ID --append ROLE TEXT', then remove the file"
        super().__init__(path, number)

    def __str__(self) -> str:
        return (
            f"{plural(self.number, 'message')} of the transcript had been written but never acknowledged, or the"
            f" record was restored from an older copy: kept in {self.path}"
        )


class FiguresLost(UserWarning):
    """Sessions were removed, and what ``stats`` should have kept of them could not be written, or not for certain.

    No error: Python's ``warnings`` show it, or whoever catches them. cause: why it could not be.
    """

    code = "figures_lost"

    def __init__(self, cause: SessionsError) -> None:
        self.cause = cause
        self.hint = "'gaia-sessions doctor' says what is wrong; with the setting keep_figures = false none are kept"
        super().__init__(cause)

    def __str__(self) -> str:
        if isinstance(self.cause, DurabilityUnknown):
            return f"it is not sure that the figures of removed sessions were kept: {self.cause}"
        return f"the figures of removed sessions cannot be kept: {self.cause}"


class SettingsUnreadable(InvalidInput):
    """A host's settings file is not in the expected form; it is left unchanged."""

    code = "settings_unreadable"

    def __init__(self, path: str, problem: str, place: str) -> None:
        self.path = path
        self.place = place
        super().__init__(problem, f"{path}: {place}" if place else path, "correct the file; it was not changed")


class OwnedByAnother(StoreFailure):
    """The sessions, or the project they would be in, belong to another user; nothing was read or created."""

    code = "other_user"

    def __init__(self, path: str, owner: str, user: str) -> None:
        self.owner = owner
        self.user = user
        super().__init__(
            "use the sessions",
            path,
            f"it belongs to {owner}, and you are {user}",
            f"sessions are private to a user; store yours elsewhere: {EXPORT_ROOT_COMMAND}",
        )


class LinkedElsewhere(StoreFailure):
    """A link leads the sessions of a project out of it, to ``target``; nothing was read or created there.

    A project may come from a stranger, and its links with it.
    """

    code = "linked_elsewhere"

    def __init__(self, path: str, target: str) -> None:
        from shlex import quote

        self.target = target
        hint = "remove the link"
        if target.isprintable():
            hint += f", or, if it is yours, name the folder itself: export GAIA_SESSIONS_ROOT={quote(target)}"
        super().__init__("use the sessions", path, f"a link leads out of the project, to {target}", hint)
