"""Processes: how one is described so that it can be recognised later, and whether it still exists.

Owns how ``/proc`` of Linux is read; on other systems nothing is known of a process. Pids are used again, so a process
is described by its start time, boot, pid namespace and machine as well. Gone means proved gone: a process must never
count as gone because something about it is unknown. Machines that were copied with one machine id count as one, so the
end of a boot of any of them counts for all.
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
# Fields of /proc/PID/stat, counted after the name in brackets: the parent, how many threads there are, the start in
# clock ticks since the boot. The first is the state.
_PARENT, _THREADS, _STARTED = 1, 17, 19


def describe(pid: int) -> HostProcess | None:
    """The description of the process ``pid``; None if it does not exist or cannot be described."""
    try:
        stat, local = _stat_fields(pid), _local_keys()
    except OSError:
        return None
    return {"pid": pid, "started": stat[_STARTED], **local} if stat and local else None


def describe_ancestor(names: tuple[str, ...], reported_pid: str = "") -> HostProcess | None:
    """The ancestor of this process with ``reported_pid`` if that is a pid, else the nearest called one of ``names``.

    None if no ancestor has the reported pid: a variable that names it may come from a program further up.
    """
    if not (reported_pid.isdecimal() and len(reported_pid) < _MAX_PID_DIGITS):
        pid = nearest_ancestor(names)
    else:
        reported = int(reported_pid)
        pid = reported if reported in (1, *_ancestors()) else None  # every process descends from process 1
    return describe(pid) if pid else None


def nearest_ancestor(names: tuple[str, ...]) -> int | None:
    """The pid of the nearest ancestor of this process whose name or executable file is one of ``names``."""
    return next((pid for pid in _ancestors() if _program_name(pid) in names or _executable_name(pid) in names), None)


def is_gone(process: HostProcess) -> bool:
    """Whether ``process`` is proved to have ended: by its pid in the same namespace, or by the end of its boot."""
    return gone_and_reason(process)[0] is True


def is_alive(process: HostProcess) -> bool:
    """Whether ``process`` is proved to exist."""
    return gone_and_reason(process)[0] is False


def describe_holder(lock: str) -> HostProcess:
    """The description of this process, which holds the ``lock``, a file: that it is free proves that it is gone."""
    boot = boot_signature().decode(errors="replace")
    process: HostProcess = describe(os.getpid()) or {"pid": os.getpid(), **({"boot_id": boot} if boot else {})}
    folder = _identity(os.path.dirname(lock))
    return {**process, "lock": lock, "lock_folder": folder} if folder else process


def _identity(folder: str) -> str:
    """What a folder is known by, whatever its name; empty if it is not there."""
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return ""
    return f"{found.st_dev}:{found.st_ino}"


def gone_and_reason(process: HostProcess) -> tuple[bool | None, str]:
    """Whether ``process`` has ended, None if that cannot be known from here; and how that is known, for people.

    One that held a lock has ended with what it held it for.
    """
    is_gone, reason = _gone_by_itself(process)
    if is_gone or "lock" not in process:
        return is_gone, reason
    is_held = _is_held(process, is_known=is_gone is not None)
    if is_held is None or (is_held and is_gone is False):
        return is_gone, reason
    return (False, "it holds its lock") if is_held else (True, "it does not hold its lock any more")


def _is_held(process: HostProcess, *, is_known: bool) -> bool | None:
    """Whether the lock of ``process`` is held; None if that cannot be known from here.

    Its holder removes the file, last of all; of a process that ``is_known`` to be there somebody else has done that.
    """
    import fcntl  # few processes have a lock

    path = process["lock"]  # in a record that was read, the one that its store has for the session
    is_same_folder = _identity(os.path.dirname(path)) == process.get("lock_folder", "-")
    if not is_same_folder or not is_this_boot(process.get("boot_id", "").encode()):
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
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
    local = _local_keys() if "boot_id" in process else None  # looked up for each of a record's runs
    if local is None:
        return None, "its process is not known"
    if process["boot_id"] != local["boot_id"]:
        if "machine" in local and process.get("machine") == local["machine"]:
            return True, "its machine was started anew since"
        return None, "it ran in another boot, on a machine that is not known to be this one"
    if process.get("pid_ns") != local["pid_ns"] or "pid" not in process or "started" not in process:
        return None, "it ran in another pid namespace, or its pid is not known"
    return _pid_gone_and_reason(process["pid"], process["started"])


def _pid_gone_and_reason(pid: int, started: str) -> tuple[bool | None, str]:
    try:
        stat = _stat_fields(pid)
    except OSError:
        return None, f"process {pid} may not be looked at"
    if stat is None:
        return (None, f"process {pid} is hidden") if _is_hidden(pid) else (True, f"there is no process {pid}")
    if stat[_STARTED] != started:
        return True, f"process {pid} is another program by now"
    if stat[0] in "ZX":
        return True, f"process {pid} has ended"
    return False, f"process {pid} is there"


def _is_hidden(pid: int) -> bool:
    """Whether the process exists although ``/proc`` does not show it, as with ``hidepid=2`` for other users."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True  # or it has just started, which proves nothing either


def program_and_state(pid: int) -> tuple[str, str] | None:
    """The name of the process ``pid`` and the letter of its state in proc(5); None if it does not exist."""
    try:
        stat = _stat_fields(pid)
    except OSError:
        return None
    return (_program_name(pid), stat[0]) if stat else None


def state_and_threads(pid: int) -> tuple[str, int] | None:
    """The letter of the state in proc(5) of the process ``pid``, and how many threads it has; None if there is none.

    Raises ``OSError`` if it may not be looked at.
    """
    stat = _stat_fields(pid)
    return (stat[0], int(stat[_THREADS])) if stat else None


def _local_keys() -> HostProcess | None:
    try:
        local: HostProcess = {"boot_id": boot_id().decode(errors="replace"), "pid_ns": os.readlink(_PID_NS)}
        if os.readlink(_SELF) != str(os.getpid()):  # /proc is that of another pid namespace
            return None
    except OSError:
        return None
    if not local["boot_id"] or _time_is_shifted():  # which shifts the start times of all processes
        return None
    machine = _machine_id()
    return {**local, "machine": machine} if machine else local


def _time_is_shifted() -> bool:
    """Whether this process is in a time namespace with a clock of its own; see time_namespaces(7)."""
    try:
        offsets = _read_text(_TIME_OFFSETS)
    except OSError:  # a system without time namespaces
        return False
    return any(word.strip("-").strip("0") for line in offsets.splitlines() for word in line.split()[1:])


def _machine_id() -> str | None:
    """The id of the machine; many containers have none, and then another boot proves nothing."""
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
    """The name of the executable file; a process may change its own name, as newer versions of Node do."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(_DELETED_SUFFIX)
    except OSError:
        return ""


def _stat_fields(pid: int) -> list[str] | None:
    """The fields after the name, which may have brackets, blanks and line feeds; None if there is no such process.

    Raises ``OSError`` if it may not be read.
    """
    try:
        return _read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _read_text(path: str) -> str:
    with open(path, "rb") as file:  # reading it as text would import a codec
        return file.read().decode(errors="replace").rstrip("\n")
