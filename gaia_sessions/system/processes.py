"""Describes processes so that they can be recognized later, and says whether they still exist (by Linux's ``/proc``).

Pids are used again, so a description has the start time, boot, pid namespace and machine as well. Gone means proved
gone: what is unknown never counts as gone.
"""

from __future__ import annotations

import os

from gaia_sessions.session.ids import is_hex

from .boots import boot_id, boot_signature, is_this_boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.schema import HostProcess

_SELF = "/proc/self"
_PID_NS = "/proc/self/ns/pid"
_MACHINE = "/etc/machine-id"
_TIME_OFFSETS = "/proc/self/timens_offsets"
_MAX_ANCESTORS = 32
_MAX_PID_DIGITS = 10
_MACHINE_ID_LENGTH = 32
_DELETED_SUFFIX = " (deleted)"
# Fields of /proc/PID/stat, counted after the name in brackets: the parent, the number of threads, the start in clock
# ticks since the boot. The first field is the state.
_PARENT, _THREADS, _STARTED = 1, 17, 19


def describe(pid: int) -> HostProcess | None:
    """Returns the description of the process ``pid``; None if it does not exist or cannot be described."""
    try:
        stat, local = _stat_fields(pid), _local_keys()
    except OSError:
        return None
    return {"pid": pid, "started": stat[_STARTED], **local} if stat and local else None


def describe_ancestor(names: tuple[str, ...], reported_pid: str = "") -> HostProcess | None:
    """Describes the ancestor with ``reported_pid`` if that is a pid, otherwise the nearest with one of ``names``."""
    if not (reported_pid.isdecimal() and len(reported_pid) < _MAX_PID_DIGITS):
        pid = nearest_ancestor(names)
    else:
        reported = int(reported_pid)
        # The variable with this pid may be from an earlier program: then no ancestor has this pid.
        pid = reported if reported in (1, *_ancestors()) else None  # process 1 is above every process
    return describe(pid) if pid else None


def nearest_ancestor(names: tuple[str, ...]) -> int | None:
    """Returns the pid of the nearest ancestor whose name or executable file is one of ``names``."""
    return next((pid for pid in _ancestors() if _program_name(pid) in names or _executable_name(pid) in names), None)


def is_gone(process: HostProcess) -> bool:
    """Returns whether ``process`` is proved to have ended: by its pid in this namespace, or by the end of its boot."""
    return gone_and_reason(process)[0] is True


def is_alive(process: HostProcess) -> bool:
    """Returns whether ``process`` is proved to exist."""
    return gone_and_reason(process)[0] is False


def elsewhere(process: HostProcess) -> str:
    """Returns in words where ``process`` is known to be, if its pid means nothing here; otherwise an empty text."""
    local = _local_keys()
    if local is None or "boot_id" not in process or "pid_ns" not in process:
        return ""
    if process["boot_id"] != local["boot_id"]:
        return "on another machine"
    return "" if process["pid_ns"] == local["pid_ns"] else "in another container"


def describe_holder(lock: str) -> HostProcess:
    """Describes this process, which holds the file ``lock``; when the lock is free, the process counts as gone."""
    boot = boot_signature().decode(errors="replace")
    process: HostProcess = describe(os.getpid()) or {"pid": os.getpid(), **({"boot_id": boot} if boot else {})}
    folder = _identity(os.path.dirname(lock))
    return {**process, "lock": lock, "lock_folder": folder} if folder else process


def _identity(folder: str) -> str:
    """Returns what identifies a folder, whatever its name; empty if it does not exist."""
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return ""
    return f"{found.st_dev}:{found.st_ino}"


def gone_and_reason(process: HostProcess) -> tuple[bool | None, str]:
    """Returns whether ``process`` has ended (None: unknown from here), and how that is known, in words."""
    if "lease" in process:
        return _gone_by_lease(process)
    is_gone, reason = _gone_by_itself(process)
    # A process with a lock counts as gone when the work for which it held the lock has ended.
    if is_gone or "lock" not in process:
        return is_gone, reason
    is_held = _is_held(process, is_known=is_gone is not None)
    if is_held is None or (is_held and is_gone is False):
        return is_gone, reason
    return (False, "it holds its lock") if is_held else (True, "it does not hold its lock any more")


def _gone_by_lease(process: HostProcess) -> tuple[bool | None, str]:
    """Judges a run on a server: by its lease; only in the same boot and pid namespace, by its pid too."""
    local = _local_keys()
    if local and all(process.get(key) == local[key] for key in ("boot_id", "pid_ns")) and "started" in process:
        is_gone, reason = _pid_gone_and_reason(process["pid"], process["started"])
        if is_gone:
            return True, reason
    from . import leases  # no run of a host has one

    is_valid = leases.is_valid(process["lease"])
    if is_valid is None:
        return None, "its lease is unknown"
    return (False, "its lease is valid") if is_valid else (True, "its lease has lapsed")


def _is_held(process: HostProcess, *, is_known: bool) -> bool | None:
    """Returns whether the lock of ``process`` is held; None if that is unknown from here."""
    import fcntl  # few processes have a lock

    path = process["lock"]  # reading a record has replaced the stored path with the path in this store
    is_same_folder = _identity(os.path.dirname(path)) == process.get("lock_folder", "-")
    if not is_same_folder or not is_this_boot(process.get("boot_id", "").encode()):
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:  # the holder removes the file last; if the holder exists, another process did it
        return None if is_known else False
    except (OSError, ValueError):
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(fd)
    return False


def _gone_by_itself(process: HostProcess) -> tuple[bool | None, str]:
    local = _local_keys() if "boot_id" in process else None  # asked for each run of a record
    if local is None:
        return None, "its process is unknown"
    if process["boot_id"] != local["boot_id"]:
        # Machines that were copied with one ID count as one: a reboot of one of them counts for all.
        if "machine" in local and process.get("machine") == local["machine"]:
            return True, "its machine was restarted since then"
        return None, "it ran in another boot, and perhaps on another machine"
    if process.get("pid_ns") != local["pid_ns"] or "pid" not in process or "started" not in process:
        return None, "it ran in another pid namespace, or its pid is unknown"
    return _pid_gone_and_reason(process["pid"], process["started"])


def _pid_gone_and_reason(pid: int, started: str) -> tuple[bool | None, str]:
    try:
        stat = _stat_fields(pid)
    except OSError:
        return None, f"process {pid} cannot be inspected"
    if stat is None:
        return (None, f"process {pid} is hidden") if _is_hidden(pid) else (True, f"there is no process {pid}")
    if stat[_STARTED] != started:
        return True, f"process {pid} is another program by now"
    if stat[0] in "ZX":
        return True, f"process {pid} has ended"
    return False, f"process {pid} exists"


def _is_hidden(pid: int) -> bool:
    """Returns whether the process exists although ``/proc`` hides it, as with ``hidepid=2``."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True  # or it has just started, which also proves nothing


def program_and_state(pid: int) -> tuple[str, str] | None:
    """Returns the name of the process ``pid`` and the letter of its state in proc(5), or None."""
    try:
        stat = _stat_fields(pid)
    except OSError:
        return None
    return (_program_name(pid), stat[0]) if stat else None


def state_and_threads(pid: int) -> tuple[str, int] | None:
    """Returns the letter of the state of the process ``pid`` and its number of threads, or None."""
    stat = _stat_fields(pid)
    return (stat[0], int(stat[_THREADS])) if stat else None


def _local_keys() -> HostProcess | None:
    try:
        local: HostProcess = {"boot_id": boot_id().decode(errors="replace"), "pid_ns": os.readlink(_PID_NS)}
        if os.readlink(_SELF) != str(os.getpid()):  # this /proc belongs to another pid namespace
            return None
    except OSError:
        return None
    if not local["boot_id"] or _time_is_shifted():  # a shift changes the start times of all processes
        return None
    machine = _machine_id()
    return {**local, "machine": machine} if machine else local


def _time_is_shifted() -> bool:
    """Returns whether this process is in a time namespace with its own clock; see time_namespaces(7)."""
    try:
        offsets = _read_text(_TIME_OFFSETS)
    except OSError:  # a system without time namespaces
        return False
    return any(word.strip("-").strip("0") for line in offsets.splitlines() for word in line.split()[1:])


def _machine_id() -> str | None:
    """Returns the ID of the machine; many containers have none, and then another boot proves nothing."""
    try:
        machine_id = _read_text(_MACHINE)
    except OSError:
        return None
    return machine_id if is_hex(machine_id, _MACHINE_ID_LENGTH) else None


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    for _ in range(_MAX_ANCESTORS):
        if pid <= 1:
            return
        yield pid
        try:
            stat = _stat_fields(pid)
        except OSError:
            return
        pid = int(stat[_PARENT]) if stat else 0


def _program_name(pid: int) -> str:
    try:
        return _read_text(f"/proc/{pid}/comm")
    except OSError:
        return ""


def _executable_name(pid: int) -> str:
    """Returns the name of the executable file: a process may change its own name, as newer Node versions do."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(_DELETED_SUFFIX)
    except OSError:
        return ""


def _stat_fields(pid: int) -> list[str] | None:
    """Returns the fields of ``/proc/PID/stat`` after the name; None if there is no such process."""
    try:  # the name is in brackets and may contain brackets, blanks and line feeds
        return _read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _read_text(path: str) -> str:
    with open(path, "rb") as file:  # as text it would import a codec
        return file.read().decode(errors="replace").rstrip("\n")
