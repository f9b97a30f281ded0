"""The root directory: how it is opened, made, and what stands in it beside the sessions.

Owns the names with a leading dot, which no session id can have. Knows no record.
"""

from __future__ import annotations

import os

from gaia_sessions.ids import is_agent_id

from . import atomic
from .directory import Directory, translating

LOCKS = ".locks"
STAGE = ".stage"
TRASH = ".trash"
INBOX = ".inbox"

_IGNORE = ".gitignore"


def opened(path: str) -> Directory | None:
    """The root at ``path``, None if there is none; raises ``StoreFailure``."""
    with translating("open", path):
        try:
            return Directory.at(path)
        except FileNotFoundError:
            return None


def make(path: str, *, durable: bool) -> Directory:
    """The root at ``path``, created with the folders above it if need be, and kept out of version control.

    The file that keeps it so is written last: without it, whoever made the folders may have been killed before
    they were on the disk.
    """
    above, name = os.path.split(path)
    os.makedirs(above or os.curdir, exist_ok=True)  # the project's own folders, with the mode its umask says
    with Directory.at(above or os.curdir) as parent:
        if name:
            parent.add(name)
    root = Directory.at(path)
    if not root.has(_IGNORE):
        if durable:
            _sync_upwards(above)
        atomic.replace(root, _IGNORE, b"*\n", durable=False)
    return root


def locks(root: Directory) -> Directory:
    """The folder of the lock files; raises ``StoreFailure``."""
    with translating("open", f"{root.path}/{LOCKS}"):
        return root.make(LOCKS)


def make_ignored(parent: Directory, name: str) -> None:
    """A folder ``name`` in ``parent``, kept out of version control from its first moment; nothing if there is one."""
    built = f".{name}.{os.urandom(8).hex()}.tmp"
    with parent.make(built) as folder:
        atomic.replace(folder, _IGNORE, b"*\n", durable=False)
    try:
        os.rename(built, name, src_dir_fd=parent.fd, dst_dir_fd=parent.fd)
    except OSError:  # somebody else just made it
        from . import removal

        removal.remove(parent, built)


def _sync_upwards(path: str) -> None:
    """Each folder from ``path`` up to the first that is not ours to sync: those cannot be of our making."""
    try:
        with Directory.at(path or os.curdir) as folder:
            folder.sync()
    except PermissionError:
        return
    if path and os.path.dirname(path) != path:
        _sync_upwards(os.path.dirname(path))


def sessions(root: Directory) -> list[str]:
    """The names in ``root`` that may be sessions: all that are ids and not plain files, in no order."""
    with os.scandir(root.fd) as entries:
        return [entry.name for entry in entries if is_agent_id(entry.name) and not entry.is_file(follow_symlinks=False)]
