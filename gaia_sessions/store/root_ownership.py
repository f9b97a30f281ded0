"""How a folder becomes the root of a store: it is made, or taken over if it holds only what a store holds.

Owns what every name in a root must look like. Somebody may have removed the ownership mark, or put sessions into a
fresh folder by hand; but if a single name could be somebody else's, the folder is theirs and gets no mark. Stands above
the modules that make those names.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.system.project_root import claude_folder

from . import atomic, inbox, index, locks, reading
from . import root as roots
from .directory import Directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The settings of the user, the logs of the hooks, and the ownership mark.
_AUXILIARY_NAMES = frozenset([".config.toml", roots.LOGS, roots.OWNERSHIP_MARK])

_NAME_CHECKS: dict[str, Callable[[str], object]] = {
    roots.LOCKS: lambda name: name.endswith(locks.SUFFIX),
    roots.STAGE: atomic.without_random_suffix,
    roots.TRASH: atomic.without_random_suffix,
    roots.INBOX: inbox.is_event_name,
    roots.INDEX: index.FOLDERS_AND_FILES.__contains__,
}
"""What the names in each folder beside the sessions are."""


def make_root(path: str, *, durable: bool) -> Directory:
    """The root at ``path``, made with the folders above it if need be, and kept out of version control.

    The ownership mark is written last: without it, whoever made the folders may have been killed before they were on
    the disk. A folder outside of projects that holds anything but sessions gets none. Raises ``OSError``.
    """
    try:
        root = roots.open_existing(path)
    except FileNotFoundError:
        _make_folders(path)
        root = roots.open_existing(path)
    if not root.has(roots.OWNERSHIP_MARK) and may_own(root):
        if durable:
            _sync_upwards(os.path.dirname(path))
        roots.write_ownership_mark(root)
    return root


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


def may_own(root: Directory) -> bool:
    """Whether the store may own ``root`` without a mark: it is a project's, or holds nothing of anybody else."""
    if claude_folder(root.path):
        return True
    names = sorted(root.names(), key=is_agent_id)  # the records last: they are read
    return _all_have_records(root, names) and all(_is_store_name(root, name) for name in names)


def _all_have_records(root: Directory, names: list[str]) -> bool:
    """A cheap look, which tells most folders of somebody else."""
    try:
        return all(root.has(f"{name}/{reading.STATE}") for name in names if is_agent_id(name))
    except OSError:  # a file, or a folder that may not be looked into
        return False


def _is_store_name(root: Directory, name: str) -> bool:
    if is_agent_id(name):
        return _is_session(root, name)
    return _is_auxiliary(name) or (name in _NAME_CHECKS and _has_only_valid_names(root, name))


def _is_auxiliary(name: str) -> bool:
    return name in _AUXILIARY_NAMES or atomic.is_temporary(name)


def _is_session(root: Directory, name: str) -> bool:
    try:
        reading.read(root, name)
    except SessionsError:
        return False
    return True


def _has_only_valid_names(root: Directory, name: str) -> bool:
    try:
        with root.below(name) as folder:
            return all(_NAME_CHECKS[name](leaf) or _is_auxiliary(leaf) for leaf in folder.names())
    except OSError:
        return False
