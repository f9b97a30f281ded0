"""Where the sessions of a project are, and whether the current user may use them.

A project that a search finds counts only if it belongs to the current user, like git's safe directories: another user's
``.claude`` in a folder above must neither receive these sessions nor send text to these agents.
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
    """A project that a search skipped: its folder, the path in it that another user owns, and that user's ID."""

VARIABLE_PREFIX = "GAIA_SESSIONS_"
"""The beginning of the names of all variables that only this program reads."""

ROOT_VARIABLE = VARIABLE_PREFIX + "ROOT"
FILES_VARIABLE = VARIABLE_PREFIX + "FILES"
"""If ``ROOT_VARIABLE`` is a URL: the folder for what works on files alone."""

ROOT_VARIABLES = frozenset([ROOT_VARIABLE, FILES_VARIABLE])
SESSIONS_PATH = os.path.join(".claude", "session")

_SUPERUSER = 0


def find_root(flag: str | None, environ: Mapping[str, str], cwd: str, *, only_files: bool = False) -> str:
    """Returns the absolute root of the sessions, or its URL; see ``find_root_and_skipped``."""
    return find_root_and_skipped(flag, environ, cwd, only_files=only_files)[0]


def is_on_server(root: str) -> bool:
    """Returns whether ``root`` is the URL of a server, and not a folder."""
    return "://" in root


def find_root_and_skipped(
    flag: str | None, environ: Mapping[str, str], cwd: str, *, only_files: bool = False
) -> tuple[str, list[SkippedProject]]:
    """Returns the absolute root or its URL, and the projects that the search for it skipped.

    only_files: for what works on files alone, such as hooks: a URL in the variable does not count.
    """
    # The root is ``flag``, else ``GAIA_SESSIONS_ROOT``, else the root of the project ``CLAUDE_PROJECT_DIR``, else the
    # root of the nearest project at or above ``cwd``. A linked worktree counts as its main checkout, even if a variable
    # names the worktree, because files in a worktree are deleted with the worktree.
    skipped: list[SkippedProject] = []
    explicit = _explicit_root(flag, environ, cwd, only_files=only_files)
    if explicit:
        return explicit, skipped
    project = environ.get("CLAUDE_PROJECT_DIR")
    if project and os.path.isabs(project):
        folder = os.path.normpath(project)
        folder = _main_checkout(folder, skipped) or folder
    elif cwd:
        folder = _nearest_project(cwd, home_folder(environ), skipped)
    else:
        raise errors.BadSetting("working directory", "it was removed", "change to a folder that exists, or use --root")
    return os.path.join(folder, SESSIONS_PATH), skipped


def check_owner(root: str) -> None:
    """Raises ``OwnedByAnother`` if the sessions at ``root``, or the project that would get them, are another user's."""
    # The user root may use all sessions (the files keep their owner), but follows no user's link to files of others.
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
    """Raises ``LinkedElsewhere`` if a link leads the root or the ``.claude`` of a project out of the project."""
    target = target_outside(path)
    if target:  # otherwise the maker of the project would choose the folder; a user can name that folder
        raise errors.LinkedElsewhere(path, target)


def target_outside(path: str) -> str | None:
    """Returns where links lead ``path`` (a root or a ``.claude``) if they lead out of the project; None otherwise."""
    claude = path if os.path.basename(path) == ".claude" else claude_folder(path)
    if not claude or not (os.path.islink(path) or os.path.islink(claude)):
        return None
    target, project = os.path.realpath(path), os.path.realpath(os.path.dirname(claude))
    return None if target.startswith(os.path.join(project, "")) else target


def own_roots_from(cwd: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yields the existing roots of the current user's projects, from ``cwd`` upwards."""
    for folder in _folders_upwards(os.path.realpath(cwd), home_folder(environ)) if cwd else ():
        root = os.path.join(folder, SESSIONS_PATH)
        is_own = [*_owners_by_path(folder, os.path.dirname(root), root).values()] == [os.geteuid()] * 3
        if is_own and not target_outside(root):
            yield root


def owned_by_another(path: str, uid: int) -> OwnedByAnother:
    """Returns the error for a ``path`` that belongs to the user ``uid``."""
    from gaia_sessions.errors import OwnedByAnother

    from .users import user_name

    return OwnedByAnother(path, user_name(uid), user_name(os.geteuid()))


def working_directory() -> str:
    """Returns the working directory of this process; empty if it was removed, because ``--root`` may be enough."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def claude_folder(root: str) -> str | None:
    """Returns the ``.claude`` of the project whose sessions are at ``root``; None for a root elsewhere."""
    folder, name = os.path.split(root)
    return folder if name == "session" and os.path.basename(folder) == ".claude" else None


def check_expanded(origin: str, path: str, environ: Mapping[str, str]) -> None:
    """Raises ``BadSetting`` for a ``~/x`` that no shell expanded: in quotes, after ``=`` or in a settings file."""
    if path.startswith("~"):
        name, slash, rest = path.partition("/")
        home_path = home_folder(environ) if name == "~" else os.path.expanduser(name)
        if os.path.isabs(home_path):
            raise errors.BadSetting(origin, f"{path!r} was not expanded by the shell", f"use {home_path}{slash}{rest}")


def _explicit_root(flag: str | None, environ: Mapping[str, str], cwd: str, *, only_files: bool) -> str:
    """Returns the root that ``flag`` or ``GAIA_SESSIONS_ROOT`` names; empty if neither is set."""
    if flag == "":
        raise errors.BadSetting("--root", "is empty", "name a folder after --root, or leave out --root")
    origin, given = ("--root", flag) if flag else (ROOT_VARIABLE, environ.get(ROOT_VARIABLE))
    if given and is_on_server(given):
        if not only_files:
            from . import server_url  # most roots are folders

            return server_url.checked(origin, given)
        if flag:
            problem = "is a URL, but hooks store sessions in files"
            raise errors.BadSetting(origin, problem, "name a folder, or leave out --root")
        origin, given = FILES_VARIABLE, environ.get(FILES_VARIABLE)
    if not given:
        return ""
    check_expanded(origin, given, environ)
    if not flag and not os.path.isabs(given):  # a relative path would be another place for each process
        raise errors.BadSetting(origin, f"{given!r} is not absolute", "set it to a path that begins with /")
    return os.path.normpath(os.path.join(cwd, given))


def roots_for_command(root: str, environ: Mapping[str, str], cwd: str) -> dict[str, str]:
    """Returns the variables with which a command and its hooks use ``root``, or the files beside the server."""
    if not is_on_server(root):
        return {ROOT_VARIABLE: os.path.abspath(root)}
    return {
        ROOT_VARIABLE: root,
        FILES_VARIABLE: find_root(None, {**environ, ROOT_VARIABLE: root}, cwd, only_files=True),
    }


def _nearest_project(cwd: str, stop: str, skipped: list[SkippedProject]) -> str:
    """Returns the nearest folder with ``.git`` or ``.claude`` that counts; the working directory always counts."""
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
    """Yields ``start`` and the folders above it, up to ``stop``, the user's home: ``.claude`` there is no project's."""
    folder, end = start, os.path.realpath(stop) if stop else None
    while folder != end:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _main_checkout(folder: str, skipped: list[SkippedProject]) -> str | None:
    """Returns the main checkout of the linked worktree ``folder``, if the current user owns every path to it."""
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
    if of_another is not None:  # None if the project was removed in between
        skipped.append((project, *of_another))


def _owners_of_project(folder: str) -> dict[str, int]:
    """Returns the owners (never root) whom a new ``.claude`` in ``folder`` would lock out of their own project."""
    if _owner(folder) == os.geteuid():
        return {}
    owners = _owners_by_path(os.path.join(folder, ".git"), folder)
    return {path: uid for path, uid in owners.items() if uid != _SUPERUSER}


def _check_not_planted(claude: str, owners: dict[str, int]) -> None:
    """Raises ``OwnedByAnother`` for a ``.claude`` that a user put into another user's folder, to mislead root."""
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
    """Returns the owner of each of ``paths`` that exists."""
    owners = ((path, _owner(path)) for path in paths)
    return {path: uid for path, uid in owners if uid is not None}


def _owner(path: str) -> int | None:
    """Returns the owner of ``path``; None if it does not exist."""
    # A link belongs to the user who made it. If that is the current user or root, they mean the target; a link of
    # another user may lead into what belongs to the current user.
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            if status.st_uid not in (os.geteuid(), _SUPERUSER):
                return status.st_uid
            status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_uid
