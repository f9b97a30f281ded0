"""How a session comes into the root: built out of sight, then in place whole.

Owns that order, and the moment at which an index may be called complete from the start.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import LockTimeout

from . import atomic, index, locks
from . import root as roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .directory import Directory


def mark_empty_complete(root: Directory, wait: locks.WaitForLock) -> None:
    """A root without sessions has a complete index; every later session is marked before it is there."""
    if index.is_complete(root):
        return
    try:
        with roots.ensure_folder(root, roots.LOCKS) as folder, locks.acquire(folder, index.LOCK, 0, wait):
            if index.ensure_owned(root) and not roots.session_names(root):
                index.mark_complete(root)
    except LockTimeout:  # somebody else is at the same, or puts the index right
        return


def create_directory(root: Directory, agent_id: str, files: dict[str, bytes], *, durable: bool) -> None:
    """The session's directory stands in ``root`` with ``files`` in it, or nothing of it does; raises ``OSError``.

    Its name in the root is not synced yet.
    """
    with roots.ensure_folder(root, roots.STAGE) as stage:
        staged_name = atomic.with_random_suffix(agent_id)
        try:
            with stage.make(staged_name) as session:
                for name, data in files.items():
                    atomic.write_new(session, name, data, durable=durable)
                if durable:
                    session.sync()
            os.rename(staged_name, agent_id, src_dir_fd=stage.fd, dst_dir_fd=root.fd)
        except OSError:
            from . import delete

            delete.remove(stage, staged_name)
            raise
