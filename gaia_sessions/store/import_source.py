"""A folder of sessions that need not be a store of ours, read once: where an import takes its records from.

Owns what counts as a session there: a folder with a ``state.json``. Takes no lock, writes nothing, and follows no link
below the folder. Whose the folder is does not matter: somebody named it.
"""

from __future__ import annotations

import os
import stat

from gaia_sessions.errors import CorruptSession, InvalidId, NoSuchFolder, SessionsError
from gaia_sessions.session.ids import check_agent_id

from . import reading
from .directory import Directory, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .port import RecordOrError

_NEARBY_PLACES = ((".claude", os.path.join(".claude", "session")), ("session", "session"), (reading.STATE, os.pardir))
"""What a folder has that was named by mistake (a project, a ``.claude``, a session), and where its sessions are."""


def open_folder(path: str) -> Directory:
    """The folder at ``path``. Raises ``NoSuchFolder``, or ``StoreFailure`` if the system does not open it."""
    with translate_errors("open", path):
        try:
            return Directory.at(path)
        except (FileNotFoundError, NotADirectoryError, ValueError):  # a path with a NUL is a ValueError
            raise NoSuchFolder(path) from None


def is_root(folder: Directory, root: str) -> bool:
    """Whether ``folder`` is the store at ``root``, however the two are spelled."""
    try:
        return os.path.samestat(os.fstat(folder.fd), os.stat(root))
    except OSError:
        return False


def records(folder: Directory) -> Iterator[tuple[str, RecordOrError]]:
    """Each session in ``folder`` by name, with its record or the error that its reading raised, in order of names.

    A name that is no id of ours is an ``InvalidId``, a link to a folder a ``CorruptSession``.
    """
    with translate_errors("list", folder.path):
        names = sorted(folder.names())
    for name in names:
        if not name.startswith(".") and _may_be_session(folder, name):
            yield name, _read_or_error(folder, name)


def likely_folder(folder: Directory) -> str | None:
    """Where sessions are, in or just above a ``folder`` that was named by mistake; None if nothing points to any."""
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
    """Whether ``name`` is a folder with a ``state.json``, a link to one, or a folder that nobody may look into."""
    try:
        found = os.stat(name, dir_fd=folder.fd)
        if not stat.S_ISDIR(found.st_mode):
            return False
        os.stat(os.path.join(name, reading.STATE), dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:  # reading it says why
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
