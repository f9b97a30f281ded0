"""What was done when nobody was looking: a line per hook call, and what became of the inbox.

Owns where the log is and what a line says: time, event, ids, decision, milliseconds. Never prompt text,
never the environment. Losing a line is no error: there is no one to tell.
"""

from __future__ import annotations

import os

from . import strictjson
from .errors import InvalidInput, StoreFailure
from .stores import atomic
from .stores import root as roots
from .stores.directory import Directory

ROTATES_AT = 1 << 20

_IGNORE = ".gitignore"


def folder_of(root: str) -> str:
    """``.claude/logs`` for a root that is a project's ``.claude/session``, else ``.logs`` in the root."""
    above, name = os.path.split(root)
    if name == "session" and os.path.basename(above) == ".claude":
        return os.path.join(above, "logs")
    return os.path.join(root, ".logs")


def write(root: str, name: str, line: dict[str, object]) -> None:
    """Appends ``line`` to the log ``name``; whatever the system refuses is passed over."""
    try:
        with _opened(root) as folder:
            atomic.log(folder, f"{name}.log", strictjson.dump_line(line), ROTATES_AT)
    except (OSError, InvalidInput, StoreFailure):
        return


def _opened(root: str) -> Directory:
    above, name = os.path.split(folder_of(root))
    if above == root:
        with roots.make(root, durable=False) as made:
            return made.make(name)
    os.makedirs(above, exist_ok=True)
    with Directory.at(above) as settings:
        if not settings.has(name):
            _make(settings, name)
        return settings.below(name)


def _make(settings: Directory, name: str) -> None:
    """A folder of our making stays out of version control from its first moment; one that was there is its owner's."""
    built = f".{name}.{os.urandom(8).hex()}.tmp"
    with settings.make(built) as folder:
        atomic.replace(folder, _IGNORE, b"*\n", durable=False)
    try:
        os.rename(built, name, src_dir_fd=settings.fd, dst_dir_fd=settings.fd)
    except OSError:  # somebody else just made it
        from .stores import removal

        removal.remove(settings, built)
