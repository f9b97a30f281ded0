"""Processes of hosts: which one runs the sub-agents here, and whether it is still there.

Owns what the system tells of a process, as Linux has it in ``/proc``; elsewhere nothing is known. A pid
alone says little, since it is used again: with it go the start time, the boot, the pid namespace and
the machine. Gone means proved gone; whatever cannot be told counts as not proved.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .shape import HostProcess, Record

_BOOT = "/proc/sys/kernel/random/boot_id"
_PID_NS = "/proc/self/ns/pid"
_MACHINE = "/etc/machine-id"
_FURTHEST = 32
_LENGTH_OF_MACHINE = 32
_HEX = frozenset("0123456789abcdef")
# Of /proc/PID/stat, after the name in brackets: the parent, and the start in clock ticks since the boot.
_PARENT, _STARTED = 1, 19


def describe(pid: int) -> HostProcess | None:
    """What is known of the process ``pid`` here and now; None if it is not there, or nothing can be told."""
    try:
        stat, here = _stat(pid), _here()
    except OSError:
        return None
    return {"pid": pid, "started": stat[_STARTED], **here} if stat and here else None


def nearest_ancestor(names: tuple[str, ...]) -> int | None:
    """The pid of the nearest ancestor of this process whose program is called one of ``names``."""
    return next((pid for pid in _ancestors() if _program(pid) in names), None)


def is_gone(process: HostProcess) -> bool:
    """Whether ``process`` is proved to have ended: looked for where its pid means something, or its boot is over."""
    here = _here()
    if here is None or "boot_id" not in process:
        return False
    if process["boot_id"] != here["boot_id"]:
        return "machine" in here and process.get("machine") == here["machine"]
    if process.get("pid_ns") != here["pid_ns"] or "pid" not in process or "started" not in process:
        return False
    try:
        stat = _stat(process["pid"])
    except OSError:  # it may be there, and only be hidden from us
        return False
    return stat is None or stat[_STARTED] != process["started"] or stat[0] in "ZX"


def runs_gone(record: Record) -> frozenset[int]:
    """The numbers of the unended runs whose host is proved to be gone."""
    open_runs = (run for run in record.get("runs", ()) if "ended_at" not in run and "host_process" in run)
    return frozenset(run["run"] for run in open_runs if is_gone(run["host_process"]))


def _here() -> HostProcess | None:
    try:
        here: HostProcess = {"boot_id": _content(_BOOT), "pid_ns": os.readlink(_PID_NS)}
    except OSError:
        return None
    machine = _machine()
    return {**here, "machine": machine} if machine else here


def _machine() -> str | None:
    """The machine's own id; many containers have none, and then another boot proves nothing."""
    try:
        found = _content(_MACHINE)
    except OSError:
        return None
    return found if len(found) == _LENGTH_OF_MACHINE and _HEX.issuperset(found) else None


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    for _ in range(_FURTHEST):
        if pid <= 1:
            return
        yield pid
        try:
            stat = _stat(pid)
        except OSError:
            return
        pid = int(stat[_PARENT]) if stat else 0


def _program(pid: int) -> str:
    try:
        return _content(f"/proc/{pid}/comm")
    except OSError:
        return ""


def _stat(pid: int) -> list[str] | None:
    """The fields after the name, which may hold brackets, blanks and line ends; None if there is no such process.

    Raises ``OSError`` if that cannot be told.
    """
    try:
        return _content(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _content(path: str) -> str:
    with open(path, "rb") as file:  # as text it would load a codec first
        return file.read().decode(errors="replace").rstrip("\n")
