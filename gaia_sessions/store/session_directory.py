"""Deletes sessions, each under its lock: renames it into ``.trash``, syncs the rename, and empties ``.trash``.

If the record cannot be read, the folder may hold files of others: only names that the store gives are removed from it.
"""

from __future__ import annotations

import os
from contextlib import suppress

from gaia_sessions.errors import CorruptSession, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session import index_keys
from gaia_sessions.session.ids import check_agent_id, is_agent_id

from . import atomic, index, locks, reading
from . import root as roots
from .directory import translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gaia_sessions.session.index_keys import IndexKey

    from .directory import Directory
    from .locks import Lock, WaitForLock
    from .port import RecordOrError

_MOST_TOGETHER = 128
"""The most locks that are held until the entries of their sessions are removed: each lock holds a file open."""


class Deletion:
    """Deletes the sessions of ``root`` for which ``should_delete`` returns True. It gets what is read of each."""

    def __init__(
        self,
        root: Directory,
        read: Callable[[str], RecordOrError],
        should_delete: Callable[[str, RecordOrError], bool],
        seconds: float,
        wait: WaitForLock,
        *,
        durable: bool,
    ) -> None:
        self._root = root
        self._read = read
        self._should_delete = should_delete
        self._seconds = seconds
        self._wait = wait
        self._durable = durable
        # A process that waits for a lock must hold no others: another process may wait for those.
        self._most = 1 if seconds > 0 else _MOST_TOGETHER
        self._folder: Directory | None = None
        self._gone: dict[str, tuple[Lock, list[IndexKey]]] = {}

    def each(self, agent_ids: Iterable[str]) -> Iterator[tuple[str, bool | SessionsError]]:
        """Yields for each ID whether it is deleted now, or the error; after the last ID, the deletions are durable."""
        try:
            for agent_id in agent_ids:
                outcome = self._delete(agent_id)
                if isinstance(outcome, StoreFailure) and self._gone:  # perhaps too many files are open
                    self._let_go()
                    outcome = self._delete(agent_id)
                yield agent_id, outcome
                if len(self._gone) >= self._most:
                    self._let_go()
        finally:
            self._let_go()
            if self._folder is not None:
                os.close(self._folder.fd)
        with translate_errors("empty .trash", self._root.path):
            purge_trash(self._root, durable=self._durable)

    def _lock(self, agent_id: str) -> Lock:
        with translate_errors("open", f"{self._root.path}/{agent_id}"):
            if not self._root.has(check_agent_id(agent_id)):  # no lock for a session that never existed
                raise SessionNotFound(agent_id)
            if self._folder is None:
                self._folder = self._root.make(roots.LOCKS)
        return locks.acquire(self._folder, locks.name_for(agent_id), self._seconds, self._wait)

    def _delete(self, agent_id: str) -> bool | SessionsError:
        lock = None
        try:
            lock = self._lock(agent_id)
            keys = self._keys_of_deleted(agent_id, lock)
        except SessionsError as error:
            return error
        else:
            if keys is None:
                return False
            self._gone[agent_id] = lock, keys
            return True
        finally:
            if lock is not None and agent_id not in self._gone:
                lock.__exit__()

    def _keys_of_deleted(self, agent_id: str, lock: Lock) -> list[IndexKey] | None:
        """Deletes the session and returns its index keys; None if it stays."""
        found = self._read(agent_id)
        if isinstance(found, SessionNotFound):
            lock.remove()
            raise found
        if isinstance(found, StoreFailure):  # nobody can judge it now
            raise found
        if not self._should_delete(agent_id, found):
            return None
        with translate_errors("delete", f"{self._root.path}/{agent_id}"):
            if isinstance(found, SessionsError):
                _remove_own_files(self._root, agent_id, durable=self._durable)
                return []
            _move_to_trash(self._root, agent_id)
            return index_keys.keys_of(found)

    def _let_go(self) -> None:
        # The locks are held until the entries are gone: then a new session may get the same ID and its own entries.
        gone, self._gone = self._gone, {}
        index.remove(self._root, {agent_id: keys for agent_id, (_, keys) in gone.items()})
        for lock, _ in gone.values():
            with suppress(OSError):  # a sweep removes it
                lock.remove()
            lock.__exit__()


def _remove_own_files(root: Directory, agent_id: str, *, durable: bool) -> None:
    """Removes the store's files from the directory of an unreadable session, and the directory if it is empty then."""
    from . import index_repair  # nobody knows which entries such a session has

    try:
        session = reading.open_session(root, agent_id)
    except CorruptSession as error:
        raise StoreFailure("remove", error.path, error.problem, "if it is a session, remove it by hand") from None
    with session:
        names = filter(reading.is_own_name, session.names())
        for name in sorted(names, key=reading.RECORD.__eq__):  # last, so that a killed removal is found again
            try:
                os.unlink(name, dir_fd=session.fd)
            except IsADirectoryError:  # not ours
                if name == reading.RECORD:
                    raise
        if durable:
            os.fsync(session.fd)
    index_repair.remove_every_entry(root, agent_id)
    try:
        os.rmdir(agent_id, dir_fd=root.fd)
    except OSError:  # it holds files of others
        return


def _move_to_trash(root: Directory, agent_id: str) -> None:
    with root.make(roots.TRASH) as trash:
        os.rename(agent_id, atomic.with_random_suffix(agent_id), src_dir_fd=root.fd, dst_dir_fd=trash.fd)


def purge_trash(root: Directory, *, durable: bool) -> None:
    """Syncs the renames into the trash, and empties the trash."""
    if not root.has(roots.TRASH):
        return
    with root.below(roots.TRASH) as trash:
        names = list(filter(id_in_transit, trash.names()))
        if durable and names:
            atomic.sync_folder(root)
        for name in names:
            atomic.discard_folder(trash, name)


def id_in_transit(name: str) -> str:
    """Returns the ID of the session that has this ``name`` in ``.stage`` or ``.trash``; empty for other names."""
    agent_id = atomic.without_random_suffix(name)
    return agent_id if is_agent_id(agent_id) else ""
