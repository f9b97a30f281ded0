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
from gaia_sessions.session.ids import fold, is_agent_id

from . import atomic, delete, index, index_repair, locks, reading
from . import root as roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from .directory import Directory
    from .index import Folders
    from .port import Found

    Read = Callable[[str], Found]

LEFTOVER = timedelta(hours=1)


def tend(root: Directory, now: datetime, active: set[str], read: Read) -> list[str]:
    """Sweeps and mends; names what was removed. ``active`` are the sessions that are not final."""
    before = (now - LEFTOVER).timestamp()
    if not (roots.is_ours(root) or root.has(roots.LOCKS)):  # nobody ever wrote to a session here
        return []
    with roots.place(root, roots.LOCKS) as folder:
        removed = [*_sweep_stage(root, folder, before), *_sweep_sessions(root, folder, before, active)]
        removed += _sweep_temporaries(root, before) if roots.is_ours(root) else ()
        for names in _written_to(root):
            with root.below(*names) as written:
                removed += _sweep_temporaries(written, before)
        removed += _sweep_locks(root, folder, before)
        if roots.owns(root, index.FOLDER):
            _mend_index(root, folder, active, read)
    return removed


def _written_to(root: Directory) -> Iterator[tuple[str, ...]]:
    """The folders of ours beside the sessions in which a killed writer may have left a temporary file."""
    for name, folders in ((roots.INBOX, [(roots.INBOX,)]), (index.FOLDER, [(index.FOLDER,)])):
        if root.has(name) and roots.owns(root, name):
            yield from folders


def _sweep_stage(root: Directory, folder: Directory, before: float) -> Iterator[str]:
    if not (root.has(roots.STAGE) and roots.owns(root, roots.STAGE)):
        return
    with root.below(roots.STAGE) as stage:
        for name in _older(stage, stage.names(), before, stat.S_ISDIR):
            agent_id = atomic.without_chance(name)
            remove = partial(delete.remove, stage, name)
            if is_agent_id(agent_id) and _alone(folder, fold(agent_id) + locks.SUFFIX, remove):
                yield f"{stage.path}/{name}"


def _sweep_sessions(root: Directory, folder: Directory, before: float, active: set[str]) -> Iterator[str]:
    """Only those still open: whoever finalizes a session clears its directory."""
    for agent_id in active:
        try:
            session = reading.open_session(root, agent_id)
        except SessionsError:
            continue
        with session:
            for name in _older(session, atomic.temporaries(session), before):
                if _alone(folder, fold(agent_id) + locks.SUFFIX, partial(atomic.discard, session, name)):
                    yield f"{session.path}/{name}"


def _sweep_temporaries(folder: Directory, before: float) -> Iterator[str]:
    """Of files that have no lock: nobody writes one for an hour."""
    for name in _older(folder, atomic.temporaries(folder), before):
        atomic.discard(folder, name)
        yield f"{folder.path}/{name}"


def _sweep_locks(root: Directory, folder: Directory, before: float) -> Iterator[str]:
    """Lock files of sessions that were removed by hand, and of host keys whose holder was killed."""
    if not roots.owns(root, roots.LOCKS):
        return
    needed = {fold(agent_id) + locks.SUFFIX for agent_id in roots.sessions(root)} | {index.LOCK}
    idle = [name for name in folder.names() if name.endswith(locks.SUFFIX) and name not in needed]
    for name in _older(folder, idle, before):
        if _alone(folder, name, partial(atomic.discard, folder, name)):
            yield f"{folder.path}/{name}"


def rebuild_index(root: Directory, read: Read, enough: Callable[[], bool] = lambda: False) -> None:
    """The index is complete afterwards, unless somebody else is at it, or it was ``enough`` before the last session."""
    with roots.place(root, roots.LOCKS) as folder:
        if index.claim(root):
            _alone(folder, index.LOCK, partial(_rebuild, root, read, enough))


def _mend_index(root: Directory, folder: Directory, active: set[str], read: Read) -> None:
    if not index.is_complete(root):
        rebuild_index(root, read)
    there = set(roots.sessions(root))
    doubtful = set(index.marked(root, index.ACTIVE)) ^ active
    present: dict[str, list[Folders]] = {agent_id: [] for agent_id in doubtful}
    for folders, agent_id in index_repair.every_mark(root):
        if agent_id in doubtful or agent_id not in there:
            present.setdefault(agent_id, []).append(folders)
    for agent_id, folders_of_it in present.items():
        if is_agent_id(agent_id):
            _alone(folder, fold(agent_id) + locks.SUFFIX, partial(_mend_marks, root, agent_id, folders_of_it))
        else:
            index_repair.correct(root, agent_id, (), folders_of_it)
    index_repair.remove_empty_folders(root)


def _rebuild(root: Directory, read: Read, enough: Callable[[], bool]) -> None:
    """Only adds: what a writer marks or unmarks meanwhile is his, and a mark too many is harmless.

    What is created behind it is marked by whoever creates it, so a rebuild goes on where the last one stopped.
    """
    with root.below(index.FOLDER) as marks:
        if marks.has(index.VERSION_1):
            delete.remove(marks, index.VERSION_1)
    last = index.marked_so_far(root)
    for agent_id in sorted(name for name in roots.sessions(root) if name > last):
        if enough():
            index.note_marked(root, last)
            return
        found = read(agent_id)
        if not isinstance(found, SessionNotFound):
            index.add(root, agent_id, [index.ACTIVE] if isinstance(found, SessionsError) else index.marks_of(found))
        last = agent_id
    index.vouch(root)


def _mend_marks(root: Directory, agent_id: str, present: list[Folders]) -> None:
    try:
        marks = index.marks_of(reading.read(root, agent_id))
    except SessionNotFound:
        marks = []
    except SessionsError:  # corrupt: it may have been active, so its mark stays
        return
    index_repair.correct(root, agent_id, marks, present)


def _alone(folder: Directory, name: str, act: Callable[[], None]) -> bool:
    """Acts under the lock ``name`` if nobody holds it; whether it did."""
    try:
        with locks.acquire(folder, name, 0, _no_wait):
            act()
    except LockTimeout:
        return False
    return True


def _no_wait(_folder: Directory, _name: str, _seconds: float) -> None:
    return None


def _older(
    folder: Directory, names: list[str], before: float, kind: Callable[[int], bool] = stat.S_ISREG
) -> Iterator[str]:
    for name in names:
        try:
            found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if kind(found.st_mode) and found.st_mtime < before:
            yield name
