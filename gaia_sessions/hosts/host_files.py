"""The one way to the files that a host keeps: which folder they are in, and how a path that somebody names is followed.

A path stands in a record, a payload or an event, and whoever wrote that may have written anything. So it leads only
below the folder in which its host keeps conversations: no name on the way is ".." and none is a link, and the file is a
regular one of this user or of the owner of that folder. Opening it never waits. The folder itself is the user's to
choose, and to reach by a link.
"""

from __future__ import annotations

import errno
import os

from gaia_sessions.store.directory import Directory, read_all
from gaia_sessions.system import home_folder

from . import FOLDERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gaia_sessions.jsonio.strict import Json


LARGEST_FILE = 1 << 30
"""Bytes. No conversation is that long, and whoever looks at a larger file would read for seconds."""


def folder_of(host: str, environ: Mapping[str, str]) -> str:
    """Where ``host`` keeps what is the user's; empty for a user without a home."""
    name, variable, _ = FOLDERS[host]
    configured = environ.get(variable, "") if variable else ""
    if os.path.isabs(configured):
        return os.path.normpath(configured)
    home = home_folder(environ)
    return os.path.join(home, name) if home else ""


def conversations_of(host: str, environ: Mapping[str, str]) -> str:
    """Where ``host`` keeps conversations."""
    _, _, name = FOLDERS[host]
    return os.path.join(folder_of(host, environ), name)


def open_file(host: str | None, path: Json) -> tuple[int, os.stat_result]:
    """A file of ``host``, open for reading, and what the system says of it; raises ``OSError`` for any other."""
    base, (*above, name) = _place(host, path)
    os.lstat(os.path.join(base, *above, name))  # many are looked for before they are there
    with _opened(base, above) as folder:
        fd, found = folder.open_file(name)
    try:
        is_own = found.st_uid == os.geteuid() or found.st_uid == os.stat(base).st_uid
    except OSError:  # that folder was removed meanwhile
        is_own = False
    if is_own and found.st_size <= LARGEST_FILE:
        return fd, found
    os.close(fd)
    raise OSError(errno.EPERM, "it has over 1 GiB" if is_own else "it is somebody else's", path)


def open_folder(host: str | None, path: Json) -> Directory:
    """A folder of ``host``, held open; raises ``OSError`` for any other."""
    return _opened(*_place(host, path))


def is_file(host: str | None, path: Json) -> bool:
    """Whether ``path`` is a file of ``host``."""
    try:
        os.close(open_file(host, path)[0])
    except OSError:
        return False
    return True


def is_folder(host: str | None, path: Json) -> bool:
    """Whether ``path`` is a folder of ``host``."""
    try:
        os.close(open_folder(host, path).fd)
    except OSError:
        return False
    return True


def content(host: str | None, path: Json, limit: int) -> bytes:
    """What the file of ``host`` at ``path`` holds. Raises ``OSError``, also for more than ``limit`` bytes."""
    fd, found = open_file(host, path)
    try:
        if found.st_size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        return read_all(fd, found.st_size)
    finally:
        os.close(fd)


def _opened(base: str, names: list[str]) -> Directory:
    folder = Directory.at(base)
    if not names:
        return folder
    with folder:
        return folder.below(*names)


def _place(host: str | None, path: Json) -> tuple[str, list[str]]:
    """The folder of ``host`` that ``path`` is in, and the names that lead there from it, at least one."""
    if isinstance(path, str) and path.isprintable():
        for base in conversation_folders(host):
            names = path[len(base) + 1 :].split("/")
            if path.startswith(f"{base}/") and not {"", ".", ".."}.intersection(names):
                return base, names
    where = next(conversation_folders(host), "")
    raise PermissionError(errno.EACCES, f"it is not below {where}" if where else "its client keeps no files here")


def conversation_folders(host: str | None) -> Iterator[str]:
    """The folders in which ``host`` may keep conversations, as they are named, and then as they are without links.

    A client's variable may be set where it was started, and not here, or the other way about.
    """
    if host not in FOLDERS:
        return
    named = []
    for environ in (os.environ, {"HOME": os.environ.get("HOME", "")}):
        base = conversations_of(host, environ)
        if os.path.isabs(base):
            named.append(base)
            yield base
    yield from map(os.path.realpath, named)
