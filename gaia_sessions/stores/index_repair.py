"""The marks of the index looked through, all of them: which sessions they lead to, and how they are set right.

Owns what only deletions of unreadable sessions, cleanup and ``doctor`` need. What a mark means is in ``index``.
"""

from __future__ import annotations

from . import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .directory import Directory
    from .index import Folders, Mark


def every_mark(root: Directory) -> Iterator[tuple[Folders, str]]:
    """The folders that each mark is in, and the id it leads to."""
    for folders in _all_folders(root):
        yield from ((folders, agent_id) for agent_id in index.names_in(root, *folders))


def named(root: Directory) -> set[str]:
    """Every id that any mark leads to."""
    return {agent_id for _, agent_id in every_mark(root)}


def correct(root: Directory, agent_id: str, marks: Iterable[Mark], present: Iterable[Folders]) -> None:
    """The session has ``marks`` and no others; under its lock. ``present`` are its folders as ``every_mark`` says."""
    right = [index.folders_of(mark) for mark in marks]
    for folders in right:
        index.put(root, folders, agent_id)
    for folders in reversed(
        [*present]
    ):  # the folder of active ones last: as long as it is marked there it is looked at
        if folders not in right:
            index.take(root, folders, agent_id)


def forget(root: Directory, agent_id: str) -> None:
    """Every mark of a session that is gone, whatever its record said: by looking through them all."""
    correct(root, agent_id, (), [folders for folders, marked in every_mark(root) if marked == agent_id])


def remove_empty_folders(root: Directory) -> None:
    """Those that a killed writer made or left; whoever is about to put a mark into one makes it again."""
    for folders in _all_folders(root):
        if folders[0] in index.SHORT_LIVED:
            index.remove_folder(root, folders)


def _all_folders(root: Directory) -> Iterator[Folders]:
    yield index.ACTIVE
    for group in (index.NAME, index.CONVERSATION):
        yield from ((group, name) for name in index.names_in(root, group))
    for kind in index.names_in(root, index.HOST_KEY):
        yield from ((index.HOST_KEY, kind, name) for name in index.names_in(root, index.HOST_KEY, kind))
