"""The root directory of a store: what stands in it beside the sessions, and which of that the store may tidy.

    {root}/.gitignore      the ownership mark: "*", which also keeps records out of version control
    {root}/{agent_id}/     one directory per session
    {root}/.locks/         one file per session that was ever written to
    {root}/.stage/         sessions that are being built
    {root}/.trash/         sessions that were deleted, until they are removed
    {root}/.inbox/         events that wait to be applied
    {root}/.index/         derived from the records, see ``index``
    {root}/.logs/          logs of hooks, where the root is not in a project

Owns these names, which begin with a dot because no session id does, and the rule that nothing is swept, emptied or
applied which the store did not make. Sessions may be kept in any folder: the whole root is the store's if it is the
``.claude/session`` of a project or has the ownership mark; otherwise each folder that the store makes gets a mark of
its own. How a root comes about is in ``root_ownership``.
"""

from __future__ import annotations

import os

from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.system.project_root import claude_folder, owned_by_another

from . import atomic
from .directory import Directory, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

LOCKS = ".locks"
STAGE = ".stage"
TRASH = ".trash"
INBOX = ".inbox"
INDEX = ".index"
LOGS = ".logs"
OWNERSHIP_MARK = ".gitignore"
_OWNERSHIP_MARK_CONTENT = b"*\n"


def open_if_exists(path: str) -> Directory | None:
    """The root at ``path``, None if it does not exist; raises ``StoreFailure``, ``OwnedByAnother``."""
    with translate_errors("open", path):
        try:
            root = Directory.at(path)
        except FileNotFoundError:
            return None
        return root if root.is_of_this_user() else _refuse(root)


def open_existing(path: str) -> Directory:
    """The root at ``path``; raises ``OSError``, ``OwnedByAnother``."""
    root = Directory.at(path)
    return root if root.is_of_this_user() else _refuse(root)


def open_if_marked(path: str) -> Directory | None:
    """The root at ``path``; None if it does not exist or lacks the mark. Raises ``OSError``, ``OwnedByAnother``."""
    try:
        root = open_existing(path)
    except FileNotFoundError:
        return None
    try:
        is_marked = root.has(OWNERSHIP_MARK)
    except OSError:
        os.close(root.fd)
        raise
    if not is_marked:
        os.close(root.fd)
    return root if is_marked else None


def _refuse(root: Directory) -> NoReturn:
    with root:
        raise owned_by_another(root.path, os.fstat(root.fd).st_uid)


def write_ownership_mark(folder: Directory) -> None:
    """Marks ``folder`` as the store's and keeps it out of version control; raises ``StoreFailure``."""
    atomic.replace(folder, OWNERSHIP_MARK, _OWNERSHIP_MARK_CONTENT, durable=False)


def is_owned(root: Directory) -> bool:
    """Whether the store may tidy all of ``root``: a project's ``.claude/session``, or a folder with the mark."""
    return claude_folder(root.path) is not None or _has_mark(root)


def owns_folder(root: Directory, name: str) -> bool:
    """Whether the store may tidy the folder ``name`` in ``root``: it owns the root, or the folder has its own mark."""
    if is_owned(root):
        return True
    try:
        with root.below(name) as folder:
            return _has_mark(folder)
    except OSError:  # it does not exist, or is a link
        return False


def _has_mark(folder: Directory) -> bool:
    try:
        return folder.read(OWNERSHIP_MARK, len(_OWNERSHIP_MARK_CONTENT)) == _OWNERSHIP_MARK_CONTENT
    except OSError:
        return False


def ensure_folder(root: Directory, name: str) -> Directory:
    """The folder ``name`` beside the sessions, made if it was not there, with a mark where the root has none."""
    try:
        return root.below(name)
    except FileNotFoundError:
        folder = root.make(name)
        if not is_owned(root):
            _mark_new_folder(folder)
        return folder


def _mark_new_folder(folder: Directory) -> None:
    """Marks a new folder without a rename: a mark that is cut short does not count, and the folder is never swept."""
    try:
        atomic.write_new(folder, OWNERSHIP_MARK, _OWNERSHIP_MARK_CONTENT, durable=False)
    except FileExistsError:  # somebody else made it at the same moment
        return
    except BaseException:
        os.close(folder.fd)
        raise


def open_lock_folder(root: Directory) -> Directory:
    """The folder of the lock files; raises ``StoreFailure``."""
    with translate_errors("open", f"{root.path}/{LOCKS}"):
        return ensure_folder(root, LOCKS)


def session_names(root: Directory) -> list[str]:
    """The ids in ``root`` that name a directory, in no order; in a root that the store owns also those of links."""
    with os.scandir(root.fd) as entries:
        return [entry.name for entry in entries if is_agent_id(entry.name) and _may_be_session(root, entry)]


def _may_be_session(root: Directory, entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and is_owned(root))
