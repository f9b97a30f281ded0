"""What was done when nobody was looking: a line per hook call, and what became of the inbox.

Owns where the log is and what a line says: time, event, ids, decision, milliseconds. Never prompt text,
never the environment. Losing a line is no error: there is no one to tell.
"""

from __future__ import annotations

import os

from . import strictjson
from .errors import InvalidInput, StoreFailure
from .project import claude_folder
from .stores import atomic
from .stores import root as roots
from .stores.directory import Directory

ROTATES_AT = 1 << 20


def folder_of(root: str) -> str:
    """``.claude/logs`` for a root that is a project's ``.claude/session``, else ``.logs`` in the root."""
    claude = claude_folder(root)
    return os.path.join(claude, "logs") if claude else os.path.join(root, ".logs")


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
            roots.make_ignored(settings, name)
        return settings.below(name)
