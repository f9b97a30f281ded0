"""The folder of sessions that an import reads: a root, or what the tool in the users' documents left.

The user named it, so it may belong to anybody. We lock and write nothing in it and follow no link below it. Others may
write there at any time, so the importer asks ``has_changed`` afterwards.
"""

from __future__ import annotations

import errno
import os

from gaia_sessions.errors import CorruptSession, NoSuchFolder, StoreFailure
from gaia_sessions.session.ids import is_agent_id

from . import atomic, reading
from .directory import Directory, KeptDirectory, NotAFile, translate_errors
from .file_reader import FileReader
from .output_file import LARGEST_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Times = list[tuple[int, int, int] | None]
    """The state of a record and of its mark, each as inode, time of the last write and size; None for no file."""

_PROJECT_SESSIONS = os.path.join(".claude", "session")


def open_source(path: str) -> Source:
    """Returns the sessions at ``path``: in a folder of sessions, in a project, or one session in its folder."""
    with translate_errors("open", path):
        try:
            os.close(Directory.at(path).fd)
        except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in the path raises ValueError
            raise NoSuchFolder(path) from None
    folder = os.path.realpath(path)
    below = "session" if os.path.basename(folder) == ".claude" else _PROJECT_SESSIONS
    inside = os.path.join(folder, below)
    is_there = os.path.isdir(inside) and os.path.realpath(inside) == inside  # a link may lead elsewhere
    source = Source(inside if is_there else folder)
    with source:
        is_session = not source.names() and os.path.lexists(os.path.join(source.root, reading.RECORD))
    if is_session:
        source = Source(*os.path.split(source.root))
    with source:
        source.waiting()
    return source


class Source(FileReader):
    """The sessions in the folder ``root``, or only the session ``only``."""

    def __init__(self, root: str, only: str | None = None) -> None:
        super().__init__(root)
        self.only = only
        self._times: dict[str, Times] = {}

    def _open_folder(self) -> KeptDirectory:
        with translate_errors("open", self.root):
            return KeptDirectory.at(self.root)

    def names(self) -> list[str]:
        """Returns the names of the folders with a ``state.json``, in no order, whether they are valid IDs or not."""
        if self.only is not None:
            return [self.only]
        root = self.folder
        with translate_errors("list", self.root):
            others = (name for name in root.names() if name[:1] != "." and not is_agent_id(name))
            return [*self.ids(), *(name for name in others if reading.has_record(root, name))]

    def remember(self, names: Iterable[str]) -> None:
        """Notes the state of the sessions that ``has_changed`` compares with."""
        self._times = {name: self._times_of(name) for name in names}

    def has_changed(self, name: str) -> bool:
        """Returns whether the record or the mark of a session was written or removed since ``remember``."""
        return self._times_of(name) != self._times.get(name, [None, None])

    def _times_of(self, name: str) -> Times:
        times: Times = []
        for file in (reading.RECORD, reading.CANCELLED):
            try:
                found = os.lstat(os.path.join(self.root, name, file))
            except OSError:
                times.append(None)
            else:
                times.append((found.st_ino, found.st_mtime_ns, found.st_size))
        return times

    def copy(self, agent_id: str, target: Directory | None, *, durable: bool) -> None:
        with reading.open_session(self.folder, agent_id) as session:
            self._copy_files(agent_id, session, target, durable=durable)
        if self.has_changed(agent_id):
            raise StoreFailure(
                "copy", f"{self.root}/{agent_id}", "another process is writing to it", "import it again later"
            )

    def _copy_files(self, agent_id: str, session: Directory, target: Directory | None, *, durable: bool) -> None:
        for name in sorted(session.names()):
            if not reading.is_file_name(name) or name == reading.RECORD:
                continue
            path = f"{session.path}/{name}"
            with translate_errors("copy", path):
                fd, found = _open(agent_id, session, name, path)
                try:
                    if found.st_nlink > 1 and found.st_uid != os.fstat(session.fd).st_uid:
                        raise CorruptSession(agent_id, path, "a hard link to a file of another user")
                    if reading.is_output_name(name) and found.st_size > LARGEST_FILE:
                        raise CorruptSession(agent_id, path, f"too large: an output has at most {LARGEST_FILE} bytes")
                    if _has_hole(fd, found.st_size):
                        raise CorruptSession(agent_id, path, "a sparse file, whose copy would take more disk space")
                    if target is not None:
                        _check_space(target, path, found.st_size)
                        atomic.write_copy(target, name, fd, found.st_size, durable=durable)
                finally:
                    os.close(fd)


def _open(agent_id: str, session: Directory, name: str, path: str) -> tuple[int, os.stat_result]:
    try:
        return session.open_file(name)
    except NotAFile as error:
        raise CorruptSession(agent_id, path, str(error)) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CorruptSession(agent_id, path, "a link, not a file") from None
        raise


def _has_hole(fd: int, size: int) -> bool:
    """Returns whether the file is sparse: it takes little space, but a copy would take its whole size on our disk."""
    if not size:
        return False
    first_hole = os.lseek(fd, 0, os.SEEK_HOLE)
    os.lseek(fd, 0, os.SEEK_SET)
    return first_hole < size


def _check_space(target: Directory, path: str, size: int) -> None:
    """Refuses a file that is larger than the free disk space, before it fills the disk."""
    free = os.fstatvfs(target.fd)
    if size > free.f_bavail * free.f_frsize:
        reason = f"it has {size} bytes, and the disk has less free space"
        raise StoreFailure("copy", path, reason, "free disk space and try again")
