"""Taking in sessions from another folder, above all those that the users' earlier tool left.

Owns what is taken, what is skipped and why. Records come in through the store as new ones do, each whole or not at all,
so an import that was killed is repeated. Knows the other folder only as records and errors by name.
"""

from __future__ import annotations

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
from gaia_sessions.session.record import is_open
from gaia_sessions.session.retention import RESERVED_BYTES, fit_record
from gaia_sessions.session.updates import check_writable, normalize_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict

    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Reader, RecordOrError, Store

    class SkippedImport(TypedDict):
        """One session and why it was not taken in: ``reason`` is the code of an error, ``detail`` says it to people."""

        agent_id: str
        reason: str
        detail: str

    class Imported(TypedDict):
        """What an import did. in_place: directory is the root, whose records are read where they are.

        instead: the folder that was probably meant, where directory has no session.
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


def empty_report(directory: str, root: str, *, dry_run: bool, in_place: bool) -> Imported:
    """The report of an import that has not begun."""
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


def import_sessions(
    store: Store, sessions: Reader, found: Iterable[tuple[str, RecordOrError]], report: Imported
) -> None:
    """Takes in what is in ``installed_file``, or with a dry run would; adds to ``report`` what became of each.

    here: how the sessions of ``store`` are read; for a dry run, as the next writer will leave them.
    What the store has already stays as it is. What it refuses for its own reasons has ``failed`` and stops no other.
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
    """Whether ``record`` was taken in; False if the store has the very same. Raises ``SessionExists`` for another."""
    check_writable(record)
    spare = RESERVED_BYTES if is_open(record) else 0
    expected, _ = fit_record(normalize_imported(record), spare)
    if _has_same(sessions, expected):
        return False
    if not dry_run:
        try:
            store.create(expected, reserved=spare)
        except SessionExists:  # by somebody else, a moment ago
            return not _has_same(sessions, expected)
    return True


def _has_same(sessions: Reader, expected: Record) -> bool:
    try:
        if sessions.read(expected["agent_id"]) == expected:
            return True
    except SessionNotFound:
        return False
    except CorruptSession:
        pass
    raise SessionExists(expected["agent_id"])


def _skipped(agent_id: str, error: SessionsError) -> SkippedImport:
    return {"agent_id": agent_id, "reason": error.code, "detail": str(error)}


def is_empty(report: Imported) -> bool:
    """Whether there was no session at all."""
    return not (report["imported"] or report["already_there"] or report["skipped"] or report["failed"])


def unreadable_count(report: Imported) -> int:
    """How many sessions there were, if none of them could be read; else 0."""
    has_readable = report["imported"] or report["already_there"] or report["failed"]
    codes = [skipped["reason"] for skipped in report["skipped"]]
    return 0 if has_readable or not _UNREADABLE.issuperset(codes) else len(codes)
