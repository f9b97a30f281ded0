"""What one call costs inside a running process.

The yardstick is the plainest code that reads, creates or changes a record durably: it syncs and renames as the store
does, without checks, index, journals and rules.
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
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.session import updates
from gaia_sessions.session.ids import new_agent_id
from gaia_sessions.session.record import new_record
from gaia_sessions.session.transcript import new_message
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now

from . import samples
from .findings import Finding
from .timing import compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record

_BATCHES = 20
_CALLS = 200
_ROUNDS = 81
_LOADS = 100
_CREATIONS = 5
_UPDATES = 5
_READS = 20
_MESSAGES = 10_000


def resume(folder: str) -> Iterator[Finding]:
    """Measures ``should_resume`` from a project, without naming the root: the median of the calmest batch."""
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


def load(folder: str) -> Iterator[Finding]:
    """Measures reading one session, compared with opening, reading and parsing its file."""
    _, store = samples.project(folder)
    agent_id = samples.create_paused(store, utc_now())
    path = os.path.join(store.root, agent_id, "state.json")

    def read_session() -> None:
        for _ in range(_LOADS):
            store.read(agent_id)

    def read_bare() -> None:
        for _ in range(_LOADS):
            bare_load(path)

    ratio = compare(_ROUNDS, lambda _: (read_session, read_bare))
    yield Finding("load: CPU of opening, reading and parsing alone", ratio.cpu, 3.0)


def create(folder: str) -> Iterator[Finding]:
    """Measures a durable creation, compared with the plainest code that creates such a record."""
    _, store = samples.project(folder)
    sessions = Sessions(store.root)
    bare = os.path.join(folder, "bare")
    os.mkdir(bare)
    sessions.create(samples.AGENT, "approval_workflow", samples.METADATA)

    def create_sessions() -> None:
        for _ in range(_CREATIONS):
            sessions.create(samples.AGENT, "approval_workflow", samples.METADATA)

    def create_bare() -> None:
        for _ in range(_CREATIONS):
            _bare_create(bare)

    ratio = compare(_ROUNDS, lambda _: (create_sessions, create_bare))
    yield Finding("durable creation: time of a bare one", ratio.wall, 2.0)
    yield Finding("durable creation: CPU of a bare one", ratio.cpu, 4.0)


def update(folder: str) -> Iterator[Finding]:
    """Measures a durable update of one session, compared with the plainest code for a copy of its file."""
    _, store = samples.project(folder)
    agent_id = samples.create_paused(store, utc_now())
    sessions = Sessions(store.root)
    copy = os.path.join(folder, "bare")
    shutil.copytree(os.path.join(store.root, agent_id), copy)
    os.sync()

    def update_session(number: int) -> None:
        for step in range(_UPDATES):
            sessions.update(agent_id, "approval", {"step": [number, step]})

    def update_bare_copy(number: int) -> None:
        for step in range(_UPDATES):
            _bare_update(copy, {"step": [number, step]})

    ratio = compare(_ROUNDS, lambda number: (partial(update_session, number), partial(update_bare_copy, number)))
    yield Finding("durable update: time of a bare one", ratio.wall, 2.0)
    yield Finding("durable update: CPU of a bare one", ratio.cpu, 1.4)


def long_history(folder: str) -> Iterator[Finding]:
    """Measures a record with as many moves as are stored, compared with none, without syncs, which would hide it."""
    _, store = samples.project(folder)
    sessions = Sessions(store.root, {"durability": "fast"})
    long, short = (samples.create_moved(store, utc_now(), moves) for moves in (updates.MAX_HISTORY, 0))

    def read(agent_id: str) -> None:
        for _ in range(_READS):
            get_session(agent_id, root=store.root)

    def write(agent_id: str) -> None:
        for step in range(_READS):
            sessions.update(agent_id, metadata={"step": step})

    for what, act, limit in (("read", read, 6.0), ("update without fsync", write, 3.0)):
        ratio = compare(_ROUNDS, lambda _, act=act: (partial(act, long), partial(act, short)))  # type: ignore[misc]  # a default binds act
        yield Finding(f"{what}, 200 moves: CPU of one without", ratio.cpu, limit)


def transcript(folder: str) -> Iterator[Finding]:
    """Measures the last messages of a long transcript, and one more message, without syncs, which would hide it."""
    _, store = samples.project(folder)
    sessions = Sessions(store.root, {"durability": "fast"})
    long, short = (_create_with_messages(sessions, number) for number in (_MESSAGES, 10))
    calmest = min(_median_of_reading(sessions, long) for _ in range(_BATCHES))
    yield Finding("last 20 of 10,000 messages in process, median", calmest * 1000, 2.0, "ms")

    def add(agent_id: str) -> None:
        for _ in range(_UPDATES):
            sessions.add_message(agent_id, "user", "one more message")

    ratio = compare(_ROUNDS, lambda _: (partial(add, long), partial(add, short)))
    yield Finding("a message behind 10,000: CPU of one behind 10", ratio.cpu, 1.2)


def _create_with_messages(sessions: Sessions, number: int) -> str:
    agent_id = sessions.create(samples.AGENT, "talk")
    said = [new_message("assistant", f"message {each} " + "x" * 500, utc_now()) for each in range(number)]
    with FileStore(sessions.root).open(agent_id) as session:
        session.commit(session.record, messages=said)
    return agent_id


def _median_of_reading(sessions: Sessions, agent_id: str) -> float:
    taken = []
    for _ in range(_READS):
        began = time.perf_counter()
        found = list(sessions.messages(agent_id, last=20))
        taken.append(time.perf_counter() - began)
        if len(found) != 20:  # noqa: PLR2004  # as many as requested
            raise RuntimeError("20 messages were expected")
    return median(taken)


def bare_load(path: str) -> Record:
    """Returns the record at ``path``, by the plainest code."""
    with open(path, "rb") as file:
        record: Record = json.loads(file.read())
    return record


def _bare_create(root: str) -> None:
    now = utc_now()
    record = new_record(new_agent_id(now, os.urandom), samples.AGENT, "approval_workflow", samples.METADATA, now)
    folder = os.path.join(root, record["agent_id"])
    staged = f"{folder}.tmp"
    os.mkdir(staged, 0o700)
    _write_synced(os.path.join(staged, "state.json"), record)
    _sync(staged)
    os.rename(staged, folder)
    _sync(root)


def _bare_update(folder: str, metadata: dict[str, Json]) -> None:
    path = os.path.join(folder, "state.json")
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = bare_load(path)
        record["metadata"].update(metadata)
        record["revision"] += 1
        record["last_updated"] = utc_now().isoformat()
        temporary = f"{path}.tmp"
        _write_synced(temporary, record)
        os.rename(temporary, path)
        _sync(folder)
    finally:
        os.close(lock)


def _write_synced(path: str, record: Record) -> None:
    with open(path, "wb") as file:
        file.write(json.dumps(record, indent=2).encode())
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
