"""The root directory: how it is opened, made, what stands in it beside the sessions, and whether it is ours.

Owns the names with a leading dot, which no session id can have, and the mark by which we know our own: sessions may
be kept in any folder, but what we did not make is never swept, emptied or applied. Knows no record.
"""

from __future__ import annotations

import os

from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.system.project_root import claude_folder, owned_by_another

from . import atomic
from .directory import Directory, make_folders, translate_errors

LOCKS = ".locks"
STAGE = ".stage"
TRASH = ".trash"
INBOX = ".inbox"

_IGNORE_FILE = ".gitignore"
_OWNERSHIP_MARK = b"*\n"


def open_if_exists(path: str) -> Directory | None:
    """The root at ``path``, None if there is none; raises ``StoreFailure``."""
    with translate_errors("open", path):
        try:
            return _open_checked(path)
        except FileNotFoundError:
            return None


def make(path: str, *, durable: bool) -> Directory:
    """The root at ``path``, created with the folders above it if need be, and kept out of version control.

    The file that keeps it so is our mark too. It is written last: without it, whoever made the folders may have been
    killed before they were on the disk. A folder outside of projects that holds what is not ours gets none.
    """
    parent_path, name = os.path.split(path)
    make_folders(parent_path or os.curdir)  # the project's own folders, with the mode its umask says
    with Directory.at(parent_path or os.curdir) as parent:
        if name:
            parent.add(name)
    root = _open_checked(path)
    if not root.has(_IGNORE_FILE) and may_own(root):
        if durable:
            _sync_upwards(parent_path)
        write_ownership_mark(root)
    return root


def _open_checked(path: str) -> Directory:
    """What stands at ``path`` may have been exchanged since it was looked at: whose the open directory is, stays."""
    root = Directory.at(path)
    uid = os.fstat(root.fd).st_uid
    if os.geteuid() in (uid, 0):
        return root
    os.close(root.fd)
    raise owned_by_another(path, uid)


def may_own(root: Directory) -> bool:
    """Whether ``root`` is ours even without its mark: a project's, or a folder that holds nothing of anybody else."""
    if claude_folder(root.path) or set(root.names()) <= set(atomic.temporaries(root)):
        return True
    from . import root_ownership

    return root_ownership.holds_only_store_files(root)


def write_ownership_mark(folder: Directory) -> None:
    """``folder`` is ours from here on, and out of version control; raises ``StoreFailure``."""
    atomic.replace(folder, _IGNORE_FILE, _OWNERSHIP_MARK, durable=False)


def _write_new_mark(folder: Directory) -> None:
    """Without a rename: half a mark is none, and then nothing in ``folder`` is ever swept."""
    try:
        atomic.write_new(folder, _IGNORE_FILE, _OWNERSHIP_MARK, durable=False)
    except FileExistsError:  # somebody else made it at the same moment
        return
    except BaseException:
        os.close(folder.fd)
        raise


def is_owned(root: Directory) -> bool:
    """Whether all of ``root`` is for us to tidy: a project's ``.claude/session``, or a folder with our mark."""
    return claude_folder(root.path) is not None or _has_mark(root)


def owns_folder(root: Directory, name: str) -> bool:
    """Whether the folder ``name`` in ``root`` is for us to tidy: the root is, or it has a mark of its own."""
    return is_owned(root) or has_ownership_mark(root, name)


def has_ownership_mark(root: Directory, name: str) -> bool:
    """Whether the folder ``name`` in ``root`` has a mark of its own: we made it where the root was not ours."""
    try:
        with root.below(name) as folder:
            return _has_mark(folder)
    except OSError:  # not there, or a link
        return False


def _has_mark(folder: Directory) -> bool:
    try:
        return folder.read(_IGNORE_FILE, len(_OWNERSHIP_MARK)) == _OWNERSHIP_MARK
    except OSError:
        return False


def ensure_folder(root: Directory, name: str) -> Directory:
    """The folder ``name`` beside the sessions, made if it was not there, with a mark where the root has none."""
    try:
        return root.below(name)
    except FileNotFoundError:
        folder = root.make(name)
        if not is_owned(root):
            _write_new_mark(folder)
        return folder


def open_lock_folder(root: Directory) -> Directory:
    """The folder of the lock files; raises ``StoreFailure``."""
    with translate_errors("open", f"{root.path}/{LOCKS}"):
        return ensure_folder(root, LOCKS)


def make_ignored_folder(parent: Directory, name: str) -> None:
    """A folder ``name`` in ``parent``, kept out of version control from its first moment; nothing if there is one."""
    temporary_name = f".{atomic.with_random_suffix(name)}.tmp"
    with parent.make(temporary_name) as folder:
        write_ownership_mark(folder)
    try:
        os.rename(temporary_name, name, src_dir_fd=parent.fd, dst_dir_fd=parent.fd)
    except OSError:  # somebody else just made it
        from . import delete

        delete.remove(parent, temporary_name)


def _sync_upwards(path: str) -> None:
    """Each folder from ``path`` up to the first that is not ours to sync: those cannot be of our making."""
    try:
        with Directory.at(path or os.curdir) as folder:
            folder.sync()
    except PermissionError:
        return
    if path and os.path.dirname(path) != path:
        _sync_upwards(os.path.dirname(path))


def session_names(root: Directory) -> list[str]:
    """The names in ``root`` that may be sessions, in no order: ids of folders, and in a root of ours of links."""
    with os.scandir(root.fd) as entries:
        return [entry.name for entry in entries if is_agent_id(entry.name) and _may_be_session(root, entry)]


def _may_be_session(root: Directory, entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and is_owned(root))
