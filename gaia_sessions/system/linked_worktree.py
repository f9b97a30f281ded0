"""The gitfiles by which git links a worktree to its main checkout.

Owns how they are read, without starting git. Must never judge whether what they lead to may be used: whoever asks
checks the owners.
"""

from __future__ import annotations

import os
import stat


def main_checkout_of(gitfile: str) -> tuple[str, str] | None:
    """Where the ``.git`` file ``gitfile`` of a linked worktree leads: the worktree's git directory, the main checkout.

    None for everything else, submodules included.
    """
    gitdir = _gitdir_of(gitfile)
    checkout = _checkout_of(gitdir) if gitdir else None
    return (gitdir, checkout) if gitdir and checkout else None


def _gitdir_of(gitfile: str) -> str | None:
    line = _first_line(gitfile)
    if line is None or not line.startswith("gitdir:"):
        return None
    return os.path.join(os.path.dirname(gitfile), line.removeprefix("gitdir:").strip())


def _checkout_of(gitdir: str) -> str | None:
    common = _first_line(os.path.join(gitdir, "commondir"))
    if common is None:
        return None
    shared = os.path.normpath(os.path.join(gitdir, common))
    return os.path.dirname(shared) if os.path.basename(shared) == ".git" else None


def _first_line(path: str) -> str | None:
    """The first line of the regular file ``path``; opened without blocking, because it may be a pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return os.read(fd, 4096).partition(b"\n")[0].decode().strip()
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
