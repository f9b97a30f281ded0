"""Where the sessions of a project live, and whether they are those of the user we run as.

Owns the search for the root, so that hooks and commands from any directory of a project, and from its
linked worktrees, find the same one. What is found by searching counts only if it belongs to us, as with the safe
directories of git: another user's ``.claude`` in a folder above must neither take in our sessions nor speak to our
agents. Reads directory entries and a linked worktree's own pointer files; creates nothing.
"""

from __future__ import annotations

import os
import stat

from gaia_sessions.errors import BadSetting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gaia_sessions.errors import OwnedByAnother

    SkippedProject = tuple[str, str, int]
    """A project that does not count: its folder, the path that is somebody else's, and whose that is."""

    OnSkipped = Callable[[str, str, int], None]
    """Told of each ``SkippedProject``."""

SESSIONS_PATH = os.path.join(".claude", "session")

_SUPERUSER = 0


def _ignore_skipped(_project: str, _path: str, _uid: int) -> None:
    return


def find_root(flag: str | None, environ: Mapping[str, str], cwd: str, on_skipped: OnSkipped = _ignore_skipped) -> str:
    """The absolute root, by ``flag``, ``GAIA_SESSIONS_ROOT`` or ``CLAUDE_PROJECT_DIR``, else searched upwards.

    A linked worktree counts as its main checkout, whoever names it: what is kept there goes when it is removed.
    A project above, or such a main checkout, counts only if it belongs to us: see ``on_passed_over``.

    Raises ``BadSetting`` for a URL, for a ``~`` that no shell expanded, for a relative ``GAIA_SESSIONS_ROOT``, which
    every process would take for another place, and when only a working directory could tell and ``cwd`` is empty
    because it is gone.
    """
    if flag == "":
        raise BadSetting("--root", "is empty", "name a directory, or leave it out")
    if flag:
        _check_no_url("--root", flag)
        check_expanded("--root", flag, environ)
        return os.path.normpath(os.path.join(cwd, flag))
    configured = environ.get("GAIA_SESSIONS_ROOT")
    if configured:
        _check_no_url("GAIA_SESSIONS_ROOT", configured)
        check_expanded("GAIA_SESSIONS_ROOT", configured, environ)
        if not os.path.isabs(configured):
            raise BadSetting("GAIA_SESSIONS_ROOT", f"{configured!r} is not absolute", "give the whole path")
        return os.path.normpath(configured)
    project = environ.get("CLAUDE_PROJECT_DIR")
    if project and os.path.isabs(project):
        folder = os.path.normpath(project)
        return os.path.join(_main_checkout(folder, on_skipped) or folder, SESSIONS_PATH)
    if not cwd:
        raise BadSetting("working directory", "is gone", "go to one that exists, or say --root")
    return os.path.join(_nearest_project(cwd, home_folder(environ), on_skipped), SESSIONS_PATH)


def check_owner(root: str) -> None:
    """Raises ``OwnedByAnother`` if the sessions at ``root`` are another user's, or would be created in their project.

    Root may use anybody's, and keeps their owner; but a link of somebody's must not lead it into what is not theirs.
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


def _check_not_planted(claude: str, owners: dict[str, int]) -> None:
    """Raises ``OwnedByAnother`` for a ``.claude`` that a user put into a folder which is not his: root is no guest."""
    uid = owners.get(claude, _SUPERUSER)
    if uid not in (_SUPERUSER, _owner(os.path.dirname(claude))):
        raise owned_by_another(claude, uid)


def own_roots_from(cwd: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The ``.claude/session`` of ours in ``cwd`` and in every folder above it that a search looks at."""
    for folder in _folders_upwards(os.path.realpath(cwd), home_folder(environ)) if cwd else ():
        root = os.path.join(folder, SESSIONS_PATH)
        if [*_owners_by_path(folder, os.path.dirname(root), root).values()] == [os.geteuid()] * 3:
            yield root


def owned_by_another(path: str, uid: int) -> OwnedByAnother:
    """The error that says so."""
    from gaia_sessions.errors import OwnedByAnother

    from .users import user_name

    return OwnedByAnother(path, user_name(uid), user_name(os.geteuid()))


def _owners_of_project(folder: str) -> dict[str, int]:
    """Who would be locked out if we made a ``.claude`` in ``folder``: nobody if it is ours, and never root."""
    if _owner(folder) == os.geteuid():
        return {}
    owners = _owners_by_path(os.path.join(folder, ".git"), folder)
    return {path: uid for path, uid in owners.items() if uid != _SUPERUSER}


def _may_use(path: str, uid: int) -> bool:
    if os.geteuid() != _SUPERUSER:
        return uid == os.geteuid()
    try:
        return os.stat(path).st_uid == uid or uid == _SUPERUSER
    except OSError:
        return False


def home_folder(environ: Mapping[str, str]) -> str:
    """The user's own folder, as shells find it: ``HOME``, else what the system says; empty if neither is a path."""
    variable = environ.get("HOME", "")
    if os.path.isabs(variable):
        return variable
    import pwd  # hardly anybody has no HOME

    try:
        system_home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
    return system_home if os.path.isabs(system_home) else ""


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


def _check_no_url(origin: str, path: str) -> None:
    """The text is not in the message: a URL may have a password in it."""
    if "://" in path:
        raise BadSetting(origin, "is a URL", "give the path of a directory: sessions are kept in files")


def check_expanded(origin: str, path: str, environ: Mapping[str, str]) -> None:
    """Raises ``BadSetting`` for a ``~/x`` that stayed as it is: in quotes, after ``=`` or in a settings file."""
    if path.startswith("~"):
        name, slash, rest = path.partition("/")
        home_path = home_folder(environ) if name == "~" else os.path.expanduser(name)
        if os.path.isabs(home_path):
            raise BadSetting(origin, f"{path!r} was not expanded by the shell", f"use {home_path}{slash}{rest}")


def _nearest_project(cwd: str, stop: str, on_skipped: OnSkipped) -> str:
    """The nearest folder with ``.git`` or ``.claude`` that counts; the working directory itself always counts."""
    start = os.path.realpath(cwd)
    own_uid = os.geteuid()
    for folder in _folders_upwards(start, stop):
        project_entries = _owners_by_path(os.path.join(folder, ".git"), os.path.join(folder, ".claude"))
        if not project_entries:
            continue
        if folder == start or (own_uid in project_entries.values() and _owner(folder) == own_uid):
            return _main_checkout(folder, on_skipped) or folder
        _report_skipped(folder, _owners_by_path(folder) | project_entries, on_skipped)
    return cwd


def _report_skipped(project: str, owners: Mapping[str, int], on_skipped: OnSkipped) -> None:
    not_own = next(((path, uid) for path, uid in owners.items() if uid != os.geteuid()), None)
    if not_own is not None:  # a project that was removed between two looks at it is nobody's
        on_skipped(project, *not_own)


def _owners_by_path(*paths: str) -> dict[str, int]:
    """Those of ``paths`` at which something is, each with whose it is."""
    owners = ((path, _owner(path)) for path in paths)
    return {path: uid for path, uid in owners if uid is not None}


def _owner(path: str) -> int | None:
    """Whose ``path`` is; None if nothing is there.

    A link is that of whoever made it, if that is somebody else: it may lead into what is ours. Root may do as it likes.
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


def _folders_upwards(start: str, stop: str) -> Iterator[str]:
    """``here`` and the folders above it, ending before ``stop``, the user's own: its ``.claude`` is no project's."""
    folder, end = start, os.path.realpath(stop) if stop else None
    while folder != end:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _main_checkout(folder: str, on_skipped: OnSkipped) -> str | None:
    """The main checkout whose linked worktree ``folder`` is, if all that leads there is ours.

    None for everything else, submodules included.
    """
    pointer = os.path.join(folder, ".git")
    gitdir = _gitdir_of(pointer)
    checkout = _checkout_of(gitdir) if gitdir else None
    if gitdir is None or checkout is None or checkout == folder:
        return None
    paths = (folder, pointer, gitdir, checkout, os.path.join(checkout, ".git"))
    owners = _owners_by_path(*paths)
    if len(owners) < len(paths):
        return None
    if set(owners.values()) != {os.geteuid()}:
        _report_skipped(checkout, owners, on_skipped)
        return None
    return checkout


def _gitdir_of(pointer: str) -> str | None:
    line = _first_line(pointer)
    if line is None or not line.startswith("gitdir:"):
        return None
    return os.path.join(os.path.dirname(pointer), line.removeprefix("gitdir:").strip())


def _checkout_of(gitdir: str) -> str | None:
    common = _first_line(os.path.join(gitdir, "commondir"))
    if common is None:
        return None
    shared = os.path.normpath(os.path.join(gitdir, common))
    return os.path.dirname(shared) if os.path.basename(shared) == ".git" else None


def _first_line(path: str) -> str | None:
    """Never waits: a pipe that somebody puts there is no file."""
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
