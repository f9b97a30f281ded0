"""How a session leaves the root: out of sight at once, off the disk later, its marks with it.

Owns that order. A directory is moved whole, so no reader ever finds half of one, and it is emptied only
after its move is on the disk: a power cut leaves it whole or gone.
"""

from __future__ import annotations

import os
import stat

from gaia_sessions.errors import CorruptSession, SessionsError, StoreFailure

from . import atomic, index, reading
from . import root as roots
from .root import TRASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .directory import Directory
    from .port import RecordOrError


def check_deletable(root: Directory, agent_id: str, found: RecordOrError) -> None:
    """Raises ``StoreFailure`` for what is no record and may be no session: a folder with more in it, root not ours."""
    if isinstance(found, CorruptSession) and not roots.is_owned(root) and reading.has_unknown_files(root, agent_id):
        path = f"{root.path}/{agent_id}"
        raise StoreFailure("remove", path, "it holds what is not ours", "remove it by hand if it is a session")


def move_to_trash(root: Directory, agent_id: str, *, durable: bool) -> None:
    """The session is gone for every reader; under its lock. In a trash that somebody else keeps it is not left."""
    with roots.ensure_folder(root, TRASH) as trash:
        trash_name = atomic.with_random_suffix(agent_id)
        os.rename(agent_id, trash_name, src_dir_fd=root.fd, dst_dir_fd=trash.fd)
        if not roots.owns_folder(root, TRASH):
            _purge(root, trash, [trash_name], durable=durable)


def remove_from_index(root: Directory, agent_id: str, found: RecordOrError) -> None:
    """No mark leads to the session any more; ``installed_file`` is what it was."""
    if isinstance(found, SessionsError):
        from . import index_repair  # of a session that cannot be read nobody knows where it is marked

        index_repair.remove_every_entry(root, agent_id)
        return
    index.remove(root, agent_id, index.keys_of(found))


def empty_trash(root: Directory, *, durable: bool) -> None:
    """What was moved out of sight is gone for good: first on the disk, then in fact."""
    if not root.has(TRASH) or not roots.owns_folder(root, TRASH):
        return
    with root.below(TRASH) as trash:
        _purge(root, trash, [name for name in trash.names() if atomic.without_random_suffix(name)], durable=durable)


def _purge(root: Directory, trash: Directory, names: list[str], *, durable: bool) -> None:
    if durable and names:
        atomic.sync_folder(root)
    for name in names:
        remove(trash, name)


def remove(folder: Directory, name: str) -> None:
    """Whatever stands under ``name``, not followed; somebody else may be removing it too."""
    try:
        with folder.below(name) as directory:  # nearly always a plain folder of plain files
            for leaf in directory.names():
                os.unlink(leaf, dir_fd=directory.fd)
        os.rmdir(name, dir_fd=folder.fd)
    except FileNotFoundError:
        return
    except OSError:
        _remove_all(folder, name)


def _remove_all(folder: Directory, name: str) -> None:
    import shutil  # only those who clean up pay for it

    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder.fd)  # it opens whatever it is given: a pipe would never answer
        else:
            os.unlink(name, dir_fd=folder.fd)
    except OSError:  # somebody else removed it; or refused, and then the next cleanup tries again
        return
