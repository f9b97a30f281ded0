"""The root directory of a store: how it comes about, and what stands in it beside the sessions.

    {root}/.gitignore      "*", which keeps records out of version control
    {root}/{agent_id}/     one directory per session
    {root}/.locks/         one file per session that was ever written to
    {root}/.stage/         sessions that are being built
    {root}/.trash/         sessions that were deleted, until they are removed
    {root}/.shared/        state that sessions of an app share, see ``documents``
    {root}/.inbox/         events that wait to be applied
    {root}/.stats.jsonl    figures of sessions that were removed, see ``figures_file``
    {root}/.index/         derived from the records, see ``index``
    {root}/.logs/          logs of hooks, where the root is not in a project

Any folder may be named as the root, so others may keep files in it, also in folders with these names: whoever sweeps or
removes goes by the names that only we give.
"""

from __future__ import annotations

import os

from gaia_sessions.system.project_root import check_links, claude_folder, owned_by_another

from . import atomic
from .directory import Directory, KeptDirectory, Nowhere, refusal

LOCKS = ".locks"
STAGE = ".stage"
TRASH = ".trash"
SHARED = ".shared"
INBOX = ".inbox"
INDEX = ".index"
LOGS = ".logs"
STATS = ".stats.jsonl"
GITIGNORE = ".gitignore"


def open_root(path: str) -> KeptDirectory:
    """The root at ``path``, which need not exist; raises ``StoreFailure``, such as ``OwnedByAnother``."""
    try:
        return _open_existing(path)
    except FileNotFoundError:
        return Nowhere(path)
    except OSError as error:
        raise refusal("open", path, error) from error


def _open_existing(path: str) -> KeptDirectory:
    """The root at ``path``; raises ``OSError``, ``OwnedByAnother``, ``LinkedElsewhere``."""
    check_links(path)
    root = KeptDirectory.at(path)
    if root.is_of_this_user():
        return root
    with root:
        raise owned_by_another(root.path, os.fstat(root.fd).st_uid)


def make_root(path: str, *, durable: bool, root: KeptDirectory | None = None) -> KeptDirectory:
    """The root at ``path``, made with the folders above it if need be; ``root`` itself, if that is open already.

    Last, a root that is a project's or empty is kept out of version control; without that file, whoever made the
    folders may have been killed before they were on the disk. Raises ``OSError``.
    """
    if root is None:
        try:
            root = _open_existing(path)
        except FileNotFoundError:
            _make_folders(path)
            root = _open_existing(path)
    if not root.has(GITIGNORE) and (claude_folder(path) or _is_empty(root)):
        if durable:
            _sync_upwards(os.path.dirname(path))
        ignore_all(root)
    return root


def ignore_all(folder: Directory) -> None:
    """Keeps ``folder`` out of version control; raises ``StoreFailure``."""
    atomic.replace(folder, GITIGNORE, b"*\n", durable=False)


def is_unfinished(name: str) -> bool:
    """Whether such a name is given to a file of the root itself that somebody has not finished."""
    return atomic.target_of(name) in (GITIGNORE, STATS)


def _is_empty(root: Directory) -> bool:
    """Whether nothing is in there but what others who make the root at this moment are writing."""
    return all(is_unfinished(entry.name) for entry in root.entries())


def _make_folders(path: str) -> None:
    parent_path, name = os.path.split(path)
    if not os.path.isdir(parent_path or os.curdir):
        from .external_file import make_folders  # the project's own folders, which are no part of the store

        make_folders(parent_path)
    with Directory.at(parent_path or os.curdir) as parent:
        if name:
            parent.add(name)


def _sync_upwards(path: str) -> None:
    """Syncs each folder from ``path`` up to the first that may not be opened: nothing above that was just made."""
    try:
        with Directory.at(path or os.curdir) as folder:
            os.fsync(folder.fd)
    except PermissionError:
        return
    if path and os.path.dirname(path) != path:
        _sync_upwards(os.path.dirname(path))
