"""Checks of the root folder: access, disk, owner, modes."""

from __future__ import annotations

import os
import stat

from gaia_sessions.errors import EXPORT_ROOT_COMMAND, plural
from gaia_sessions.system import users
from gaia_sessions.system.mounts import NETWORK, kind_at
from gaia_sessions.system.users import user_name

from .findings import first_few, ok, problem, shell_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .findings import Finding
    from .inspection import Inspection

_MOVE = "use another folder: set GAIA_SESSIONS_ROOT to that folder, also where you start the client: its hooks use it"
_LEAST_SPACE = 16 << 20


def project(inspection: Inspection) -> Finding:
    """Checks whether the search for the root skipped a project of another user."""
    if not inspection.skipped:
        return ok("project", "no project of another user was skipped")
    message, wanted, command = users.skipped_project_notice(*inspection.skipped[0], inspection.root)
    return problem("project", f"{message}; {wanted}:", command)


def root(inspection: Inspection) -> Finding:
    """Checks whether the root can be used, or created if it does not exist."""
    if not os.path.lexists(inspection.root):
        above = _nearest_folder(inspection.root)
        if os.access(above, os.W_OK | os.X_OK):
            return ok("root", f"{inspection.root}: does not exist yet; the first session creates it")
        return problem(
            "root", f"{inspection.root}: does not exist, and {above} is not writable; {_MOVE}", EXPORT_ROOT_COMMAND
        )
    if not os.path.isdir(inspection.root):
        return problem("root", f"{inspection.root}: not a folder; {_MOVE}", EXPORT_ROOT_COMMAND)
    if os.access(inspection.root, os.R_OK | os.W_OK | os.X_OK):
        return ok("root", f"{inspection.root}: {plural(inspection.records.total, 'session')}")
    return _unusable(inspection)


def _unusable(inspection: Inspection) -> Finding:
    """Returns the finding about a root that is not accessible because of its mode or a read-only disk."""
    found = os.stat(inspection.root)
    if found.st_uid == os.geteuid() and found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        message = f"{inspection.root}: its mode ({stat.S_IMODE(found.st_mode):03o}) denies its owner access"
        return problem(
            "root", message, shell_command("chmod", "u+rwx", os.path.realpath(inspection.root)), fixable=True
        )
    return problem("root", f"{inspection.root}: cannot be read and written; {_MOVE}", EXPORT_ROOT_COMMAND)


def space(inspection: Inspection) -> Finding:
    """Checks the free space. Only the owner of the disk can decide what to remove."""
    found = os.statvfs(_nearest_folder(inspection.root))
    free = found.f_bavail * found.f_frsize
    message = f"{free >> 20} MiB free" + (f", {found.f_favail} files" if found.f_files else "")
    if free >= _LEAST_SPACE and (found.f_favail or not found.f_files):
        return ok("space", message)
    return problem("space", f"{message} at {_nearest_folder(inspection.root)}; free some space there", None)


def file_system(inspection: Inspection) -> Finding:
    """Finds a network file system, where neither locks nor renames are reliable."""
    kind = kind_at(inspection.root)
    if kind not in NETWORK:
        return ok("file_system", kind or "of unknown type")
    return problem(
        "file_system", f"{inspection.root} is on {kind}: locks and renames over a network lose writes; {_MOVE}", None
    )


def owner(inspection: Inspection) -> Finding:
    """Finds files of another user, which cannot be written. Only the user root can change their owner."""
    if not inspection.entries_of_others:
        return ok("owner", user_name(inspection.entries[0].owner))
    paths = [entry.path for entry in inspection.entries_of_others]
    owner_name = user_name(inspection.entries[0].owner)
    message = f"{plural(len(paths), 'entry', 'entries')} not owned by {owner_name}: {first_few(paths)}"
    if any(entry.owner for entry in inspection.entries_of_others):
        names = ", ".join(dict.fromkeys(user_name(entry.owner) for entry in inspection.entries_of_others))
        advice = f"these entries belong to {names}: move away or delete what you do not need"
        return problem("owner", f"{message}; {advice}; doctor does not change another user's files", None)
    if os.geteuid():
        command = f"sudo {inspection.command('doctor')}"
        return problem("owner", f"{message}; they belong to root; to see the repair command, type `{command}`", None)
    return problem("owner", message, shell_command("chown", "-h", _owner_and_group(inspection.root), "--", *paths))


def modes(inspection: Inspection) -> Finding:
    """Checks that every directory of the store has mode 0700 and every file 0600."""
    stray = inspection.entries_with_wrong_mode
    if not stray:
        return ok("modes", f"{plural(len(inspection.entries), 'entry', 'entries')}, all private")
    message = first_few(f"{entry.path} ({entry.mode:o})" for entry in stray)
    may_change = all(os.geteuid() in (entry.owner, 0) for entry in stray)
    fix = inspection.command("doctor", "--fix")
    wrong = f"{plural(len(stray), 'entry', 'entries')} that others can open, or that the owner cannot"
    return problem("modes", f"{wrong}: {message}", fix, fixable=may_change)


def _nearest_folder(path: str) -> str:
    """Returns ``path``, or the nearest folder above it that exists."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _owner_and_group(path: str) -> str:
    """Returns user and group of ``path``, as ``chown`` takes them."""
    found = os.stat(path)
    return f"{found.st_uid}:{found.st_gid}"
