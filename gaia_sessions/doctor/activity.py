"""Checks of current activity: the settings, locks and their holders, the log of the hooks."""

from __future__ import annotations

import os

from gaia_sessions.errors import plural
from gaia_sessions.store import hook_log as logs
from gaia_sessions.store import locks as locking
from gaia_sessions.store import root as roots
from gaia_sessions.store.hook_log_reader import LOG_NAMES
from gaia_sessions.system import processes
from gaia_sessions.system.users import user_name

from .findings import first_few, not_checked, ok, problem, setting_faults, shell_command, warning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .findings import Finding
    from .inspection import Inspection

_STOPPED = "Tt"
"""The states in proc(5) of a process that is suspended until it gets SIGCONT."""

_MOST_BYTES = 2 * logs.MAX_LOG_BYTES
_LOG_FILES = frozenset(name + ending for name in LOG_NAMES for ending in (".log", ".log.old"))
_LONGEST_ERROR = 200


def settings(inspection: Inspection) -> list[Finding]:
    """Checks the settings. Hooks ignore a faulty setting; commands refuse to run with it."""
    found = [problem("settings", text, fix) for _, text, fix in setting_faults(inspection.faults)]
    return found or [ok("settings", "all valid")]


def locks(inspection: Inspection) -> Finding:
    """Lists locks and their holders. The system hides holders in another pid namespace."""
    held = _held_locks(inspection)
    message = first_few(f"{name} by process {pid} ({_program_name(pid)})" for name, pid in sorted(held.items()))
    stopped = sorted({pid for pid in held.values() if _is_stopped(pid)})
    if not stopped:
        return ok("locks", f"held: {message}" if held else "none held")
    fix = shell_command("kill", "-CONT", *map(str, stopped)) if all(map(_may_signal, stopped)) else None
    return problem("locks", f"a suspended process holds a lock: {message}", fix)


def _held_locks(inspection: Inspection) -> dict[str, int]:
    with roots.open_root(inspection.root) as root:
        if not root.has(roots.LOCKS):
            return {}
        with root.below(roots.LOCKS) as folder:
            return locking.held_locks(folder)


def _program_name(pid: int) -> str:
    seen = processes.program_and_state(pid)
    return seen[0] if seen else "no longer running"


def _may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _is_stopped(pid: int) -> bool:
    seen = processes.program_and_state(pid)
    return seen is not None and seen[1] in _STOPPED


def log(inspection: Inspection) -> Finding:
    """Checks the log. A log over 1 MiB is rotated; a larger one shows that this was impossible."""
    folder = logs.log_folder(inspection.root)
    if os.path.islink(folder):
        return warning("log", f"hooks write no log, because {folder} is a link")
    if not os.path.isdir(folder):
        return not_checked("log", "the log of the hooks, because no hook has run yet")
    if not os.access(folder, os.W_OK | os.X_OK):
        return _unwritable(folder)
    sizes = _sizes(folder)
    huge = [path for path, size in sizes.items() if size > _MOST_BYTES]
    if huge:
        return problem("log", f"a log of the hooks is too large: {first_few(huge)}", shell_command("rm", "--", *huge))
    failure = _last_failure(inspection)
    if failure:
        return warning("log", failure, shell_command("grep", '"decision": *"error"', "--", *sizes))
    return ok("log", f"{plural(sum(sizes.values()), 'byte')} in {folder}")


def _unwritable(folder: str) -> Finding:
    """Returns the finding about an unwritable log folder; if the user moves it away, the next hook creates another."""
    owner = os.stat(folder).st_uid
    if owner == os.geteuid():
        return problem("log", f"{folder} is not writable", shell_command("chmod", "u+rwx", folder))
    message = f"{folder} is not writable: it belongs to {user_name(owner)}"
    above = os.path.dirname(folder)
    may_move = os.stat(above).st_uid == os.geteuid() and os.access(above, os.W_OK)
    return problem("log", message, shell_command("mv", "--", folder, f"{folder}.old") if may_move else None)


def _sizes(folder: str) -> dict[str, int]:
    """Returns the size of each log in bytes; files of other programs in the folder do not count."""
    with os.scandir(folder) as entries:
        ours = sorted((entry.path, entry) for entry in entries if entry.name in _LOG_FILES)
    return {path: entry.stat().st_size for path, entry in ours if entry.is_file(follow_symlinks=False)}


def _last_failure(inspection: Inspection) -> str:
    """Returns how often hooks failed, and the last error; empty if none failed."""
    failed = [line for line in inspection.log_lines if line.get("decision") == "error"]
    if not failed:
        return ""
    last = max(failed, key=lambda line: str(line.get("at")))
    calls = plural(len(failed), "call of a hook", "calls of hooks")
    return f"{calls} failed, the last at {last.get('at')}: {last.get('error')}"[:_LONGEST_ERROR]
