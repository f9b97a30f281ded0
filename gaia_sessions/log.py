"""What was done when nobody was looking: a line per hook call, and what became of the inbox.

Owns where the log is and what a line says: time, event, ids, decision, milliseconds. Never prompt text,
never the environment. Losing a line is no error: there is no one to tell; nor is finding one unreadable.
"""

from __future__ import annotations

import os

from . import strictjson
from .clock import read_time
from .errors import InvalidInput, StoreFailure
from .project import claude_folder
from .stores import atomic
from .stores import root as roots
from .stores.directory import Directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from .strictjson import Json

ROTATES_AT = 1 << 20

LONGEST_ID = 128
"""Characters that a line keeps of an id."""

_LONGEST = 8 << 20
_ENDINGS = (".log", ".log.old")
_SESSION_END = "SessionEnd"


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


def lines(root: str) -> Iterator[dict[str, Json]]:
    """The lines of every log that can be read, in no order; what is no line of ours is passed over."""
    try:
        folder = Directory.at(folder_of(root))
    except OSError:
        return
    with folder:
        for name in folder.names():
            if name.endswith(_ENDINGS):
                yield from _lines_in(folder, name)


def sessions_over(root: str) -> dict[str, datetime]:
    """When a host's main sessions ended, by id, as lines have it: those of which nothing was heard after the end."""
    last: dict[str, tuple[datetime, bool]] = {}
    for line in lines(root):
        name = line.get("session_id")
        try:
            heard = read_time(line.get("at")), line.get("event") == _SESSION_END
        except ValueError:
            continue
        if isinstance(name, str):
            last[name] = max(last.get(name, heard), heard)
    return {name: at for name, (at, over) in last.items() if over}


def _lines_in(folder: Directory, name: str) -> Iterator[dict[str, Json]]:
    try:
        data = folder.read(name, _LONGEST)
    except OSError:
        return
    for line in data.splitlines():
        try:
            yield strictjson.load_object(line)
        except InvalidInput:
            continue


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
