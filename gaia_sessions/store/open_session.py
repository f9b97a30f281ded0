"""A session whose lock is held. ``create`` and ``commit`` decide which file is written first."""

from __future__ import annotations

import os

from gaia_sessions import errors
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.session import index_keys
from gaia_sessions.session.record import SCHEMA, as_stored, encode, with_moving
from gaia_sessions.session.updates import Change, check_writable, with_next_revision

from . import atomic, index, locks, reading
from . import journal as journals
from . import root as roots
from .directory import refusal, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.schema import Moving, Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.session.transcript import Message, NewMessage

    from .directory import Directory
    from .file_reader import FileReader
    from .transcript_file import Uncommitted


class OpenSession:
    """The session ``agent_id``, its root and its lock, for a ``with`` block; the rest is opened when it is needed."""

    __slots__ = (
        *("_cancellation", "_directory", "_knows_cancellation", "_make_root", "_reader", "_record", "_timeout"),
        *("_wait", "added", "agent_id", "durable", "lock", "root"),
    )

    added: Sequence[Message]
    lock: locks.Lock
    root: Directory

    def __init__(
        self,
        reader: FileReader,
        agent_id: str,
        make_root: Callable[[], Directory] | None,  # for a session that is to be created
        timeout: float,
        wait: locks.WaitForLock,
        *,
        durable: bool,
    ) -> None:
        self.added = ()
        self.agent_id = agent_id
        self.durable = durable
        self._reader = reader
        self._make_root = make_root
        self._timeout = timeout
        self._wait = wait
        self._directory: Directory | None = None
        self._record: Record | None = None
        self._cancellation: Cancellation | None = None
        self._knows_cancellation = False

    def __enter__(self) -> Self:
        self.root = root = self._make_root() if self._make_root else self._root_with_session()
        with translate_errors("open", f"{root.path}/{roots.LOCKS}"):
            folder = root.make(roots.LOCKS)
            try:
                self.lock = locks.acquire(folder, locks.name_for(self.agent_id), self._timeout, self._wait)
            except BaseException:
                os.close(folder.fd)
                raise
        return self

    def _root_with_session(self) -> Directory:
        """Returns the root if the session exists: nobody waits for the lock of a session that never existed."""
        root = self._reader.folder
        with translate_errors("open", f"{root.path}/{self.agent_id}"):
            if root.has(self.agent_id):
                return root
        raise errors.SessionNotFound(self.agent_id)

    def __exit__(self, *_: object) -> None:
        try:
            self.lock.__exit__()
        finally:
            for directory in filter(None, (self._directory, self.lock.folder)):
                os.close(directory.fd)

    @property
    def directory(self) -> Directory:
        if self._directory is None:
            self._directory = reading.open_session(self.root, self.agent_id)
        return self._directory

    @property
    def record(self) -> Record:
        if self._record is None:
            record = self._reader.load(self.directory, self.agent_id)
            if record["schema"] != SCHEMA:
                check_writable(record)
            self._record = record
        return self._record

    def cancellation(self) -> Cancellation | None:
        if not self._knows_cancellation:
            self._look_for_marks(self.record)
        return self._cancellation

    def _look_for_marks(self, record: Record) -> None:
        marked_ids = [self.agent_id] if reading.has_mark(self.root, self.agent_id) else []
        if "parent_id" in record:
            marked_ids += reading.marked_ids(self.root, self._reader.ancestors(record))
        self._cancellation = None
        if marked_ids:
            from gaia_sessions.session.cancellation import cancellation_of

            from . import marks

            self._cancellation = cancellation_of(self.agent_id, marks.read_each(self.root, marked_ids))
        self._knows_cancellation = True

    def create(
        self,
        record: Record,
        write_files: Callable[[Directory], None],
        documents: Mapping[Scope, Document] | None = None,
    ) -> None:
        """Creates the session's directory whole or not at all, filled by ``write_files``; then stores ``documents``."""
        self._write_around(documents, lambda: self._create(record, write_files))

    def _create(self, record: Record, write_files: Callable[[Directory], None]) -> None:
        root, agent_id = self.root, self.agent_id
        if root.has(agent_id):
            raise errors.SessionExists(agent_id)
        if "parent_id" in record:
            self._look_for_marks(record)  # refuses the creation while a mark above cannot be read
        if not index.is_complete(root):
            from .index_repair import set_empty_complete

            set_empty_complete(root)
        index.add(root, agent_id, index_keys.keys_of(record))  # first: a crash leaves an entry too many, never too few
        with root.make(roots.STAGE) as stage:
            staged_name = atomic.with_random_suffix(agent_id)
            try:
                with stage.make(staged_name) as directory:
                    write_files(directory)
                    if self.durable:
                        os.fsync(directory.fd)  # the files and their names, before the session gets its name
                os.rename(staged_name, agent_id, src_dir_fd=stage.fd, dst_dir_fd=root.fd)
            except BaseException:
                atomic.discard_folder(stage, staged_name)
                raise
        if self.durable:
            atomic.sync_folder(root)

    def commit(
        self,
        change: Record | Change,
        *,
        reserved: int = 0,
        proved: Cancellation | None = None,
        messages: Sequence[NewMessage] = (),
        documents: Mapping[Scope, Document] | None = None,
    ) -> Record:
        before, directory, transcript = self.record, self.directory, None
        self.added = ()
        record, entries = (change.record, change.entries) if isinstance(change, Change) else (change, ())
        if record is before and not messages and not documents:
            self.lock.check_held()
            return before
        if messages or record.get("transcripts_archived") != before.get("transcripts_archived"):
            from .transcript_file import Uncommitted  # most changes are of the record alone

            transcript = Uncommitted(directory, before, messages)
            record = transcript.announced_in(record)
        if proved is not None:  # a mark is never removed
            self._cancellation, self._knows_cancellation = proved, True
        elif not self._knows_cancellation or "parent_id" in record:  # a session above may be marked at any moment
            self._look_for_marks(record)
        self.lock.check_held()
        if self._cancellation is not None:
            from .marks import applied

            record, entries = applied(before, record, entries, self._cancellation)
        from gaia_sessions.session.retention import fit_record

        lines = journals.entry_lines(entries) if entries else b""
        record, data = fit_record(with_next_revision(record), reserved, before)
        self._write_around(documents, lambda: self._write(before, record, data, transcript))
        self._record = record
        if lines:  # after the record: from here on nothing can be refused
            journals.append_events(directory, lines, durable=self.durable)
        if transcript:
            self.added = transcript.finish()
        return record

    def _write_around(self, documents: Mapping[Scope, Document] | None, write: Callable[[], None]) -> None:
        """Writes ``documents`` under temporary names, calls ``write``, and renames the documents into place."""
        if not documents:
            write()
            return
        from .documents import replace_around  # few sessions share anything

        replace_around(self.root, documents, write, durable=self.durable)

    def _write(self, before: Record, record: Record, data: bytes, transcript: Uncommitted | None) -> None:
        """Replaces ``before`` with ``record``, whose bytes are ``data``; updates the index and the ``transcript``."""
        try:
            added, removed = index_keys.difference(before, record)
            if added:  # before the record, and ``removed`` after it: a crash leaves an entry too many, never too few
                index.add(self.root, self.agent_id, added)
            if self.durable and (before["revision"] <= 1 or "imported_from" in before):
                os.fsync(self.root.fd)  # its creator or importer may have been killed before the name was synced
            if transcript:  # before the record, which commits the new messages
                transcript.write(durable=self.durable)
            atomic.replace(self.directory, reading.RECORD, data, durable=self.durable)
            if removed:
                index.remove(self.root, {self.agent_id: removed})
        except OSError as error:
            raise refusal("change", self.directory.path, error) from error

    def set_moving(self, moving: Moving | None) -> None:
        """Fences the session, or with None takes the fence away; nothing else of the record changes."""
        before: Record = as_stored(self.directory.read(reading.RECORD, DOCUMENT_LIMIT))  # type: ignore[assignment]  # as it was stored
        record = with_moving(before, moving)
        self._write(before, record, encode(record), None)

    def append(self, journal: str, entries: list[Json]) -> None:
        """Adds ``entries`` to the end of a ``journal``."""
        check_writable(self.record)
        atomic.append(self.directory, journal, journals.entry_lines(entries), durable=self.durable)
