"""What the command of a run writes, in a file of its first and its last MiB.

The file is appended to, and exchanged for a shorter one whenever too much has come: whoever is killed leaves it whole.
A log is worth no failed run, so nothing is raised once it is open.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from gaia_sessions.errors import SessionNotFound, SessionsError
from gaia_sessions.session.ids import check_agent_id

from . import atomic, reading
from .directory import PRIVATE_FILE, KeptDirectory, NotAFile, open_or_create, refusal, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gaia_sessions.session.schema import Record

    from .directory import Directory

KEPT_BYTES = 1 << 20
"""How much of the beginning is kept, and how much of the end."""

MOST_REST = 2 * KEPT_BYTES
"""How much there may be behind the beginning, before what is not of the end is left out."""

_ROOM_FOR_END = 1 << 17
"""Bytes that the last message of a run and its record hardly ever exceed."""

LARGEST_FILE = KEPT_BYTES + MOST_REST + 100
_WANT_OF_ROOM = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EIO])


class Kept:
    """The beginning and the end of what was written, in memory; ``left_out`` is how many bytes are missing between."""

    __slots__ = ("_beginning", "_rest", "left_out")

    def __init__(self) -> None:
        self._beginning = bytearray()
        self._rest = bytearray()
        self.left_out = 0

    def write(self, data: bytes) -> None:
        """As the port says."""
        room = KEPT_BYTES - len(self._beginning)
        self._beginning += data[:room]
        self._rest += data[room:]
        if len(self._rest) > MOST_REST:
            self.close()

    def handed_over(self) -> Sequence[int]:
        """As the port says."""
        return ()

    def close(self) -> None:
        """As the port says: what is neither of the beginning nor of the end is left out."""
        excess = max(0, len(self._rest) - KEPT_BYTES)
        del self._rest[:excess]
        self.left_out += excess

    def __bytes__(self) -> bytes:
        note = b"\n[gaia-sessions: %d bytes left out]\n" % self.left_out if self.left_out else b""
        return b"".join((self._beginning, note, self._rest))


class OutputFile:
    """The output of one run; what cannot be written at once is tried once more at the end.

    It stays with the folder in which it was begun, and leaves a file alone that was begun there in place of its own:
    the session was removed, or an older copy of it restored, and another run has its number.
    """

    __slots__ = ("_durable", "_fd", "_folder", "_kept", "_name")

    def __init__(self, folder: Directory, number: int, *, durable: bool) -> None:
        """Takes over the ``folder`` of the session. Raises like ``Store.open_output``."""
        self._folder = KeptDirectory(folder.fd, folder.path)
        self._name = reading.output_name(number)
        self._durable = durable
        self._kept = Kept()
        try:
            self._fd = _opened(self._folder, self._name)
        except SessionsError:
            self._folder.close()
            raise

    def write(self, data: bytes) -> None:
        """As the port says."""
        left_out = self._kept.left_out
        self._kept.write(data)
        if self._fd < 0:
            return
        try:
            names = os.fstat(self._fd).st_nlink  # a second one may be in a snapshot
            if names == 0 and self._is_begun_anew():
                self._end()
            elif names == 1 and self._kept.left_out == left_out:
                atomic.write_all(self._fd, data)
            else:
                self._replace(durable=False)
        except (OSError, SessionsError):
            self._use(-1)
            self._give_room()

    def handed_over(self) -> Sequence[int]:
        """As the port says."""
        self._store()
        with suppress(OSError):
            if os.path.samestat(os.fstat(self._folder.fd), os.stat(self._folder.path)):
                return [fd for fd in (self._folder.fd, self._fd) if fd >= 0]
        return ()

    def close(self) -> None:
        """As the port says."""
        if self._folder.fd >= 0:
            self._store()
            self._end()

    def _store(self) -> None:
        """Leaves out what is neither of the beginning nor of the end, and makes durable what is kept."""
        left_out = self._kept.left_out
        self._kept.close()
        with suppress(OSError, SessionsError):
            if self._fd >= 0 and os.fstat(self._fd).st_nlink == 0 and self._is_begun_anew():
                return
            if self._fd < 0 or self._kept.left_out != left_out:
                if self._has_room():
                    self._replace(durable=self._durable)
            elif self._durable:
                os.fsync(self._fd)
                atomic.sync_folder(self._folder)

    def _end(self) -> None:
        """Nothing more is written."""
        self._use(-1)
        self._folder.close()

    def _is_begun_anew(self) -> bool:
        """Whether a file stands where ours has stood, if that is gone."""
        with suppress(FileNotFoundError):
            return stat.S_ISREG(os.stat(self._name, dir_fd=self._folder.fd, follow_symlinks=False).st_mode)
        return False

    def _give_room(self) -> None:
        """Cuts the file to half of it at most: it may be what fills the disk, where the end of the run needs room."""
        with suppress(OSError):
            fd = os.open(self._name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder.fd)
            try:
                if os.fstat(fd).st_nlink == 1:
                    os.ftruncate(fd, min(os.fstat(fd).st_size // 2, KEPT_BYTES))  # of the beginning
            finally:
                os.close(fd)

    def _has_room(self) -> bool:
        """Whether what is kept fits on the disk, and leaves room for the end of the run."""
        disk = os.fstatvfs(self._folder.fd)
        return disk.f_bavail * disk.f_frsize >= len(bytes(self._kept)) + _ROOM_FOR_END

    def _replace(self, *, durable: bool) -> None:
        """Exchanges the file for one with what is kept, to which is written from now on."""

        def prepare(fd: int) -> None:
            os.fchmod(fd, PRIVATE_FILE)
            self._use(os.dup(fd))

        atomic.replace(self._folder, self._name, bytes(self._kept), durable=durable, prepare=prepare)

    def _use(self, fd: int) -> None:
        """Closes the file, and writes to ``fd`` from now on; not any more if that is negative."""
        old, self._fd = self._fd, fd
        if old >= 0:
            with suppress(OSError):  # of a disk that has failed
                os.close(old)


def open_session(root: Directory, record: Record, load: Callable[[Directory, str], Record]) -> Directory:
    """The directory of the session of ``record``, which ``load`` reads there once more.

    Raises ``SessionNotFound`` if another session has its id by now, ``CorruptSession``.
    """
    agent_id = check_agent_id(record["agent_id"])
    session = reading.open_session(root, agent_id)
    try:
        is_same = load(session, agent_id)["created_at"] == record["created_at"]
    except SessionsError:
        os.close(session.fd)
        raise
    if not is_same:
        os.close(session.fd)
        raise SessionNotFound(agent_id)
    return session


def read(folder: Directory, number: int) -> bytes:
    """What the file of the run with this ``number`` holds; nothing if there is none. Raises ``StoreFailure``."""
    name = reading.output_name(number)
    with translate_errors("read", f"{folder.path}/{name}"):
        try:
            return folder.read(name, LARGEST_FILE)
        except FileNotFoundError:
            return b""


def _opened(folder: Directory, name: str) -> int:
    """The new private file ``name``; a negative number if there is no room for it."""
    try:
        if folder.has(name):
            _remove_file(folder, name)
        fd = open_or_create(folder.fd, name, os.O_WRONLY | os.O_EXCL)
    except OSError as error:
        if error.errno in _WANT_OF_ROOM:
            return -1
        raise refusal("create", f"{folder.path}/{name}", error) from error
    with suppress(OSError):  # it was made with this mode, unless the umask says otherwise
        os.fchmod(fd, PRIVATE_FILE)
    return fd


def _remove_file(folder: Directory, name: str) -> None:
    """Removes what an older copy of the record knows nothing of, if it is a file."""
    if not stat.S_ISREG(os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode):
        raise NotAFile(f"{name} is not a regular file")
    os.unlink(name, dir_fd=folder.fd)
