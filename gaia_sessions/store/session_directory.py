"""How the directory of a session comes into the root, takes its next record and what goes with it, and leaves.

Owns the order of the steps, so that a crash between any two of them does no harm. A directory is built in ``.stage``
and renamed into place whole; it leaves by a rename into ``.trash``, and is emptied there only when that rename is on
the disk. The index entries of a session are made before its first write that needs them and removed after its last, so
a crash leaves an entry too many, never one too few. All of it happens under the lock of the session, which the caller
holds. Must never take a lock.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import CorruptSession, SessionNotFound, SessionsError, StoreFailure
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


def create(root: Directory, record: Record, files: dict[str, bytes], *, durable: bool) -> None:
    """Creates the directory of the session of ``record`` with ``files`` in it: whole, or not at all.

    Raises ``OSError``, ``DurabilityUnknown``.
    """
    agent_id = record["agent_id"]
    index.add(root, agent_id, index.keys_of(record))
    with roots.ensure_folder(root, roots.STAGE) as stage:
        staged_name = atomic.with_random_suffix(agent_id)
        try:
            _write_staged(stage, staged_name, files, durable=durable)
            os.rename(staged_name, agent_id, src_dir_fd=stage.fd, dst_dir_fd=root.fd)
        except OSError:
            atomic.discard_folder(stage, staged_name)
            raise
    if durable:
        atomic.sync_folder(root)


def _write_staged(stage: Directory, name: str, files: dict[str, bytes], *, durable: bool) -> None:
    with stage.make(name) as session:
        for file, data in files.items():
            atomic.write_new(session, file, data, durable=durable)
        if durable:
            os.fsync(session.fd)


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
            transcript.finish(session, durable=durable)
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
        for leftover in atomic.temporaries(session):  # of a writer that was killed: we hold its lock
            atomic.discard(session, leftover)
    if durable and old["revision"] <= 1:
        os.fsync(root.fd)  # whoever created it may have been killed before its name was on the disk
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
    _check_deletable(root, agent_id, found)
    with translate_errors("delete", f"{root.path}/{agent_id}"):
        _delete(root, agent_id, found, durable=durable)
        lock.remove()
    return True


def _check_deletable(root: Directory, agent_id: str, found: RecordOrError) -> None:
    """Raises ``StoreFailure`` for a folder in a root of somebody else that holds no record but other files."""
    if isinstance(found, CorruptSession) and not roots.is_owned(root) and reading.has_unknown_files(root, agent_id):
        path = f"{root.path}/{agent_id}"
        raise StoreFailure("remove", path, "it holds files that no session has", "remove it by hand if it is a session")


def _delete(root: Directory, agent_id: str, found: RecordOrError, *, durable: bool) -> None:
    _move_to_trash(root, agent_id, durable=durable)
    if isinstance(found, SessionsError):
        from . import index_repair  # nobody knows which entries a session has that cannot be read

        index_repair.remove_every_entry(root, agent_id)
        return
    index.remove(root, agent_id, index.keys_of(found))


def _move_to_trash(root: Directory, agent_id: str, *, durable: bool) -> None:
    """Moves the session into the trash folder, and empties it at once where somebody else keeps that folder."""
    with roots.ensure_folder(root, roots.TRASH) as trash:
        trash_name = atomic.with_random_suffix(agent_id)
        os.rename(agent_id, trash_name, src_dir_fd=root.fd, dst_dir_fd=trash.fd)
        if not roots.owns_folder(root, roots.TRASH):
            _purge(root, trash, [trash_name], durable=durable)


def purge_trash(root: Directory, *, durable: bool) -> None:
    """Removes what was moved to the trash, after the moves are on the disk."""
    if not root.has(roots.TRASH) or not roots.owns_folder(root, roots.TRASH):
        return
    with root.below(roots.TRASH) as trash:
        _purge(root, trash, [name for name in trash.names() if atomic.without_random_suffix(name)], durable=durable)


def _purge(root: Directory, trash: Directory, names: list[str], *, durable: bool) -> None:
    if durable and names:
        atomic.sync_folder(root)
    for name in names:
        atomic.discard_folder(trash, name)
