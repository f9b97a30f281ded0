"""A session open under its lock: the one object on which a change of it works, from the first look to the last write.

The order of all that a change writes is that of ``commit``. The index entries that it needs are made before, those that
nobody needs any more are removed after; so a crash leaves an entry too many, never one too few.
"""

from __future__ import annotations

import os

from gaia_sessions.session.record import is_open
from gaia_sessions.session.updates import Change, check_writable, with_next_revision

from . import atomic, ids_up_to_root, index, locks, reading
from . import journal as journals
from . import root as roots
from .directory import translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Cancellation, Mark, MarkOf
    from gaia_sessions.session.schema import Record

    from .directory import Directory
    from .file_reader import FileReader
    from .port import MarkRule
    from .transcript_file import Appending, Emptying


class OpenSession:
    """The session ``agent_id``: its root and its lock from the beginning of a ``with`` block to its end.

    Its directory and its record are opened and read when they are asked for: a mark needs no record.
    """

    __slots__ = (
        *("_directory", "_held", "_marks", "_open_root", "_reader", "_record", "_timeout", "_wait"),
        *("agent_id", "durable", "lock", "root"),
    )

    lock: locks.Lock
    root: Directory

    def __init__(
        self,
        reader: FileReader,
        agent_id: str,
        open_root: Callable[[], Directory],
        timeout: float,
        wait: locks.WaitForLock,
        *,
        durable: bool,
    ) -> None:
        self.agent_id = agent_id
        self.durable = durable
        self._reader = reader
        self._open_root = open_root
        self._timeout = timeout
        self._wait = wait
        self._held: list[Directory | locks.Lock] = []
        self._directory: Directory | None = None
        self._record: Record | None = None
        self._marks: list[MarkOf] | None = None

    def __enter__(self) -> Self:
        self.root = self._open_root()
        self._held.append(self.root)
        try:
            folder = roots.open_lock_folder(self.root)
            self._held.append(folder)
            self.lock = locks.acquire(folder, locks.name_for(self.agent_id), self._timeout, self._wait)
        except BaseException:
            self.__exit__()
            raise
        self._held.append(self.lock)
        return self

    def __exit__(self, *_: object) -> None:
        if self._held:
            try:
                self._held.pop().__exit__(None, None, None)
            finally:
                self.__exit__()

    @property
    def directory(self) -> Directory:
        """Its directory. Raises ``SessionNotFound``, ``CorruptSession``."""
        if self._directory is None:
            self._directory = reading.open_session(self.root, self.agent_id)
            self._held.append(self._directory)
        return self._directory

    @property
    def record(self) -> Record:
        """As the port says."""
        if self._record is None:
            record = self._reader.load(self.directory, self.agent_id)
            check_writable(record)
            self._record = record
        return self._record

    def cancellation(self) -> Cancellation | None:
        """As the port says."""
        if self._marks is None:
            self._marks = self._read_marks(self.record)
        return _cancellation_of(self.agent_id, self._marks)

    def check_above(self, record: Record) -> None:
        """Raises ``StoreFailure`` while the marks of the sessions above that of ``record`` cannot be read."""
        if "parent_id" in record:
            self._read_marks(record)

    def _read_marks(self, record: Record) -> list[MarkOf]:
        return self._reader.marks_in(self.root, ids_up_to_root(self._reader, record))

    def commit(
        self, change: Record | Change, *, reserved: int = 0, transcript: Appending | Emptying | None = None
    ) -> Record:
        """As the port says; ``transcript`` is what happens to that file in the same commit."""
        self.lock.check_held()
        before = self.record
        record, entries = (change.record, change.entries) if isinstance(change, Change) else (change, ())
        record = transcript.prepare(self.directory, before, record) if transcript else record
        if record is before:
            return before
        if self._marks is None or "parent_id" in record:  # those above may be marked at any moment
            self._marks = self._read_marks(record)
        cancellation = _cancellation_of(self.agent_id, self._marks)
        if cancellation is not None:
            from .marks import applied

            record, entries = applied(before, record, entries, cancellation)
        from gaia_sessions.session.retention import fit_record

        lines = journals.entry_lines(entries)
        record, data = fit_record(with_next_revision(record), reserved, before)
        with translate_errors("change", self.directory.path):
            added, removed = index.difference(before, record)
            index.add(self.root, self.agent_id, added)
            self._prepare_directory(before, record)
            if transcript:
                transcript.write(self.directory, durable=self.durable)
            atomic.replace(self.directory, reading.STATE, data, durable=self.durable)
            index.remove(self.root, self.agent_id, removed)
        self._record = record
        if lines:
            journals.append_events(self.directory, lines, durable=self.durable)
        if transcript:
            transcript.finish(self.directory)
        return record

    def _prepare_directory(self, before: Record, record: Record) -> None:
        """Removes what killed writers left, with the end of the work; and makes a name durable that may not be so."""
        if not is_open(record):
            for leftover in filter(reading.is_unfinished, self.directory.names()):
                atomic.discard(self.directory, leftover)
        if self.durable and (before["revision"] <= 1 or "imported_from" in before):
            os.fsync(self.root.fd)  # whoever brought it here may have been killed before its name was on the disk

    def mark(self, rule: MarkRule) -> Mark:
        """Applies ``rule`` to the mark of the session, and returns the mark as it is then."""
        from . import marks

        return marks.change(self.root, self.directory, self.agent_id, rule, durable=self.durable)

    def append(self, journal: str, entries: list[Json]) -> None:
        """Adds ``entries`` to the end of a ``journal``."""
        atomic.append(self.directory, journal, journals.entry_lines(entries), durable=self.durable)


def _cancellation_of(agent_id: str, marks: list[MarkOf]) -> Cancellation | None:
    if not marks:
        return None
    from gaia_sessions.session.cancellation import cancellation_of

    return cancellation_of(agent_id, marks)
