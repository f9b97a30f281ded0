"""The processes of a command that is run: its start, signals to it, and the end of everything it has started.

This process becomes a sub-reaper, so that whatever its children leave behind becomes a child of its own, wherever it
fled to. So does what leaves those children behind that it had before, if it was begun by ``exec``: a limit that every
process inherits and that limits nothing is lowered for the command, to values of this run alone. Without ``/proc``
(macOS) only what ``psutil`` can still trace to it is found.
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
"""What it counts as where it is not limited."""
_BITS = 20
"""Of so many places in the values of a run, one at random is for a run within it."""

_MOST_PASSES = 100
"""How often ``stop`` looks for what was started meanwhile: who always flees would else hold it up for ever."""

_MOST_LISTED = 5_000
"""Beyond so many a list is cut off: what flees from process to process would else be followed for ever."""

_TIMES_FOR_STORMS = 10
"""A thousand processes that all want the processor take their time to end."""

_EMPTY_LOOKS = 3
"""So often no child must be seen before there is none, where the kernel does not say so for certain."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02


class Child:
    """The process of a command.

    exit_code: None until it has ended and was reaped; then as shells say it, 128 + N for the signal N.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exit_code: int | None = None

    def has_ended(self) -> bool:
        return self.exit_code is not None


class _Caller:
    """Whoever called ``exec`` for this process, if it had children then: they, and all below them, are not ours.

    children: those that have not been reaped, so that no other process has their pids. not_his: the limits that only a
    command of this process has, and what that starts. None if nothing has to be told apart, or it cannot be: then what
    his children leave behind counts as ours.
    """

    def __init__(self) -> None:
        self.children: set[int] = set()
        self.not_his: range | None = None

    def has(self, pid: int) -> bool:
        return pid in self.children or (self.not_his is not None and self._has_begun(pid, self.not_his))

    @staticmethod
    def _has_begun(pid: int, not_his: range) -> bool:
        limit = _limit_of(pid)
        return limit is not None and limit not in not_his


_caller = _Caller()


def become_subreaper() -> None:
    """Has every orphan below this process become a child of it; to be called before anything is started.

    Only for a process that exists to run one command: it reaps and kills children that others may be waiting for. Those
    that are there already are reaped, and otherwise left alone.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, as some callers leave it, no exit code is kept
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
    """Starts ``argv`` in a session of its own, which has no terminal, with these three descriptors and no other.

    Its signals are as a shell would leave them: SIGHUP stays ignored if it is. It is killed when the thread that called
    this ends, by whatever end, unless its program is a setuid one. Raises ``OSError`` if it cannot be started.

    is_contained: in a pid namespace, with all that it starts; whoever is the first there is the child.
    """
    _open_till_we_end, pipe = os.pipe() if is_contained else (-1, -1)
    # No handler of this process may run in the child, nor between its start and the answer.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        started = subprocess.Popen(  # noqa: S603  # whoever runs a command has chosen it
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
        _caller.not_his = None  # it tells nothing; the caller's children are known, and what leaves them is not
    started.returncode = 0  # only ``reap`` waits for it, also when this object is forgotten
    return Child(started.pid)


def _preparation() -> Callable[[], None]:
    """What the child does before its program: it takes its limit, dies with this process, and has no handlers."""
    parent = os.getpid()
    lower_limit = _lowering(_caller.not_his[-1]) if _caller.not_his else None

    def prepare() -> None:
        if lower_limit is not None:
            with contextlib.suppress(OSError, ValueError, OverflowError):  # a sandbox forbids it
                lower_limit()
        if _prctl is not None:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died before it could be watched
                os.kill(os.getpid(), signal.SIGKILL)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    return prepare


def ends_what_others_leave() -> bool:
    """Whether what the caller's children leave behind counts as ours, after ``start``: no limit could be lowered."""
    return _prctl is not None and bool(_caller.children) and _caller.not_his is None


def _lower_limits(limit: int) -> range | None:
    """Limits below ``limit`` that no other run has taken, the last for a command and all for the runs within it.

    A limit stands for as many as its lowest bit that is set says, down from it. None if there is no room: after four
    runs within each other that all have to tell something apart, or where somebody has set a limit that is odd or 0.
    """
    room = limit & -limit
    bits = min(_BITS, room.bit_length() - 1)
    if bits <= 0:
        return None
    size = room >> bits
    place = int.from_bytes(os.urandom(4)) % (1 << bits) | 1  # an odd one: it begins no larger part
    last = limit - place * size
    return range(last - size + 1, last + 1)


def _lowering(limit: int) -> Callable[[], None]:
    """What a process does so that it, and all that it starts, is told from what the caller has started."""
    import resource

    return lambda: resource.setrlimit(_RLIMIT_LOCKS, (limit, limit))


def _limit_of(pid: int) -> int | None:
    """The limit by which a process is told; None if the system does not show it."""
    with contextlib.suppress(OSError), open(f"{_PROC}/{pid}/limits", "rb") as file:
        for line in file:
            if line.startswith(_NAME_OF_LIMIT):
                limit = line.removeprefix(_NAME_OF_LIMIT).split()[1]
                return min(int(limit), _WHOLE) if limit.isdigit() else _WHOLE
    return None


def reap(child: Child) -> None:
    """Takes note of all children that have ended, and of how ``child`` ended if it is one of them."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            _caller.children.discard(pid)
            if pid == child.pid and not child.has_ended():  # in a storm its pid is used again
                code = os.waitstatus_to_exitcode(status)
                child.exit_code = code if code >= 0 else 128 - code


def descendants() -> list[int]:
    """The processes below this one that are alive, parents before their children."""
    return [pid for pid in _below() if not _has_ended(pid)]


def send(child: Child, number: int) -> None:
    """Sends the signal ``number`` to the process group of ``child``, also when ``child`` itself has ended.

    The program that only keeps a namespace for ``child`` is spared: what is in there would die with it.
    """
    members = [pid for pid in _below() if _group_of(pid) == child.pid]
    if namespace_of(child.pid):
        for pid in members:
            if pid != child.pid:
                _signal(pid, number)
    elif members or not child.has_ended():  # so nobody else can have this group
        with contextlib.suppress(OSError):
            os.killpg(child.pid, number)


def stop() -> None:
    """Stops everything below this process (SIGSTOP), until ``go_on``."""
    stopped: set[int] = set()
    for _ in range(_MOST_PASSES):
        fresh = [pid for pid in _below() if pid not in stopped]  # what was started while others were stopped
        if not fresh:
            return
        for pid in fresh:
            _signal(pid, signal.SIGSTOP)
        stopped.update(fresh)


def go_on() -> None:
    """Lets everything below this process go on, the children first: no parent finds one of them stopped."""
    for pid in reversed(list(_below())):
        _signal(pid, signal.SIGCONT)


def kill_all(child: Child, seconds: float) -> list[int]:
    """Kills and reaps everything below this process, until nothing is left there.

    Returns what is alive all the same after ``seconds`` in which nothing ended and nothing was started: processes of
    another user, or such as the system holds; or after many times that, if they go on starting others.
    """
    until = time.monotonic() + seconds
    last = until + seconds * _TIMES_FOR_STORMS
    before: set[int] = set()
    pause, empty_looks = _SHORTEST_PAUSE, 0
    while True:
        reap(child)
        # What these have started is theirs no more when they have died. So nothing is asked of a process while others
        # flee: that would take longer than they need to become many more.
        found = set(_adopted() if child.has_ended() else (child.pid, *_adopted()))
        empty_looks = 0 if found else empty_looks + 1
        if not found and (_has_no_child() or empty_looks > _EMPTY_LOOKS):
            return []
        _kill(found)
        if found != before:
            until = min(time.monotonic() + seconds, last)
        if found <= before:
            _kill(_below())  # also below what may not be killed
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        if time.monotonic() > until:
            return descendants()
        before = found


def _has_no_child() -> bool:
    """Whether this process certainly has no child: the kernel's list of them may leave some out while others end."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _kill(pids: Iterable[int]) -> None:
    """Kills each of ``pids``, and with it its whole group in one step, in which nobody can fork."""
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
    """The processes below this one, also those that wait to be reaped, parents before their children.

    A process is asked for its children after it was handed out. Whoever has killed it by then knows that they can be
    reaped by nobody but this process, so that their pids are not used again meanwhile.
    """
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
    """The children of this process, started or adopted, also those that wait to be reaped.

    Where the kernel lists no children, all that can be traced to it.
    """
    if not _lists_children():
        return _traced_below()
    return [pid for pid in _children(os.getpid()) if not _caller.has(pid)]


def _lists_children() -> bool:
    return os.path.exists(f"{_PROC}/self/task/{os.getpid()}/children")


def _children(pid: int) -> list[int]:
    """The children of all threads of ``pid``; what has ended has none: they are with whoever has them now."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"{_PROC}/{pid}/task"):
            with contextlib.suppress(OSError), open(f"{_PROC}/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def _has_ended(pid: int) -> bool:
    """Whether no thread of ``pid`` lives; the first may have ended before the others."""
    if not os.path.exists(f"{_PROC}/self"):
        return False
    try:
        found = state_and_threads(pid)
    except OSError:
        return True
    return found is None or (found[0] in "ZX" and found[1] <= 1)


def _traced_below() -> list[int]:
    """The processes below this one, without those that wait to be reaped, where the kernel lists no children."""
    import psutil

    with contextlib.suppress(OSError):
        if os.readlink(f"{_PROC}/self") != str(os.getpid()):  # it is that of another pid namespace, with other pids
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
