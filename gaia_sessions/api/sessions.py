"""The sessions of one root, and what can be done with them.

Owns that every write first applies the events that wait in the inbox. Whoever asks (a program, a command) gets at the
store only through this object.
"""

from __future__ import annotations

import os

from gaia_sessions.session.clock import format_time
from gaia_sessions.system import utc_now
from gaia_sessions.system.project_root import working_directory

from .reading import SessionReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gaia_sessions.session.requests import Ending, NewSession, Update
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message
    from gaia_sessions.store.port import Reader
    from gaia_sessions.usecases.budgets import Budgets
    from gaia_sessions.usecases.cancellation import CancelledSession
    from gaia_sessions.usecases.cleanup import Report
    from gaia_sessions.usecases.importing import Imported
    from gaia_sessions.usecases.reconcile import Reconciled
    from gaia_sessions.usecases.reconcile_evidence import EvidenceReader

DEFAULT_HOURS = 24.0
"""How long a session must have been unused before ``cleanup`` removes it, unless the caller says otherwise."""


class Sessions(SessionReader):
    """The sessions of one root, to be read and changed."""

    __slots__ = ()

    def budgets(self) -> Budgets:
        """The budgets, skills and todos of these sessions, to be changed now."""
        from gaia_sessions.usecases.budgets import Budgets

        self._apply_deferred()
        return Budgets(self._store, utc_now(), self.config.budgets)

    def add_message(
        self,
        agent_id: str,
        role: str,
        content: str,
        *,
        tool_name: str | None = None,
        tool_call_id: str | None = None,
        tokens: int | None = None,
        is_charged: bool = False,
    ) -> Message:
        """Adds a message to the transcript, and returns it as it is stored; ``is_charged``: its tokens are too."""
        from gaia_sessions.session.transcript import new_message
        from gaia_sessions.usecases import transcript

        now = utc_now()
        message = new_message(role, content, now, tool_name=tool_name, tool_call_id=tool_call_id, tokens=tokens)
        self._apply_deferred()
        add = transcript.remember if is_charged else transcript.add_message
        return add(self._store, now, agent_id, message)

    def compact(self, agent_id: str) -> bool:
        """Puts a summary in place of older messages of the memory; False if too few are there."""
        from gaia_sessions.usecases import transcript

        self._apply_deferred()
        return transcript.compact(self._store, utc_now(), agent_id)

    def forget(self, agent_id: str) -> None:
        """Begins an empty transcript, without tokens and todos."""
        from gaia_sessions.usecases import transcript

        self._apply_deferred()
        transcript.forget(self._store, utc_now(), agent_id)

    def create(self, new: NewSession) -> str:
        """The id of a new session."""
        from gaia_sessions.usecases import sessions

        self._apply_deferred()
        return sessions.create(self._store, utc_now(), os.urandom, new)["agent_id"]

    def update(self, agent_id: str, request: Update) -> Record:
        """The new record."""
        from gaia_sessions.usecases import sessions

        self._apply_deferred()
        return sessions.update(self._store, utc_now(), agent_id, request)

    def session_of_host_agent(self, host_session_id: str, host_agent_id: str) -> str:
        """The id of the session that an agent of a host works on. Raises ``SessionNotFound``."""
        from gaia_sessions.ingest import join

        self._apply_deferred()  # the event that the agent started may still wait
        return join.session_of_agent(self._store, host_session_id, host_agent_id)["agent_id"]

    def finalize(self, agent_id: str, ending: Ending) -> tuple[Record, bool]:
        """The record, and whether this call ended the session; if not, it had already ended with this outcome."""
        from gaia_sessions.usecases import sessions

        self._apply_deferred()
        now = utc_now()
        record = sessions.finalize(self._store, now, agent_id, ending)
        return record, sessions.was_finalized_at(record, now)

    def cancel(self, agent_id: str, reason: str | None = None, *, below: bool = True) -> CancelledSession:
        """The mark of the session, which is cancelled from now on, with ``below`` together with all below it."""
        from gaia_sessions.usecases.cancellation import cancel

        self._apply_deferred()
        return cancel(self._store, utc_now(), agent_id, reason, below=below)

    def cancel_conversation(
        self, host_session_id: str, reason: str | None, *, below: bool
    ) -> Sequence[CancelledSession]:
        """The marks of the sessions that belong to a conversation of a host."""
        from gaia_sessions.usecases.cancellation import cancel_conversation

        self._apply_deferred()  # the event by which a session belongs to it may still wait
        return cancel_conversation(self._store, utc_now(), host_session_id, reason, below=below)

    def cleanup(self, hours: float = DEFAULT_HOURS, *, dry_run: bool = False, corrupt: bool = False) -> Report:
        """Removes the sessions that were not used for ``hours``."""
        from gaia_sessions.usecases import cleanup

        now = utc_now()
        rule = cleanup.CleanupPolicy(now, hours, self.config.limits, corrupt=corrupt)
        reader = self._reader_for(dry_run=dry_run)
        return cleanup.cleanup(self._store, rule, self._evidence_reader(), dry_run=dry_run, sessions=reader)

    def reconcile(self, *, dry_run: bool = False) -> Reconciled:
        """Closes the runs that are proven to have ended, and counts what those that have ended used."""
        from gaia_sessions.hosts import consumption, label_in_files
        from gaia_sessions.ingest.consumption import count_ended_runs
        from gaia_sessions.usecases.reconcile import reconcile

        reader = self._reader_for(dry_run=dry_run)
        report = reconcile(self._store, utc_now(), self._evidence_reader(), dry_run=dry_run, sessions=reader)
        readers = (consumption, label_in_files) if self.config.store_description else (consumption,)
        return {**report, "counted": count_ended_runs(self._store, reader, *readers, dry_run=dry_run)}

    def import_sessions(self, *directories: str | os.PathLike[str], dry_run: bool = False) -> Imported:
        """Copies the sessions of ``directories`` into this root."""
        from gaia_sessions.usecases.importing import import_folders

        named: list[str] = [os.fspath(directory) for directory in directories]
        paths = [os.path.join(working_directory(), path) if path else path for path in named]
        reader = self._reader_for(dry_run=dry_run)
        return import_folders(self._store, reader, paths, utc_now(), self.config, dry_run=dry_run)

    def _reader_for(self, *, dry_run: bool) -> Reader:
        """What to judge by: a dry run sees the waiting events as applied, a real run applies them."""
        if dry_run:
            return self._preview()
        self._apply_deferred()
        return self._store

    def _evidence_reader(self) -> EvidenceReader:
        from gaia_sessions.hosts import end_in_files
        from gaia_sessions.usecases.reconcile_evidence import EvidenceReader

        return EvidenceReader(self.root, end_in_files)

    def _apply_deferred(self) -> None:
        """Applies the events that wait in the inbox, and logs which."""
        from gaia_sessions.ingest.deferred import apply_deferred

        now = utc_now()
        applied = apply_deferred(self._store, now, self.config)
        if applied:
            from gaia_sessions.store import hook_log

            hook_log.append_line(self.root, "inbox", {"at": format_time(now), "inbox": applied})
