"""The processes of a command: its start, signals to it, and the end of everything that it started.

This process becomes a sub-reaper, so that orphans of its children become its own children. If it was begun by ``exec``,
it may have older children. So the command gets a lower value of a limit without effect, to tell their orphans apart.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

from gaia_sessions.system.processes import state_and_threads

from .contain import contained, namespace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from psutil import Process

_PROC = "/proc"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

_RLIMIT_LOCKS, _NAME_OF_LIMIT = 10, b"Max file locks"
"""A limit of the system that has had no effect since Linux 2.4.25."""
_WHOLE = 1 << 62
"""The value that means no limit."""
_BITS = 20
"""The values of a run have at most 2**20 places. A run inside this run takes one place at random."""

_MOST_PASSES = 100
"""How often ``stop`` looks for new processes, so that a process that always starts others cannot delay it forever."""

_MOST_LISTED = 5_000
"""The longest list: otherwise a command that always starts new processes would be followed forever."""

_TIMES_FOR_STORMS = 10
"""A thousand processes that all want the processor need time to end."""

_EMPTY_LOOKS = 3
"""How often no child must be seen, if the kernel does not say for certain that there is none."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02


class Child:
    """The process of a command. ``exit_code``: None until it is reaped; 128 + N for the signal N."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exit_code: int | None = None

    def has_ended(self) -> bool:
        return self.exit_code is not None


class _Caller:
    """The program that this process was before ``exec``, if it had children: they and all below them are not ours."""

    def __init__(self) -> None:
        self.children: set[int] = set()  # unreaped, so no other process has their pids
        # The limits that only our command and its processes have. None: nothing must be told apart, or nothing can be.
        # If nothing can be, orphans of the caller's children count as ours.
        self.not_his: range | None = None

    def has(self, pid: int) -> bool:
        return pid in self.children or (self.not_his is not None and self._has_begun(pid, self.not_his))

    @staticmethod
    def _has_begun(pid: int, not_his: range) -> bool:
        limit = _limit_of(pid)
        return limit is not None and limit not in not_his


_caller = _Caller()


def become_subreaper() -> None:
    """Makes every orphan below this process its child; only for a process that exists to run one command."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, no exit code is kept
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _caller.children.update(_adopted())
    limit = _limit_of(os.getpid()) if _caller.children else None
    _caller.not_his = None if limit is None else _lower_limits(limit)


def start(
    argv: Sequence[str | bytes],
    *,
    cwd: str | None,
    env: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    is_contained: bool = False,
) -> Child:
    """Starts ``argv`` in its own session, without a terminal, with these three descriptors and no other."""
    # The child is killed when the thread that called this ends, unless its program is a setuid one.
    _open_till_we_end, pipe = os.pipe() if is_contained else (-1, -1)
    # No handler of ours may run in the child, or between its start and the answer.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        started = subprocess.Popen(  # noqa: S603  # the user chose the command
            contained(argv, pipe) if is_contained else argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(pipe,) if is_contained else (),
            start_new_session=True,
            preexec_fn=_preparation(),  # noqa: PLW1509  # it takes no lock that another thread could hold
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if is_contained:
            os.close(pipe)
    if _caller.not_his is not None and _caller.has(started.pid):
        _caller.not_his = None  # the limits tell nothing apart: the caller's children are known, their orphans are not
    started.returncode = 0  # only ``reap`` waits for it
    return Child(started.pid)


def _preparation() -> Callable[[], None]:
    """Returns what the child does before its program: it takes its limit, dies with us, and has no handlers."""
    parent = os.getpid()
    lower_limit = _lowering(_caller.not_his[-1]) if _caller.not_his else None

    def prepare() -> None:
        if lower_limit is not None:
            with contextlib.suppress(OSError, ValueError, OverflowError):  # a sandbox forbids it
                lower_limit()
        if _prctl is not None:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # the parent died before this process could watch it
                os.kill(os.getpid(), signal.SIGKILL)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    return prepare


def ends_what_others_leave() -> bool:
    """Returns whether orphans of the caller's children count as ours: no limit could be lowered."""
    return _prctl is not None and bool(_caller.children) and _caller.not_his is None


def _lower_limits(limit: int) -> range | None:
    """Returns limits below ``limit`` that no other run has: the last for the command, the others for runs inside it."""
    # The limit L stands for a range that ends at L and is as long as the lowest set bit of L. There is no room after
    # four runs inside each other, or below an odd limit or 0.
    room = limit & -limit
    bits = min(_BITS, room.bit_length() - 1)
    if bits <= 0:
        return None
    size = room >> bits
    place = int.from_bytes(os.urandom(4)) % (1 << bits) | 1  # an odd place, which begins no larger range
    last = limit - place * size
    return range(last - size + 1, last + 1)


def _lowering(limit: int) -> Callable[[], None]:
    """Returns what lowers the limit of a process, and of all that it starts."""
    import resource

    return lambda: resource.setrlimit(_RLIMIT_LOCKS, (limit, limit))


def _limit_of(pid: int) -> int | None:
    """Returns the limit of a process; None if the system does not show it."""
    with contextlib.suppress(OSError), open(f"{_PROC}/{pid}/limits", "rb") as file:
        for line in file:
            if line.startswith(_NAME_OF_LIMIT):
                limit = line.removeprefix(_NAME_OF_LIMIT).split()[1]
                return min(int(limit), _WHOLE) if limit.isdigit() else _WHOLE
    return None


def reap(child: Child) -> None:
    """Reaps all children that have ended, and notes how ``child`` ended."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            _caller.children.discard(pid)
            if pid == child.pid and not child.has_ended():  # if many processes start, its pid is used again
                code = os.waitstatus_to_exitcode(status)
                child.exit_code = code if code >= 0 else 128 - code


def descendants() -> list[int]:
    """Returns the living processes below this one, parents before their children."""
    return [pid for pid in _below() if not _has_ended(pid)]


def send(child: Child, number: int) -> None:
    """Sends the signal ``number`` to the process group of ``child``, also if ``child`` itself has ended."""
    members = [pid for pid in _below() if _group_of(pid) == child.pid]
    if namespace_of(child.pid):  # the program that keeps the namespace is spared: all in there would die with it
        for pid in members:
            if pid != child.pid:
                _signal(pid, number)
    elif members or not child.has_ended():  # no other process can have this group
        with contextlib.suppress(OSError):
            os.killpg(child.pid, number)


def stop() -> None:
    """Stops everything below this process (SIGSTOP), until ``go_on``."""
    stopped: set[int] = set()
    for _ in range(_MOST_PASSES):
        fresh = [pid for pid in _below() if pid not in stopped]  # started while others were stopped
        if not fresh:
            return
        for pid in fresh:
            _signal(pid, signal.SIGSTOP)
        stopped.update(fresh)


def go_on() -> None:
    """Continues everything below this process, children first, so that no parent finds a stopped child."""
    for pid in reversed(list(_below())):
        _signal(pid, signal.SIGCONT)


def kill_all(child: Child, seconds: float) -> list[int]:
    """Kills and reaps everything below this process; returns what still lives after ``seconds`` without a change."""
    until = time.monotonic() + seconds
    last = until + seconds * _TIMES_FOR_STORMS
    before: set[int] = set()
    pause, empty_looks = _SHORTEST_PAUSE, 0
    while True:
        reap(child)
        # When these have died, their children are ours. So no process is asked for its children while others flee: in
        # that time they would become many more.
        found = set(_adopted() if child.has_ended() else (child.pid, *_adopted()))
        empty_looks = 0 if found else empty_looks + 1
        if not found and (_has_no_child() or empty_looks > _EMPTY_LOOKS):
            return []
        _kill(found)
        if found != before:
            until = min(time.monotonic() + seconds, last)
        if found <= before:
            _kill(_below())  # also what is below unkillable processes
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        if time.monotonic() > until:
            return descendants()
        before = found


def _has_no_child() -> bool:
    """Returns whether this process certainly has no child: the kernel's list may miss some."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _kill(pids: Iterable[int]) -> None:
    """Kills each of ``pids``, and its whole group in one step, in which nobody can fork."""
    groups = {os.getpgrp()}
    for pid in pids:
        _signal(pid, signal.SIGKILL)
        group = _group_of(pid)
        if group is not None and group not in groups:
            groups.add(group)
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)


def _group_of(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return os.getpgid(pid)
    return None


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def _below() -> Iterator[int]:
    """Yields the processes below this one, also unreaped ones, parents before their children."""
    # A process is asked for its children after it was yielded. If the caller has killed it by then, only this process
    # can reap the children, so their pids stay theirs.
    found = _adopted()
    yield from found
    if not _lists_children():
        return
    for pid in found:
        children = _children(pid)
        yield from children
        found += children
        if len(found) > _MOST_LISTED:
            return


def _adopted() -> list[int]:
    """Returns the children of this process, started or adopted, also unreaped ones."""
    if not _lists_children():
        return _traced_below()
    return [pid for pid in _children(os.getpid()) if not _caller.has(pid)]


def _lists_children() -> bool:
    return os.path.exists(f"{_PROC}/self/task/{os.getpid()}/children")


def _children(pid: int) -> list[int]:
    """Returns the children of all threads of ``pid``. A process that has ended has none."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"{_PROC}/{pid}/task"):
            with contextlib.suppress(OSError), open(f"{_PROC}/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def _has_ended(pid: int) -> bool:
    """Returns whether no thread of ``pid`` lives; the first may have ended before the others."""
    if not os.path.exists(f"{_PROC}/self"):
        return False
    try:
        found = state_and_threads(pid)
    except OSError:
        return True
    return found is None or (found[0] in "ZX" and found[1] <= 1)


def _traced_below() -> list[int]:
    """Returns the processes below this one, without unreaped ones, if the kernel lists no children."""
    import psutil

    with contextlib.suppress(OSError):
        if os.readlink(f"{_PROC}/self") != str(os.getpid()):  # it shows another pid namespace, with other pids
            return []
    with contextlib.suppress(psutil.Error):
        found = psutil.Process().children(recursive=True)
        below_others = {below.pid for one in found if one.pid in _caller.children for below in _all_below(one)}
        ours = [one for one in found if one.pid not in below_others and not _caller.has(one.pid)]
        return [one.pid for one in ours if one.status() != psutil.STATUS_ZOMBIE]
    return []


def _all_below(process: Process) -> list[Process]:
    import psutil

    with contextlib.suppress(psutil.Error):
        return process.children(recursive=True)
    return []
