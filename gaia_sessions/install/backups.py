"""Backups of files that belong to others, kept from the first installation until an uninstall.

Owns their folders in the user's state directory: one per file, named after the digest of its real path, with the
content before, the content after an uninstall where that differs, and a note about what was written. Without a backup,
an uninstall removes only what was installed. Settings may contain secrets, so only the user may read the folders.
"""

from __future__ import annotations

import json
import os

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio import strict
from gaia_sessions.session.ids import short_digest
from gaia_sessions.store import atomic
from gaia_sessions.store.directory import Directory, TooBig, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from gaia_sessions.jsonio.strict import Json

LIMIT = 1 << 20
"""The largest settings file, in bytes: far larger than real ones; a plan for that size takes seconds."""

_FOLDER = "settings"
_NOTE = "receipt.json"
_BEFORE = "before"
_AFTER_UNINSTALL = "left"
_WRITTEN, _OVERWRITTEN = "written", "over"
_SAME, _OTHER, _NOTHING = "before", "other", "nothing"


class Backup:
    """The backup of one file, before and while the hooks are installed in it.

    before: the original bytes; None if there was no file.
    after_uninstall: the bytes that an uninstall restores if nobody changed the file since; None for no file.
    written: the digest of the bytes that were written.
    note: further facts about the installation, by their names.
    overwritten: the digest of the bytes that are about to be overwritten; None once they are. A process that is killed
    in between leaves a file with one of the two digests.
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
        """The backup for writing ``now`` to a file that held ``before``."""
        return cls(before, after_uninstall, digest(now), note)

    def while_writing(self, old: bytes | None, earlier: Backup | None) -> Backup:
        """The backup until the new content is written: ``old`` may still be there, with its backup ``earlier``."""
        note = (
            self.note if earlier is None else {key: _merged(earlier.note.get(key), self.note[key]) for key in self.note}
        )
        return Backup(self.before, self.after_uninstall, self.written, note, None if old is None else digest(old))

    def is_untouched(self, data: bytes | None) -> bool:
        """Whether ``data`` is what was written, or what was about to be overwritten."""
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
    """The digest by which two contents are compared."""
    from hashlib import sha256

    return sha256(data).hexdigest()


def folder_for(state: str, path: str) -> str:
    """The folder of the backup of the file ``path``; ``state`` is that of ``Places``."""
    return os.path.join(state, _FOLDER, short_digest(os.fsencode(os.path.realpath(path))))


def find(state: str, path: str) -> Backup | None:
    """The backup of the file ``path``; None if it does not exist or cannot be read."""
    try:
        with Directory.at(folder_for(state, path)) as folder:
            note = _decode_note(folder.read(_NOTE, strict.DOCUMENT_LIMIT))
            before = folder.read(_BEFORE, LIMIT) if note.get("existed") is True else None
            after_uninstall = _read_after_uninstall(folder, note.get(_AFTER_UNINSTALL), before)
    except (OSError, TooBig, InvalidInput, ValueError, RecursionError):
        return None
    written, overwritten = note.get(_WRITTEN), note.pop(_OVERWRITTEN, None)
    if not isinstance(written, str):
        return None
    return Backup(before, after_uninstall, written, note, overwritten if isinstance(overwritten, str) else None)


def _encode_note(note: dict[str, Json]) -> bytes:
    """``note`` in ASCII: a path that is not UTF-8 must be read back unchanged."""
    return (json.dumps(note, indent=2) + "\n").encode("ascii")


def _decode_note(data: bytes) -> dict[str, Json]:
    note = json.loads(data)
    if not isinstance(note, dict):
        raise InvalidInput("must be a JSON object")
    return note


def _read_after_uninstall(folder: Directory, kind: Json, before: bytes | None) -> bytes | None:
    """The content after an uninstall; a backup of an earlier version has no ``kind``, and restores ``before``."""
    if kind == _OTHER:
        return folder.read(_AFTER_UNINSTALL, LIMIT)
    return None if kind == _NOTHING else before


def keep(state: str, path: str, backup: Backup) -> str:
    """Writes ``backup`` of the file ``path`` durably; returns its folder. Raises ``StoreFailure``."""
    place = folder_for(state, path)
    with translate_errors("keep a copy in", place):
        os.makedirs(place, mode=0o700, exist_ok=True)
        with Directory.at(place) as folder:
            if backup.before is not None:
                atomic.replace(folder, _BEFORE, backup.before, durable=True)
            kind = _keep_after_uninstall(folder, backup)
            existed = backup.before is not None
            note = {
                **backup.note,
                "path": path,
                "existed": existed,
                _AFTER_UNINSTALL: kind,
                _WRITTEN: backup.written,
            }
            if backup.overwritten is not None:
                note[_OVERWRITTEN] = backup.overwritten
            atomic.replace(folder, _NOTE, _encode_note(note), durable=True)
    return place


def _keep_after_uninstall(folder: Directory, backup: Backup) -> str:
    if backup.after_uninstall is None:
        return _NOTHING
    if backup.after_uninstall == backup.before:
        return _SAME
    atomic.replace(folder, _AFTER_UNINSTALL, backup.after_uninstall, durable=True)
    return _OTHER


def drop(state: str, path: str) -> None:
    """Removes the backup of the file ``path``, and the folders that are then empty, as far as the system allows."""
    place = folder_for(state, path)
    try:
        with Directory.at(place) as folder:
            for name in (_NOTE, _BEFORE, _AFTER_UNINSTALL):
                atomic.discard(folder, name)
        for empty in (place, os.path.dirname(place)):
            os.rmdir(empty)
    except OSError:  # other files are in there
        return
