"""The only code that locks.

Owns ``flock`` on files in ``.locks``, which stand outside the sessions they guard, and the two ways of waiting for one:
hooks sleep and try again with the standard library alone; commands and the API leave the waiting to the ``filelock``
package. Both use the same file and system call, so they exclude each other.

Only its holder removes a lock file, last of all. So whoever locks one checks that the name still leads to it.

A fork copies the descriptor, and the lock belongs to both copies. So a holder unlocks before it closes, and a child
closes its copies; the ``filelock`` package does the same.
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
    """Waits for a lock file of a directory, at most so many seconds; returns what releases it."""

SUFFIX = ".lock"
KEY_PREFIX = ".key."
"""With which the name of the lock on a host's key begins."""

_MIN_SLEEP = 0.005
_UNSUPPORTED = frozenset([errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])

_locked_fds: set[int] = set()
"""The descriptors that are locked, or about to be."""

_fork_count = 0
"""Grows before and after each fork, so that whoever opens a file sees whether a child may have got a copy of it."""


class Lock:
    """A lock held until the ``with`` block ends, by the process that took it and by no child that runs on in there."""

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
        """Raises ``StoreFailure`` in a child that its holder has forked."""
        if not self._is_held():
            reason = f"process {self.holder}, which forked this one, holds the lock"
            raise errors.StoreFailure("write under", f"{self.folder.path}/{self.name}", reason, "try again")

    def remove(self) -> None:
        """Removes the file, as the last act under the lock: whoever waits for it notices that and begins again."""
        if self._is_held():
            os.unlink(self.name, dir_fd=self.folder.fd)

    def _is_held(self) -> bool:
        return os.getpid() == self.holder


def name_for(agent_id: str) -> str:
    """The name of the lock file of a session: where a file system ignores case, two such ids have one lock."""
    return agent_id + SUFFIX


def is_name(name: str) -> bool:
    """Whether the lock of a session, or of a host's key, has this ``name``."""
    stem = name.removesuffix(SUFFIX)
    return stem != name and (is_agent_id(stem) or name.startswith(KEY_PREFIX))


def acquire(folder: Directory, name: str, seconds: float, wait: WaitForLock) -> Lock:
    """The lock ``name`` of ``folder``, waiting in the manner of ``wait`` only if somebody else holds it.

    Raises ``LockTimeout`` after ``seconds`` (0: at once), ``LockUnsupported`` where the file system
    cannot lock, ``StoreFailure`` for everything else.
    """
    path = f"{folder.path}/{name}"
    try:
        release = _try_lock(folder, name)
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
    """Calls ``action`` under the lock ``name`` if nobody holds it; whether it did."""
    try:
        with acquire(folder, name, 0, sleep_and_retry):
            action()
    except errors.LockTimeout:
        return False
    return True


def sleep_and_retry(folder: Directory, name: str, seconds: float) -> Release | None:
    """How hooks wait: they try 5 to 10 ms apart, never in step with others who wait."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(_MIN_SLEEP * (1 + os.urandom(1)[0] / 255))
        release = _try_lock(folder, name)
        if release is not None:
            return release
    return None


def wait_with_filelock(folder: Directory, name: str, seconds: float) -> Release | None:
    """How commands and the API wait: by the ``filelock`` package, with its native lock and no other kind.

    Beside other threads only if it is loaded: a child that is forked in the middle of an import waits for ever.
    """
    if "filelock" not in sys.modules and _thread._count():  # noqa: SLF001  # without threading, which others need not load
        return sleep_and_retry(folder, name, seconds)
    from filelock import FileLock, Timeout  # imported only by whoever must wait: it costs as much as click

    path = f"{folder.path}/{name}"
    lock = FileLock(path, seconds, mode=PRIVATE_FILE, poll_interval=_MIN_SLEEP, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    if folder.inode(name) == _inode_at(path):
        give_to_folder_owner(folder.fd, name)  # it may have been removed, and made again by the package
        return lock.release
    lock.release()  # the package locks by path, and the path leads elsewhere by now
    return None


def _inode_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def holder_pid(folder: Directory, name: str) -> int | None:
    """The pid that holds the lock, where the system tells (Linux, and only within one pid namespace)."""
    found = folder.inode(name)
    return _pids_by_inode().get(found[1]) if found else None


def held_locks(folder: Directory) -> dict[str, int]:
    """The locks of ``folder`` that are held, with the pids of their holders, as far as the system tells of them."""
    pids = _pids_by_inode()
    with os.scandir(folder.fd) as entries:
        return {entry.name: pids[entry.inode()] for entry in entries if entry.inode() in pids}


def _pids_by_inode() -> dict[int, int]:
    """The pids that hold a lock, by the inode of its file."""
    try:
        with open("/proc/locks", encoding="ascii") as table:
            rows = [line.split() for line in table]
    except OSError:
        return {}
    # "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF", and "1: -> FLOCK ..." for those who wait.
    holders = ((int(row[5].rpartition(":")[2]), int(row[4])) for row in rows if row[1] == "FLOCK")
    return {inode: pid for inode, pid in holders if pid > 0}


def _try_lock(folder: Directory, name: str) -> Release | None:
    """One try, without waiting; None if somebody else has it."""
    while True:
        forks_before = _fork_count
        fd, opened = open_private(folder.fd, name, os.O_RDWR)
        try:
            locked = lock_open_file(fd)
            if locked and _fork_count == forks_before and folder.is_at(name, opened):
                return lambda: close_locked(fd)
        except BaseException:
            close_locked(fd)
            raise
        close_locked(fd)
        if not locked:
            return None


def close_locked(fd: int) -> None:
    """Frees the lock of the open file ``fd``, if it has one, and closes it."""
    unlock_open_file(fd)
    os.close(fd)


def open_shared(folder: Directory, name: str, flags: int, seconds: float) -> tuple[int, os.stat_result]:
    """The file ``name`` of ``folder``, opened or created, and locked together with others until ``close_locked``.

    Waits while somebody has the lock alone, and may put another file in its place. Raises ``LockTimeout``, ``OSError``.
    """
    deadline = 0.0
    while True:
        fd, opened = open_private(folder.fd, name, flags)
        try:
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
    """Whether the open file ``fd`` is locked until it is unlocked; False if somebody else holds the lock."""
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
    """Frees the lock, also for the copies of ``fd`` that children may have; the caller closes it then."""
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:  # the system cannot lock either; else to close it must do
        return
    finally:
        _locked_fds.discard(fd)


def _count_fork() -> None:
    global _fork_count  # noqa: PLW0603  # one number for the process
    _fork_count += 1


def _forget_locks_of_parent() -> None:
    """In a child: unlocking would free them for the parent too, while closing only ends what the child has of them."""
    for fd in _locked_fds:
        try:
            os.close(fd)
        except OSError:  # it is closed all the same
            continue
    _locked_fds.clear()


os.register_at_fork(before=_count_fork, after_in_parent=_count_fork, after_in_child=_forget_locks_of_parent)
