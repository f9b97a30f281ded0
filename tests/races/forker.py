"""A program that forks while it writes: ``forker.py ROLE ROOT ARGUMENT...``. It prints its result as JSON.

In most roles, each thread writes to its own session and waits for no lock: only a lock that outlived its holder can
refuse a write. Children that live on do not hold the streams of the program.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from gaia_sessions.errors import SessionsError
from gaia_sessions.session.record import new_record
from gaia_sessions.store import locks
from gaia_sessions.store.file_store import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.session.schema import Record

WRITES, THREADS = 100, 3
MOST_CHILDREN = 300


def counted(record: Record) -> Record:
    number = record["metadata"].get("count", 0)
    assert isinstance(number, int)
    return {**record, "metadata": {"count": number + 1}}


def store_of(root: str, *names: str, wait: locks.WaitForLock = locks.wait_with_filelock) -> FileStore:
    """A store with these sessions, each changed once, so that every module that a change needs is loaded."""
    store = FileStore(root, durable=False, lock_timeout=5, wait=wait)
    for name in names:
        store.create(new_record(name, "Explore", "-", {}, datetime.now(UTC)))
        store.change(name, counted, timeout=0)
    return store


def counts(store: FileStore) -> dict[str, object]:
    return {name: store.read(name)["metadata"]["count"] for name in sorted(store.ids())}


def writing(store: FileStore, names: list[str], timeout: float) -> Iterator[float]:
    """Writes in one thread for each name. Each yield is a moment during these writes."""
    refused: list[str] = []

    def write(name: str) -> None:
        try:
            for _ in range(WRITES):
                store.change(name, counted, timeout=timeout)
        except SessionsError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=write, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        yield time.monotonic()
        time.sleep(0.003)
    for thread in threads:
        thread.join()
    assert refused == []


def child_that_lives_on() -> NoReturn:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    time.sleep(60)
    os._exit(0)


def fork(child: Callable[[], object] = child_that_lives_on) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        child()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001  # the child must not run the rest of the program
        os.write(2, f"in the child: {error!r}\n".encode())
        os._exit(1)


def end(children: list[int]) -> None:
    for pid in children:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def forks(root: str) -> dict[str, object]:
    """Forks children that live on, while threads write."""
    names = [f"of-{number}" for number in range(THREADS)]
    store = store_of(root, *names)
    children: list[int] = []
    for _ in writing(store, names, 0):
        if len(children) < MOST_CHILDREN:
            children.append(fork())
    end(children)
    return counts(store)


def forks_among_waiting(root: str, manner: str) -> dict[str, object]:
    """The same, but all threads write to one session and wait for each other."""
    store = store_of(root, "shared", wait=getattr(locks, manner))
    children: list[int] = []
    for _ in writing(store, ["shared"] * THREADS, 5):
        if len(children) < MOST_CHILDREN:
            children.append(fork())
    end(children)
    return counts(store)


def starts(root: str) -> dict[str, object]:
    """Starts programs that inherit all inheritable descriptors, while threads write."""
    names = [f"of-{number}" for number in range(THREADS)]
    store = store_of(root, *names)
    started: list[subprocess.Popen[bytes]] = []
    for _ in writing(store, names, 0):
        if len(started) < MOST_CHILDREN:
            started.append(subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL))
    for process in started:
        process.kill()
        process.wait()
    return counts(store)


def pools(root: str) -> dict[str, object]:
    """Forks pools while threads write. The workers write to the same sessions."""
    names = [f"of-{number}" for number in range(THREADS)]
    store = store_of(root, *names)
    rounds, workers = 0, multiprocessing.get_context("fork")
    for _ in writing(store, names, 5):
        with workers.Pool(2) as pool:
            pool.starmap(in_worker, [(root, name) for name in names])
        rounds += 1
    return {name: count - rounds for name, count in counts(store).items() if isinstance(count, int)}


def in_worker(root: str, name: str) -> None:
    FileStore(root, durable=False, lock_timeout=5).change(name, counted)


def forks_in_rule(root: str) -> dict[str, object]:
    """Forks a child under a lock. The child writes to another session and to the locked one, and so does the parent."""
    store = store_of(root, "held", "other")
    children: list[int] = []

    def write() -> None:
        store.change("other", counted, timeout=0)
        store.change("held", counted, timeout=5)

    def rule(record: Record) -> Record:
        children.append(fork(write))
        time.sleep(0.2)
        return counted(record)

    store.change("held", rule, timeout=0)
    return {"child": os.waitpid(children[0], 0)[1], **counts(store)}


def returns_from_rule_twice(root: str, manner: str) -> dict[str, object]:
    """A rule forks, and both processes return from it, the child first. The program had to wait for the lock."""
    store, held = store_of(root, "held", wait=getattr(locks, manner)), threading.Event()

    def rule_of_holder(record: Record) -> Record:
        held.set()
        time.sleep(0.3)
        return counted(record)

    holder = threading.Thread(target=store.change, args=("held", rule_of_holder))
    holder.start()
    held.wait()
    parent, (told, tell) = os.getpid(), os.pipe()

    def rule(record: Record) -> Record:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
        return counted(record)

    try:
        store.change("held", rule)
    except SessionsError as error:
        os.write(tell, f"{type(error).__name__}: {error}".encode())
    if os.getpid() != parent:
        os._exit(0)
    os.close(tell)
    store.change("held", counted, timeout=0)
    return {"in the child": os.read(told, 1000).decode(), **counts(store)}


def leaves_key_lock_twice(root: str) -> dict[str, object]:
    """A block under a key lock forks, and the child leaves the block first. The parent keeps the lock."""
    store = store_of(root)
    with store.lock_key(("delegation", "host", "tool")):
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            told, tell = os.pipe()
            os.waitpid(fork(lambda: os.write(tell, tried(store).encode())), 0)
            during = os.read(told, 1000).decode()
    if not pid:
        os._exit(0)
    return {"during": during, "afterwards": tried(store)}


def tried(store: FileStore) -> str:
    try:
        with store.lock_key(("delegation", "host", "tool"), 0):
            return "free"
    except SessionsError as error:
        return type(error).__name__


def holds_beside_child(root: str, *, forks_before_lock: str = "") -> dict[str, object]:
    """Holds a lock, and has a child that was forked during that time, or while the lock file was being opened."""
    store, opening, held = store_of(root, "one"), threading.Event(), threading.Event()

    def rule(record: Record) -> Record:
        held.set()
        time.sleep(60)
        return record

    def hold() -> None:
        opening.set()
        store.change("one", rule, timeout=0)

    threading.Thread(target=hold, daemon=True).start()
    opening.wait()
    if forks_before_lock:
        time.sleep(float(forks_before_lock))
        assert not held.is_set()
    else:
        held.wait()
    child = fork()
    held.wait()
    sys.stdout.write(json.dumps({"holder": os.getpid(), "child": child}) + "\n")
    sys.stdout.flush()
    time.sleep(60)
    return {}


def holds_beside_child_of_opening(root: str) -> dict[str, object]:
    return holds_beside_child(root, forks_before_lock="0.3")


ROLES = {
    role.__name__: role
    for role in (
        forks,
        forks_among_waiting,
        starts,
        pools,
        forks_in_rule,
        returns_from_rule_twice,
        leaves_key_lock_twice,
        holds_beside_child,
        holds_beside_child_of_opening,
    )
}


if __name__ == "__main__":
    json.dump(ROLES[sys.argv[1]](*sys.argv[2:]), sys.stdout)
