"""What a file was before we wrote to it, kept until we leave it again.

Owns the receipts in the user's state directory: one folder per file, named after the digest of its real path, with
the bytes before, those that leaving gives back where they are others, and a note of what we wrote. They are a
convenience: without one, leaving takes out what is ours and nothing else. Settings
can hold secrets, so nobody but the user reads them.
"""

from __future__ import annotations

import json
import os

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio import strict
from gaia_sessions.store import atomic
from gaia_sessions.store.directory import Directory, TooBig, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from gaia_sessions.jsonio.strict import Json

LIMIT = 1 << 20
"""Bytes of a settings file: far more than any has; at that, a plan takes seconds."""

_FOLDER = "settings"
_NOTE = "receipt.json"
_BEFORE = "before"
_LEFT = "left"
_WRITTEN, _OVERWRITTEN = "written", "over"
_SAME, _OTHER, _NOTHING = "before", "other", "nothing"
_DIGITS = 32


class Backup:
    """before: what the file held, None if it was not there. left: what it holds once we are gone, if untouched.

    note: what else whoever wrote it wants to know again. over: the digest of what we are about to write over, None
    once that is done: who is killed in between leaves the one or the other.
    """

    __slots__ = ("after_uninstall", "before", "note", "overwritten", "written")

    def __init__(
        self,
        before: bytes | None,
        after_uninstall: bytes | None,
        written: str,
        note: dict[str, Json],
        overwritten: str | None = None,
    ) -> None:
        self.before = before
        self.after_uninstall = after_uninstall
        self.written = written
        self.note = note
        self.overwritten = overwritten

    @classmethod
    def of(cls, before: bytes | None, after_uninstall: bytes | None, now: bytes, note: dict[str, Json]) -> Self:
        """The backup for changing ``before`` into ``now``, from which ``left`` is to come back."""
        return cls(before, after_uninstall, digest(now), note)

    def while_writing(self, old: bytes | None, earlier: Backup | None) -> Backup:
        """The same as long as nobody knows whether ``old`` stands there still, of which ``earlier`` is the backup."""
        note = (
            self.note if earlier is None else {key: _merged(earlier.note.get(key), self.note[key]) for key in self.note}
        )
        return Backup(self.before, self.after_uninstall, self.written, note, None if old is None else digest(old))

    def is_untouched(self, data: bytes | None) -> bool:
        """Whether ``data`` is still what we wrote, or wrote over."""
        return data is not None and digest(data) in (self.written, self.overwritten)

    def text(self, key: str) -> str | None:
        """The text under ``key`` in the note."""
        value = self.note.get(key)
        return value if isinstance(value, str) else None

    def texts(self, key: str) -> list[str]:
        """The texts in the list under ``key`` in the note."""
        value = self.note.get(key)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _merged(earlier: Json, now: Json) -> Json:
    if isinstance(earlier, list) and isinstance(now, list):
        return [*earlier, *(item for item in now if item not in earlier)]
    return earlier if now is None else now


def digest(data: bytes) -> str:
    """What tells one content from another."""
    from hashlib import sha256

    return sha256(data).hexdigest()


def folder_for(state: str, path: str) -> str:
    """Where the backup of the file at ``path`` is kept; ``state`` is our folder in the user's state directory."""
    return os.path.join(state, _FOLDER, digest(os.fsencode(os.path.realpath(path)))[:_DIGITS])


def find(state: str, path: str) -> Backup | None:
    """The backup for ``path``; None if there is none that can be read."""
    try:
        with Directory.at(folder_for(state, path)) as folder:
            note = _decode_note(folder.read(_NOTE, strict.DOCUMENT_LIMIT))
            before = folder.read(_BEFORE, LIMIT) if note.get("existed") is True else None
            left = _read_left(folder, note.get(_LEFT), before)
    except (OSError, TooBig, InvalidInput, ValueError, RecursionError):
        return None
    written, overwritten = note.get(_WRITTEN), note.pop(_OVERWRITTEN, None)
    if not isinstance(written, str):
        return None
    return Backup(before, left, written, note, overwritten if isinstance(overwritten, str) else None)


def _encode_note(note: dict[str, Json]) -> bytes:
    """In plain ASCII, since a path need be no UTF-8, and must come back as it was."""
    return (json.dumps(note, indent=2) + "\n").encode("ascii")


def _decode_note(data: bytes) -> dict[str, Json]:
    note = json.loads(data)
    if not isinstance(note, dict):
        raise InvalidInput("must be a JSON object")
    return note


def _read_left(folder: Directory, kind: Json, before: bytes | None) -> bytes | None:
    """A backup that does not speak of it is an older one: what was there before comes back."""
    if kind == _OTHER:
        return folder.read(_LEFT, LIMIT)
    return None if kind == _NOTHING else before


def keep(state: str, path: str, backup: Backup) -> str:
    """Keeps ``backup`` for ``path``, durably; returns its folder. Raises ``StoreFailure``."""
    place = folder_for(state, path)
    with translate_errors("keep a copy in", place):
        os.makedirs(place, mode=0o700, exist_ok=True)
        with Directory.at(place) as folder:
            if backup.before is not None:
                atomic.replace(folder, _BEFORE, backup.before, durable=True)
            kind = _keep_left(folder, backup)
            existed = backup.before is not None
            note = {
                **backup.note,
                "path": path,
                "existed": existed,
                _LEFT: kind,
                _WRITTEN: backup.written,
            }
            if backup.overwritten is not None:
                note[_OVERWRITTEN] = backup.overwritten
            atomic.replace(folder, _NOTE, _encode_note(note), durable=True)
    return place


def _keep_left(folder: Directory, backup: Backup) -> str:
    if backup.after_uninstall is None:
        return _NOTHING
    if backup.after_uninstall == backup.before:
        return _SAME
    atomic.replace(folder, _LEFT, backup.after_uninstall, durable=True)
    return _OTHER


def drop(state: str, path: str) -> None:
    """The backup for ``path`` is gone, and folders of ours that are empty by that, as far as the system lets go."""
    place = folder_for(state, path)
    try:
        with Directory.at(place) as folder:
            for name in (_NOTE, _BEFORE, _LEFT):
                atomic.discard(folder, name)
        for empty in (place, os.path.dirname(place)):
            os.rmdir(empty)
    except OSError:  # something else is in there
        return
