"""One line per hook call, for whoever asks later why a session is as it is.

Owns where the log is and what a line says: time, event, ids, decision, milliseconds. Never prompt text,
never the environment. Losing a line is no error: a hook has no one to tell.
"""

from __future__ import annotations

import os

from gaia_sessions import strictjson
from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.stores import atomic
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
    folder = folder_of(root)
    try:
        _make(folder)
        atomic.log(folder, f"{hook}.log", strictjson.dump_line(line), ROTATES_AT)
    except (OSError, InvalidInput, StoreFailure):
        return


def _make(folder: str) -> None:
    if os.path.isdir(folder):
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with Directory.at(folder) as made:
        atomic.replace(made, _IGNORE, b"*\n", durable=False)
