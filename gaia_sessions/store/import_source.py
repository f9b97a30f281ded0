"""Reads a folder of sessions for an import; it need not be a store.

Owns what counts as a session there: a folder with a ``state.json``. It may belong to any user, because a user has named
it. Must never take a lock, write anything, or follow a link below the folder.
"""

from __future__ import annotations

import os
import stat

from gaia_sessions.errors import CorruptSession, InvalidId, NoSuchFolder, SessionsError
from gaia_sessions.session.ids import check_agent_id

from . import marks, reading
from .directory import Directory, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.schema import Record

    from .port import RecordOrError

_NEARBY_PLACES = ((".claude", os.path.join(".claude", "session")), ("session", "session"), (reading.STATE, os.pardir))
"""What shows that a project, a ``.claude`` or a session was named by mistake, and where the sessions are instead."""


def open_folder(path: str) -> Directory:
    """Opens the folder at ``path``. Raises ``NoSuchFolder``, or ``StoreFailure`` if the system does not open it."""
    with translate_errors("open", path):
        try:
            return Directory.at(path)
        except (FileNotFoundError, NotADirectoryError, ValueError):  # a path with a NUL is a ValueError
            raise NoSuchFolder(path) from None


def is_root(folder: Directory, root: str) -> bool:
    """Whether ``folder`` is the store at ``root``, however the two paths are spelled."""
    try:
        return os.path.samestat(os.fstat(folder.fd), os.stat(root))
    except OSError:
        return False


def records(folder: Directory) -> Iterator[tuple[str, RecordOrError]]:
    """Each session in ``folder`` in order of names, with its record or the error that reading it raised.

    The error is ``InvalidId`` for a name that is not a valid id, and ``CorruptSession`` for a link to a folder.
    """
    with translate_errors("list", folder.path):
        names = sorted(folder.names())
    for name in names:
        if not name.startswith(".") and _may_be_session(folder, name):
            yield name, _read_or_error(folder, name)


class SourceReader:
    """What ``Above`` reads, from ``folder``."""

    __slots__ = ("_folder",)

    def __init__(self, folder: Directory) -> None:
        self._folder = folder

    def read(self, agent_id: str) -> Record:
        """The record of a session. Raises what kept it from being read."""
        found = _read_or_error(self._folder, agent_id)
        if isinstance(found, SessionsError):
            raise found
        return found

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        """The marks of those that have one."""
        return marks.read_each(self._folder, reading.marked_ids(self._folder, agent_ids))


def likely_folder(folder: Directory) -> str | None:
    """Where sessions are in or just above ``folder``, which was named by mistake; None if there are none."""
    folder_path = os.path.realpath(folder.path)
    places = (os.path.normpath(os.path.join(folder_path, place)) for hint, place in _NEARBY_PLACES if folder.has(hint))
    return next((place for place in places if _has_sessions(place)), None)


def _has_sessions(path: str) -> bool:
    try:
        with open_folder(path) as folder:
            return next(records(folder), None) is not None
    except SessionsError:
        return False


def _may_be_session(folder: Directory, name: str) -> bool:
    """Whether ``name`` is a folder with a ``state.json``, a link to one, or a folder that may not be searched."""
    try:
        found = os.stat(name, dir_fd=folder.fd)
        if not stat.S_ISDIR(found.st_mode):
            return False
        os.stat(os.path.join(name, reading.STATE), dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:  # reading it raises the reason
        return True
    return True


def _read_or_error(folder: Directory, name: str) -> RecordOrError:
    try:
        check_agent_id(name)
        return reading.read(folder, name)
    except InvalidId as error:
        return error
    except CorruptSession as error:
        return CorruptSession(name, error.path, "a link, which is not followed") if _is_link(folder, name) else error
    except SessionsError as error:
        return error


def _is_link(folder: Directory, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode)
    except OSError:
        return False
