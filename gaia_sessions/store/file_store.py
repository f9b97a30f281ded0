"""The file store: one directory per session below one root, on a local POSIX file system.

Owns the order of steps by which the promises of the port hold: lock, read, apply the rule, write whole, sync, rename,
sync, answer. Each step has its module: ``file_reader`` reads and finds, ``locks`` locks, ``session_directory`` creates,
changes and deletes, ``journal`` and ``transcript_file`` append, ``inbox`` defers, ``sweep`` tidies. Hooks that only
look load no module that writes a session.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.jsonio import strict
from gaia_sessions.session.ids import check_agent_id
from gaia_sessions.session.updates import check_writable

from . import atomic, ids_up_to_root, index, locks, reading
from . import journal as journals
from . import root as roots
from .directory import translate_errors
from .file_reader import FileReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from typing import Self

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage

    from .directory import Directory
    from .import_source import Source
    from .key_lock import KeyLock
    from .port import Entry, MarkRule, RecordOrError, StoreRule
    from .transcript_file import Appending, Emptying

_SECONDS_AFTER_REBUILD = 1.2
"""Seconds that a hook keeps of its call, to answer after it has rebuilt the index."""


class FileStore(FileReader):
    """The port over files below ``root``.

    durable: False leaves syncing to the system. wait: how to wait for a lock that somebody else holds.
    seconds_left: of the one call for which a hook makes this store; None where time does not matter.
    """

    def __init__(
        self,
        root: str,
        *,
        durable: bool = True,
        lock_timeout: float = 10.0,
        wait: locks.WaitForLock = locks.wait_with_filelock,
        seconds_left: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(root, seconds_left=seconds_left)
        self.durable = durable
        self.lock_timeout = lock_timeout
        self.wait = wait

    @classmethod
    def from_config(
        cls,
        root: str,
        config: Config,
        *,
        lock_timeout: float | None = None,
        wait: locks.WaitForLock = locks.wait_with_filelock,
        seconds_left: Callable[[], float] | None = None,
    ) -> Self:
        """The store at ``root`` with the durability and, unless another is given, the lock timeout of ``config``."""
        timeout = config.lock_timeout if lock_timeout is None else lock_timeout
        durable = config.durability == "full"
        return cls(root, durable=durable, lock_timeout=timeout, wait=wait, seconds_left=seconds_left)

    def create(self, record: Record, entry: Entry | None = None, *, reserved: int = 0) -> None:
        def write_journal(session: Directory) -> None:
            if line:
                atomic.write_new(session, reading.EVENTS, line, durable=self.durable)

        line = journals.entry_line(entry)
        self._create(record, write_journal, reserved)

    def take_in(self, record: Record, source: Source, entries: Iterable[Json], *, reserved: int = 0) -> None:
        """Creates a session as ``create`` does, with copies of the files that ``source`` has of it.

        ``entries`` are added to the copy of its journal. Also raises ``CorruptSession`` if one of the files cannot be
        copied, and ``StoreFailure`` if the session was written meanwhile.
        """

        def copy_files(session: Directory) -> None:
            source.copy(record["agent_id"], session, durable=self.durable)
            if lines:
                atomic.append(session, reading.EVENTS, lines, durable=self.durable)

        lines = b"".join(map(strict.dump_line, entries))
        self._create(record, copy_files, reserved)

    def _create(self, record: Record, write_others: Callable[[Directory], None], reserved: int) -> None:
        from gaia_sessions.session.retention import fit_record

        from . import session_directory

        def write_files(session: Directory) -> None:
            atomic.write_new(session, reading.STATE, data, durable=self.durable)
            write_others(session)

        agent_id = check_agent_id(record["agent_id"])
        data = fit_record(record, reserved)[1]
        with translate_errors("create", f"{self.root}/{agent_id}"), self._make_root() as root:
            if not index.is_complete(root):
                from .index_repair import set_empty_complete

                set_empty_complete(root)
            with root.make(roots.LOCKS) as folder, self._lock(folder, agent_id):
                if root.has(agent_id):
                    raise errors.SessionExists(agent_id)
                self._marks_in(root, ids_up_to_root(self, record)[1:])  # refused while they cannot be read
                session_directory.create(root, record, write_files, durable=self.durable)

    def change(
        self,
        agent_id: str,
        rule: StoreRule,
        *,
        timeout: float | None = None,
        reserved: int = 0,
        transcript: Appending | Emptying | None = None,
    ) -> Record:
        """As the port says; ``transcript`` is what happens to that file in the same commit."""
        check_agent_id(agent_id)
        with (
            self._open_root_with(agent_id) as root,
            roots.open_lock_folder(root) as folder,
            self._lock(folder, agent_id, timeout) as lock,
            reading.open_session(root, agent_id) as session,
        ):
            record = self._load(session, agent_id)
            check_writable(record)
            result = lock.apply(rule, record)
            changed, entry = result if isinstance(result, tuple) else (result, None)
            changed = transcript.prepare(session, record, changed) if transcript else changed
            if changed is record:
                return record
            if found := self._marks_in(root, ids_up_to_root(self, changed)):
                from . import marks

                changed, entry = marks.applied(record, changed, entry, found)
            from . import session_directory

            change = session_directory.Change(record, changed, entry, reserved, transcript)
            return change.commit(root, session, durable=self.durable)

    def add_messages(
        self,
        agent_id: str,
        messages: Sequence[NewMessage],
        rule: StoreRule,
        *,
        timeout: float | None = None,
        reserved: int = 0,
    ) -> tuple[Record, list[Message]]:
        from .transcript_file import Appending

        added = Appending(messages)
        return self.change(agent_id, rule, timeout=timeout, reserved=reserved, transcript=added), added.stored

    def empty_transcript(self, agent_id: str, rule: StoreRule, *, timeout: float | None = None) -> Record:
        from .transcript_file import Emptying

        return self.change(agent_id, rule, timeout=timeout, transcript=Emptying())

    def mark(self, agent_id: str, rule: MarkRule, *, timeout: float | None = None) -> Mark:
        check_agent_id(agent_id)
        with (
            self._open_root_with(agent_id) as root,
            roots.open_lock_folder(root) as folder,
            self._lock(folder, agent_id, timeout),
            reading.open_session(root, agent_id) as session,
        ):
            from . import marks

            return marks.change(root, session, agent_id, rule, durable=self.durable)

    def ensure_index(self) -> None:
        root = self._open_root()
        if root is None:
            return
        with root, translate_errors("index", self.root):
            if not index.is_complete(root):
                from .index_repair import rebuild

                rebuild(
                    root,
                    lambda agent_id: self._read_or_error(root, agent_id),
                    lambda: self._has_less_time_than(_SECONDS_AFTER_REBUILD),
                )

    def delete(self, agent_id: str, should_delete: Callable[[RecordOrError], bool]) -> bool:
        from . import session_directory

        check_agent_id(agent_id)
        with (
            self._open_root_with(agent_id) as root,
            roots.open_lock_folder(root) as folder,
            self._lock(folder, agent_id, 0) as lock,
        ):
            found = self._read_or_error(root, agent_id)
            return session_directory.delete_if(root, agent_id, found, should_delete, lock, durable=self.durable)

    def sync(self) -> None:
        """Makes durable which sessions are here: a process may have been killed before it did that."""
        root = self._open_root()
        if root is None:
            return
        with root:
            if self.durable:
                atomic.sync_folder(root)

    def purge_trash(self) -> None:
        root = self._open_root()
        if root is None:
            return
        from . import session_directory

        with root, translate_errors("empty the trash of", self.root):
            session_directory.purge_trash(root, durable=self.durable)

    def sweep(self, now: datetime, active: Iterable[str]) -> list[str]:
        from .sweep import sweep

        root = self._open_root()
        if root is None:
            return []
        with root, translate_errors("sweep", self.root):
            return sweep(root, now, set(active), lambda agent_id: self._read_or_error(root, agent_id))

    def lock_key(self, key: tuple[str, ...], timeout: float | None = None) -> KeyLock:
        from .key_lock import KeyLock

        return KeyLock(self.root, self._lock_folder, key, self.lock_timeout if timeout is None else timeout, self.wait)

    def _lock_folder(self) -> Directory:
        with self._make_root() as root:
            return root.make(roots.LOCKS)

    def _make_root(self) -> Directory:
        return roots.make_root(self.root, durable=self.durable)

    def append(self, agent_id: str, journal: str, entries: list[Json], *, timeout: float | None = None) -> None:
        check_agent_id(agent_id)
        lines = b"".join(strict.dump_line(entry) for entry in entries)
        with (
            self._open_root_with(agent_id) as root,
            roots.open_lock_folder(root) as folder,
            self._lock(folder, agent_id, timeout),
            reading.open_session(root, agent_id) as session,
        ):
            atomic.append(session, journal, lines, durable=self.durable)

    def defer(self, event: Event, now: datetime) -> str:
        from . import inbox

        with translate_errors("defer", self.root), self._make_root() as root:
            return inbox.put(root, event, now, durable=self.durable)

    def dismiss(self, name: str) -> None:
        from . import inbox

        root = self._open_root()
        if root is None:
            return
        with root, translate_errors("dismiss", f"{self.root}/{roots.INBOX}/{name}"):
            inbox.remove(root, name)

    def _lock(self, folder: Directory, agent_id: str, timeout: float | None = None) -> locks.Lock:
        timeout = self.lock_timeout if timeout is None else timeout
        return locks.acquire(folder, locks.name_for(agent_id), timeout, self.wait)
