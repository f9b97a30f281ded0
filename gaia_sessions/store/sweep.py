"""What a store does for itself when it is cleaned up: leftovers of killed processes, and the marks corrected.

Owns the rule that nothing younger than an hour is a leftover, that it is taken only under the lock of whoever could
still be at work on it, and only where we made the folder and gave the name. Runs beside everything else and beside
itself.
"""

from __future__ import annotations

import os
import stat
from datetime import timedelta
from functools import partial

from gaia_sessions.errors import LockTimeout, SessionNotFound, SessionsError
from gaia_sessions.session.ids import fold_id, is_agent_id

from . import atomic, delete, index, index_repair, locks, reading
from . import root as roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from .directory import Directory
    from .index import FolderPath
    from .port import RecordOrError

    ReadSession = Callable[[str], RecordOrError]

LEFTOVER_AGE = timedelta(hours=1)


def sweep(root: Directory, now: datetime, active: set[str], read: ReadSession) -> list[str]:
    """Sweeps and mends; names what was removed. ``active`` are the sessions that are not final."""
    cutoff = (now - LEFTOVER_AGE).timestamp()
    if not (roots.is_owned(root) or root.has(roots.LOCKS)):  # nobody ever wrote to a session here
        return []
    with roots.ensure_folder(root, roots.LOCKS) as folder:
        removed = [*_sweep_stage(root, folder, cutoff), *_sweep_sessions(root, folder, cutoff, active)]
        removed += _sweep_temporaries(root, cutoff) if roots.is_owned(root) else ()
        for names in _folders_with_temporaries(root):
            with root.below(*names) as directory:
                removed += _sweep_temporaries(directory, cutoff)
        removed += _sweep_locks(root, folder, cutoff)
        if roots.owns_folder(root, index.FOLDER):
            _repair_index(root, folder, active, read)
    return removed


def _folders_with_temporaries(root: Directory) -> Iterator[tuple[str, ...]]:
    """The folders of ours beside the sessions in which a killed writer may have left a temporary file."""
    for name, folders in ((roots.INBOX, [(roots.INBOX,)]), (index.FOLDER, [(index.FOLDER,)])):
        if root.has(name) and roots.owns_folder(root, name):
            yield from folders


def _sweep_stage(root: Directory, folder: Directory, cutoff: float) -> Iterator[str]:
    if not (root.has(roots.STAGE) and roots.owns_folder(root, roots.STAGE)):
        return
    with root.below(roots.STAGE) as stage:
        for name in _older_than(stage, stage.names(), cutoff, stat.S_ISDIR):
            agent_id = atomic.without_random_suffix(name)
            remove = partial(delete.remove, stage, name)
            if is_agent_id(agent_id) and _run_if_unlocked(folder, fold_id(agent_id) + locks.SUFFIX, remove):
                yield f"{stage.path}/{name}"


def _sweep_sessions(root: Directory, folder: Directory, cutoff: float, active: set[str]) -> Iterator[str]:
    """Only those still open: whoever finalizes a session clears its directory."""
    for agent_id in active:
        try:
            session = reading.open_session(root, agent_id)
        except SessionsError:
            continue
        with session:
            for name in _older_than(session, atomic.temporaries(session), cutoff):
                if _run_if_unlocked(folder, fold_id(agent_id) + locks.SUFFIX, partial(atomic.discard, session, name)):
                    yield f"{session.path}/{name}"


def _sweep_temporaries(folder: Directory, cutoff: float) -> Iterator[str]:
    """Of files that have no lock: nobody writes one for an hour."""
    for name in _older_than(folder, atomic.temporaries(folder), cutoff):
        atomic.discard(folder, name)
        yield f"{folder.path}/{name}"


def _sweep_locks(root: Directory, folder: Directory, cutoff: float) -> Iterator[str]:
    """Lock files of sessions that were removed by hand, and of host keys whose holder was killed."""
    if not roots.owns_folder(root, roots.LOCKS):
        return
    needed = {fold_id(agent_id) + locks.SUFFIX for agent_id in roots.session_names(root)} | {index.LOCK}
    idle = [name for name in folder.names() if name.endswith(locks.SUFFIX) and name not in needed]
    for name in _older_than(folder, idle, cutoff):
        if _run_if_unlocked(folder, name, partial(atomic.discard, folder, name)):
            yield f"{folder.path}/{name}"


def rebuild_index(root: Directory, read: ReadSession, should_stop: Callable[[], bool] = lambda: False) -> None:
    """The index is complete afterwards, unless somebody else is at it, or it was ``enough`` before the last session."""
    with roots.ensure_folder(root, roots.LOCKS) as folder:
        if index.ensure_owned(root):
            _run_if_unlocked(folder, index.LOCK, partial(_index_each_session, root, read, should_stop))


def _repair_index(root: Directory, folder: Directory, active: set[str], read: ReadSession) -> None:
    if not index.is_complete(root):
        rebuild_index(root, read)
    existing = set(roots.session_names(root))
    mismatched = set(index.ids_under(root, index.ACTIVE_KEY)) ^ active
    present: dict[str, list[FolderPath]] = {agent_id: [] for agent_id in mismatched}
    for folders, agent_id in index_repair.every_entry(root):
        if agent_id in mismatched or agent_id not in existing:
            present.setdefault(agent_id, []).append(folders)
    for agent_id, folders_of_it in present.items():
        if is_agent_id(agent_id):
            _run_if_unlocked(
                folder, fold_id(agent_id) + locks.SUFFIX, partial(_repair_entries, root, agent_id, folders_of_it)
            )
        else:
            index_repair.set_keys(root, agent_id, (), folders_of_it)
    index_repair.remove_empty_folders(root)


def _index_each_session(root: Directory, read: ReadSession, should_stop: Callable[[], bool]) -> None:
    """Only adds: what a writer marks or unmarks meanwhile is his, and a mark too many is harmless.

    What is created behind it is marked by whoever creates it, so a rebuild goes on where the last one stopped.
    """
    with root.below(index.FOLDER) as index_folder:
        if index_folder.has(index.VERSION_1_FOLDER):
            delete.remove(index_folder, index.VERSION_1_FOLDER)
    last = index.last_indexed_id(root)
    for agent_id in sorted(name for name in roots.session_names(root) if name > last):
        if should_stop():
            index.save_progress(root, last)
            return
        found = read(agent_id)
        if not isinstance(found, SessionNotFound):
            index.add(root, agent_id, [index.ACTIVE_KEY] if isinstance(found, SessionsError) else index.keys_of(found))
        last = agent_id
    index.mark_complete(root)


def _repair_entries(root: Directory, agent_id: str, present: list[FolderPath]) -> None:
    try:
        keys = index.keys_of(reading.read(root, agent_id))
    except SessionNotFound:
        keys = []
    except SessionsError:  # corrupt: it may have been active, so its mark stays
        return
    index_repair.set_keys(root, agent_id, keys, present)


def _run_if_unlocked(folder: Directory, name: str, action: Callable[[], None]) -> bool:
    """Acts under the lock ``name`` if nobody holds it; whether it did."""
    try:
        with locks.acquire(folder, name, 0, _no_wait):
            action()
    except LockTimeout:
        return False
    return True


def _no_wait(_folder: Directory, _name: str, _seconds: float) -> None:
    return None


def _older_than(
    folder: Directory, names: list[str], cutoff: float, is_kind: Callable[[int], bool] = stat.S_ISREG
) -> Iterator[str]:
    for name in names:
        try:
            found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if is_kind(found.st_mode) and found.st_mtime < cutoff:
            yield name
