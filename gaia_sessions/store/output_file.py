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

from . import atomic, reading
from .directory import PRIVATE_FILE, KeptDirectory, NotAFile, open_or_create, refusal, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .directory import Directory

KEPT_BYTES = 1 << 20
"""How much of the beginning is kept, and how much of the end."""

MOST_REST = 2 * KEPT_BYTES
"""How much there may be behind the beginning, before what is not of the end is left out."""

_ROOM_FOR_END = 1 << 17
"""Bytes that the last message of a run and its record hardly ever exceed."""

_NOTE_BEGINS, _NOTE_ENDS = b"\n[gaia-sessions: ", b" bytes left out]\n"
"""Between them stands how many bytes are missing there."""

LARGEST_FILE = KEPT_BYTES + MOST_REST + 100
_WANT_OF_ROOM = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EIO])


class Kept:
    """The beginning and the end of what was written, in memory; ``left_out`` is how many bytes are missing between."""

    __slots__ = ("_beginning", "_rest", "left_out")

    def __init__(self, data: bytes = b"") -> None:
        """``data`` is what was kept of what comes before, as bytes."""
        self._beginning = bytearray(data[:KEPT_BYTES])
        self._rest = bytearray(data[KEPT_BYTES:])
        self.left_out = 0
        note, end, rest = self._rest.partition(_NOTE_ENDS)
        number = note.removeprefix(_NOTE_BEGINS)
        if end and number != note and number.isdigit():
            self._rest, self.left_out = rest, int(number)

    def write(self, data: bytes) -> None:
        """As the port says."""
        room = KEPT_BYTES - len(self._beginning)
        self._beginning += data[:room]
        self._rest += data[room:]
        if len(self._rest) > MOST_REST:
            self.close()

    def close(self) -> None:
        """As the port says: what is neither of the beginning nor of the end is left out."""
        excess = max(0, len(self._rest) - KEPT_BYTES)
        del self._rest[:excess]
        self.left_out += excess

    def __bytes__(self) -> bytes:
        note = b"%b%d%b" % (_NOTE_BEGINS, self.left_out, _NOTE_ENDS) if self.left_out else b""
        return b"".join((self._beginning, note, self._rest))


class OutputFile:
    """The output of one run; what cannot be written at once is tried once more at the end."""

    __slots__ = ("_durable", "_fd", "_folder", "_kept", "_name")

    def __init__(self, folder: Directory, number: int, *, durable: bool, is_continued: bool) -> None:
        """Takes over the ``folder`` of the session. Raises like ``Store.open_output``."""
        self._folder = KeptDirectory(folder.fd, folder.path)
        self._name = reading.output_name(number)
        self._durable = durable
        try:
            self._kept = Kept(read(self._folder, number) if is_continued else b"")
            self._fd = _opened(self._folder, self._name, is_continued=is_continued)
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
            has_one_name = os.fstat(self._fd).st_nlink == 1  # a second one may be in a snapshot
            if has_one_name and self._kept.left_out == left_out:
                atomic.write_all(self._fd, data)
            else:
                self._replace(durable=False)
        except (OSError, SessionsError):
            self._use(-1)
            self._give_room()

    def close(self) -> None:
        """As the port says."""
        if self._folder.fd < 0:
            return
        left_out = self._kept.left_out
        self._kept.close()
        with suppress(OSError, SessionsError):
            if self._fd < 0 or self._kept.left_out != left_out:
                if self._has_room():
                    self._replace(durable=self._durable)
            elif self._durable:
                os.fsync(self._fd)
                atomic.sync_folder(self._folder)
        self._use(-1)
        self._folder.close()

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


def open_session(root: Directory, agent_id: str) -> Directory:
    """The session's directory. Raises like ``reading.open_session``."""
    if not reading.has_state(root, agent_id):
        raise SessionNotFound(agent_id)
    return reading.open_session(root, agent_id)


def read(folder: Directory, number: int) -> bytes:
    """What the file of the run with this ``number`` holds; nothing if there is none. Raises ``StoreFailure``."""
    name = reading.output_name(number)
    with translate_errors("read", f"{folder.path}/{name}"):
        try:
            return folder.read(name, LARGEST_FILE)
        except FileNotFoundError:
            return b""


def _opened(folder: Directory, name: str, *, is_continued: bool) -> int:
    """The private file ``name``, a new one unless ``is_continued``; a negative number if there is no room for it."""
    try:
        if not is_continued and folder.has(name):
            _remove_file(folder, name)
        fd = open_or_create(folder.fd, name, os.O_WRONLY | (os.O_APPEND if is_continued else os.O_EXCL))
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
