"""What a file was before we wrote to it, kept until we leave it again.

Owns the receipts in the user's state directory: one folder per file, named after the digest of its real path, with
the bytes before and a note of what we wrote. They are a convenience: without one, leaving takes out what is ours
and nothing else. Settings can hold secrets, so nobody but the user reads them.
"""

from __future__ import annotations

import os

from gaia_sessions import strictjson
from gaia_sessions.errors import InvalidInput
from gaia_sessions.stores import atomic
from gaia_sessions.stores.directory import Directory, TooBig, translating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from gaia_sessions.strictjson import Json

LIMIT = 8 << 20
"""Bytes of a settings file: far more than any has."""

_FOLDER = "settings"
_NOTE = "receipt.json"
_BEFORE = "before"
_DIGITS = 32


class Receipt:
    """before: what the file held, None if it was not there. note: what else whoever wrote it wants to know again."""

    __slots__ = ("before", "note", "written")

    def __init__(self, before: bytes | None, written: str, note: dict[str, Json]) -> None:
        self.before = before
        self.written = written
        self.note = note

    @classmethod
    def of(cls, before: bytes | None, now: bytes, note: dict[str, Json]) -> Self:
        """The receipt for changing ``before`` into ``now``."""
        return cls(before, digest(now), note)

    def is_untouched(self, data: bytes | None) -> bool:
        """Whether ``data`` is still what we wrote."""
        return data is not None and digest(data) == self.written

    def text(self, key: str) -> str | None:
        """The text under ``key`` in the note."""
        value = self.note.get(key)
        return value if isinstance(value, str) else None

    def texts(self, key: str) -> list[str]:
        """The texts in the list under ``key`` in the note."""
        value = self.note.get(key)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def digest(data: bytes) -> str:
    """What tells one content from another."""
    from hashlib import sha256

    return sha256(data).hexdigest()


def folder_for(state: str, path: str) -> str:
    """Where the receipt of the file at ``path`` is kept; ``state`` is our folder in the user's state directory."""
    return os.path.join(state, _FOLDER, digest(os.fsencode(os.path.realpath(path)))[:_DIGITS])


def find(state: str, path: str) -> Receipt | None:
    """The receipt for ``path``; None if there is none that can be read."""
    try:
        with Directory.at(folder_for(state, path)) as folder:
            note = strictjson.load_object(folder.read(_NOTE, strictjson.DOCUMENT_LIMIT))
            before = folder.read(_BEFORE, LIMIT) if note.get("existed") is True else None
    except (OSError, TooBig, InvalidInput):
        return None
    written = note.get("written")
    return Receipt(before, written, note) if isinstance(written, str) else None


def keep(state: str, path: str, receipt: Receipt) -> str:
    """Keeps ``receipt`` for ``path``, durably; returns its folder. Raises ``StoreFailure``."""
    place = folder_for(state, path)
    with translating("keep a copy in", place):
        os.makedirs(place, mode=0o700, exist_ok=True)
        with Directory.at(place) as folder:
            if receipt.before is not None:
                atomic.replace(folder, _BEFORE, receipt.before, durable=True)
            told = {**receipt.note, "path": path, "existed": receipt.before is not None, "written": receipt.written}
            atomic.replace(folder, _NOTE, strictjson.dumps(told), durable=True)
    return place


def drop(state: str, path: str) -> None:
    """The receipt for ``path`` is gone, and folders of ours that are empty by that, as far as the system lets go."""
    place = folder_for(state, path)
    try:
        with Directory.at(place) as folder:
            atomic.discard(folder, _NOTE)
            atomic.discard(folder, _BEFORE)
        for empty in (place, os.path.dirname(place), state):
            os.rmdir(empty)
    except OSError:  # something else is in there
        return
