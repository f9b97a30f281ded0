"""The marks of agents whose next batches of tools need no hook: it has just heard one, and nobody is waited for.

Owns where they are and what they look like; ``hooks/filter.sh`` reads them, before any Python is started. A mark is
two empty files, named by the host's id of the agent: it holds from the time of the one to the time of ``ID.until``. A
shell can compare such times without another process, and sees by the first that no clock was set back. Marks do not
depend on a root, which a shell could not find. A mark is never the truth: without one the hook is started. Must never
make a call fail, nor know when an agent may be marked.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import StoreFailure
from gaia_sessions.system import cache_folder

from . import atomic
from .directory import Directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

FOLDER = "batches"
UNTIL = ".until"

_LONGEST_ID = 128
_KEPT_SECONDS = 24 * 60 * 60
_WRITABLE_BY_OTHERS = 0o022


def leave(environ: Mapping[str, str], agent: str, now: datetime, span: timedelta) -> None:
    """Marks ``agent`` from ``now`` on for ``span``, unless the system refuses. A new mark also removes old ones."""
    path, start = cache_folder(environ), now.timestamp()
    if not path or not _is_name(agent):
        return
    try:
        with _made_folder(path) as folder:
            found = os.fstat(folder.fd)
            if found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS:
                return
            is_new = not folder.has(agent)
            atomic.set_time(folder, agent, start)
            atomic.set_time(folder, agent + UNTIL, start + span.total_seconds())
            if is_new:
                _remove_old(folder, start)
    except (OSError, StoreFailure):
        return


def remove(environ: Mapping[str, str], agent: str) -> None:
    """Removes the mark of ``agent``, if it has one."""
    path = cache_folder(environ)
    if not path or not _is_name(agent):
        return
    try:
        with Directory.at(os.path.join(path, FOLDER)) as folder:
            atomic.discard(folder, agent + UNTIL)
            atomic.discard(folder, agent)
    except (OSError, StoreFailure):
        return


def _is_name(agent: str) -> bool:
    """Whether ``agent`` can be the name of a file, and a shell is sure to read it as it is."""
    return len(agent) <= _LONGEST_ID and agent.isascii() and agent.replace("-", "x").replace("_", "x").isalnum()


def _made_folder(path: str) -> Directory:
    base, program = os.path.split(path)
    with _base(base) as directory:
        return directory.make(program, FOLDER)


def _base(path: str) -> Directory:
    """The folder of all caches of the user, which a new user does not have yet, and which may be a link."""
    try:
        return Directory.at(path)
    except FileNotFoundError:
        above, name = os.path.split(path)
        with Directory.at(above) as directory:
            return directory.make(name)


def _remove_old(folder: Directory, now: float) -> None:
    for name in folder.names():
        if os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mtime < now - _KEPT_SECONDS:
            atomic.discard(folder, name)
