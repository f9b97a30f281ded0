"""Checks of the place where the sessions are: the root, what it lies on, whose it is and who may look."""

from __future__ import annotations

import os
import re
import stat

from gaia_sessions.system import users
from gaia_sessions.system.mounts import NETWORK, kind_at
from gaia_sessions.system.users import user_name

from .findings import ailing, counted, fine, shell, some
from .tree import OF_THE_USER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .case import Case
    from .findings import Finding
    from .tree import Entry

_MOVE = "keep them elsewhere: GAIA_SESSIONS_ROOT names the place, to the host as well, for its hooks know no other"
_LEAST_SPACE = 16 << 20
_IGNORE = ".gitignore"


def project(case: Case) -> Finding:
    """Whether the search for the root passed over a project of somebody else, as commands say each time."""
    if not case.passed_over:
        return fine("project", "no project of another user was passed over")
    message, wanted, command = users.passed_over(*case.passed_over[0], case.root)
    return ailing("project", f"{message}; {wanted}:", command)


def root(case: Case) -> Finding:
    """Whether the root can be used, or made where there is none."""
    if not os.path.lexists(case.root):
        above = _nearest(case.root)
        if os.access(above, os.W_OK | os.X_OK):
            return fine("root", f"{case.root}: not there yet, the first session makes it")
        return ailing("root", f"{case.root}: not there, and {above} may not be written to; {_MOVE}", None)
    if not os.path.isdir(case.root):
        return ailing("root", f"{case.root}: not a directory; {_MOVE}", None)
    if os.access(case.root, os.R_OK | os.W_OK | os.X_OK):
        return fine("root", f"{case.root}: {counted(case.records.total, 'session')}")
    return _unusable(case)


def _unusable(case: Case) -> Finding:
    """By its mode, which its owner may change; else by whatever the system has against it, a read-only disk say."""
    found = os.stat(case.root)
    if found.st_uid == os.geteuid() and found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        told = f"{case.root}: its mode ({stat.S_IMODE(found.st_mode):03o}) denies its owner access"
        return ailing("root", told, shell("chmod", "u+rwx", os.path.realpath(case.root)), fixable=True)
    return ailing("root", f"{case.root}: may not be read and written to; {_MOVE}", None)


def space(case: Case) -> Finding:
    """What to do without is for whoever owns the disk to say: sessions are a few kilobytes each."""
    found = os.statvfs(_nearest(case.root))
    free = found.f_bavail * found.f_frsize
    told = f"{free >> 20} MiB free" + (f", {found.f_favail} files" if found.f_files else "")
    if free >= _LEAST_SPACE and (found.f_favail or not found.f_files):
        return fine("space", told)
    return ailing("space", f"{told} at {_nearest(case.root)}; make room there", None)


def file_system(case: Case) -> Finding:
    """Over a network neither locks nor renames can be relied on."""
    kind = kind_at(case.root)
    if kind not in NETWORK:
        return fine("file_system", kind or "the system does not say its kind")
    return ailing("file_system", f"{kind}: locks and renames over a network lose writes; {_MOVE}", None)


def owner(case: Case) -> Finding:
    """A command run once as another user leaves what ours cannot write. What is root's only root can give away."""
    if not case.strange:
        return fine("owner", user_name(case.entries[0].owner) if case.entries else "nobody yet")
    paths = [entry.path for entry in case.strange]
    told = f"{_entries(len(paths))} not of {user_name(case.entries[0].owner)}: {some(paths)}"
    if any(entry.owner for entry in case.strange):
        keep = f"they belong to {_names(case.strange)}: decide whether to keep them"
        return ailing("owner", f"{told}; {keep}; doctor does not change another user's files", None)
    if os.geteuid():
        command = f"sudo {case.command('doctor')}"
        return ailing("owner", f"{told}; they belong to root; run `{command}` for the command", None)
    return ailing("owner", told, shell("chown", "-h", _like(case.root), "--", *paths))


def modes(case: Case) -> Finding:
    """Every directory 0700 and every file 0600, but for what the user writes there."""
    stray = case.open_to_others
    if not stray:
        return fine("modes", f"{_entries(len(case.entries))}, all private")
    told = some(f"{entry.path} ({entry.mode:o})" for entry in stray)
    mine = all(os.geteuid() in (entry.owner, 0) for entry in stray)
    mend = _privately(case.root, stray[0].owner)
    return ailing("modes", f"{_entries(len(stray))} not private: {told}", mend, fixable=mine)


def _privately(root: str, owner: int) -> str:
    """The command for what ``--fix`` does; ``find`` would not look behind a link, and reads a path as a pattern."""
    real = os.path.realpath(root)
    spared = re.sub(r"([][*?\\])", r"\\\1", os.path.join(real, OF_THE_USER))
    spare = ("-path", spared, "-prune", "-o")
    theirs = ("-user", str(owner), "-type")
    folders = (*theirs, "d", "-exec", "chmod", "700", "{}", "+")
    files = (*theirs, "f", "-exec", "chmod", "600", "{}", "+")
    return shell("find", real, *spare, *folders, "-o", *files)


def ignored(case: Case) -> Finding:
    """Records are never versioned."""
    path = os.path.join(case.root, _IGNORE)
    if not case.entries or os.path.exists(path):
        return fine("ignored", "by version control")
    return ailing("ignored", f"{path} is missing", f"(umask 077 && {shell('echo', '*')} > {shell(path)})", fixable=True)


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def _nearest(path: str) -> str:
    """``path``, or the nearest folder above it that is there."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _like(path: str) -> str:
    """User and group of ``path``, as ``chown`` takes them."""
    found = os.stat(path)
    return f"{found.st_uid}:{found.st_gid}"


def _names(entries: Iterable[Entry]) -> str:
    return ", ".join(dict.fromkeys(user_name(entry.owner) for entry in entries))
