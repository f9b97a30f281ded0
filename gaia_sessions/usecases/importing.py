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
from gaia_sessions.session.retention import SPARE, fitted
from gaia_sessions.session.updates import check_writable, imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict

    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Found, Reader, Store

    class NotTaken(TypedDict):
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
        skipped: list[NotTaken]
        failed: list[NotTaken]


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


def import_sessions(store: Store, here: Reader, found: Iterable[tuple[str, Found]], report: Imported) -> None:
    """Takes in what is in ``found``, or with a dry run would; adds to ``report`` what became of each.

    here: how the sessions of ``store`` are read; for a dry run, as the next writer will leave them.
    What the store has already stays as it is. What it refuses for its own reasons has ``failed`` and stops no other.
    """
    for name, record in found:
        agent_id = well_formed(name)
        if isinstance(record, SessionsError):
            report["skipped"].append(_not_taken(agent_id, record))
            continue
        try:
            taken = _take(store, here, record, dry_run=report["dry_run"])
            report["imported" if taken else "already_there"].append(agent_id)
        except SessionExists as error:
            report["skipped"].append({"agent_id": agent_id, "reason": error.code, "detail": _DIFFERS})
        except (InvalidInput, NewerSchema) as error:
            report["skipped"].append(_not_taken(agent_id, error))
        except SessionsError as error:
            report["failed"].append(_not_taken(agent_id, error))


def _take(store: Store, here: Reader, record: Record, *, dry_run: bool) -> bool:
    """Whether ``record`` was taken in; False if the store has the very same. Raises ``SessionExists`` for another."""
    check_writable(record)
    spare = SPARE if is_open(record) else 0
    wanted, _ = fitted(imported(record), spare)
    if _has(here, wanted):
        return False
    if not dry_run:
        try:
            store.create(wanted, spare=spare)
        except SessionExists:  # by somebody else, a moment ago
            return not _has(here, wanted)
    return True


def _has(here: Reader, wanted: Record) -> bool:
    try:
        if here.read(wanted["agent_id"]) == wanted:
            return True
    except SessionNotFound:
        return False
    except CorruptSession:
        pass
    raise SessionExists(wanted["agent_id"])


def _not_taken(agent_id: str, error: SessionsError) -> NotTaken:
    return {"agent_id": agent_id, "reason": error.code, "detail": str(error)}


def is_empty(report: Imported) -> bool:
    """Whether there was no session at all."""
    return not (report["imported"] or report["already_there"] or report["skipped"] or report["failed"])


def unreadable(report: Imported) -> int:
    """How many sessions there were, if none of them could be read; else 0."""
    read = report["imported"] or report["already_there"] or report["failed"]
    codes = [skipped["reason"] for skipped in report["skipped"]]
    return 0 if read or not _UNREADABLE.issuperset(codes) else len(codes)
