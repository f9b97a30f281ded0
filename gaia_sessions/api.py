"""The Python API: one function per thing a program wants of its sessions.

The first five names and their leading arguments are those of the users' documents. Every function takes
``root``; None means the one the command line would find from here. All raise the errors of
``gaia_sessions.errors``, ``OwnedByAnother`` for another user's sessions among them. ``Sessions`` is the same for one
root, found and configured once.
"""

from __future__ import annotations

import os

from . import config
from .errors import SessionNotFound, well_formed
from .session.clock import format_time, utc_now
from .session.ids import is_agent_id
from .store.file_store import FileStore
from .store.journal import EVENTS
from .system.project_root import check_owner, find_root, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from .errors import SessionsError
    from .jsonio.strict import Json
    from .session.policy import Decision
    from .session.schema import CorruptSummary, Record, Summary
    from .store.port import Reader
    from .usecases.cleanup import Report
    from .usecases.importing import Imported
    from .usecases.listing import Filter
    from .usecases.preview import Preview
    from .usecases.reconcile import Reconciled

DEFAULT_HOURS = 24.0


def create_session(
    agent_name: str = "unknown",
    purpose: str = "general",
    metadata: Mapping[str, object] | None = None,
    *,
    agent_id: str | None = None,
    root: str | None = None,
) -> str:
    """The id of a new session in phase ``initializing``, durable on return.

    ``agent_id``: an id of your own instead of a made one. Raises ``SessionExists``, ``InvalidId``,
    ``InvalidInput`` for metadata that is not JSON, ``TooLarge`` over 1 MiB, ``LockTimeout``, ``StoreFailure``,
    ``DurabilityUnknown``.
    """
    return Sessions(root).create(agent_name, purpose, metadata, agent_id)


def update_state(  # noqa: PLR0913  # a word for each thing that an update may say
    agent_id: str,
    phase: str | None = None,
    metadata: Mapping[str, object] | None = None,
    error: str | None = None,
    *,
    resume_ready: bool | None = None,
    if_revision: int | None = None,
    denial: str | None = None,
    root: str | None = None,
) -> Record:
    """The new record, durable on return. ``metadata`` is merged one level deep; ``error`` counts one more error.

    The same phase again is a heartbeat; a final one finalizes. ``if_revision`` writes only if the record
    is at that revision. ``denial`` says why what it waits for in ``approval`` was refused: that holds until the
    next move or request, and whoever resumes the work is told. Raises ``SessionNotFound``, ``UnknownPhase``,
    ``SessionFinal``, ``IllegalMove``, ``ResumeNotAllowed``, ``NothingToDeny``, ``RevisionChanged``, ``NewerSchema``,
    ``CorruptSession``, ``InvalidInput``, ``TooLarge``, ``LockTimeout``, ``StoreFailure``, ``DurabilityUnknown``.
    """
    return Sessions(root).update(
        agent_id, phase, metadata, error, resume_ready=resume_ready, if_revision=if_revision, denial=denial
    )


def should_resume(agent_id: str, *, root: str | None = None) -> bool:
    """Whether the work may be resumed; False for missing, corrupt and impossible ids too. Writes nothing."""
    return is_agent_id(agent_id) and Sessions(root).explain(agent_id)["should_resume"]


def explain_resume(agent_id: str, *, root: str | None = None) -> Decision:
    """The decision with its reason and every check: see ``policy.decide``. Raises ``InvalidId``, ``StoreFailure``."""
    return Sessions(root).explain(agent_id)


def get_session(agent_id: str, *, root: str | None = None) -> Record | None:
    """The record, or None if there is none. Raises ``CorruptSession``, ``InvalidId``, ``StoreFailure``."""
    try:
        return Sessions(root).store.read(agent_id)
    except SessionNotFound:
        return None


def finalize_session(
    agent_id: str, outcome: str, summary: str | None = None, *, error: str | None = None, root: str | None = None
) -> Record:
    """The record, ended as ``completed``, ``failed`` or ``abandoned``; the same outcome again changes nothing.

    Raises ``UnknownOutcome``, ``SessionFinal`` if it ended otherwise, and what ``update_state`` raises.
    """
    return Sessions(root).finalize(agent_id, outcome, summary, error)


def list_sessions(
    *,
    active_only: bool = False,
    agent_name: str | None = None,
    phases: Iterable[str] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    limit: int | None = None,
    root: str | None = None,
) -> Iterator[Summary | CorruptSummary]:
    """Summaries, the latest activity first; one that cannot be read has ``status`` ``corrupt`` and a ``problem``,
    and comes last.

    Each is as the next writer will leave it, who first applies what waits in the inbox, and says by the policy whether
    it may be resumed: ``resume`` is ``{should_resume, reason, until}``.
    Active is what is not final; ``since`` and ``until`` bound ``created_at``, both included: times without an offset
    are UTC, texts are times as records have them. Raises ``UnknownPhase``, ``BadArgument``.
    """
    from .usecases import listing

    criteria = listing.Filter(active_only=active_only, agent_name=agent_name, phases=phases, since=since, until=until)
    return Sessions(root).list(criteria, limit)


def session_events(agent_id: str, *, root: str | None = None) -> Iterator[Json | SessionsError]:
    """What hosts told of a session, in the order in which it was applied; an error in the place of a bad line.

    Each is ``{at, kind, run, phase, end?, detail?, revision, evidence}``. Raises ``SessionNotFound``, ``InvalidId`` and
    ``StoreFailure`` when it is called, not when the first entry is asked for.
    """
    return Sessions(root).events(agent_id)


def cleanup_sessions(
    hours: float = DEFAULT_HOURS, *, dry_run: bool = False, corrupt: bool = False, root: str | None = None
) -> Report:
    """Removes what nobody touched for ``hours``, never what may be resumed or runs; says what it did.

    First it closes the runs that ``reconcile_sessions`` would.
    ``corrupt`` removes what cannot be read as well. Raises ``BadArgument`` for hours below 0,
    ``StoreFailure``, ``DurabilityUnknown``.
    """
    return Sessions(root).cleanup(hours, dry_run=dry_run, corrupt=corrupt)


def reconcile_sessions(*, dry_run: bool = False, root: str | None = None) -> Reconciled:
    """Judges every run without an end by evidence, and closes those with proof: each verdict says on what it rests.

    ``lost``, ``ended_with_host`` and ``denied`` are closed; ``running`` and ``unsure`` are left alone. Raises
    ``StoreFailure``.
    """
    return Sessions(root).reconcile(dry_run=dry_run)


def import_sessions(directory: str | os.PathLike[str], *, dry_run: bool = False, root: str | None = None) -> Imported:
    """Takes in the sessions of ``directory``, which has one folder per session; says what it did with each.

    They keep their ids; what is here already stays as it is, and ``directory`` is not changed. Raises
    ``NoSuchFolder``, ``StoreFailure`` if ``directory`` cannot be read.
    """
    return Sessions(root).import_sessions(directory, dry_run=dry_run)


class Sessions:
    """The sessions of one root: its place, its settings, its store. ``flags`` are settings that beat all others.

    The methods are the functions above, without their ``root``. Whoever writes first applies what waits
    in the inbox.
    """

    __slots__ = ("config", "root", "store")

    def __init__(self, root: str | None = None, flags: Mapping[str, object] | None = None) -> None:
        self.root = find_root(root, os.environ, working_directory())
        check_owner(self.root)
        self.config = config.load(self.root, os.environ, flags)
        self.store = FileStore.from_config(self.root, self.config)

    def create(self, agent_name: str, purpose: str, metadata: object = None, agent_id: str | None = None) -> str:
        from .usecases import sessions

        self._apply_deferred()
        return sessions.create(self.store, utc_now(), os.urandom, agent_name, purpose, metadata, agent_id)["agent_id"]

    def update(
        self,
        agent_id: str,
        phase: str | None = None,
        metadata: object = None,
        error: str | None = None,
        *,
        resume_ready: bool | None = None,
        if_revision: int | None = None,
        denial: str | None = None,
    ) -> Record:
        from .session.requests import Update
        from .usecases import sessions

        asked = Update(phase, metadata, error, resume_ready=resume_ready, if_revision=if_revision, denial=denial)
        self._apply_deferred()
        return sessions.update(self.store, utc_now(), agent_id, asked)

    def session_of_host_agent(self, host_session_id: str, host_agent_id: str) -> str:
        """The id of the session that an agent of a host works on. Raises ``SessionNotFound`` if none knows it."""
        from .ingest import join

        self._apply_deferred()  # its start may still wait
        return join.session_of_agent(self.store, host_session_id, host_agent_id)["agent_id"]

    def finalize(self, agent_id: str, outcome: str, summary: str | None = None, error: str | None = None) -> Record:
        return self.end(agent_id, outcome, summary, error)[0]

    def end(
        self, agent_id: str, outcome: str, summary: str | None = None, error: str | None = None
    ) -> tuple[Record, bool]:
        """What ``finalize`` returns, and whether this call ended it; if not, it had ended so already."""
        from .usecases import sessions

        self._apply_deferred()
        now = utc_now()
        record = sessions.finalize(self.store, now, agent_id, outcome, summary, error)
        return record, record.get("finalized_at") == format_time(now)

    def explain(self, agent_id: str) -> Decision:
        from .usecases import resume

        decision, _ = resume.read_and_decide(self._preview(), utc_now(), agent_id, self.config.limits)
        return decision

    def preview(self, agent_id: str) -> Record:
        """The record as the next writer will leave it. Raises what ``Store.read`` does."""
        return self._preview().read(agent_id)

    def decide(self, record: Record) -> Decision:
        """The policy's answer on ``record``, as it was just written or read."""
        from .usecases import resume

        return resume.decide(record["agent_id"], record, utc_now(), self.config.limits)

    def list(self, criteria: Filter, limit: int | None = None) -> Iterator[Summary | CorruptSummary]:
        from .usecases import listing

        return listing.list_sessions(self._preview(), criteria, utc_now(), self.config.limits, limit)

    def events(self, agent_id: str) -> Iterator[Json | SessionsError]:
        return self.store.entries(agent_id, EVENTS)

    def cleanup(self, hours: float = DEFAULT_HOURS, *, dry_run: bool = False, corrupt: bool = False) -> Report:
        from .usecases import cleanup

        now = utc_now()
        rule = cleanup.CleanupPolicy(now, hours, self.config.limits, corrupt=corrupt)
        sessions = self._reader_for(dry_run=dry_run)
        return cleanup.cleanup(self.store, rule, self._ended_host_sessions, dry_run=dry_run, sessions=sessions)

    def reconcile(self, *, dry_run: bool = False) -> Reconciled:
        from .usecases.reconcile import reconcile

        sessions = self._reader_for(dry_run=dry_run)
        return reconcile(self.store, utc_now(), self._ended_host_sessions, dry_run=dry_run, sessions=sessions)

    def _reader_for(self, *, dry_run: bool) -> Reader:
        """What a dry run judges is what the real one would, which first applies what waits in the inbox."""
        if dry_run:
            return self._preview()
        self._apply_deferred()
        return self.store

    def _preview(self) -> Preview:
        from .usecases.preview import Preview

        return Preview(self.store, utc_now(), self.config)

    def import_sessions(self, directory: str | os.PathLike[str], *, dry_run: bool = False) -> Imported:
        from .store import import_source
        from .usecases import importing

        path = os.fspath(directory)
        with import_source.open_folder(os.path.join(working_directory(), path) if path else path) as folder:
            in_place = import_source.is_root(folder, self.root)
            report = importing.empty_report(
                well_formed(os.path.realpath(folder.path)), well_formed(self.root), dry_run=dry_run, in_place=in_place
            )
            if not in_place:
                reader = self._reader_for(dry_run=dry_run)
                importing.import_sessions(self.store, reader, import_source.records(folder), report)
                if importing.is_empty(report):
                    report["instead"] = import_source.likely_folder(folder)
        return report

    def _ended_host_sessions(self) -> Mapping[tuple[str, str], datetime]:
        from .store import hook_log

        return hook_log.ended_host_sessions(self.root)

    def _apply_deferred(self) -> None:
        from .ingest.deferred import apply_deferred

        now = utc_now()
        applied = apply_deferred(self.store, now, self.config)
        if applied:
            from .store import hook_log

            hook_log.append_line(self.root, "inbox", {"at": format_time(now), "inbox": applied})
