"""How the directory of a session comes into the root, takes its next record and what goes with it, and leaves.

A directory is built in ``.stage`` and renamed into place whole; it leaves by a rename into ``.trash``, and is emptied
there only when that rename is on the disk. One whose record cannot be read may hold files of others: from that, only
names that the store gives are removed. The index entries of a session are made before its first write that needs them
and removed after its last, so a crash leaves an entry too many, never one too few. All of it happens under the lock of
the session, which the caller holds.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import CorruptSession, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.record import is_open
from gaia_sessions.session.retention import fit_record
from gaia_sessions.session.updates import with_next_revision

from . import atomic, index, reading
from . import journal as journals
from . import root as roots
from .directory import translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import Record

    from .directory import Directory
    from .index import IndexKey
    from .locks import Lock
    from .port import Entry, RecordOrError
    from .transcript_file import Appending, Emptying


def create(root: Directory, record: Record, write_files: Callable[[Directory], None], *, durable: bool) -> None:
    """Creates the directory of the session of ``record`` with what ``write_files`` writes: whole, or not at all.

    Raises ``OSError``, ``DurabilityUnknown``.
    """
    agent_id = record["agent_id"]
    index.add(root, agent_id, index.keys_of(record))
    with root.make(roots.STAGE) as stage:
        staged_name = atomic.with_random_suffix(agent_id)
        try:
            with stage.make(staged_name) as session:
                write_files(session)
                if durable:
                    os.fsync(session.fd)
            os.rename(staged_name, agent_id, src_dir_fd=stage.fd, dst_dir_fd=root.fd)
        except BaseException:
            atomic.discard_folder(stage, staged_name)
            raise
    if durable:
        atomic.sync_folder(root)


class Change:
    """One change of a session: the record before and after the rule, the entry, and what happens to the transcript.

    reserved: as in ``Store.change``.
    """

    __slots__ = ("entry", "new", "old", "reserved", "transcript")

    def __init__(
        self, old: Record, new: Record, entry: Entry | None, reserved: int, transcript: Appending | Emptying | None
    ) -> None:
        self.old = old
        self.new = new
        self.entry = entry
        self.reserved = reserved
        self.transcript = transcript

    def commit(self, root: Directory, session: Directory, *, durable: bool) -> Record:
        """Writes what changed, and returns the record as it is kept.

        Raises like ``fit_record`` and ``atomic.replace``, and ``StoreFailure``.
        """
        transcript = self.transcript
        line = journals.entry_line(self.entry)
        write = (lambda: transcript.write(session, durable=durable)) if transcript else None
        with translate_errors("change", session.path):
            kept = _replace(
                root, session, self.old, with_next_revision(self.new), self.reserved, write, durable=durable
            )
        if line:
            journals.append_event(session, line, durable=durable)
        if transcript:
            transcript.finish(session)
        return kept


def _replace(
    root: Directory,
    session: Directory,
    old: Record,
    new: Record,
    reserved: int,
    write_first: Callable[[], None] | None,
    *,
    durable: bool,
) -> Record:
    """Replaces the record ``old`` by what is kept of ``new``, and returns that.

    ``write_first`` is called when nothing but the system can refuse the change any more.
    """
    new, data = fit_record(new, reserved, old)
    old_keys, new_keys = index.keys_of(old), index.keys_of(new)
    index.add(root, new["agent_id"], _difference(new_keys, old_keys))
    if not is_open(new):
        for leftover in filter(reading.is_unfinished, session.names()):  # its writer was killed: we hold its lock
            atomic.discard(session, leftover)
    if durable and (old["revision"] <= 1 or "imported_from" in old):
        os.fsync(root.fd)  # whoever brought it here may have been killed before its name was on the disk
    if write_first:
        write_first()
    atomic.replace(session, reading.STATE, data, durable=durable)
    index.remove(root, new["agent_id"], _difference(old_keys, new_keys))
    return new


def _difference(keys: list[IndexKey], other_keys: list[IndexKey]) -> list[IndexKey]:
    excluded = frozenset(other_keys)
    return [key for key in keys if key not in excluded]


def delete_if(
    root: Directory,
    agent_id: str,
    found: RecordOrError,
    should_delete: Callable[[RecordOrError], bool],
    lock: Lock,
    *,
    durable: bool,
) -> bool:
    """Deletes the session, its index entries and at last its lock, if ``should_delete`` says so; whether it did.

    ``found`` is the record, or the error that reading it raised. Raises ``SessionNotFound``, ``StoreFailure``.
    """
    if isinstance(found, SessionNotFound):
        lock.remove()
        raise found
    if isinstance(found, StoreFailure):  # for the moment nobody can judge it
        raise found
    if not should_delete(found):
        return False
    with translate_errors("delete", f"{root.path}/{agent_id}"):
        if isinstance(found, SessionsError):
            _remove_own_files(root, agent_id, durable=durable)
        else:
            _move_to_trash(root, agent_id)
            index.remove(root, agent_id, index.keys_of(found))
        lock.remove()
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
        for name in sorted(names, key=reading.STATE.__eq__):  # the record last: until then the session is found again
            try:
                os.unlink(name, dir_fd=session.fd)
            except IsADirectoryError:  # somebody else's
                if name == reading.STATE:
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
