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

MAX_LOG_BYTES = 1 << 20

MAX_LOGGED_ID_LENGTH = 128
"""Characters that a line keeps of an id."""

_PAYLOAD_KEYS = ("session_id", "agent_id", "tool_use_id", "tool_name", "agent_type")


def log_folder(root: str) -> str:
    """``.claude/logs`` for a root that is a project's ``.claude/session``, else ``.logs`` in the root."""
    claude = claude_folder(root)
    return os.path.join(claude, "logs") if claude else os.path.join(root, ".logs")


def append_line(root: str, name: str, line: dict[str, object]) -> None:
    """Appends ``line`` to the log ``name``; whatever the system refuses is passed over."""
    try:
        with _open_folder(root) as folder:
            atomic.append_log_line(folder, f"{name}.log", strict.dump_line(line), MAX_LOG_BYTES)
    except (OSError, InvalidInput, StoreFailure):
        return


def payload_fields(payload: Mapping[str, Json], event: str) -> dict[str, object]:
    """What a host called the event (under that key) and the ids it told, to find the call again by."""
    fields: dict[str, object] = {} if payload.get(event) is None else {"event": shorten_id(payload[event])}
    return fields | {name: shorten_id(payload[name]) for name in _PAYLOAD_KEYS if name in payload}


def event_fields(events: list[Event]) -> dict[str, object]:
    """What a host told in our words: its session as runs have it, and the kinds of news; nothing for no events."""
    if not events:
        return {}
    return {"host_session_id": shorten_id(events[0]["host_session_id"]), "kinds": [event["kind"] for event in events]}


def shorten_id(value: object) -> str:
    """What a host calls something can be anybody's text, of any length."""
    return str(value)[:MAX_LOGGED_ID_LENGTH]


def _open_folder(root: str) -> Directory:
    above, name = os.path.split(log_folder(root))
    if above == root:
        with roots.make(root, durable=False) as root_directory:
            return root_directory.make(name)
    with Directory.at(above) as directory:  # a line is no reason to make a project of a folder that is none
        if not directory.has(name):
            roots.make_ignored_folder(directory, name)
        return directory.below(name)
