"""A key that a host writes into a file of its own, perhaps a moment after it has reported the event.

Owns reading one string of one small JSON object, and trusts nothing in it: a link, a file that holds no such object, or
a value that is no short text counts as missing. Loaded by nearly every hook, so it stays apart from ``external_file``.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio.strict import load_object

from .directory import Directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json

_MAX_KEY_LENGTH = 512
_MAX_FILE_BYTES = 1 << 16


def read_key(path: str, member: str) -> str | None:
    """What the file at the absolute ``path`` has under ``member``; None if that is no key or not written yet."""
    key = read_member(path, member)
    return key if isinstance(key, str) and 0 < len(key) <= _MAX_KEY_LENGTH else None


def read_member(path: str, member: str) -> Json:
    """What the small object in the file at the absolute ``path`` has under ``member``; None if that cannot be read."""
    folder, name = os.path.split(path)
    if not os.path.isabs(path) or "\0" in path:
        return None
    try:
        with Directory.at(folder) as directory:
            return load_object(directory.read(name, _MAX_FILE_BYTES), _MAX_FILE_BYTES).get(member)
    except (OSError, InvalidInput):
        return None
