"""One line per hook call, for whoever asks later why a session is as it is.

Owns where the log is and what a line says: time, event, ids, decision, milliseconds. Never prompt text,
never the environment. Losing a line is no error: a hook has no one to tell.
"""

from __future__ import annotations

import os

from gaia_sessions import strictjson
from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.stores import atomic
from gaia_sessions.stores import root as roots
from gaia_sessions.stores.directory import Directory

ROTATES_AT = 1 << 20

_IGNORE = ".gitignore"


def folder_of(root: str) -> str:
    """``.claude/logs`` for a root that is a project's ``.claude/session``, else ``.logs`` in the root."""
    above, name = os.path.split(root)
    if name == "session" and os.path.basename(above) == ".claude":
        return os.path.join(above, "logs")
    return os.path.join(root, ".logs")


def write(root: str, hook: str, line: dict[str, object]) -> None:
    """Appends ``line`` to the log of ``hook``; whatever the system refuses is passed over."""
    try:
        with _opened(root) as folder:
            atomic.log(folder, f"{hook}.log", strictjson.dump_line(line), ROTATES_AT)
    except (OSError, InvalidInput, StoreFailure):
        return


def _opened(root: str) -> Directory:
    above, name = os.path.split(folder_of(root))
    if above == root:
        with roots.make(root, durable=False) as made:
            return made.make(name)
    os.makedirs(above, exist_ok=True)
    with Directory.at(above) as settings:
        return settings.below(name) if settings.has(name) else _made(settings, name)


def _made(settings: Directory, name: str) -> Directory:
    """A folder of our making stays out of version control; one that was there is its owner's."""
    folder = settings.make(name)
    atomic.replace(folder, _IGNORE, b"*\n", durable=False)
    return folder
