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
    from .index import Folders, Mark


def every_mark(root: Directory) -> Iterator[tuple[Folders, str]]:
    """The folders that each mark is in, those of active sessions first, and the id it leads to."""
    yield from ((index.ACTIVE, agent_id) for agent_id in index.names_in(root, *index.ACTIVE))
    for above in _with_folders(root):
        with root.below(index.FOLDER, *above) as parent:
            for name in _folders_in(parent):
                yield from (((*above, name), agent_id) for agent_id in _names(parent, name))


def named(root: Directory) -> set[str]:
    """Every id that any mark leads to."""
    return {agent_id for _, agent_id in every_mark(root)}


def correct(root: Directory, agent_id: str, marks: Collection[Mark], present: Iterable[Folders]) -> None:
    """The session has ``marks`` and no others; under its lock. ``present`` are its folders as ``every_mark`` says."""
    index.add(root, agent_id, marks)
    right = {index.folders_of(mark) for mark in marks}
    # The mark of active sessions is taken last: while a session has it, cleanup finds the session again.
    for folders in reversed([*present]):
        if folders not in right:
            index.take(root, folders, agent_id)


def forget(root: Directory, agent_id: str) -> None:
    """Every mark of a session that is gone, whatever its record said: by looking through them all."""
    correct(root, agent_id, (), [folders for folders, marked in every_mark(root) if marked == agent_id])


def remove_empty_folders(root: Directory) -> None:
    """Those that a killed writer made or left; whoever is about to put a mark into one makes it again."""
    for above in _with_folders(root):
        if above[0] in index.SHORT_LIVED:
            with root.below(index.FOLDER, *above) as parent:
                for name in _folders_in(parent):
                    _remove_if_empty(parent, name)


def _with_folders(root: Directory) -> Iterator[Folders]:
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
