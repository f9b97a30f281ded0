"""Where the sessions of a project are, and whether the current user may use them.

Owns the search for the root, so that hooks and commands find the same one from any folder of a project and from its
linked worktrees. What is found by searching counts only if it belongs to the current user, as with the safe directories
of git: the ``.claude`` of another user in a folder above must neither receive these sessions nor send text to these
agents. Reads directory entries and the gitfiles of linked worktrees.
"""

from __future__ import annotations

import os
import stat

from gaia_sessions import errors

from . import home_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gaia_sessions.errors import OwnedByAnother

    SkippedProject = tuple[str, str, int]
    """A project that a search skipped: its folder, the path in it that another user owns, and that user's id."""

VARIABLE_PREFIX = "GAIA_SESSIONS_"
"""With which the name of every variable begins that only this program reads."""

ROOT_VARIABLE = VARIABLE_PREFIX + "ROOT"
SESSIONS_PATH = os.path.join(".claude", "session")

_SUPERUSER = 0


def find_root(flag: str | None, environ: Mapping[str, str], cwd: str) -> str:
    """The absolute root of the sessions: see ``find_root_and_skipped``."""
    return find_root_and_skipped(flag, environ, cwd)[0]


def find_root_and_skipped(flag: str | None, environ: Mapping[str, str], cwd: str) -> tuple[str, list[SkippedProject]]:
    """The absolute root, and the projects that the search for it skipped.

    The root is ``flag``, else ``GAIA_SESSIONS_ROOT``, else that of ``CLAUDE_PROJECT_DIR``, else that of the nearest
    project at or above ``cwd``. A linked worktree counts as its main checkout, even if a variable names it, because
    what is kept in a worktree is deleted with it. A project above, or such a main checkout, counts only if it belongs
    to the current user; others are skipped.

    Raises ``BadSetting`` for a URL, for a ``~`` that no shell expanded, for a relative ``GAIA_SESSIONS_ROOT``, which
    would be another place to every process, and when only ``cwd`` could decide but is empty because it was removed.
    """
    skipped: list[SkippedProject] = []
    explicit = _explicit_root(flag, environ, cwd)
    if explicit:
        return explicit, skipped
    project = environ.get("CLAUDE_PROJECT_DIR")
    if project and os.path.isabs(project):
        folder = os.path.normpath(project)
        folder = _main_checkout(folder, skipped) or folder
    elif cwd:
        folder = _nearest_project(cwd, home_folder(environ), skipped)
    else:
        raise errors.BadSetting("working directory", "is gone", "go to one that exists, or say --root")
    return os.path.join(folder, SESSIONS_PATH), skipped


def check_owner(root: str) -> None:
    """Raises ``OwnedByAnother`` if the sessions at ``root`` are another user's, or would be created in their project.

    The superuser may use anybody's sessions, and the files keep their owner; but a link that a user made must not lead
    the superuser to files of somebody else.
    """
    claude = claude_folder(root)
    owners = _owners_by_path(claude, root) if claude else _owners_by_path(root)
    if claude and not owners:
        owners = _owners_of_project(os.path.dirname(claude))
    elif claude and os.geteuid() == _SUPERUSER:
        _check_not_planted(claude, owners)
    for path, uid in owners.items():
        if not _may_use(path, uid):
            raise owned_by_another(path, uid)


def check_links(path: str) -> None:
    """Raises ``LinkedElsewhere`` if a link leads the root or the ``.claude`` of a project out of the project.

    Whoever made the project would decide where; a user who wants that names the folder itself.
    """
    target = target_outside(path)
    if target:
        raise errors.LinkedElsewhere(path, target)


def target_outside(path: str) -> str | None:
    """Where links lead ``path``, a root or a ``.claude``, if that is not below the project; None for any other root."""
    claude = path if os.path.basename(path) == ".claude" else claude_folder(path)
    if not claude or not (os.path.islink(path) or os.path.islink(claude)):
        return None
    target, project = os.path.realpath(path), os.path.realpath(os.path.dirname(claude))
    return None if target.startswith(os.path.join(project, "")) else target


def own_roots_from(cwd: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The existing roots of the current user's projects in ``cwd`` and in every folder above that a search visits."""
    for folder in _folders_upwards(os.path.realpath(cwd), home_folder(environ)) if cwd else ():
        root = os.path.join(folder, SESSIONS_PATH)
        is_own = [*_owners_by_path(folder, os.path.dirname(root), root).values()] == [os.geteuid()] * 3
        if is_own and not target_outside(root):
            yield root


def owned_by_another(path: str, uid: int) -> OwnedByAnother:
    """The error for a ``path`` that belongs to the user ``uid``."""
    from gaia_sessions.errors import OwnedByAnother

    from .users import user_name

    return OwnedByAnother(path, user_name(uid), user_name(os.geteuid()))


def working_directory() -> str:
    """The working directory of this process; empty if it was removed, since the root may be known without it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def claude_folder(root: str) -> str | None:
    """The ``.claude`` of the project whose sessions are at ``root``; None for a root elsewhere."""
    folder, name = os.path.split(root)
    return folder if name == "session" and os.path.basename(folder) == ".claude" else None


def check_expanded(origin: str, path: str, environ: Mapping[str, str]) -> None:
    """Raises ``BadSetting`` for a ``~/x`` that no shell expanded: in quotes, after ``=`` or in a settings file."""
    if path.startswith("~"):
        name, slash, rest = path.partition("/")
        home_path = home_folder(environ) if name == "~" else os.path.expanduser(name)
        if os.path.isabs(home_path):
            raise errors.BadSetting(origin, f"{path!r} was not expanded by the shell", f"use {home_path}{slash}{rest}")


def _explicit_root(flag: str | None, environ: Mapping[str, str], cwd: str) -> str:
    """The root that ``flag`` or ``GAIA_SESSIONS_ROOT`` names; empty if neither is set."""
    if flag == "":
        raise errors.BadSetting("--root", "is empty", "name a directory, or leave it out")
    if flag:
        _check_no_url("--root", flag)
        check_expanded("--root", flag, environ)
        return os.path.normpath(os.path.join(cwd, flag))
    configured = environ.get(ROOT_VARIABLE)
    if not configured:
        return ""
    _check_no_url(ROOT_VARIABLE, configured)
    check_expanded(ROOT_VARIABLE, configured, environ)
    if not os.path.isabs(configured):
        raise errors.BadSetting(ROOT_VARIABLE, f"{configured!r} is not absolute", "give the whole path")
    return os.path.normpath(configured)


def _check_no_url(origin: str, path: str) -> None:
    """Raises ``BadSetting`` for a URL, without its text: there may be a password in it."""
    if "://" in path:
        raise errors.BadSetting(origin, "is a URL", "give the path of a directory: sessions are kept in files")


def _nearest_project(cwd: str, stop: str, skipped: list[SkippedProject]) -> str:
    """The nearest folder with ``.git`` or ``.claude`` that counts; the working directory itself always counts."""
    start = os.path.realpath(cwd)
    own_uid = os.geteuid()
    for folder in _folders_upwards(start, stop):
        project_entries = _owners_by_path(os.path.join(folder, ".git"), os.path.join(folder, ".claude"))
        if not project_entries:
            continue
        if folder == start or (own_uid in project_entries.values() and _owner(folder) == own_uid):
            return _main_checkout(folder, skipped) or folder
        _add_skipped(skipped, folder, _owners_by_path(folder) | project_entries)
    return cwd


def _folders_upwards(start: str, stop: str) -> Iterator[str]:
    """``start`` and the folders above it, without ``stop``, the user's home: a ``.claude`` there is of no project."""
    folder, end = start, os.path.realpath(stop) if stop else None
    while folder != end:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _main_checkout(folder: str, skipped: list[SkippedProject]) -> str | None:
    """The main checkout of the linked worktree ``folder``, if every path that leads there is the current user's."""
    gitfile = os.path.join(folder, ".git")
    if not os.path.isfile(gitfile):
        return None
    from .linked_worktree import main_checkout_of

    gitdir, checkout = main_checkout_of(gitfile) or ("", folder)
    if checkout == folder:
        return None
    paths = (folder, gitfile, gitdir, checkout, os.path.join(checkout, ".git"))
    owners = _owners_by_path(*paths)
    if len(owners) < len(paths):
        return None
    if set(owners.values()) != {os.geteuid()}:
        _add_skipped(skipped, checkout, owners)
        return None
    return checkout


def _add_skipped(skipped: list[SkippedProject], project: str, owners: Mapping[str, int]) -> None:
    of_another = next(((path, uid) for path, uid in owners.items() if uid != os.geteuid()), None)
    if of_another is not None:  # None if the project was removed between the two looks at it
        skipped.append((project, *of_another))


def _owners_of_project(folder: str) -> dict[str, int]:
    """The owners but the superuser whom a new ``.claude`` in ``folder`` would lock out of their own project."""
    if _owner(folder) == os.geteuid():
        return {}
    owners = _owners_by_path(os.path.join(folder, ".git"), folder)
    return {path: uid for path, uid in owners.items() if uid != _SUPERUSER}


def _check_not_planted(claude: str, owners: dict[str, int]) -> None:
    """Raises ``OwnedByAnother`` for a ``.claude`` that a user put into a folder of somebody else, to mislead root."""
    uid = owners.get(claude, _SUPERUSER)
    if uid not in (_SUPERUSER, _owner(os.path.dirname(claude))):
        raise owned_by_another(claude, uid)


def _may_use(path: str, uid: int) -> bool:
    if os.geteuid() != _SUPERUSER:
        return uid == os.geteuid()
    try:
        return os.stat(path).st_uid == uid or uid == _SUPERUSER
    except OSError:
        return False


def _owners_by_path(*paths: str) -> dict[str, int]:
    """The owner of each of ``paths`` that exists."""
    owners = ((path, _owner(path)) for path in paths)
    return {path: uid for path, uid in owners if uid is not None}


def _owner(path: str) -> int | None:
    """The owner of ``path``; None if it does not exist.

    A link belongs to the user who made it, unless that is the current user or the superuser, who mean what it leads
    to; the link of another user may lead into what belongs to the current one.
    """
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            if status.st_uid not in (os.geteuid(), _SUPERUSER):
                return status.st_uid
            status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_uid
