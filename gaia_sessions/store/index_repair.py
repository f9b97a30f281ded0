"""How the index becomes complete, and how its entries are corrected.

Owns what a writer does only where the index is not complete, and what cleanup, ``doctor`` and the deletion of
unreadable sessions need: looking through every entry. What an entry means is in ``index``.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import SessionNotFound, SessionsError
from gaia_sessions.session import index_keys
from gaia_sessions.session.ids import is_agent_id

from . import index, locks, reading
from . import root as roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from gaia_sessions.session.index_keys import IndexKey

    from .directory import Directory
    from .index import FolderPath
    from .port import RecordOrError

    ReadSession = Callable[[str], RecordOrError]


def set_empty_complete(root: Directory) -> None:
    """Marks the index of an empty root as complete: every later session gets its entries before it is there."""
    with root.make(roots.LOCKS) as folder:
        locks.run_if_free(folder, index.LOCK, lambda: _set_complete_if_empty(root))


def _set_complete_if_empty(root: Directory) -> None:
    if not reading.session_names(root):
        index.set_complete(root)


def rebuild(root: Directory, read: ReadSession, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Makes the index complete, unless another process is doing so, or ``should_stop`` returns true before the end."""
    with root.make(roots.LOCKS) as folder:
        locks.run_if_free(folder, index.LOCK, lambda: _add_each_session(root, read, should_stop))


def _add_each_session(root: Directory, read: ReadSession, should_stop: Callable[[], bool]) -> None:
    """Only adds entries: those of a session that is written meanwhile are its writer's, and one too many is harmless.

    A session that is created meanwhile gets its entries from its creator, so a rebuild goes on where the last stopped.
    """
    last = index.last_indexed_id(root)
    for agent_id in sorted(name for name in reading.session_names(root) if name > last):
        if should_stop():
            index.save_progress(root, last)
            return
        record = read(agent_id)
        if not isinstance(record, SessionNotFound):
            keys = [index_keys.ACTIVE_KEY] if isinstance(record, SessionsError) else index_keys.keys_of(record)
            index.add(root, agent_id, keys)
        last = agent_id
    index.set_complete(root)


def repair(root: Directory, active: set[str], existing: set[str], read: ReadSession) -> None:
    """Completes the index and corrects its entries; ``active`` are the sessions that are not final.

    What came or went since ``existing`` was looked up is read before an entry of it is corrected.
    """
    if not index.is_complete(root):
        rebuild(root, read)
    mismatched = set(index.ids_under(root, index_keys.ACTIVE_KEY)) ^ active
    present: dict[str, list[FolderPath]] = {agent_id: [] for agent_id in mismatched}
    for folders, agent_id in every_entry(root):
        if agent_id in mismatched or agent_id not in existing:
            present.setdefault(agent_id, []).append(folders)
    with root.make(roots.LOCKS) as folder:
        for agent_id, folders_of_it in present.items():
            _repair_entries(root, folder, agent_id, folders_of_it)
    _remove_empty_folders(root)


def _repair_entries(root: Directory, folder: Directory, agent_id: str, present: list[FolderPath]) -> None:
    """The session has the entries that its record asks for, unless it is locked in ``folder`` or cannot be read."""

    def set_by_record() -> None:
        try:
            keys = index_keys.keys_of(reading.read(root, agent_id))
        except SessionNotFound:
            keys = []
        except SessionsError:  # corrupt: it may have been active, so its entry stays
            return
        _set_keys(root, agent_id, keys, present)

    locks.run_if_free(folder, locks.name_for(agent_id), set_by_record)


def every_entry(root: Directory) -> Iterator[tuple[FolderPath, str]]:
    """The folder of each entry and the id in it, those of active sessions first."""
    yield from ((index_keys.ACTIVE_KEY, agent_id) for agent_id in index.ids_under(root, index_keys.ACTIVE_KEY))
    for parents in _parent_folders(root):
        with root.below(roots.INDEX, *parents) as parent:
            for name in _folders_in(parent):
                yield from (((*parents, name), agent_id) for agent_id in _ids(parent, name))


def indexed_ids(root: Directory) -> set[str]:
    """Every id that has an entry."""
    return {agent_id for _, agent_id in every_entry(root)}


def _set_keys(root: Directory, agent_id: str, keys: Collection[IndexKey], present: Iterable[FolderPath]) -> None:
    """The session has the entries of ``keys`` and no others; under its lock. ``present`` are the folders it is in."""
    index.add(root, agent_id, keys)
    wanted = {index.folders_of(key) for key in keys}
    # The entry among the active is removed last: while a session has it, cleanup finds the session again.
    index.remove_entries(root, [folders for folders in reversed([*present]) if folders not in wanted], agent_id)


def remove_every_entry(root: Directory, agent_id: str) -> None:
    """Removes the entries of a session that is gone, whatever its record said: by looking through all entries."""
    _set_keys(root, agent_id, (), [folders for folders, indexed_id in every_entry(root) if indexed_id == agent_id])


def _remove_empty_folders(root: Directory) -> None:
    """Removes those that a killed writer left; whoever is about to add an entry to one makes it again."""
    for parents in _parent_folders(root):
        if parents[0] in index.UNBOUNDED_GROUPS:
            with root.below(roots.INDEX, *parents) as parent:
                for name in _folders_in(parent):
                    _remove_if_empty(parent, name)


def _parent_folders(root: Directory) -> Iterator[FolderPath]:
    """The folders whose folders hold entries."""
    groups = (index.NAME, *sorted(index.UNBOUNDED_GROUPS - {index.HOST_KEY}))
    yield from ((group,) for group in groups if root.names_below(roots.INDEX, group))
    try:
        with root.below(roots.INDEX, index.HOST_KEY) as kinds:
            yield from [(index.HOST_KEY, kind) for kind in _folders_in(kinds)]
    except FileNotFoundError:
        return


def _folders_in(parent: Directory) -> list[str]:
    """Not those whose names begin with a dot: file managers put files and folders of theirs everywhere."""
    with os.scandir(parent.fd) as entries:
        return [
            entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]


def _ids(parent: Directory, name: str) -> list[str]:
    try:
        with parent.below(name) as folder:
            return list(filter(is_agent_id, folder.names()))
    except (FileNotFoundError, NotADirectoryError):  # removed with its last entry, or exchanged, meanwhile
        return []


def _remove_if_empty(parent: Directory, name: str) -> None:
    try:
        os.rmdir(name, dir_fd=parent.fd)
    except OSError:  # it has an entry again
        return
