"""A command whose processes try to outlive it: ``hostile.py SEED``. Each seed makes one tree of processes.

Every process ends after 25 seconds, so a failed test leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIFE = 25.0
END = float(os.environ.get("HOSTILE_END", time.time() + LIFE))
PR_SET_CHILD_SUBREAPER, PTRACE_TRACEME, SYS_CLONE, CLONE_PARENT = 36, 0, 56, 0x8000
LIBC = ctypes.CDLL(None)

OWN_ENDS = {"exit 0": 0, "exit 3": 3, "a signal": 128 + signal.SIGTERM, "another": 128 + signal.SIGUSR1}
"""The ways in which the command itself ends, with their exit codes."""


def own_end(seed: int) -> str | None:
    """How the command of ``seed`` ends by itself, soon after its start; None if it never does."""
    return random.Random(f"end {seed}").choice([*OWN_ENDS, None, None, None, None])


def live() -> None:
    while (rest := END - time.time()) > 0:
        time.sleep(rest)
    os._exit(0)


# What a process changes about itself.


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())


def leave_session() -> None:
    if os.getpid() != os.getpgrp():
        os.setsid()


def leave_group() -> None:
    if os.getpid() != os.getsid(0):
        os.setpgid(0, 0)


def close_pipes() -> None:
    for number in range(3):
        os.close(number)


def adopt_orphans() -> None:
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def be_traced() -> None:
    LIBC.ptrace(PTRACE_TRACEME, 0, 0, 0)


def be_polite() -> None:
    os.nice(19)


def leave_folder() -> None:
    os.chdir("/")


TRAITS = [
    ignore_signals,
    block_signals,
    leave_session,
    leave_group,
    close_pipes,
    adopt_orphans,
    be_polite,
    leave_folder,
]


# How a process stays alive.


def be_stopped() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def flood() -> None:
    while time.time() < END:
        os.write(1, b"x" * 65536)


def fork_on() -> None:
    """Starts one process after another, each in its own session."""
    for _ in range(400):
        if not os.fork():
            os.setsid()
            live()
        time.sleep(0.002)


def flee() -> None:
    """Forks and ends all the time, so that a kill hits a process that has just ended."""
    while time.time() < END:
        if os.fork():
            os._exit(0)
        os.setsid()


def exec_from_thread() -> None:
    program = [sys.executable, "-I", "-S", "-c", "import sys, time; time.sleep(float(sys.argv[1]))", str(LIFE)]
    threading.Thread(target=os.execv, args=(sys.executable, program)).start()


def end_first_thread() -> None:
    """Ends the first thread, so that the process looks like a zombie but another thread lives."""
    threading.Thread(target=live, daemon=True).start()
    LIBC.syscall(60, 0)  # exit of this thread only


def become_sleep() -> None:
    os.execvp("sleep", ["sleep", str(int(LIFE))])  # noqa: S606  # the test needs it


LIVES = [live, live, be_stopped, flood, fork_on, flee, exec_from_thread, end_first_thread, become_sleep]


# How a process starts another process, which runs the given body.


def fork(body: Callable[[], None]) -> None:
    if not os.fork():
        body()


def fork_twice(body: Callable[[], None]) -> None:
    if not os.fork():
        fork(body)
        os._exit(0)


def clone_beside(body: Callable[[], None]) -> None:
    """Makes the new process a child of the parent of this one."""
    if os.uname().machine == "x86_64" and LIBC.syscall(SYS_CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        body()


def spawn(_body: Callable[[], None]) -> None:
    seed = str(random.randrange(10**6) | 1 << 40)
    os.posix_spawn(sys.executable, [sys.executable, "-I", "-S", __file__, seed], os.environ)


def shell_out(_body: Callable[[], None]) -> None:
    command = "trap '' TERM HUP; sleep 25 & setsid sh -c 'sleep 25 & sleep 25' & (sleep 25 &) ; wait"
    subprocess.Popen(["sh", "-c", command], start_new_session=random.random() < 0.5)  # in half of the cases


WAYS = [fork, fork, fork, fork_twice, fork_twice, clone_beside, spawn, shell_out]


def grow(depth: int, lives: list[Callable[[], None]]) -> None:
    """Makes this process a node of the tree and starts the processes below it."""
    for trait in random.sample(TRAITS, random.randrange(4)):
        trait()
    for _ in range(random.randrange(1, 5) if depth else 0):
        below = random.randrange(2**30)
        random.choice(WAYS)(lambda below=below: branch(below, depth - 1))  # type: ignore[misc]  # bound per iteration
    random.choice(lives)()
    live()


def branch(seed: int, depth: int) -> None:
    random.seed(seed)
    try:
        if random.random() < 0.1:  # one of ten ends at once
            os._exit(random.randrange(256))
        grow(depth, LIVES)
    finally:
        os._exit(1)


def main() -> None:
    seed = int(sys.argv[1])
    os.environ["HOSTILE_END"] = str(END)
    random.seed(seed)
    end = own_end(seed)
    if end is None:
        grow(3, [live])
    fork(lambda: branch(seed, 3))
    time.sleep(random.random() * 0.1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if end == "a signal":
        os.kill(os.getpid(), signal.SIGTERM)
    if end == "another":
        os.kill(os.getpid(), signal.SIGUSR1)
    os._exit(OWN_ENDS[end or ""])


if __name__ == "__main__":
    main()
