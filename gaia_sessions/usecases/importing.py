"""Imports the sessions of another folder, above all those of the users' earlier tool.

Owns which sessions are imported, and why others are skipped. The store creates each record whole or not at all, so an
import that was killed can be repeated.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import (
    CorruptSession,
    InvalidId,
    InvalidInput,
    NewerSchema,
    SessionExists,
    SessionNotFound,
    SessionsError,
    StoreFailure,
    well_formed,
)
from gaia_sessions.session.cancellation import abandoned
from gaia_sessions.session.record import has_newer_schema, is_open
from gaia_sessions.session.retention import RESERVED_BYTES, fit_record
from gaia_sessions.session.updates import check_writable, normalize_imported
from gaia_sessions.store import import_source
from gaia_sessions.store.above import Above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypedDict

    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.directory import Directory
    from gaia_sessions.store.port import Reader, RecordOrError, Store

    class SkippedImport(TypedDict):
        """A session and why it was not imported: ``reason`` is the code of an error, ``detail`` its message."""

        agent_id: str
        reason: str
        detail: str

    class Imported(TypedDict):
        """The report of an import.

        directory, root: the paths of the folder that was read and of the store.
        in_place: whether the two are the same folder, so that nothing needs to be imported.
        instead: the folder that was probably meant, if directory has no session; else None.
        imported, already_there: the ids of the sessions.
        """

        dry_run: bool
        directory: str
        root: str
        in_place: bool
        instead: str | None
        imported: list[str]
        already_there: list[str]
        skipped: list[SkippedImport]
        failed: list[SkippedImport]


_DIFFERS = "a session with this id is here already, and it is not the same"
_UNREADABLE = frozenset([CorruptSession.code, InvalidId.code, StoreFailure.code])


def import_folder(store: Store, open_reader: Callable[[], Reader], path: str, root: str, *, dry_run: bool) -> Imported:
    """Imports the sessions of the folder at ``path`` into ``store``, which is at ``root``; the report.

    ``open_reader`` makes what reads the sessions of ``store``: for a dry run a ``Preview``. It is called only if there
    is something to import. Raises ``NoSuchFolder``, and ``StoreFailure`` if the folder cannot be read.
    """
    with import_source.open_folder(path) as folder:
        in_place = import_source.is_root(folder, root)
        directory = well_formed(os.path.realpath(folder.path))
        report = _empty_report(directory, well_formed(root), dry_run=dry_run, in_place=in_place)
        if not in_place:
            _import_all(store, open_reader(), _ended_if_cancelled(folder), report)
            if is_empty(report):
                report["instead"] = import_source.likely_folder(folder)
    return report


def _empty_report(directory: str, root: str, *, dry_run: bool, in_place: bool) -> Imported:
    """The report before any session is imported."""
    return {
        "dry_run": dry_run,
        "directory": directory,
        "root": root,
        "in_place": in_place,
        "instead": None,
        "imported": [],
        "already_there": [],
        "skipped": [],
        "failed": [],
    }


def _ended_if_cancelled(folder: Directory) -> Iterator[tuple[str, RecordOrError]]:
    """The sessions of ``folder``. One that is cancelled there has ended, as nobody here is at work on it."""
    above = Above(import_source.SourceReader(folder))
    for name, found in import_source.records(folder):
        if isinstance(found, SessionsError) or has_newer_schema(found) or not is_open(found):
            yield name, found
            continue
        try:
            cancellation = above.proved_cancellation(found)
            yield name, found if cancellation is None else abandoned(found, cancellation)
        except SessionsError as error:
            yield name, error


def _import_all(store: Store, sessions: Reader, found: Iterable[tuple[str, RecordOrError]], report: Imported) -> None:
    """Imports the records of ``found``, or for a dry run only decides; adds the result of each to ``report``.

    ``sessions`` reads those of ``store``; for a dry run it is a ``Preview``. A session that already exists stays as it
    is. One that the store cannot create is reported as failed and stops no other.
    """
    for name, record in found:
        agent_id = well_formed(name)
        if isinstance(record, SessionsError):
            report["skipped"].append(_skipped(agent_id, record))
            continue
        try:
            is_new = _import_record(store, sessions, record, dry_run=report["dry_run"])
            report["imported" if is_new else "already_there"].append(agent_id)
        except SessionExists as error:
            report["skipped"].append({"agent_id": agent_id, "reason": error.code, "detail": _DIFFERS})
        except (InvalidInput, NewerSchema) as error:
            report["skipped"].append(_skipped(agent_id, error))
        except SessionsError as error:
            report["failed"].append(_skipped(agent_id, error))


def _import_record(store: Store, sessions: Reader, record: Record, *, dry_run: bool) -> bool:
    """Whether ``record`` is new; False if the store has the same one. Raises ``SessionExists`` if it has another."""
    check_writable(record)
    spare = RESERVED_BYTES if is_open(record) else 0
    expected, _ = fit_record(normalize_imported(record), spare)
    if _has_same(sessions, expected):
        return False
    if not dry_run:
        try:
            store.create(expected, reserved=spare)
        except SessionExists:  # another process has just created it
            return not _has_same(sessions, expected)
    return True


def _has_same(sessions: Reader, expected: Record) -> bool:
    try:
        if sessions.read(expected["agent_id"]) == expected:
            return True
    except SessionNotFound:
        return False
    except CorruptSession:  # what cannot be read is not the same record, and its ID is taken all the same
        pass
    raise SessionExists(expected["agent_id"])


def _skipped(agent_id: str, error: SessionsError) -> SkippedImport:
    return {"agent_id": agent_id, "reason": error.code, "detail": str(error)}


def is_empty(report: Imported) -> bool:
    """Whether the directory had no session at all."""
    return not (report["imported"] or report["already_there"] or report["skipped"] or report["failed"])


def unreadable_count(report: Imported) -> int:
    """The number of sessions in the directory if none of them could be read, else 0."""
    has_readable = report["imported"] or report["already_there"] or report["failed"]
    codes = [skipped["reason"] for skipped in report["skipped"]]
    return 0 if has_readable or not _UNREADABLE.issuperset(codes) else len(codes)
