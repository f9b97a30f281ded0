"""The gitfiles by which git links a worktree to its main checkout.

Read without starting git, and believed only where both sides name each other: a ``.git`` file is text of whoever made
the project, and may name the git directory of any other project.
"""

from __future__ import annotations

import os
import stat


def main_checkout_of(gitfile: str) -> tuple[str, str] | None:
    """Where the ``.git`` file ``gitfile`` of a linked worktree leads: the worktree's git directory, the main checkout.

    The git directory is ``{checkout}/.git/worktrees/{name}``, and its file ``gitdir`` names this very gitfile. None for
    everything else, submodules included. Whoever asks checks the owners.
    """
    line = _first_line(gitfile)
    if line is None or not line.startswith("gitdir:"):
        return None
    gitdir = os.path.realpath(os.path.join(os.path.dirname(gitfile), line.removeprefix("gitdir:").strip()))
    shared, worktrees = os.path.split(os.path.dirname(gitdir))
    checkout, name = os.path.split(shared)
    if (name, worktrees) != (".git", "worktrees"):
        return None
    named = _first_line(os.path.join(gitdir, "gitdir"))
    if named is None:
        return None
    return (gitdir, checkout) if _is_same(os.path.join(gitdir, named), gitfile) else None


def _is_same(named: str, gitfile: str) -> bool:
    folder, name = os.path.split(named)
    try:
        return name == ".git" and os.path.samefile(folder, os.path.dirname(gitfile))
    except OSError:
        return False


def _first_line(path: str) -> str | None:
    """The first line of the regular file ``path``, which is no link; opened without blocking: it may be a pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        line = os.read(fd, 4096).partition(b"\n")[0].decode().strip()
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
    return None if "\0" in line else line
