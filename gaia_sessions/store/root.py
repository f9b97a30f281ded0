"""The root directory of a store, and what it holds besides the sessions.

    {root}/.gitignore      "*", which keeps records out of version control
    {root}/{agent_id}/     one directory per session
    {root}/.locks/         one file per session that was ever written to
    {root}/.stage/         sessions that are being built
    {root}/.trash/         deleted sessions, until they are removed
    {root}/.shared/        state that sessions of an app share, see ``documents``
    {root}/.inbox/         events that wait to be applied
    {root}/.stats.jsonl    figures of removed sessions, see ``figures_file``
    {root}/.index/         derived from the records, see ``index``
    {root}/.logs/          logs of hooks, if the root is not in a project

Any folder may be the root, so users may have files in it, even in folders with these names: a sweep removes only names
that the store alone gives.
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
    """Opens the root at ``path``, which need not exist."""
    try:
        return _open_existing(path)
    except FileNotFoundError:
        return Nowhere(path)
    except OSError as error:
        raise refusal("open", path, error) from error


def _open_existing(path: str) -> KeptDirectory:
    """Opens the existing root at ``path``, if no link leads out of its project and this user owns it."""
    check_links(path)
    root = KeptDirectory.at(path)
    if root.is_of_this_user():
        return root
    with root:
        raise owned_by_another(root.path, os.fstat(root.fd).st_uid)


def make_root(path: str, *, durable: bool, root: KeptDirectory | None = None) -> KeptDirectory:
    """Opens the root at ``path`` and makes it if it is missing; returns ``root`` if that is open already."""
    if root is None:
        try:
            root = _open_existing(path)
        except FileNotFoundError:
            _make_folders(path)
            root = _open_existing(path)
    # The .gitignore is written last. If it is missing, the maker of the folders may have been killed before their sync.
    if not root.has(GITIGNORE) and (claude_folder(path) or _is_empty(root)):
        if durable:
            _sync_upwards(os.path.dirname(path))
        ignore_all(root)
    return root


def ignore_all(folder: Directory) -> None:
    """Keeps ``folder`` out of version control."""
    atomic.replace(folder, GITIGNORE, b"*\n", durable=False)


def is_unfinished(name: str) -> bool:
    """Returns whether ``name`` belongs to a temporary file of the root itself."""
    return atomic.target_of(name) in (GITIGNORE, STATS)


def _is_empty(root: Directory) -> bool:
    """Returns whether the folder holds only temporary files of other processes that make the root now."""
    return all(is_unfinished(entry.name) for entry in root.entries())


def _make_folders(path: str) -> None:
    parent_path, name = os.path.split(path)
    if not os.path.isdir(parent_path or os.curdir):
        from .external_file import make_folders  # folders of the project, not of the store

        make_folders(parent_path)
    with Directory.at(parent_path or os.curdir) as parent:
        if name:
            parent.add(name)


def _sync_upwards(path: str) -> None:
    """Syncs each folder from ``path`` upwards, until one cannot be opened: nothing above it was just made."""
    try:
        with Directory.at(path or os.curdir) as folder:
            os.fsync(folder.fd)
    except PermissionError:
        return
    if path and os.path.dirname(path) != path:
        _sync_upwards(os.path.dirname(path))
