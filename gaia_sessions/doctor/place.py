"""Checks of the place where the sessions are: the root, what it lies on, whose it is and who may look."""

from __future__ import annotations

import os
import pwd
import re

from gaia_sessions.stores.mounts import NETWORK, kind_at

from .findings import ailing, counted, fine, shell, some
from .tree import OF_THE_USER, is_the_users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .case import Case
    from .findings import Finding

_MOVE = "keep them elsewhere: GAIA_SESSIONS_ROOT names the place, to the host as well, for its hooks know no other"
_LEAST_SPACE = 16 << 20
_IGNORE = ".gitignore"


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
    return ailing("root", f"{case.root}: may not be read or written to", _give_to(_me(), case.root))


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
        return fine("file_system", kind or "the system does not tell its kind")
    return ailing("file_system", f"{kind}: locks and renames over a network lose writes; {_MOVE}", None)


def owner(case: Case) -> Finding:
    """A command run once as another user leaves what ours cannot write."""
    strange = [entry for entry in case.entries if entry.owner != case.entries[0].owner]
    if not strange:
        return fine("owner", _name_of(case.entries[0].owner) if case.entries else "nobody yet")
    told = f"{_entries(len(strange))} not of {_name_of(case.entries[0].owner)}: {some(entry.path for entry in strange)}"
    return ailing("owner", told, _give_to(_name_of(case.entries[0].owner), case.root))


def modes(case: Case) -> Finding:
    """Every directory 0700 and every file 0600, but for what the user writes there."""
    stray = [entry for entry in case.entries if entry.mode != entry.wanted and not is_the_users(case.root, entry.path)]
    if not stray:
        return fine("modes", f"{_entries(len(case.entries))}, all private")
    told = some(f"{entry.path} ({entry.mode:o})" for entry in stray)
    mine = all(os.geteuid() in (entry.owner, 0) for entry in stray)
    return ailing("modes", f"{_entries(len(stray))} not private: {told}", _privately(case.root), fixable=mine)


def _privately(root: str) -> str:
    """The command for what ``--fix`` does; ``find`` would not look behind a link, and reads a path as a pattern."""
    real = os.path.realpath(root)
    spared = re.sub(r"([][*?\\])", r"\\\1", os.path.join(real, OF_THE_USER))
    spare = ("-path", spared, "-prune", "-o")
    parts = ("-type", "d", "-exec", "chmod", "700", "{}", "+", "-o", "-type", "f", "-exec", "chmod", "600", "{}", "+")
    return shell("find", real, *spare, *parts)


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


def _give_to(user: str, path: str) -> str:
    return shell("sudo", "chown", "-R", user, os.path.realpath(path))


def _me() -> str:
    return _name_of(os.geteuid())


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
