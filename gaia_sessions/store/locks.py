"""The only code that locks: ``flock`` on files in ``.locks``, outside the sessions that they guard.

Hooks wait by sleeping and trying again, commands and the API by ``filelock``. Both use the same files and system call,
so they exclude each other.
"""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import sys
import time

from gaia_sessions import errors
from gaia_sessions.session.ids import is_agent_id

from .directory import PRIVATE_FILE, give_to_folder_owner, open_private, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from .directory import Directory

    Release = Callable[[], object]
    WaitForLock = Callable[[Directory, str, float], Release | None]
    """Waits at most so many seconds for a lock file of a directory; returns a function that frees it, or None."""

SUFFIX = ".lock"
KEY_PREFIX = ".key."
"""The beginning of the name of the lock file for a key."""

_MIN_SLEEP = 0.005
_UNSUPPORTED = frozenset([errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])

_locked_fds: set[int] = set()
"""The descriptors that are locked or about to be."""

_fork_count = 0
"""Grows before and after each fork: code that opened a file sees whether a child may have a copy of it."""


class Lock:
    """A lock that this process holds until the ``with`` block ends. A forked child does not hold it."""

    __slots__ = ("folder", "holder", "name", "release")

    def __init__(self, folder: Directory, name: str, release: Release) -> None:
        self.folder = folder
        self.name = name
        self.release = release
        self.holder = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_held():
            self.release()

    def check_held(self) -> None:
        """Raises ``StoreFailure`` in a child that the holder forked."""
        if not self._is_held():
            reason = f"its holder, process {self.holder}, forked this process"
            raise errors.StoreFailure("use this lock", f"{self.folder.path}/{self.name}", reason, "try again")

    def remove(self) -> None:
        """Removes the lock file: the last act under the lock."""
        # A process that waits sees that its open file lost its name, and begins again with a new file.
        if self._is_held():
            os.unlink(self.name, dir_fd=self.folder.fd)

    def _is_held(self) -> bool:
        return os.getpid() == self.holder


def name_for(agent_id: str) -> str:
    """Returns the name of the lock file of a session."""
    return agent_id + SUFFIX  # on a file system that ignores case, two IDs with one folder have one lock


def is_name(name: str) -> bool:
    """Returns whether a lock file of a session or of a key has this ``name``."""
    stem = name.removesuffix(SUFFIX)
    return stem != name and (is_agent_id(stem) or name.startswith(KEY_PREFIX))


def acquire(folder: Directory, name: str, seconds: float, wait: WaitForLock) -> Lock:
    """Returns the lock ``name`` of ``folder``; if another process holds it, calls ``wait`` for up to ``seconds``."""
    path = f"{folder.path}/{name}"
    try:
        release = _try_lock(folder, name)  # waits only if another process has it: ``filelock`` is a slow import
        if release is None and seconds > 0:
            release = wait(folder, name, seconds)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise errors.LockUnsupported(path, os.strerror(error.errno)) from error
        raise refusal("lock", path, error) from error
    if release is None:
        raise errors.LockTimeout(path, seconds, holder_pid(folder, name))
    return Lock(folder, name, release)


def run_if_free(folder: Directory, name: str, action: Callable[[], object]) -> bool:
    """Calls ``action`` under the lock ``name`` unless another process holds it; returns whether it did."""
    try:
        with acquire(folder, name, 0, sleep_and_retry):
            action()
    except errors.LockTimeout:
        return False
    return True


def sleep_and_retry(folder: Directory, name: str, seconds: float) -> Release | None:
    """Waits like a hook: tries again after 5 to 10 ms, at random, so that two waiters are never in step."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(_MIN_SLEEP * (1 + os.urandom(1)[0] / 255))
        release = _try_lock(folder, name)
        if release is not None:
            return release
    return None


def wait_with_filelock(folder: Directory, name: str, seconds: float) -> Release | None:
    """Waits like commands and the API: with the ``filelock`` package, and only with its native lock."""
    # With other threads, ``filelock`` must be loaded already: a child that is forked in an import waits for ever.
    if "filelock" not in sys.modules and _thread._count():  # noqa: SLF001  # saves the import of threading
        return sleep_and_retry(folder, name, seconds)
    from filelock import FileLock, Timeout  # only a process that must wait loads it: it costs as much as click

    path = f"{folder.path}/{name}"
    lock = FileLock(path, seconds, mode=PRIVATE_FILE, poll_interval=_MIN_SLEEP, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    if folder.inode(name) == _inode_at(path):
        give_to_folder_owner(folder.fd, name)  # the file may have been removed, and made again by the package
        return lock.release
    lock.release()  # the package locks by path, and the path leads to another file now
    return None


def _inode_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def holder_pid(folder: Directory, name: str) -> int | None:
    """Returns the pid that holds the lock, if the system tells (Linux, within one pid namespace)."""
    found = folder.inode(name)
    return _pids_by_inode().get(found[1]) if found else None


def held_locks(folder: Directory) -> dict[str, int]:
    """Returns the locks of ``folder`` that are held, with the pids of their holders, as far as the system tells."""
    pids = _pids_by_inode()
    with os.scandir(folder.fd) as entries:
        return {entry.name: pids[entry.inode()] for entry in entries if entry.inode() in pids}


def _pids_by_inode() -> dict[int, int]:
    """Returns the pids that hold a lock, by the inode of its file."""
    try:
        with open("/proc/locks", encoding="ascii") as table:
            rows = [line.split() for line in table]
    except OSError:
        return {}
    # "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF"; a process that waits has "1: -> FLOCK ...".
    holders = ((int(row[5].rpartition(":")[2]), int(row[4])) for row in rows if row[1] == "FLOCK")
    return {inode: pid for inode, pid in holders if pid > 0}


def _try_lock(folder: Directory, name: str) -> Release | None:
    """Tries once, without waiting; returns None if another process has the lock."""
    while True:
        forks_before = _fork_count
        fd, opened = open_private(folder.fd, name, os.O_RDWR)
        try:
            locked = lock_open_file(fd)
            # The holder removes the file last, so the name may lead to another file now: then this lock guards nothing.
            # If a fork came in between, a child may hold a copy of this descriptor and keep the lock for ever.
            if locked and _fork_count == forks_before and folder.is_at(name, opened):
                return lambda: close_locked(fd)
        except BaseException:
            close_locked(fd)
            raise
        close_locked(fd)
        if not locked:
            return None


def close_locked(fd: int) -> None:
    """Frees the lock of the open file ``fd``, if it has one, and closes the file."""
    unlock_open_file(fd)  # before the close: a forked copy of the descriptor would keep the lock
    os.close(fd)


def open_shared(folder: Directory, name: str, flags: int, seconds: float) -> tuple[int, os.stat_result]:
    """Opens or creates the file ``name``, and takes a shared lock on it until ``close_locked``."""
    deadline = 0.0
    while True:
        fd, opened = open_private(folder.fd, name, flags)
        try:
            # A process with the exclusive lock may give the name to another file.
            if lock_open_file(fd, fcntl.LOCK_SH) and folder.is_at(name, opened):
                return fd, opened
        except BaseException:
            close_locked(fd)
            raise
        close_locked(fd)
        deadline = deadline or time.monotonic() + seconds
        if time.monotonic() >= deadline:
            raise errors.LockTimeout(f"{folder.path}/{name}", seconds, None)
        time.sleep(_MIN_SLEEP)


def lock_open_file(fd: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Locks the open file ``fd`` and returns whether it did; False if another process holds the lock."""
    _locked_fds.add(fd)
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        _locked_fds.discard(fd)
        return False
    except BaseException:
        unlock_open_file(fd)
        raise
    return True


def unlock_open_file(fd: int) -> None:
    """Frees the lock, also for the copies of ``fd`` that children may have; the caller closes ``fd`` afterwards."""
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:  # the system cannot lock at all, or closing must be enough
        return
    finally:
        _locked_fds.discard(fd)


def _count_fork() -> None:
    global _fork_count  # noqa: PLW0603  # one number for the process
    _fork_count += 1


def _forget_locks_of_parent() -> None:
    """Closes the copies of locked descriptors in a child."""
    # Never unlock here: that would free the parent's lock too. A close only ends the child's copy.
    for fd in _locked_fds:
        try:
            os.close(fd)
        except OSError:  # the descriptor is closed anyway
            continue
    _locked_fds.clear()


os.register_at_fork(before=_count_fork, after_in_parent=_count_fork, after_in_child=_forget_locks_of_parent)
