"""How a session leaves the root: out of sight at once, off the disk later, its hints with it.

Owns that order. A directory is moved whole, so no reader ever finds half of one, and it is emptied only
after its move is on the disk: a power cut leaves it whole or gone.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import SessionsError
from gaia_sessions.record import is_open
from gaia_sessions.runs import aliases_of

from . import atomic, index
from .root import TRASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .directory import Directory
    from .port import Found


def move_to_trash(root: Directory, agent_id: str) -> None:
    """The session is gone for every reader; under its lock."""
    with root.make(TRASH) as trash:
        gone = f"{agent_id}.{os.urandom(8).hex()}"
        os.rename(agent_id, gone, src_dir_fd=root.fd, dst_dir_fd=trash.fd)


def forget(root: Directory, agent_id: str, found: Found) -> None:
    """No hint leads to the session any more; ``found`` is what it was."""
    if isinstance(found, SessionsError):
        index.forget(root, agent_id)
        return
    if is_open(found):  # one that ended was unmarked then
        index.unmark(root, agent_id, found["agent_name"])
    index.unname(root, agent_id, aliases_of(found))


def empty_trash(root: Directory, *, durable: bool) -> None:
    """What was moved out of sight is gone for good: first on the disk, then in fact."""
    if not root.has(TRASH):
        return
    with root.make(TRASH) as trash:
        doomed = trash.names()
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
        shutil.rmtree(name, dir_fd=folder.fd)
    except FileNotFoundError:
        return
    except OSError:  # a link or a file; or refused, and then the next cleanup tries again
        atomic.discard(folder, name)
