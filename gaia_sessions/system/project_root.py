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

    PassedOver = tuple[str, str, int]
    """A project that does not count: its folder, the path that is somebody else's, and whose that is."""

    PassOver = Callable[[str, str, int], None]
    """Told of each ``PassedOver``."""

SESSIONS = os.path.join(".claude", "session")

_SUPERUSER = 0


def _say_nothing(_project: str, _path: str, _uid: int) -> None:
    return


def find_root(flag: str | None, environ: Mapping[str, str], cwd: str, on_passed_over: PassOver = _say_nothing) -> str:
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
    fixed = environ.get("GAIA_SESSIONS_ROOT")
    if fixed:
        _check_no_url("GAIA_SESSIONS_ROOT", fixed)
        check_expanded("GAIA_SESSIONS_ROOT", fixed, environ)
        if not os.path.isabs(fixed):
            raise BadSetting("GAIA_SESSIONS_ROOT", f"{fixed!r} is not absolute", "give the whole path")
        return os.path.normpath(fixed)
    project = environ.get("CLAUDE_PROJECT_DIR")
    if project and os.path.isabs(project):
        folder = os.path.normpath(project)
        return os.path.join(_main_checkout(folder, on_passed_over) or folder, SESSIONS)
    if not cwd:
        raise BadSetting("working directory", "is gone", "go to one that exists, or say --root")
    return os.path.join(_project_above(cwd, home(environ), on_passed_over), SESSIONS)


def check_ours(root: str) -> None:
    """Raises ``OwnedByAnother`` if the sessions at ``root`` are another user's, or would be created in their project.

    Root may use anybody's, and keeps their owner; but a link of somebody's must not lead it into what is not theirs.
    """
    claude = claude_folder(root)
    owners = _owners(claude, root) if claude else _owners(root)
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


def roots_from(cwd: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The ``.claude/session`` of ours in ``cwd`` and in every folder above it that a search looks at."""
    for folder in _upwards(os.path.realpath(cwd), home(environ)) if cwd else ():
        root = os.path.join(folder, SESSIONS)
        if [*_owners(folder, os.path.dirname(root), root).values()] == [os.geteuid()] * 3:
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
    owners = _owners(os.path.join(folder, ".git"), folder)
    return {path: uid for path, uid in owners.items() if uid != _SUPERUSER}


def _may_use(path: str, uid: int) -> bool:
    if os.geteuid() != _SUPERUSER:
        return uid == os.geteuid()
    try:
        return os.stat(path).st_uid == uid or uid == _SUPERUSER
    except OSError:
        return False


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


def check_expanded(origin: str, given: str, environ: Mapping[str, str]) -> None:
    """Raises ``BadSetting`` for a ``~/x`` that stayed as it is: in quotes, after ``=`` or in a settings file."""
    if given.startswith("~"):
        name, slash, rest = given.partition("/")
        above = home(environ) if name == "~" else os.path.expanduser(name)
        if os.path.isabs(above):
            raise BadSetting(origin, f"{given!r} was not expanded by the shell", f"use {above}{slash}{rest}")


def _project_above(cwd: str, stop: str, on_passed_over: PassOver) -> str:
    """The nearest folder with ``.git`` or ``.claude`` that counts; the working directory itself always counts."""
    here = os.path.realpath(cwd)
    me = os.geteuid()
    for folder in _upwards(here, stop):
        marks = _owners(os.path.join(folder, ".git"), os.path.join(folder, ".claude"))
        if not marks:
            continue
        if folder == here or (me in marks.values() and _owner(folder) == me):
            return _main_checkout(folder, on_passed_over) or folder
        _pass_over(folder, _owners(folder) | marks, on_passed_over)
    return cwd


def _pass_over(project: str, owners: Mapping[str, int], on_passed_over: PassOver) -> None:
    strange = next(((path, uid) for path, uid in owners.items() if uid != os.geteuid()), None)
    if strange is not None:  # a project that was removed between two looks at it is nobody's
        on_passed_over(project, *strange)


def _owners(*paths: str) -> dict[str, int]:
    """Those of ``paths`` at which something is, each with whose it is."""
    known = ((path, _owner(path)) for path in paths)
    return {path: uid for path, uid in known if uid is not None}


def _owner(path: str) -> int | None:
    """Whose ``path`` is; None if nothing is there.

    A link is that of whoever made it, if that is somebody else: it may lead into what is ours. Root may do as it likes.
    """
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            if found.st_uid not in (os.geteuid(), _SUPERUSER):
                return found.st_uid
            found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_uid


def _upwards(here: str, stop: str) -> Iterator[str]:
    """``here`` and the folders above it, ending before ``stop``, the user's own: its ``.claude`` is no project's."""
    folder, end = here, os.path.realpath(stop) if stop else None
    while folder != end:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _main_checkout(folder: str, on_passed_over: PassOver) -> str | None:
    """The main checkout whose linked worktree ``folder`` is, if all that leads there is ours.

    None for everything else, submodules included.
    """
    pointer = os.path.join(folder, ".git")
    gitdir = _gitdir(pointer)
    checkout = _checkout_of(gitdir) if gitdir else None
    if gitdir is None or checkout is None or checkout == folder:
        return None
    steps = (folder, pointer, gitdir, checkout, os.path.join(checkout, ".git"))
    owners = _owners(*steps)
    if len(owners) < len(steps):
        return None
    if set(owners.values()) != {os.geteuid()}:
        _pass_over(checkout, owners, on_passed_over)
        return None
    return checkout


def _gitdir(pointer: str) -> str | None:
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
