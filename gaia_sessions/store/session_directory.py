"""How the directories of sessions leave the root, each under the lock of its session.

Each leaves by a rename into ``.trash``, and is emptied there only when that rename is on the disk. One whose record
cannot be read may hold files of others: from that, only names that the store gives are removed.
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
"""Of so many sessions the locks are held until the index has lost the entries of all: each holds a file open."""


class Deletion:
    """Deletes sessions of ``root`` for which ``should_delete``, called with what ``read`` finds of each, says so.

    The entries of many are removed at once, and their locks are held until then: another session may get the ID of one
    that is gone. Who waits for a lock, up to ``seconds``, holds no others, since somebody may wait for those.
    """

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
        self._most = 1 if seconds > 0 else _MOST_TOGETHER
        self._folder: Directory | None = None
        self._gone: dict[str, tuple[Lock, list[IndexKey]]] = {}

    def each(self, agent_ids: Iterable[str]) -> Iterator[tuple[str, bool | SessionsError]]:
        """Whether each is deleted now, or why it could not be. After the last, that is on the disk."""
        try:
            for agent_id in agent_ids:
                outcome = self._delete(agent_id)
                if isinstance(outcome, StoreFailure) and self._gone:  # maybe for want of files that may be open
                    self._let_go()
                    outcome = self._delete(agent_id)
                yield agent_id, outcome
                if len(self._gone) >= self._most:
                    self._let_go()
        finally:
            self._let_go()
            if self._folder is not None:
                os.close(self._folder.fd)
        with translate_errors("empty the trash of", self._root.path):
            purge_trash(self._root, durable=self._durable)

    def _lock(self, agent_id: str) -> Lock:
        with translate_errors("open", f"{self._root.path}/{agent_id}"):
            if not self._root.has(check_agent_id(agent_id)):  # nobody waits for the lock of one that never existed
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
        """The keys of the session, whose directory has left; None if it is to stay."""
        found = self._read(agent_id)
        if isinstance(found, SessionNotFound):
            lock.remove()
            raise found
        if isinstance(found, StoreFailure):  # for the moment nobody can judge it
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
        gone, self._gone = self._gone, {}
        index.remove(self._root, {agent_id: keys for agent_id, (_, keys) in gone.items()})
        for lock, _ in gone.values():
            with suppress(OSError):  # a sweep removes it
                lock.remove()
            lock.__exit__()


def _remove_own_files(root: Directory, agent_id: str, *, durable: bool) -> None:
    """Removes the files of the store from a directory whose record cannot be read, and that if it is empty then."""
    from . import index_repair  # nobody knows which entries such a session has

    try:
        session = reading.open_session(root, agent_id)
    except CorruptSession as error:
        raise StoreFailure("remove", error.path, error.problem, "remove it by hand if it is a session") from None
    with session:
        names = filter(reading.is_own_name, session.names())
        for name in sorted(names, key=reading.RECORD.__eq__):  # the record last: until then the session is found again
            try:
                os.unlink(name, dir_fd=session.fd)
            except IsADirectoryError:  # somebody else's
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
    """Removes what was moved to the trash, after the moves are on the disk."""
    if not root.has(roots.TRASH):
        return
    with root.below(roots.TRASH) as trash:
        names = list(filter(id_in_transit, trash.names()))
        if durable and names:
            atomic.sync_folder(root)
        for name in names:
            atomic.discard_folder(trash, name)


def id_in_transit(name: str) -> str:
    """The id of the session that has this ``name`` in ``.stage`` or ``.trash``; empty for a name of somebody else."""
    agent_id = atomic.without_random_suffix(name)
    return agent_id if is_agent_id(agent_id) else ""
