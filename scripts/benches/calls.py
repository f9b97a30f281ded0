"""What one call costs inside a running process.

Owns the yardstick of a durable write: the plainest code that locks, reads, writes whole, syncs, renames
and syncs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from functools import partial
from statistics import median

from gaia_sessions import get_session, should_resume
from gaia_sessions.api import Sessions
from gaia_sessions.session import updates
from gaia_sessions.session.clock import utc_now
from gaia_sessions.session.requests import Update

from . import samples
from .findings import Finding
from .timing import compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCHES = 20
_CALLS = 200
_ROUNDS = 81
_UPDATES = 5
_READS = 20


def resume(folder: str) -> Iterator[Finding]:
    """The question that counts, as a program asks it: from its project, without naming the root.

    The median of the calmest batch: what others do on this machine only adds to it.
    """
    project, store = samples.project(folder)
    agent_id = samples.create_paused(store, utc_now())
    with contextlib.chdir(project):
        calmest = min(_median_of_a_batch(agent_id) for _ in range(_BATCHES))
    yield Finding("should_resume in process, median", calmest * 1000, 0.2, "ms")


def _median_of_a_batch(agent_id: str) -> float:
    taken = []
    for _ in range(_CALLS):
        began = time.perf_counter()
        may_resume = should_resume(agent_id)
        taken.append(time.perf_counter() - began)
        if not may_resume:
            raise RuntimeError("a session that may be resumed was expected")
    return median(taken)


def update(folder: str) -> Iterator[Finding]:
    """A durable update of one session, against the plainest code for a copy of its file."""
    _, store = samples.project(folder)
    agent_id = samples.create_paused(store, utc_now())
    sessions = Sessions(store.root)
    copy = os.path.join(folder, "bare")
    shutil.copytree(os.path.join(store.root, agent_id), copy)
    os.sync()

    def update_session(number: int) -> None:
        for step in range(_UPDATES):
            sessions.update(agent_id, Update("approval", {"step": [number, step]}))

    def update_bare_copy(number: int) -> None:
        for step in range(_UPDATES):
            _bare_update(copy, {"step": [number, step]})

    ratio = compare(_ROUNDS, lambda number: (partial(update_session, number), partial(update_bare_copy, number)))
    yield Finding("durable update: time of a bare one", ratio.wall, 2.0)
    yield Finding("durable update: CPU of a bare one", ratio.cpu, 1.4)


def long_history(folder: str) -> Iterator[Finding]:
    """What a record with as many moves as are kept costs, in records without one; syncing would hide it."""
    _, store = samples.project(folder)
    sessions = Sessions(store.root, {"durability": "fast"})
    long, short = (samples.create_moved(store, utc_now(), moves) for moves in (updates.MAX_HISTORY, 0))

    def read(agent_id: str) -> None:
        for _ in range(_READS):
            get_session(agent_id, root=store.root)

    def write(agent_id: str) -> None:
        for step in range(_READS):
            sessions.update(agent_id, Update(metadata={"step": step}))

    for what, act, limit in (("read", read, 6.0), ("update without fsync", write, 3.0)):
        ratio = compare(_ROUNDS, lambda _, act=act: (partial(act, long), partial(act, short)))  # type: ignore[misc]
        yield Finding(f"{what}, 200 moves: CPU of one without", ratio.cpu, limit)


def _bare_update(folder: str, metadata: dict[str, object]) -> None:
    path = os.path.join(folder, "state.json")
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(path, "rb") as file:
            record = json.loads(file.read())
        record["metadata"].update(metadata)
        record["revision"] += 1
        record["last_updated"] = utc_now().isoformat()
        temporary = f"{path}.tmp"
        with open(temporary, "wb") as file:
            file.write(json.dumps(record, indent=2).encode())
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
        directory = os.open(folder, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
    finally:
        os.close(lock)
