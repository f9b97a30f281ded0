"""What was done when nobody was looking: a line per hook call, and what became of the inbox.

Owns where the log is and what a line says: time, event, ids, host, kinds, decision, milliseconds. Never prompt text,
never the environment. Losing a line is no error: there is no one to tell. Reading them is next door, in ``logged``.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.system.project_root import claude_folder

from . import atomic
from . import root as roots
from .directory import Directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event

ROTATES_AT = 1 << 20

LONGEST_ID = 128
"""Characters that a line keeps of an id."""

_NAMED = ("session_id", "agent_id", "tool_use_id", "tool_name", "agent_type")


def folder_of(root: str) -> str:
    """``.claude/logs`` for a root that is a project's ``.claude/session``, else ``.logs`` in the root."""
    claude = claude_folder(root)
    return os.path.join(claude, "logs") if claude else os.path.join(root, ".logs")


def write(root: str, name: str, line: dict[str, object]) -> None:
    """Appends ``line`` to the log ``name``; whatever the system refuses is passed over."""
    try:
        with _opened(root) as folder:
            atomic.log(folder, f"{name}.log", strict.dump_line(line), ROTATES_AT)
    except (OSError, InvalidInput, StoreFailure):
        return


def named_in(payload: Mapping[str, Json], event: str) -> dict[str, object]:
    """What a host called the event (under that key) and the ids it told, to find the call again by."""
    named: dict[str, object] = {} if payload.get(event) is None else {"event": shortened(payload[event])}
    return named | {name: shortened(payload[name]) for name in _NAMED if name in payload}


def told_by(events: list[Event]) -> dict[str, object]:
    """What a host told in our words: its session as runs have it, and the kinds of news; nothing for no events."""
    if not events:
        return {}
    return {"host_session_id": shortened(events[0]["host_session_id"]), "kinds": [event["kind"] for event in events]}


def shortened(value: object) -> str:
    """What a host calls something can be anybody's text, of any length."""
    return str(value)[:LONGEST_ID]


def _opened(root: str) -> Directory:
    above, name = os.path.split(folder_of(root))
    if above == root:
        with roots.make(root, durable=False) as made:
            return made.make(name)
    with Directory.at(above) as settings:  # a line is no reason to make a project of a folder that is none
        if not settings.has(name):
            roots.make_ignored(settings, name)
        return settings.below(name)
