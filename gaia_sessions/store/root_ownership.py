"""Whether a folder without our mark is a root of ours all the same.

Owns what every name in such a root must look like: somebody took the mark away, or put sessions into a fresh folder by
hand. One name that could be somebody else's, and the folder is theirs.
"""

from __future__ import annotations

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.ids import is_agent_id

from . import atomic, inbox, index, locks, reading
from . import root as roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .directory import Directory

# The user's settings of the sessions here, the logs of the hooks, and the mark of a folder.
_AUXILIARY_NAMES = frozenset([".config.toml", ".logs", ".gitignore"])

_NAME_CHECKS: dict[str, Callable[[str], object]] = {
    roots.LOCKS: lambda name: name.endswith(locks.SUFFIX),
    roots.STAGE: atomic.without_random_suffix,
    roots.TRASH: atomic.without_random_suffix,
    roots.INBOX: inbox.is_event_name,
    index.FOLDER: index.FOLDERS_AND_FILES.__contains__,
}


def holds_only_store_files(root: Directory) -> bool:
    """Whether nothing is in ``root`` that somebody else may have put there; an empty folder is ours too."""
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
