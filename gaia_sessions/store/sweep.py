"""What a store does for itself when it is cleaned up: it removes leftovers of killed processes and corrects its index.

Owns the rule that nothing younger than an hour is a leftover, that it is removed only under the lock of whoever could
still be working on it, and only where the store made the folder and the name. Runs beside everything else and beside
itself. Must never remove a session.
"""

from __future__ import annotations

import os
import stat
from datetime import timedelta
from functools import partial

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.ids import is_agent_id

from . import atomic, index, index_repair, locks, reading
from . import root as roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from .directory import Directory
    from .index_repair import ReadSession

LEFTOVER_AGE = timedelta(hours=1)


def sweep(root: Directory, now: datetime, active: set[str], read: ReadSession) -> list[str]:
    """Sweeps and corrects; returns what was removed. ``active`` are the sessions that are not final."""
    cutoff = (now - LEFTOVER_AGE).timestamp()
    if not (roots.is_owned(root) or root.has(roots.LOCKS)):  # nobody ever wrote to a session here
        return []
    with roots.ensure_folder(root, roots.LOCKS) as folder:
        removed = [*_sweep_stage(root, folder, cutoff), *_sweep_sessions(root, folder, cutoff, active)]
        removed += _sweep_temporaries(root, cutoff) if roots.is_owned(root) else ()
        for name in (roots.INBOX, roots.INDEX):
            if root.has(name) and roots.owns_folder(root, name):
                with root.below(name) as directory:
                    removed += _sweep_temporaries(directory, cutoff)
        existing = set(roots.session_names(root))
        removed += _sweep_locks(root, folder, cutoff, existing)
    if roots.owns_folder(root, roots.INDEX):
        index_repair.repair(root, active, existing, read)
    return removed


def _sweep_stage(root: Directory, folder: Directory, cutoff: float) -> Iterator[str]:
    if not (root.has(roots.STAGE) and roots.owns_folder(root, roots.STAGE)):
        return
    with root.below(roots.STAGE) as stage:
        for name in _older_than(stage, stage.names(), cutoff, stat.S_ISDIR):
            agent_id = atomic.without_random_suffix(name)
            remove = partial(atomic.discard_folder, stage, name)
            if is_agent_id(agent_id) and locks.run_if_free(folder, locks.name_for(agent_id), remove):
                yield f"{stage.path}/{name}"


def _sweep_sessions(root: Directory, folder: Directory, cutoff: float, active: set[str]) -> Iterator[str]:
    """Sweeps the open sessions only: whoever finalizes a session clears its directory."""
    for agent_id in active:
        try:
            session = reading.open_session(root, agent_id)
        except SessionsError:
            continue
        with session:
            for name in _older_than(session, atomic.temporaries(session), cutoff):
                if locks.run_if_free(folder, locks.name_for(agent_id), partial(atomic.discard, session, name)):
                    yield f"{session.path}/{name}"


def _sweep_temporaries(folder: Directory, cutoff: float) -> Iterator[str]:
    """Removes those of files that no lock guards: nobody takes an hour to write one."""
    for name in _older_than(folder, atomic.temporaries(folder), cutoff):
        atomic.discard(folder, name)
        yield f"{folder.path}/{name}"


def _sweep_locks(root: Directory, folder: Directory, cutoff: float, existing: set[str]) -> Iterator[str]:
    """Removes lock files of sessions that were removed by hand, and of host keys whose holder was killed."""
    if not roots.owns_folder(root, roots.LOCKS):
        return
    needed = {locks.name_for(agent_id) for agent_id in existing} | {index.LOCK}
    idle = [name for name in folder.names() if name.endswith(locks.SUFFIX) and name not in needed]
    for name in _older_than(folder, idle, cutoff):
        if locks.run_if_free(folder, name, partial(atomic.discard, folder, name)):
            yield f"{folder.path}/{name}"


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
