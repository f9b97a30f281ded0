"""One session read from its directory, and every way in which that can fail, told apart.

Owns the difference between missing, corrupt and unreadable. Takes no lock: a rename lets a reader see
the old record or the new one, nothing between.
"""

from __future__ import annotations

import errno
import os

from gaia_sessions.errors import CorruptSession, InvalidInput, SessionNotFound
from gaia_sessions.record import decode
from gaia_sessions.strictjson import DOCUMENT_LIMIT, loads

from .directory import NotAFile, TooBig, translating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.shape import Record
    from gaia_sessions.strictjson import Json

    from .directory import Directory

STATE = "state.json"
JOURNAL_LIMIT = 64 << 20

_LINK_OR_NO_FOLDER = frozenset([errno.ELOOP, errno.ENOTDIR])


def open_session(root: Directory, agent_id: str) -> Directory:
    """The session's directory. Raises ``SessionNotFound``, or ``CorruptSession`` if a link or a file stands there."""
    path = f"{root.path}/{agent_id}"
    with translating("open", path):
        try:
            return root.below(agent_id)
        except FileNotFoundError:
            raise SessionNotFound(agent_id) from None
        except OSError as error:
            if error.errno in _LINK_OR_NO_FOLDER:
                raise CorruptSession(agent_id, path, "not a directory of its own") from None
            raise


def load(root: Directory, folder: Directory, agent_id: str) -> Record:
    """The record in the session's open ``folder``. Raises like ``open_session``."""
    path = f"{folder.path}/{STATE}"
    try:
        return decode(_state_bytes(root, folder, agent_id, path), agent_id)
    except InvalidInput as error:
        raise CorruptSession(agent_id, path, str(error)) from None


def read(root: Directory, agent_id: str) -> Record:
    """Both in one."""
    with open_session(root, agent_id) as folder:
        return load(root, folder, agent_id)


def entries(folder: Directory, journal: str) -> Iterator[Json | SessionsError]:
    """The entries of a session's ``journal`` in order, an error in the place of each bad line.

    The last line is left out while it has no newline: it is being written, or was never finished.
    """
    path = f"{folder.path}/{journal}"
    with translating("read", path):
        try:
            lines = folder.read(journal, JOURNAL_LIMIT).split(b"\n")
        except FileNotFoundError:
            return
    for number, line in enumerate(lines[:-1], 1):
        try:
            yield loads(line)
        except InvalidInput as error:
            yield InvalidInput(str(error), f"{path} line {number}")


def _state_bytes(root: Directory, folder: Directory, agent_id: str, path: str) -> bytes:
    with translating("read", path):
        try:
            return folder.read(STATE, DOCUMENT_LIMIT)
        except FileNotFoundError:
            # Whoever deletes moves the directory away first: a reader may still hold it while it is emptied.
            if root.inode(agent_id) != _identity(folder):
                raise SessionNotFound(agent_id) from None
            raise CorruptSession(agent_id, path, "missing") from None
        except (NotAFile, TooBig) as error:
            raise CorruptSession(agent_id, path, str(error)) from None
        except OSError as error:
            if error.errno in _LINK_OR_NO_FOLDER:
                raise CorruptSession(agent_id, path, "a link, not a file") from None
            raise


def _identity(folder: Directory) -> tuple[int, int]:
    found = os.fstat(folder.fd)
    return found.st_dev, found.st_ino
