"""The gitfiles by which git links a worktree to its main checkout, read without git.

A ``.git`` file is text from the maker of the project and may name any other project. So both sides must name each
other.
"""

from __future__ import annotations

import os
import stat


def main_checkout_of(gitfile: str) -> tuple[str, str] | None:
    """Returns the git directory and the main checkout of a linked worktree's ``.git`` file; None for other files."""
    # The git directory is ``{checkout}/.git/worktrees/{name}``, and its file ``gitdir`` names this gitfile. The caller
    # checks the owners.
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
    """Returns the first line of the regular file ``path``, if it is no link."""
    try:
        # O_NONBLOCK, because the path may lead to a pipe.
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
