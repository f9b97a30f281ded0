"""Changes to files, which are planned as values before anything is written.

Owns how a change is applied together with its backup, and how it is shown as a difference.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import StoreFailure
from gaia_sessions.store import external_file
from gaia_sessions.store.directory import translate_errors

from . import backups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .backups import Backup


CREATED_FOLDERS = "made"
"""Key in the note of a backup: the folders that were created for the file."""


class Change:
    """The change of one file from ``before`` to ``after``; None where there is no file.

    backup: the backup to keep; None if the existing one is to be dropped.
    created: the folders that were created for the file, to be removed with it.
    """

    __slots__ = ("after", "backup", "before", "created", "path")

    def __init__(
        self,
        path: str,
        before: bytes | None,
        after: bytes | None,
        backup: Backup | None = None,
        created: list[str] | None = None,
    ) -> None:
        self.path = path
        self.before = before
        self.after = after
        self.backup = backup
        self.created = created or []

    @property
    def has_effect(self) -> bool:
        """Whether the content changes."""
        return self.before != self.after


def missing_folders(path: str) -> list[str]:
    """The folders above ``path`` that do not exist, the outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def created_folders(path: str, neighbours: list[str], state: str) -> list[str]:
    """The folders above ``path`` that were created, or will be, for it or for ``neighbours``.

    Whichever of these files is removed last removes the folders.
    """
    created = set(missing_folders(path))
    for backup in (backups.find(state, file) for file in (path, *neighbours)):
        created.update(backup.texts(CREATED_FOLDERS) if backup else ())
    real = os.path.realpath(path)
    return sorted((folder for folder in created if real.startswith(folder + os.sep)), key=len)


def apply_change(change: Change, state: str) -> None:
    """Makes ``change`` durably, after its backup is durable.

    Raises ``StoreFailure``; the file and the earlier backup are then unchanged.
    """
    if change.backup is None:
        _write_change(change)
        backups.drop(state, change.path)
        return
    earlier = backups.find(state, change.path)
    backups.keep(state, change.path, change.backup.while_writing(change.before, earlier))
    try:
        _write_change(change)
    except StoreFailure:
        _restore_backup(state, change.path, earlier)
        raise
    backups.keep(state, change.path, change.backup)


def _restore_backup(state: str, path: str, earlier: Backup | None) -> None:
    if earlier is None:
        backups.drop(state, path)
    else:
        backups.keep(state, path, earlier)


def _write_change(change: Change) -> None:
    if not change.has_effect:
        return
    if change.after is None:
        _remove(change)
        return
    with translate_errors("make the folder of", change.path):
        external_file.make_folders(os.path.dirname(os.path.realpath(change.path)))
    external_file.write(change.path, change.before, change.after)


def _remove(change: Change) -> None:
    if change.before is None:
        return
    external_file.remove(change.path, change.before)
    for folder in reversed(change.created):
        try:
            os.rmdir(folder)
        except OSError:  # the folder has other content by now
            return


def diff_lines(change: Change, base: str) -> Iterator[str]:
    """The lines of a unified diff with paths relative to ``base``, for ``patch -p1`` in that folder."""
    from difflib import unified_diff

    name = _name_from(base, change.path)
    before, after = (_lines(data) for data in (change.before, change.after))
    old = "/dev/null" if change.before is None else f"a/{name}"
    new = "/dev/null" if change.after is None else f"b/{name}"
    for line in unified_diff(before, after, old, new):
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _name_from(base: str, path: str) -> str:
    inside = path.startswith(base.rstrip(os.sep) + os.sep)
    return os.path.relpath(path, base) if inside else path.lstrip(os.sep)


def _lines(data: bytes | None) -> list[str]:
    """The lines as ``patch`` splits them: only a newline ends a line."""
    whole = (data or b"").decode(errors="surrogateescape").split("\n")
    return [line + "\n" for line in whole[:-1]] + ([whole[-1]] if whole[-1] else [])
