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
    from .port import Found


def check_ours(root: Directory, agent_id: str, found: Found) -> None:
    """Raises ``StoreFailure`` for what is no record and may be no session: a folder with more in it, root not ours."""
    if isinstance(found, CorruptSession) and not roots.is_ours(root) and reading.holds_more(root, agent_id):
        path = f"{root.path}/{agent_id}"
        raise StoreFailure("remove", path, "it holds what is not ours", "remove it by hand if it is a session")


def move_to_trash(root: Directory, agent_id: str, *, durable: bool) -> None:
    """The session is gone for every reader; under its lock. In a trash that somebody else keeps it is not left."""
    with roots.place(root, TRASH) as trash:
        gone = atomic.with_chance(agent_id)
        os.rename(agent_id, gone, src_dir_fd=root.fd, dst_dir_fd=trash.fd)
        if not roots.owns(root, TRASH):
            _empty(root, trash, [gone], durable=durable)


def forget(root: Directory, agent_id: str, found: Found) -> None:
    """No mark leads to the session any more; ``found`` is what it was."""
    if isinstance(found, SessionsError):
        from . import index_repair  # of a session that cannot be read nobody knows where it is marked

        index_repair.forget(root, agent_id)
        return
    index.remove(root, agent_id, index.marks_of(found))


def empty_trash(root: Directory, *, durable: bool) -> None:
    """What was moved out of sight is gone for good: first on the disk, then in fact."""
    if not root.has(TRASH) or not roots.owns(root, TRASH):
        return
    with root.below(TRASH) as trash:
        _empty(root, trash, [name for name in trash.names() if atomic.without_chance(name)], durable=durable)


def _empty(root: Directory, trash: Directory, doomed: list[str], *, durable: bool) -> None:
    if durable and doomed:
        atomic.confirm(root)
    for name in doomed:
        remove(trash, name)


def remove(folder: Directory, name: str) -> None:
    """Whatever stands under ``name``, not followed; somebody else may be removing it too."""
    try:
        with folder.below(name) as doomed:  # nearly always a plain folder of plain files
            for leaf in doomed.names():
                os.unlink(leaf, dir_fd=doomed.fd)
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
