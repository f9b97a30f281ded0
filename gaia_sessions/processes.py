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
# Of /proc/PID/stat, after the name in brackets: the parent, and the start in clock ticks since the boot.
_PARENT, _STARTED = 1, 19


def describe(pid: int) -> HostProcess | None:
    """What is known of the process ``pid`` here and now; None if it is not there, or nothing can be told."""
    stat = _stat(pid)
    if stat is None:
        return None
    here = _here()
    return {"pid": pid, "started": stat[_STARTED], **here} if here else None


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
    stat = _stat(process["pid"])
    return stat is None or stat[_STARTED] != process["started"] or stat[0] in "ZX"


def runs_gone(record: Record) -> frozenset[int]:
    """The numbers of the unended runs whose host is proved to be gone."""
    open_runs = (run for run in record.get("runs", ()) if "ended_at" not in run and "host_process" in run)
    return frozenset(run["run"] for run in open_runs if is_gone(run["host_process"]))


def _here() -> HostProcess | None:
    try:
        here: HostProcess = {"boot_id": _first_line(_BOOT), "pid_ns": os.readlink(_PID_NS)}
    except OSError:
        return None
    try:
        return {**here, "machine": _first_line(_MACHINE)}
    except OSError:  # many containers have none: then another boot proves nothing
        return here


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    for _ in range(_FURTHEST):
        if pid <= 1:
            return
        yield pid
        stat = _stat(pid)
        pid = int(stat[_PARENT]) if stat else 0


def _program(pid: int) -> str:
    try:
        return _first_line(f"/proc/{pid}/comm")
    except OSError:
        return ""


def _stat(pid: int) -> list[str] | None:
    """The fields after the name, which may itself hold brackets and blanks; None for a process that is not there."""
    try:
        return _first_line(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except OSError:
        return None


def _first_line(path: str) -> str:
    with open(path, "rb") as file:  # as text it would load a codec first
        return file.readline().decode(errors="replace").rstrip("\n")
