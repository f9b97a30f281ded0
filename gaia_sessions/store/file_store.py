"""The file store: one directory per session below one root, on a local POSIX file system.

Each change of a session goes through ``open_session``, which decides the order of the steps. A hook that only reads
loads no module that writes sessions.
"""

from __future__ import annotations

from gaia_sessions.errors import StoreFailure
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.record import decode

from . import atomic, document_lock_key, index, locks, reading, send_lock_key
from . import journal as journals
from . import root as roots
from .directory import translate_errors
from .file_reader import FileReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.session.transcript import NewMessage

    from .directory import Directory
    from .key_lock import KeyLock, Presence
    from .open_session import OpenSession
    from .output_file import OutputFile
    from .port import Entry, ImportSource, MarkRule, RecordOrError, Result, StoreRule

_SECONDS_FOR_SEND = 1.0
"""How long to wait for the lock of a send: a process that only checks the lock holds it for a moment."""

_SECONDS_AFTER_REBUILD = 1.2
"""Seconds that a hook reserves to answer after it rebuilt the index."""


def open_store(
    place: str,
    config: Config,
    *,
    lock_timeout: float | None = None,  # None: as in ``config``
    wait: locks.WaitForLock = locks.wait_with_filelock,
    seconds_left: Callable[[], float] | None = None,  # of a hook's call
) -> FileStore:
    """Returns the store at ``place`` with the settings of ``config``, for one call and one thread."""
    return FileStore(
        place,
        durable=config.durability == "full",
        keeps_figures=config.keep_figures,
        lock_timeout=config.lock_timeout if lock_timeout is None else lock_timeout,
        wait=wait,
        seconds_left=seconds_left,
    )


class FileStore(FileReader):
    """Implements the port with files below ``root``."""

    def __init__(
        self,
        root: str,
        *,
        durable: bool = True,
        keeps_figures: bool = True,
        lock_timeout: float = 10.0,
        wait: locks.WaitForLock = locks.wait_with_filelock,
        seconds_left: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(root, seconds_left=seconds_left)
        self.durable = durable  # False leaves syncing to the system
        self.keeps_figures = keeps_figures  # whether removed sessions leave their figures
        self.lock_timeout = lock_timeout
        self.wait = wait  # how to wait for a lock that another process holds

    def repeated(self, act: Callable[[], Result]) -> Result:
        return act()

    def create(
        self,
        record: Record,
        entry: Entry | None = None,
        *,
        reserved: int = 0,
        system_prompt: NewMessage | None = None,
        documents: Mapping[Scope, Document] | None = None,
    ) -> None:
        def write_files(directory: Directory) -> None:
            for name, data in files.items():
                atomic.write_new(directory, name, data, durable=self.durable)

        files = {reading.EVENTS: journals.entry_lines([entry])} if entry else {}
        if system_prompt is not None:
            from gaia_sessions.session.transcript import beginning_with

            committed, files[reading.transcript_name(0)] = beginning_with(system_prompt, 1)
            record = {**record, **committed}
        self._create(record, write_files, reserved, documents)

    def take_in(self, record: Record, source: ImportSource, *, reserved: int = 0) -> None:
        def copy_files(directory: Directory) -> None:
            source.copy(record["agent_id"], directory, durable=self.durable)

        self._create(record, copy_files, reserved)

    def _create(
        self,
        record: Record,
        write_others: Callable[[Directory], None],
        reserved: int,
        documents: Mapping[Scope, Document] | None = None,
    ) -> None:
        from gaia_sessions.session.retention import fit_record

        def write_files(directory: Directory) -> None:
            atomic.write_new(directory, reading.RECORD, data, durable=self.durable)
            write_others(directory)

        data = fit_record(record, reserved)[1]
        self._new(record, write_files, documents)

    def put(self, agent_id: str, files: Mapping[str, bytes]) -> None:
        def write_files(directory: Directory) -> None:
            for name, data in files.items():
                atomic.write_new(directory, name, data, durable=self.durable)
                if directory.read(name, len(data)) != data:
                    raise StoreFailure(
                        "copy", f"{self.root}/{agent_id}/{name}", "the disk has other bytes than written"
                    )

        self._new(decode(files[reading.RECORD], agent_id), write_files)

    def _new(
        self,
        record: Record,
        write_files: Callable[[Directory], None],
        documents: Mapping[Scope, Document] | None = None,
    ) -> None:
        from .open_session import OpenSession

        agent_id = check_agent_id(record["agent_id"])
        new = OpenSession(self, agent_id, self.made_folder, self.lock_timeout, self.wait, durable=self.durable)
        with translate_errors("create", f"{self.root}/{agent_id}"), new:
            new.create(record, write_files, documents)

    def made_folder(self) -> Directory:
        """Returns the root, and makes it if it is missing."""
        self._folder = roots.make_root(self.root, durable=self.durable, root=self._folder)
        return self._folder

    def repair(self, agent_id: str) -> str | None:
        from . import record_repair

        with self.open(agent_id) as session:
            return record_repair.repair(session)

    def open(self, agent_id: str, *, timeout: float | None = None) -> OpenSession:
        from .open_session import OpenSession

        check_agent_id(agent_id)
        seconds = self.lock_timeout if timeout is None else timeout
        return OpenSession(self, agent_id, None, seconds, self.wait, durable=self.durable)

    def change(self, agent_id: str, rule: StoreRule, *, timeout: float | None = None, reserved: int = 0) -> Record:
        with self.open(agent_id, timeout=timeout) as session:
            return session.commit(rule(session.record), reserved=reserved)

    def open_output(self, record: Record, number: int) -> OutputFile:
        from . import output_file

        session = output_file.open_session(self.folder, record, self.load)
        return output_file.OutputFile(session, number, durable=self.durable)

    def mark(self, agent_id: str, rule: MarkRule, *, timeout: float | None = None) -> Mark:
        from . import marks

        with self.open(agent_id, timeout=timeout) as session:
            return marks.change(session.root, session.directory, agent_id, rule, durable=self.durable)

    def ensure_index(self) -> None:
        root = self.folder
        with translate_errors("index", self.root):
            if root.is_there and not index.is_complete(root):
                from .index_repair import rebuild

                rebuild(root, self._read_or_error, lambda: self._has_less_time_than(_SECONDS_AFTER_REBUILD))

    def delete_each(
        self,
        agent_ids: Iterable[str],
        should_delete: Callable[[str, RecordOrError], bool],
        *,
        timeout: float | None = 0,
    ) -> Iterator[tuple[str, bool | SessionsError]]:
        from .session_directory import Deletion

        seconds = self.lock_timeout if timeout is None else timeout
        deletion = Deletion(self.folder, self._read_or_error, should_delete, seconds, self.wait, durable=self.durable)
        return deletion.each(agent_ids)

    def add_figures(self, figures: Sequence[Mapping[str, object]]) -> None:
        if not self.keeps_figures:
            return
        from .figures_file import KEY, check_room

        lines = b"".join(map(dump_line, figures))
        with self.lock_key(KEY):
            root = self.made_folder()
            check_room(root, len(lines))
            atomic.append(root, roots.STATS, lines, durable=self.durable)

    def sync(self) -> None:
        if self.durable and self.folder.is_there:
            atomic.sync_folder(self.folder)

    def sweep(self, now: datetime) -> list[str]:
        from .session_directory import purge_trash
        from .sweep import sweep

        root = self.folder
        if self.open_ids is None:
            for _ in self.scan():
                continue
        with translate_errors("sweep", self.root):
            purge_trash(root, durable=self.durable)
            return sweep(root, now, self.open_ids or set(), self._read_or_error)

    def keep_days(self) -> None:
        """Returns None: the settings of the project decide."""

    def lock_key(self, key: tuple[str, ...], timeout: float | None = None) -> KeyLock:
        from .key_lock import KeyLock

        seconds = self.lock_timeout if timeout is None else timeout
        return KeyLock(self.root, lambda: self._opened_below(self._lock_folder), key, seconds, self.wait)

    def lease(self, sends_to: str | None = None) -> KeyLock | Presence:
        from .key_lock import Presence

        if sends_to is None:
            return Presence()
        return self.lock_key(send_lock_key(check_agent_id(sends_to)), _SECONDS_FOR_SEND)

    def _lock_folder(self) -> Directory:
        return self.made_folder().make(roots.LOCKS)

    def add_document(self, document: Document) -> None:
        from .documents import replace_around

        scope = (*document["scope"],)
        with self.lock_key(document_lock_key(scope)):
            if self.document(scope) is None:
                replace_around(self.made_folder(), {scope: document}, lambda: None, durable=self.durable)

    def remove_document(self, scope: Scope) -> None:
        from . import documents

        documents.remove(self.folder, scope, durable=self.durable)

    def append(self, agent_id: str, journal: str, entries: list[Json], *, timeout: float | None = None) -> None:
        with self.open(agent_id, timeout=timeout) as session:
            session.append(journal, entries)

    def defer(self, event: Event, now: datetime) -> str:
        from . import inbox

        with translate_errors("defer", self.root):
            return inbox.put(self.made_folder(), event, now, durable=self.durable)

    def dismiss(self, name: str) -> None:
        from . import inbox

        root = self.folder
        with translate_errors("dismiss", f"{self.root}/{roots.INBOX}/{name}"):
            inbox.remove(root, name)
