"""Imports whole sessions from other folders, for example to another machine.

The store creates each session whole or not at all, so a killed import can be repeated.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import (
    CorruptSession,
    SessionExists,
    SessionNotFound,
    SessionsError,
    StoreFailure,
    UsageError,
    well_formed,
)
from gaia_sessions.hosts.evidence import written_at
from gaia_sessions.session.cancellation import abandoned
from gaia_sessions.session.record import is_open, is_stand_in
from gaia_sessions.session.retention import RESERVED_BYTES, fit_record
from gaia_sessions.session.run_ends import with_earlier_runs_lost, with_end
from gaia_sessions.session.runs import has_ended, without_keys
from gaia_sessions.session.schema import LOST
from gaia_sessions.session.shared_keys import scopes_of
from gaia_sessions.session.updates import check_writable, with_next_revision
from gaia_sessions.store import read_or_corrupt
from gaia_sessions.store.above import Above
from gaia_sessions.store.import_source import open_source
from gaia_sessions.store.inbox_keys import all_keys, may_change
from gaia_sessions.system import utc_now
from gaia_sessions.system.project_root import is_on_server, working_directory

from . import at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.import_source import Source
    from gaia_sessions.store.port import Store

    from .at import Place

    class NotImported(TypedDict):
        """A session that was not imported.

        Keys:
            reason, detail: the code and the message of an error.
        """

        agent_id: str
        directory: str
        reason: str
        detail: str

    class Imported(TypedDict):
        """The report on an import.

        Keys:
            imported, already_there: IDs of sessions.
            waiting: how many waiting events each directory has, if any.
        """

        dry_run: bool
        root: str
        directories: list[str]
        imported: list[str]
        already_there: list[str]
        failed: list[NotImported]
        waiting: dict[str, int]


UNENDED_DETAIL = "it had no end when its session was imported"

_POINTING_ELSEWHERE = ("conversation", "host_process", "transcript_path", "output_path", "worktree")
"""Keys of a run that name processes, files or conversations of the other machine."""


def import_from(place: Place, *directories: str | os.PathLike[str], dry_run: bool = False) -> Imported:
    """[Copies](ci-and-cron.md#import-sessions) the sessions of ``directories`` whole.

    The sessions keep their IDs. If the root already has a session with the same ID, that session stays as it is.
    Nothing in ``directories`` changes. The errors are raised before anything is imported.

    Args:
        directories: folders of sessions, projects, or folders of one session.
        dry_run: returns the report and imports nothing.

    Raises:
        NoSuchFolder: there is no such folder.
        UsageError: a directory is the URL of a server.
        StoreFailure: a directory cannot be read.
    """
    named: list[str] = [os.fspath(directory) for directory in directories]
    if any(map(is_on_server, named)):
        raise UsageError("import takes folders, and not the URL of a server", "name a folder of sessions or a project")
    paths = [os.path.join(working_directory(), path) if path else path for path in named]
    if not dry_run:
        at.write(place, lambda _: None)
    sources = [open_source(path) for path in paths]
    report: Imported = {
        "dry_run": dry_run,
        "root": well_formed(place.root),
        "directories": list(dict.fromkeys(well_formed(source.root) for source in sources)),
        "imported": [],
        "already_there": [],
        "failed": [],
        "waiting": {},
    }
    now = utc_now()
    with place.store as store:
        if place.folder is None:
            store.keep_days()  # asks the server once: if it is away, each session would ask in vain
        for source in sources:
            with source:
                _Import(store, source, now, report, place.folder).take_each()
        if report["already_there"] and not dry_run:
            store.sync()
    return report


class _Import:
    """Imports the sessions of one folder."""

    def __init__(self, store: Store, source: Source, now: datetime, report: Imported, folder: str | None) -> None:
        self._store = store
        self._folder = folder  # of the store, if it has one
        self._source = source
        self._now = now
        self._report = report
        self._above = Above(source)
        self._names = sorted(source.names())
        source.remember(self._names)
        # After ``remember``: an event applied from now on changes a record, which ``has_changed`` sees.
        waiting = source.waiting()
        self._waiting_keys = all_keys(waiting)
        if waiting:
            report["waiting"][well_formed(source.root)] = len(waiting)

    def take_each(self) -> None:
        """Imports all sessions; if one cannot be imported, the others still are."""
        for name in self._names:
            agent_id = well_formed(name)
            try:
                self._report["imported" if self._take(name) else "already_there"].append(agent_id)
            except SessionNotFound:  # it was removed meanwhile, or is none
                continue
            except SessionsError as error:
                directory, reason = well_formed(self._source.root), error.code
                self._report["failed"].append(
                    {"agent_id": agent_id, "directory": directory, "reason": reason, "detail": str(error)}
                )

    def _take(self, agent_id: str) -> bool:
        """Imports the session; returns False if a session with its ID is already here, readable or not."""
        record = read_or_corrupt(self._source, agent_id)
        if not isinstance(record, SessionsError) and is_stand_in(record):
            raise SessionNotFound(agent_id)
        stranger = self._path_of(agent_id)  # looked at first: another import may create the session meanwhile
        if self._is_here(agent_id):
            return False
        if stranger is not None:
            raise StoreFailure(
                "import",
                stranger,
                "something that is not a session is there already",
                "move it away, then import again",
            )
        if isinstance(record, SessionsError):
            raise record
        check_writable(record)
        self._refuse_if_awaited(record)
        taken = _as_imported(record, self._above.proved_cancellation(record), self._source.root, self._now)
        reserved = RESERVED_BYTES if is_open(taken) else 0
        taken, _ = fit_record(taken, reserved)
        if self._report["dry_run"]:
            self._source.copy(agent_id, None, durable=False)
            for scope in scopes_of(taken):  # raises what the import would raise
                self._source.document(scope)
                self._store.document(scope)
            return True
        self._take_documents(taken)  # first: a repeated import skips sessions that are here
        try:
            self._store.take_in(taken, self._source, reserved=reserved)
        except SessionExists:  # another process has just created it
            return False
        return True

    def _path_of(self, agent_id: str) -> str | None:
        """Returns the path of what has the name of the session here; None if there is nothing, or no folder."""
        path = None if self._folder is None else os.path.join(self._folder, agent_id)
        return path if path is not None and os.path.lexists(path) else None

    def _refuse_if_awaited(self, record: Record) -> None:
        """Raises ``StoreFailure`` if a waiting event may change the session."""
        # The event may be the end of the session, which the copy would never learn.
        if self._waiting_keys != set() and may_change(record, self._waiting_keys):
            path = f"{self._source.root}/{record['agent_id']}"
            raise StoreFailure("import", path, "an event waits there that could change the session")

    def _take_documents(self, record: Record) -> None:
        """Copies the state that the session shares, unless that state exists here."""
        for scope in scopes_of(record):
            document = self._source.document(scope)
            if document is not None:
                self._store.add_document(document)

    def _is_here(self, agent_id: str) -> bool:
        try:
            self._store.read(agent_id)
        except SessionNotFound:
            return agent_id in self._report["imported"]  # by a dry run from another folder
        except CorruptSession:
            return True
        return True


def _as_imported(record: Record, cancellation: Cancellation | None, directory: str, now: datetime) -> Record:
    """Returns ``record`` as it is stored here: no open run, ended if it is cancelled, no path to the old place."""
    if record.get("runs"):
        record = with_earlier_runs_lost(record, UNENDED_DETAIL, now)
        latest = record["runs"][-1]
        if not has_ended(latest):
            record = with_end(record, latest, LOST, {"detail": UNENDED_DETAIL}, now, written_at(latest))
    if cancellation is not None and is_open(record):
        record = abandoned(record, cancellation)
    if "runs" in record:
        # An empty ``wrapper`` stays, because it marks the run of a command.
        here = [without_keys(run, *_POINTING_ELSEWHERE) for run in record["runs"]]
        record = {**record, "runs": [{**run, "wrapper": {}} if "wrapper" in run else run for run in here]}
    return with_next_revision({**record, "imported_from": well_formed(directory)})
