"""Locks: both ways of waiting, what they exclude, the holder that they name, and removed lock files."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock, Timeout

from gaia_sessions.errors import LockTimeout, StoreFailure
from gaia_sessions.store import locks
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.store.directory import Directory

MANNERS = [locks.wait_with_filelock, locks.sleep_and_retry]

HOLDS = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""

ACQUIRES = """
import sys
from gaia_sessions.store import locks
from gaia_sessions.store.directory import Directory
with locks.acquire(Directory.at(sys.argv[1]), "one.lock", 60, locks.sleep_and_retry):
    print("held", flush=True)
    sys.stdin.read()
"""

TRIES = """
import sys
from filelock import FileLock, Timeout
try:
    FileLock(sys.argv[1], timeout=0.05).acquire()
except Timeout:
    print("refused")
else:
    print("held")
"""

COUNTS = """
import sys
from pathlib import Path
from filelock import FileLock
from gaia_sessions.store import locks
from gaia_sessions.store.directory import Directory
folder, manner = Directory.at(sys.argv[1]), sys.argv[2]
number = Path(folder.path, "number")
print("ready", flush=True)
sys.stdin.read()
for _ in range(int(sys.argv[4])):
    if manner == "filelock itself":
        held = FileLock(f"{folder.path}/one.lock", timeout=60, poll_interval=0.001)
        held.acquire()
        number.write_text(str(int(number.read_text()) + 1))
        held.release()
    else:
        with locks.acquire(folder, "one.lock", 60, getattr(locks, manner)) as lock:
            number.write_text(str(int(number.read_text()) + 1))
            if sys.argv[3] == "remove":
                lock.remove()
"""


def holder_of(path: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def tried_by_another(path: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", TRIES, path], capture_output=True, text=True, check=True
    ).stdout.strip()


def tried_by_another_file(path: str) -> str:
    try:
        with FileLock(path, timeout=0.05):
            return "held"
    except Timeout:
        return "refused"


def test_a_lock_that_filelock_holds_in_another_process_is_refused_with_its_pid(folder: Directory) -> None:
    path = f"{folder.path}/one.lock"
    with holder_of(path) as other:
        for seconds, manner in product((0, 0.05), MANNERS):
            with pytest.raises(LockTimeout) as refused:
                locks.acquire(folder, "one.lock", seconds, manner)

            assert (refused.value.path, refused.value.seconds, refused.value.holder) == (path, seconds, other.pid)
            assert f"process {other.pid}" in str(refused.value)
        other.communicate()


def test_filelock_in_another_process_gets_a_held_lock_only_after_its_release(folder: Directory) -> None:
    path = f"{folder.path}/one.lock"

    with locks.acquire(folder, "one.lock", 1, locks.sleep_and_retry):
        during = tried_by_another(path)

    assert (during, tried_by_another(path)) == ("refused", "held")


@table("manner", MANNERS)
def test_a_lock_taken_by_either_way_of_waiting_excludes_another_open_file(
    folder: Directory, manner: locks.WaitForLock
) -> None:
    """A lock excludes another open file of this process too."""
    path = f"{folder.path}/one.lock"
    release = manner(folder, "one.lock", 1)
    assert release is not None

    during = tried_by_another_file(path)
    release()

    assert (during, tried_by_another_file(path)) == ("refused", "held")


@table("manner", MANNERS)
def test_a_lock_is_free_once_its_holder_is_killed(folder: Directory, manner: locks.WaitForLock) -> None:
    with holder_of(f"{folder.path}/one.lock") as other:
        other.kill()
        other.wait()
        with locks.acquire(folder, "one.lock", 60, manner):
            assert tried_by_another(f"{folder.path}/one.lock") == "refused"


@pytest.mark.parametrize(
    ("others", "rounds"),
    [
        (["keep", "keep", "remove", "remove"], 60),
        pytest.param(["keep", "keep", "remove", "remove"], 300, marks=pytest.mark.slow),
        pytest.param(["keep"] * 4, 300, marks=pytest.mark.slow),
    ],
)
def test_processes_that_lock_in_different_ways_lose_no_update(
    folder: Directory, others: list[str], rounds: int
) -> None:
    """No update is lost even if each release removes the lock file."""
    Path(folder.path, "number").write_text("0", encoding="ascii")
    manners = ["filelock itself", "wait_with_filelock", "wait_with_filelock", "sleep_and_retry"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTS, folder.path, manner, keep, str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for manner, keep in zip(manners, others, strict=True)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None

    ends = [process.wait() for process in processes]
    for process in processes:
        process.communicate()

    assert ends == [0, 0, 0, 0]
    assert Path(folder.path, "number").read_text(encoding="ascii") == str(4 * rounds)


def test_a_lock_with_a_removed_file_does_not_block_a_lock_on_the_new_file(folder: Directory) -> None:
    with locks.acquire(folder, "one.lock", 0, locks.sleep_and_retry) as old:
        old.remove()
        with locks.acquire(folder, "one.lock", 0, locks.sleep_and_retry):
            assert tried_by_another(f"{folder.path}/one.lock") == "refused"


def test_a_process_that_opened_a_removed_lock_file_locks_the_new_file(folder: Directory, tmp_path: Path) -> None:
    """Delays the other process between opening the file and locking it."""
    if which("strace") is None:
        pytest.skip("needs strace to delay a call")
    path, log = f"{folder.path}/one.lock", tmp_path / "log"
    slowly = [
        "strace",
        "-qq",
        "-o",
        str(log),
        "-e",
        "trace=openat,flock",
        "-e",
        "inject=flock:delay_enter=400000:when=1",
    ]

    with locks.acquire(folder, "one.lock", 0, locks.sleep_and_retry) as held:
        other = subprocess.Popen(
            [*slowly, sys.executable, "-c", ACQUIRES, folder.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        while not (log.exists() and '"one.lock"' in log.read_text(encoding="utf-8", errors="replace")):
            assert other.poll() is None
            time.sleep(0.01)
        held.remove()
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"

    during = tried_by_another(path)
    other.communicate()

    assert (during, tried_by_another(path)) == ("refused", "held")


def test_a_free_lock_has_no_holder_pid(folder: Directory) -> None:
    assert locks.holder_pid(folder, "one.lock") is None

    Path(folder.path, "one.lock").touch()

    assert locks.holder_pid(folder, "one.lock") is None


def test_the_holder_of_a_lock_taken_here_is_this_process(folder: Directory) -> None:
    with locks.acquire(folder, "one.lock", 0, locks.sleep_and_retry):
        assert locks.holder_pid(folder, "one.lock") == os.getpid()


def test_a_released_lock_can_be_taken_again_and_leaves_no_descriptor(folder: Directory) -> None:
    gc.collect()  # closes the roots of stores of earlier tests
    before = os.listdir("/proc/self/fd")

    for _ in range(10):
        with locks.acquire(folder, "one.lock", 0, locks.sleep_and_retry):
            pass
        with FileLock(f"{folder.path}/one.lock"), pytest.raises(LockTimeout):
            locks.acquire(folder, "one.lock", 0.01, locks.wait_with_filelock)

    assert os.listdir("/proc/self/fd") == before


@table("planted", ["link", "dangling link", "FIFO", "directory"])
def test_a_lock_path_that_is_a_link_fifo_or_directory_is_refused_without_waiting(
    folder: Directory, new_folder: Callable[[], Path], planted: str
) -> None:
    victim = new_folder() / "victim"
    name = f"{planted}.lock"
    lock = Path(folder.path, name)
    if planted == "link":
        victim.write_bytes(b"kept")
        lock.symlink_to(victim)
    elif planted == "dangling link":
        lock.symlink_to(victim)
    elif planted == "FIFO":
        os.mkfifo(lock)
    else:
        lock.mkdir()

    for manner in MANNERS:
        with pytest.raises(StoreFailure) as refused:
            locks.acquire(folder, name, 3600, manner)

        assert refused.value.path == str(lock)
    assert victim.exists() == (planted == "link")
