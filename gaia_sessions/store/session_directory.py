"""How the directory of a session leaves the root; the caller holds the lock of the session.

It leaves by a rename into ``.trash``, and is emptied there only when that rename is on the disk. One whose record
cannot be read may hold files of others: from that, only names that the store gives are removed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from gaia_sessions.errors import CorruptSession, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session import index_keys
from gaia_sessions.session.ids import is_agent_id

from . import atomic, index, reading
from . import root as roots
from .directory import translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .directory import Directory
    from .open_session import OpenSession
    from .port import RecordOrError


def delete_if(session: OpenSession, record: RecordOrError, should_delete: Callable[[RecordOrError], bool]) -> bool:
    """Deletes the session, its index entries and at last its lock, if ``should_delete`` says so; whether it did.

    ``record`` is the record, or the error that reading it raised. Raises ``SessionNotFound``, ``StoreFailure``.
    """
    root, agent_id = session.root, session.agent_id
    if isinstance(record, SessionNotFound):
        session.lock.remove()
        raise record
    if isinstance(record, StoreFailure):  # for the moment nobody can judge it
        raise record
    if not should_delete(record):
        return False
    with translate_errors("delete", f"{root.path}/{agent_id}"):
        if isinstance(record, SessionsError):
            _remove_own_files(root, agent_id, durable=session.durable)
        else:
            _move_to_trash(root, agent_id)
            index.remove(root, agent_id, index_keys.keys_of(record))
    with suppress(OSError):  # a sweep removes it
        session.lock.remove()
    return True


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
