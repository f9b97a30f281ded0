"""Where the sessions of a project live.

Owns the search for the root, so that hooks and commands from any directory of a project, and from its
linked worktrees, find the same one. Reads directory entries and a linked worktree's own pointer files;
creates nothing.
"""

from __future__ import annotations

import os

from .errors import BadSetting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SESSIONS = os.path.join(".claude", "session")


def find_root(flag: str | None, environ: Mapping[str, str], cwd: str) -> str:
    """The absolute root, by ``flag``, ``GAIA_SESSIONS_ROOT`` or ``CLAUDE_PROJECT_DIR``, else searched upwards.

    A linked worktree counts as its main checkout, whoever names it: what is kept there goes when it is removed.

    Raises ``BadSetting`` for a URL, for a relative ``GAIA_SESSIONS_ROOT``, which every process would take for
    another place, and when only a working directory could tell and ``cwd`` is empty because it is gone.
    """
    if flag == "":
        raise BadSetting("--root", "is empty", "name a directory, or leave it out")
    if flag:
        _check_no_url("--root", flag)
        return os.path.normpath(os.path.join(cwd, flag))
    fixed = environ.get("GAIA_SESSIONS_ROOT")
    if fixed:
        _check_no_url("GAIA_SESSIONS_ROOT", fixed)
        if not os.path.isabs(fixed):
            raise BadSetting("GAIA_SESSIONS_ROOT", f"{fixed!r} is not absolute", "give the whole path")
        return os.path.normpath(fixed)
    project = environ.get("CLAUDE_PROJECT_DIR")
    if project and os.path.isabs(project):
        folder = os.path.normpath(project)
        return os.path.join(_main_checkout(folder) or folder, SESSIONS)
    if not cwd:
        raise BadSetting("working directory", "is gone", "go to one that exists, or say --root")
    return os.path.join(_project_above(cwd, home(environ)), SESSIONS)


def home(environ: Mapping[str, str]) -> str:
    """The user's own folder, as shells find it: ``HOME``, else what the system says; empty if neither is a path."""
    said = environ.get("HOME", "")
    if os.path.isabs(said):
        return said
    import pwd  # hardly anybody has no HOME

    try:
        known = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
    return known if os.path.isabs(known) else ""


def working_directory() -> str:
    """Where this process is; empty if that was removed, since the root may be known without it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def claude_folder(root: str) -> str | None:
    """The ``.claude`` of the project whose sessions are at ``root``; None for a root elsewhere."""
    folder, name = os.path.split(root)
    return folder if name == "session" and os.path.basename(folder) == ".claude" else None


def _check_no_url(origin: str, given: str) -> None:
    """The text is not in the message: a URL may have a password in it."""
    if "://" in given:
        raise BadSetting(origin, "is a URL", "give the path of a directory: sessions are kept in files")


def _project_above(cwd: str, stop: str) -> str:
    folders = list(_upwards(cwd, stop))
    for folder in folders:
        if os.path.isdir(os.path.join(folder, SESSIONS)):
            return folder
    for folder in folders:
        checkout = _main_checkout(folder)
        if checkout and checkout != folder:
            return _project_above(checkout, stop)
        if os.path.exists(os.path.join(folder, ".claude")) or os.path.exists(os.path.join(folder, ".git")):
            return folder
    return cwd


def _upwards(cwd: str, stop: str) -> Iterator[str]:
    """``cwd`` and the folders above it, ending before ``stop``, the user's own: its ``.claude`` is no project's."""
    folder, end = os.path.realpath(cwd), os.path.realpath(stop) if stop else None
    while folder != end:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _main_checkout(folder: str) -> str | None:
    """The main checkout whose linked worktree ``folder`` is; None for everything else, submodules included."""
    pointer = _first_line(os.path.join(folder, ".git"))
    if pointer is None or not pointer.startswith("gitdir:"):
        return None
    gitdir = os.path.join(folder, pointer.removeprefix("gitdir:").strip())
    common = _first_line(os.path.join(gitdir, "commondir"))
    if common is None:
        return None
    shared = os.path.normpath(os.path.join(gitdir, common))
    return os.path.dirname(shared) if os.path.basename(shared) == ".git" else None


def _first_line(path: str) -> str | None:
    if not os.path.isfile(path):
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline(4096).strip()
    except (OSError, ValueError):
        return None
