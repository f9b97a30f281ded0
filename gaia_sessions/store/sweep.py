"""What cleanup does for the store itself: removes leftovers of killed processes and corrects the index.

A leftover is older than an hour and has a name that only the store gives. The sweep removes it under the
lock that a process which still works on it would hold. A sweep may run beside everything, also beside another sweep.
"""

from __future__ import annotations

import os
import stat
from datetime import timedelta
from functools import partial

from gaia_sessions.errors import SessionsError

from . import atomic, documents, inbox, index_repair, locks, reading
from . import root as roots
from .directory import translate_errors
from .session_directory import id_in_transit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from .directory import Directory
    from .index_repair import ReadSession

LEFTOVER_AGE = timedelta(hours=1)

_IS_UNFINISHED_IN: dict[str, Callable[[str], bool]] = {
    roots.INBOX: inbox.is_unfinished,
    roots.INDEX: index_repair.is_unfinished,
    roots.SHARED: documents.is_unfinished,
}
"""For each folder: whether a name in it belongs to a temporary file."""


# The directories of sessions are not looked into: that would cost a walk through all of them. ``sweep_sessions``, for
# ``doctor --fix``, does that.
def sweep(root: Directory, now: datetime, active: set[str], read: ReadSession) -> list[str]:
    """Sweeps the root and corrects the index; returns what was removed. ``active``: sessions that are not final."""
    cutoff = (now - LEFTOVER_AGE).timestamp()
    existing = set(reading.session_names(root))
    if not (root.has(roots.LOCKS) or any(reading.has_record(root, agent_id) for agent_id in existing)):
        return []  # not a root of ours
    with root.make(roots.LOCKS) as folder:
        removed = [*_sweep_stage(root, folder, cutoff)]
        removed += _sweep_unfinished(root, cutoff, roots.is_unfinished)
        for name, is_unfinished in _IS_UNFINISHED_IN.items():
            if root.has(name):
                with translate_errors("sweep", f"{root.path}/{name}"), root.below(name) as directory:
                    removed += _sweep_unfinished(directory, cutoff, is_unfinished)
        removed += _sweep_locks(folder, cutoff, existing)
    index_repair.repair(root, active & existing, existing, read)
    return removed


def _sweep_stage(root: Directory, folder: Directory, cutoff: float) -> Iterator[str]:
    if not root.has(roots.STAGE):
        return
    with root.below(roots.STAGE) as stage:
        for name in _older_than(stage, filter(id_in_transit, stage.names()), cutoff, _is_folder):
            remove = partial(atomic.discard_folder, stage, name)
            if locks.run_if_free(folder, locks.name_for(id_in_transit(name)), remove):
                yield f"{stage.path}/{name}"


def sweep_sessions(root: Directory, now: datetime) -> list[str]:
    """Removes what killed writers left in the directories of sessions, and returns what that was."""
    cutoff = (now - LEFTOVER_AGE).timestamp()
    names = [name for name in reading.session_names(root) if reading.has_record(root, name)]
    if not names:
        return []
    with root.make(roots.LOCKS) as folder:
        return [path for name in names for path in _sweep_session(root, folder, cutoff, name)]


def _sweep_session(root: Directory, folder: Directory, cutoff: float, agent_id: str) -> Iterator[str]:
    try:
        session = reading.open_session(root, agent_id)
    except SessionsError:
        return
    with session:
        for name in _older_than(session, reading.unfinished(session.names()), cutoff, _is_file):
            if locks.run_if_free(folder, locks.name_for(agent_id), partial(atomic.discard, session, name)):
                yield f"{session.path}/{name}"


def _sweep_unfinished(folder: Directory, cutoff: float, is_unfinished: Callable[[str], bool]) -> Iterator[str]:
    """Removes temporary files that no lock guards: nobody takes an hour to write one."""
    for name in _older_than(folder, filter(is_unfinished, folder.names()), cutoff, _is_file):
        atomic.discard(folder, name)
        yield f"{folder.path}/{name}"


def _sweep_locks(folder: Directory, cutoff: float, existing: set[str]) -> Iterator[str]:
    """Removes lock files of sessions that were removed by hand, and of keys whose holder was killed."""
    idle = filter(locks.is_name, {*folder.names()}.difference(map(locks.name_for, existing)))
    for name in _older_than(folder, idle, cutoff, _is_empty_file):
        if locks.run_if_free(folder, name, partial(atomic.discard, folder, name)):
            yield f"{folder.path}/{name}"


def _older_than(
    folder: Directory, names: Iterable[str], cutoff: float, is_ours: Callable[[os.stat_result], bool]
) -> Iterator[str]:
    for name in names:
        try:
            found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if is_ours(found) and found.st_mtime < cutoff:
            yield name


def _is_file(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode)


def _is_folder(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode)


def _is_empty_file(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and not found.st_size
