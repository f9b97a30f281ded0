"""Stores the output of a run's command in one file: the first and the last MiB.

The file grows; if it is too long, a shorter file replaces it. So a kill leaves a whole file. No run may fail because of
its output: after the file is open, nothing is raised.
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
"""How much of the beginning and how much of the end is stored."""

MOST_REST = 2 * KEPT_BYTES
"""How much may follow the beginning before the middle is left out."""

_ROOM_FOR_END = 1 << 17
"""Bytes that the last message of a run and its record hardly ever exceed."""

_MOST_DIGITS = 18

LARGEST_FILE = KEPT_BYTES + MOST_REST + 100
_WANT_OF_ROOM = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EIO])


class Kept:
    """The beginning and the end of the output, in memory; ``left_out`` counts the missing bytes between them."""

    __slots__ = ("_beginning", "_rest", "left_out")

    def __init__(self) -> None:
        self._beginning = bytearray()
        self._rest = bytearray()
        self.left_out = 0

    def write(self, data: bytes) -> None:
        room = KEPT_BYTES - len(self._beginning)
        self._beginning += data[:room]
        self._rest += data[room:]
        if len(self._rest) > MOST_REST:
            self.close()

    def handed_over(self) -> Sequence[int]:
        return ()

    def close(self) -> None:
        """Drops what belongs neither to the beginning nor to the end."""
        excess = max(0, len(self._rest) - KEPT_BYTES)
        del self._rest[:excess]
        self.left_out += excess

    def __bytes__(self) -> bytes:
        return b"".join((self._beginning, note_of_omitted(self.left_out), self._rest))


def note_of_omitted(count: int) -> bytes:
    """Returns the line that replaces ``count`` bytes in the middle of an output; nothing for 0."""
    return b"\n[gaia-sessions: %d bytes left out]\n" % count if count else b""


def omitted_at(data: bytes, place: int) -> tuple[int, int]:
    """Returns how many bytes the note at ``place`` says are missing, and where it ends; 0 and ``place`` without one."""
    before, _, after = note_of_omitted(1).partition(b"1")
    end = data.find(after, place)
    number = data[place + len(before) : end]
    if not data.startswith(before, place) or not number.isdigit() or len(number) > _MOST_DIGITS:
        return 0, place
    return int(number), end + len(after)


def as_ended(data: bytes) -> bytes:
    """Returns the output ``data`` as ``Kept`` leaves it; a killed writer may have left more than is kept."""
    omitted, place = omitted_at(data, KEPT_BYTES)
    excess = max(0, len(data) - place - KEPT_BYTES)
    return data[:KEPT_BYTES] + note_of_omitted(omitted + excess) + data[place + excess :]


class OutputFile:
    """The output of one run; what cannot be written immediately is tried one more time at the end."""

    __slots__ = ("_durable", "_fd", "_folder", "_kept", "_name")

    def __init__(self, folder: Directory, number: int, *, durable: bool) -> None:
        """Takes over the ``folder`` of the session."""
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
        left_out = self._kept.left_out
        self._kept.write(data)
        if self._fd < 0:
            return
        try:
            names = os.fstat(self._fd).st_nlink  # a second name may be in a snapshot
            # If our file is gone and another one has its name, the session was removed or an older copy was restored,
            # and another run has this number: its file is left alone.
            if names == 0 and self._is_begun_anew():
                self._end()
            elif names == 1 and self._kept.left_out == left_out:
                atomic.write_all(self._fd, data)
            else:
                self._replace(durable=False)
        except (OSError, SessionsError):
            self._use(-1)
            self._give_room()

    def handed_over(self) -> Sequence[int] | None:
        self._store()
        with suppress(OSError):
            if os.path.samestat(os.fstat(self._folder.fd), os.stat(self._folder.path)):
                return [fd for fd in (self._folder.fd, self._fd) if fd >= 0]
        return None

    def close(self) -> None:
        if self._folder.fd >= 0:
            self._store()
            self._end()

    def _store(self) -> None:
        """Drops what belongs neither to the beginning nor to the end, and makes the rest durable."""
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
        self._use(-1)
        self._folder.close()

    def _is_begun_anew(self) -> bool:
        """Returns whether another file has the name now; our own file has lost it."""
        with suppress(FileNotFoundError):
            return stat.S_ISREG(os.stat(self._name, dir_fd=self._folder.fd, follow_symlinks=False).st_mode)
        return False

    def _give_room(self) -> None:
        """Cuts the file to at most half its size: perhaps it fills the disk, and the end of the run needs room."""
        with suppress(OSError):
            fd = os.open(self._name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder.fd)
            try:
                if os.fstat(fd).st_nlink == 1:
                    os.ftruncate(fd, min(os.fstat(fd).st_size // 2, KEPT_BYTES))  # keep only the beginning
            finally:
                os.close(fd)

    def _has_room(self) -> bool:
        """Returns whether the output fits on the disk and leaves room for the end of the run."""
        disk = os.fstatvfs(self._folder.fd)
        return disk.f_bavail * disk.f_frsize >= len(bytes(self._kept)) + _ROOM_FOR_END

    def _replace(self, *, durable: bool) -> None:
        """Replaces the file with a new one that has the beginning and the end; later writes go there."""

        def prepare(fd: int) -> None:
            os.fchmod(fd, PRIVATE_FILE)
            self._use(os.dup(fd))

        atomic.replace(self._folder, self._name, bytes(self._kept), durable=durable, prepare=prepare)

    def _use(self, fd: int) -> None:
        """Closes the file and writes to ``fd`` from now on; a negative ``fd`` stops the writing."""
        old, self._fd = self._fd, fd
        if old >= 0:
            with suppress(OSError):  # the disk has failed
                os.close(old)


def open_session(root: Directory, record: Record, load: Callable[[Directory, str], Record]) -> Directory:
    """Opens the session of ``record``; raises ``SessionNotFound`` if another session has its ID now."""
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
    """Returns the content of the output file of run ``number``; nothing if there is none."""
    name = reading.output_name(number)
    with translate_errors("read", f"{folder.path}/{name}"):
        try:
            return folder.read(name, LARGEST_FILE)
        except FileNotFoundError:
            return b""


def _opened(folder: Directory, name: str) -> int:
    """Creates the private file ``name``; returns a negative number if the disk has no room."""
    try:
        if folder.has(name):
            _remove_file(folder, name)
        fd = open_or_create(folder.fd, name, os.O_WRONLY | os.O_EXCL)
    except OSError as error:
        if error.errno in _WANT_OF_ROOM:
            return -1
        raise refusal("create", f"{folder.path}/{name}", error) from error
    with suppress(OSError):  # it has this mode already, unless the umask took bits away
        os.fchmod(fd, PRIVATE_FILE)
    return fd


def _remove_file(folder: Directory, name: str) -> None:
    """Removes an output file that the record does not know, because the record is an older copy."""
    if not stat.S_ISREG(os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode):
        raise NotAFile(f"{name} is not a regular file")
    os.unlink(name, dir_fd=folder.fd)
