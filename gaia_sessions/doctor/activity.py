"""Checks of what goes on: the settings in force, locks and who holds them, the log of the hooks."""

from __future__ import annotations

import os

from gaia_sessions.config import PREFIX
from gaia_sessions.store import hook_log as logs
from gaia_sessions.store import locks as locking
from gaia_sessions.store import root as roots
from gaia_sessions.system import processes
from gaia_sessions.system.users import user_name

from .findings import ailing, counted, edit, fine, shell, some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.errors import BadSetting

    from .case import Case
    from .findings import Finding

_STOPPED = "Tt"
"""A process in these states, of proc(5), does nothing until somebody tells it to go on."""

_MOST_BYTES = 2 * logs.ROTATES_AT
_ENDINGS = (".log", ".log.old")
_LONGEST_ERROR = 200


def settings(case: Case) -> Finding:
    """Hooks pass over a setting that means nothing; commands refuse to run with it."""
    if not case.faults:
        return fine("settings", "each means something")
    told = "; ".join(f"{fault} ({fault.hint})" for fault in case.faults)
    return ailing("settings", told, " && ".join(dict.fromkeys(_undone(fault) for fault in case.faults)))


def _undone(fault: BadSetting) -> str:
    if fault.origin.startswith(PREFIX):
        return shell("unset", fault.origin)
    return edit(fault.origin)


def locks(case: Case) -> Finding:
    """Who is at work. The system tells of no holder in another pid namespace."""
    held = _held(case)
    told = some(f"{name} by process {pid} ({_program(pid)})" for name, pid in sorted(held.items()))
    stopped = sorted({pid for pid in held.values() if _is_stopped(pid)})
    if not stopped:
        return fine("locks", f"held: {told}" if held else "none held")
    mend = shell("kill", "-CONT", *map(str, stopped)) if all(map(_may_signal, stopped)) else None
    return ailing("locks", f"held by a stopped process: {told}", mend)


def _held(case: Case) -> dict[str, int]:
    root = roots.opened(case.root)
    if root is None:
        return {}
    with root:
        if not root.has(roots.LOCKS):
            return {}
        with root.below(roots.LOCKS) as folder:
            return locking.held(folder)


def _program(pid: int) -> str:
    seen = processes.seen(pid)
    return seen[0] if seen else "gone by now"


def _may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _is_stopped(pid: int) -> bool:
    seen = processes.seen(pid)
    return seen is not None and seen[1] in _STOPPED


def log(case: Case) -> Finding:
    """A log over 1 MiB gives way to a new one: a larger one is a sign that it could not."""
    folder = logs.folder_of(case.root)
    if not os.path.isdir(folder):
        return fine("log", "no hook was called yet")
    if not os.access(folder, os.W_OK | os.X_OK):
        return _unwritable(folder)
    sizes = {path: os.path.getsize(path) for path in _files(folder)}
    told = f"{counted(sum(sizes.values()), 'byte')} in {folder}{_last_failure(case)}"
    huge = [path for path, size in sizes.items() if size > _MOST_BYTES]
    return ailing("log", f"{told}; too large: {some(huge)}", shell("rm", "--", *huge)) if huge else fine("log", told)


def _unwritable(folder: str) -> Finding:
    """What belongs to somebody else is put aside, where that is allowed: the next hook makes another."""
    owner = os.stat(folder).st_uid
    if owner == os.geteuid():
        return ailing("log", f"{folder} may not be written to", shell("chmod", "u+rwx", folder))
    told = f"{folder} may not be written to: it belongs to {user_name(owner)}"
    above = os.path.dirname(folder)
    is_ours = os.stat(above).st_uid == os.geteuid() and os.access(above, os.W_OK)
    return ailing("log", told, shell("mv", "--", folder, f"{folder}.old") if is_ours else None)


def _files(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.path for entry in entries if entry.name.endswith(_ENDINGS) and entry.is_file())


def _last_failure(case: Case) -> str:
    """The hooks tell nobody when they fail, so it is said here."""
    failed = [line for line in case.log if line.get("decision") == "error"]
    if not failed:
        return ""
    last = max(failed, key=lambda line: str(line.get("at")))
    return f"; {counted(len(failed), 'call')} failed, the last at {last.get('at')}: {last.get('error')}"[
        :_LONGEST_ERROR
    ]
