"""Checks of the place where the sessions are: the root, what it lies on, whose it is and who may look."""

from __future__ import annotations

import os
import pwd

from gaia_sessions.stores.mounts import NETWORK, kind_at

from .findings import ailing, counted, fine, shell, some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .case import Case
    from .findings import Finding
    from .tree import Entry

_MOVE = 'export GAIA_SESSIONS_ROOT="$HOME/.local/state/gaia-sessions/sessions"'
_LEAST_SPACE = 16 << 20
_OF_THE_USER = ".config.toml"
_IGNORE = ".gitignore"


def root(case: Case) -> Finding:
    """Whether the root can be used, or made where there is none."""
    if not os.path.lexists(case.root):
        above = _nearest(case.root)
        if os.access(above, os.W_OK | os.X_OK):
            return fine("root", f"{case.root}: not there yet, the first session makes it")
        return ailing("root", f"{case.root}: not there, and {above} may not be written to", _MOVE)
    if not os.path.isdir(case.root):
        return ailing("root", f"{case.root}: not a directory", _MOVE)
    if os.access(case.root, os.R_OK | os.W_OK | os.X_OK):
        return fine("root", f"{case.root}: {counted(case.records.total, 'session')}")
    return ailing("root", f"{case.root}: may not be read or written to", _give_to(_me(), case.root))


def space(case: Case) -> Finding:
    found = os.statvfs(_nearest(case.root))
    free = found.f_bavail * found.f_frsize
    told = f"{free >> 20} MiB free" + (f", {found.f_favail} files" if found.f_files else "")
    if free >= _LEAST_SPACE and (found.f_favail or not found.f_files):
        return fine("space", told)
    return ailing("space", told, case.command("cleanup", "--hours", "0"))


def file_system(case: Case) -> Finding:
    """Over a network neither locks nor renames can be relied on."""
    kind = kind_at(case.root)
    if kind not in NETWORK:
        return fine("file_system", kind or "the system does not tell its kind")
    return ailing("file_system", f"{kind}: locks and renames over a network lose writes", _MOVE)


def owner(case: Case) -> Finding:
    """A command run once as another user leaves what ours cannot write."""
    strange = [entry for entry in case.entries if entry.owner != case.entries[0].owner]
    if not strange:
        return fine("owner", _name_of(case.entries[0].owner) if case.entries else "nobody yet")
    told = f"{_entries(len(strange))} not of {_name_of(case.entries[0].owner)}: {some(entry.path for entry in strange)}"
    return ailing("owner", told, _give_to(_name_of(case.entries[0].owner), case.root))


def modes(case: Case) -> Finding:
    """Every directory 0700 and every file 0600, but for what the user writes there."""
    stray = [entry for entry in case.entries if entry.mode != entry.wanted and not _is_the_users(case, entry)]
    if not stray:
        return fine("modes", f"{_entries(len(case.entries))}, all private")
    told = some(f"{entry.path} ({entry.mode:o})" for entry in stray)
    parts = ("-type", "d", "-exec", "chmod", "700", "{}", "+", "-o", "-type", "f", "-exec", "chmod", "600", "{}", "+")
    mine = all(os.geteuid() in (entry.owner, 0) for entry in stray)
    return ailing(
        "modes", f"{_entries(len(stray))} not private: {told}", shell("find", case.root, *parts), fixable=mine
    )


def ignored(case: Case) -> Finding:
    """Records are never versioned."""
    path = os.path.join(case.root, _IGNORE)
    if not case.entries or os.path.exists(path):
        return fine("ignored", "by version control")
    return ailing("ignored", f"{path} is missing", f"(umask 077 && {shell('echo', '*')} > {shell(path)})", fixable=True)


def _is_the_users(case: Case, entry: Entry) -> bool:
    return entry.path == os.path.join(case.root, _OF_THE_USER)


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def _nearest(path: str) -> str:
    """``path``, or the nearest folder above it that is there."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _give_to(user: str, path: str) -> str:
    return shell("sudo", "chown", "-R", user, path)


def _me() -> str:
    return _name_of(os.geteuid())


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
