"""The marks of the index looked through, all of them: which sessions they lead to, and how they are set right.

Owns what only deletions of unreadable sessions, cleanup and ``doctor`` need. What a mark means is in ``index``.
"""

from __future__ import annotations

import os

from . import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from .directory import Directory
    from .index import FolderPath, IndexKey


def every_entry(root: Directory) -> Iterator[tuple[FolderPath, str]]:
    """The folders that each mark is in, those of active sessions first, and the id it leads to."""
    yield from ((index.ACTIVE_KEY, agent_id) for agent_id in index.names_in(root, *index.ACTIVE_KEY))
    for parents in _parent_folders(root):
        with root.below(index.FOLDER, *parents) as parent:
            for name in _folders_in(parent):
                yield from (((*parents, name), agent_id) for agent_id in _names(parent, name))


def indexed_ids(root: Directory) -> set[str]:
    """Every id that any mark leads to."""
    return {agent_id for _, agent_id in every_entry(root)}


def set_keys(root: Directory, agent_id: str, keys: Collection[IndexKey], present: Iterable[FolderPath]) -> None:
    """The session has ``marks`` and no others; under its lock. ``present`` are its folders as ``every_entry`` says."""
    index.add(root, agent_id, keys)
    wanted = {index.folders_of(key) for key in keys}
    # The mark of active sessions is taken last: while a session has it, cleanup finds the session again.
    for folders in reversed([*present]):
        if folders not in wanted:
            index.remove_entry(root, folders, agent_id)


def remove_every_entry(root: Directory, agent_id: str) -> None:
    """Every mark of a session that is gone, whatever its record said: by looking through them all."""
    set_keys(root, agent_id, (), [folders for folders, indexed_id in every_entry(root) if indexed_id == agent_id])


def remove_empty_folders(root: Directory) -> None:
    """Those that a killed writer made or left; whoever is about to put a mark into one makes it again."""
    for parents in _parent_folders(root):
        if parents[0] in index.UNBOUNDED_GROUPS:
            with root.below(index.FOLDER, *parents) as parent:
                for name in _folders_in(parent):
                    _remove_if_empty(parent, name)


def _parent_folders(root: Directory) -> Iterator[FolderPath]:
    """The folders whose folders hold marks."""
    yield from ((group,) for group in (index.NAME, index.CONVERSATION) if index.names_in(root, group))
    try:
        with root.below(index.FOLDER, index.HOST_KEY) as kinds:
            yield from [(index.HOST_KEY, kind) for kind in _folders_in(kinds)]
    except FileNotFoundError:
        return


def _folders_in(parent: Directory) -> list[str]:
    """Those of ours, whose names never begin with a dot: file managers put files and folders of theirs everywhere."""
    with os.scandir(parent.fd) as entries:
        return [
            entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]


def _names(parent: Directory, name: str) -> list[str]:
    try:
        with parent.below(name) as folder:
            return folder.names()
    except (FileNotFoundError, NotADirectoryError):  # removed with its last mark, or exchanged, meanwhile
        return []


def _remove_if_empty(parent: Directory, name: str) -> None:
    try:
        os.rmdir(name, dir_fd=parent.fd)
    except OSError:  # somebody is marked in it
        return
