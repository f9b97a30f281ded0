"""The only way to files of a host: where they are, and how a path from a record, a payload or an event is followed."""

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
"""Bytes. No conversation is that long, and a larger file would take seconds to read."""


def folder_of(host: str, environ: Mapping[str, str]) -> str:
    """Returns the user's folder of ``host``; empty if the user has no home."""
    name, variable, _ = FOLDERS[host]
    configured = environ.get(variable, "") if variable else ""
    if os.path.isabs(configured):
        return os.path.normpath(configured)
    home = home_folder(environ)
    return os.path.join(home, name) if home else ""


def conversations_of(host: str, environ: Mapping[str, str]) -> str:
    """Returns the folder in which ``host`` has its conversations."""
    _, _, name = FOLDERS[host]
    return os.path.join(folder_of(host, environ), name)


def open_file(host: str | None, path: Json) -> tuple[int, os.stat_result]:
    """Opens a file of ``host`` for reading; returns its descriptor and status. Any other path raises ``OSError``."""
    base, (*above, name) = _place(host, path)
    # Many files are looked for before they exist: this is the cheapest check.
    os.lstat(os.path.join(base, *above, name))
    with _opened(base, above) as folder:
        fd, found = folder.open_file(name)
    try:
        is_own = found.st_uid == os.geteuid() or found.st_uid == os.stat(base).st_uid
    except OSError:  # that folder was removed meanwhile
        is_own = False
    if is_own and found.st_size <= LARGEST_FILE:
        return fd, found
    os.close(fd)
    raise OSError(errno.EPERM, "it is larger than 1 GiB" if is_own else "it belongs to another user", path)


def open_folder(host: str | None, path: Json) -> Directory:
    """Opens a folder of ``host``, which stays open. Any other path raises ``OSError``."""
    return _opened(*_place(host, path))


def is_file(host: str | None, path: Json) -> bool:
    """Returns whether ``path`` is a file of ``host``."""
    try:
        os.close(open_file(host, path)[0])
    except OSError:
        return False
    return True


def is_folder(host: str | None, path: Json) -> bool:
    """Returns whether ``path`` is a folder of ``host``."""
    try:
        os.close(open_folder(host, path).fd)
    except OSError:
        return False
    return True


def content(host: str | None, path: Json, limit: int) -> bytes:
    """Returns the content of a file of ``host``; raises ``OSError``, also for more than ``limit`` bytes."""
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
    """Returns the folder of ``host`` above ``path``, and the names that lead from there to ``path``, at least one."""
    # Anybody may have written the path. So it is followed only below the host's folder of conversations, without ".."
    # and without links, to a regular file of this user or of the folder's owner. The folder itself may be a link.
    if isinstance(path, str) and path.isprintable():
        for base in conversation_folders(host):
            names = path[len(base) + 1 :].split("/")
            if path.startswith(f"{base}/") and not {"", ".", ".."}.intersection(names):
                return base, names
    where = next(conversation_folders(host), "")
    why = f"it is not below {where}" if where else "it is unknown where this client stores conversations"
    raise PermissionError(errno.EACCES, why)


def conversation_folders(host: str | None) -> Iterator[str]:
    """Yields the folders in which ``host`` can have conversations, first as they are named, then without links."""
    if host not in FOLDERS:
        return
    named = []
    # The client's variable may be set where the client started but not here, or the other way around.
    for environ in (os.environ, {"HOME": os.environ.get("HOME", "")}):
        base = conversations_of(host, environ)
        if os.path.isabs(base):
            named.append(base)
            yield base
    yield from map(os.path.realpath, named)
