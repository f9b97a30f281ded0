"""What the store on a server costs: with many sessions compared with few, and with many writers compared with files.

The server and the files are on one disk. The server is the measurement's own.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from statistics import median
from unittest.mock import patch

from gaia_sessions.api import at, records
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.session.index_keys import keys_of
from gaia_sessions.session.updates import with_activity, with_metadata
from gaia_sessions.system import utc_now

from . import samples
from .findings import Finding
from .timing import compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store
    from tests.servers import Server

    from .timing import Act

_MANY, _FEW, _OPEN = 100_000, 1_000, 50
_OLD = timedelta(hours=48)
_ROWS_AT_ONCE = 1_000
_ROUNDS = 61

_WRITERS = 8
_SLICE = 2
"""Seconds for which all write."""

_SLICES = 9
_COMMIT_DELAY = 2_000
"""Microseconds for which the server waits for other commits before a sync."""

_INSERT = """
WITH new AS (
    INSERT INTO gaia_sessions.session (id, revision, record)
    SELECT id, %s, record FROM unnest(%s::text[], %s::text[]) AS made (id, record)
    RETURNING incarnation, id
)
INSERT INTO gaia_sessions.session_key (key, incarnation)
SELECT key, incarnation FROM unnest(%s::bytea[], %s::text[]) AS made (key, id) JOIN new USING (id)
"""


def server(folder: str) -> Iterator[Finding]:
    """Measures a server."""
    with started(folder) as own:
        if own is not None:
            yield from _of_many(own)
            yield from _of_writers(own, folder)


@contextmanager
def started(folder: str) -> Iterator[Server | None]:
    """Starts a server beside ``folder``; if there is none, prints that nothing is measured."""
    try:
        from tests.servers import PROGRAMS, Server
    except ModuleNotFoundError as missing:
        print(f"server: not measured; {missing.name} is not installed", file=sys.stderr)
        yield None
        return
    if not PROGRAMS:
        print("server: not measured; PostgreSQL is not installed", file=sys.stderr)
        yield None
        return
    own = Server(fsync=True, above=os.path.dirname(folder))
    try:
        yield own
    finally:
        own.remove()


def _of_many(own: Server) -> Iterator[Finding]:
    """Measures acts on few open sessions among many that have ended, compared with few that have ended."""
    many, few = (_acts(*_database(own, name, size)) for name, size in (("many", _MANY), ("few", _FEW)))
    for name, act in many.items():
        ratio = compare(_ROUNDS, lambda _, act=act, other=few[name]: (act, other))  # type: ignore[misc]  # bound now
        yield Finding(f"{name} on a server, {_OPEN} of {_MANY}: time with {_FEW}", ratio.wall, 1.5)


def _database(own: Server, name: str, size: int) -> tuple[str, Record]:
    """Returns the URL of a new database with ``size`` sessions, of which few are open; and one that has ended."""
    from gaia_sessions.postgres.setup import init

    own.execute(f"CREATE DATABASE {name}")
    url = own.url.replace("/postgres?", f"/{name}?")
    init(url)
    store, now = Sessions(url).store, utc_now()
    for _ in range(_OPEN // 2):
        samples.create_paused(store, now)
    ended = store.read(samples.create_run(store, now - _OLD))
    for first in range(1, size - _OPEN, _ROWS_AT_ONCE):
        _copy(url, ended, range(first, min(first + _ROWS_AT_ONCE, size - _OPEN)))
    for _ in range(_OPEN // 2):
        samples.create_paused(store, now)
    _execute(url, "VACUUM ANALYZE")  # as the server does by itself after a while
    return url, ended


def _copy(url: str, record: Record, numbers: Sequence[int]) -> None:
    """Inserts copies of a session that has ended, with the keys that ``create`` gives them."""
    from gaia_sessions.postgres.reader import digest_of

    own = record["agent_id"][:-1]  # also in the IDs of the host
    text, keys = (json.dumps(one, ensure_ascii=False) for one in (record, keys_of(record)))
    ids = [f"old-{number}-{record['agent_id'][-1]}" for number in numbers]
    texts = [text.replace(own, agent_id[:-1]) for agent_id in ids]
    found = [(digest_of(key), one) for one in ids for key in json.loads(keys.replace(own, one[:-1]))]
    values = record["revision"], ids, texts, [key for key, _ in found], [agent_id for _, agent_id in found]
    _execute(url, _INSERT, values)


def _execute(url: str, sql: str, values: Sequence[object] = ()) -> None:
    from gaia_sessions.postgres.connections import execute, server_of, with_values

    with server_of(url).connection(time.monotonic() + 1) as connection:
        execute(connection, with_values(connection, sql, values))


def _acts(url: str, ended: Record) -> dict[str, Act]:
    sessions = Sessions(url)
    one = next(sessions.list(active_only=True))["agent_id"]
    run = ended["runs"][-1]

    def list_active() -> None:
        if len(list(sessions.list(active_only=True))) != _OPEN:
            raise RuntimeError(f"{_OPEN} sessions were expected")

    def ask() -> None:
        if len(sessions.pending()) != _OPEN:
            raise RuntimeError(f"{_OPEN} sessions were expected to wait")

    return {
        "list --active-only": list_active,
        "pending": ask,
        "update": lambda: sessions.update(one, "approval", {"step": time.monotonic()}),
        "look-up by key": lambda: at.write(
            sessions, records.id_of_host_agent, run["host_session_id"], run["host_agent_id"]
        ),
    }


def _of_writers(own: Server, folder: str) -> Iterator[Finding]:
    """Measures the updates of many writers, compared with those on files, and with the same statements by pgbench."""
    from gaia_sessions.postgres.setup import init

    init(own.url)
    files = os.path.join(folder, "files")
    script = os.path.join(folder, "update.sql")
    with open(script, "w", encoding="utf-8") as file:
        file.write(_script(own.url))
    writers = _Writers()
    ratio = _in_turn(partial(writers.rate, files), partial(writers.rate, own.url))
    yield Finding(f"updates of {_WRITERS} writers on a server: time of files", ratio, 0.5)
    own.execute(f"ALTER SYSTEM SET commit_delay = {_COMMIT_DELAY}")
    own.execute("SELECT pg_reload_conf()")
    ratio = _in_turn(partial(_rate_of_pgbench, own.url, script), partial(writers.rate, own.url))
    yield Finding(f"updates of {_WRITERS} writers, commit_delay 2 ms: time of pgbench", ratio, 2.0)
    writers.end()


def _in_turn(first: Callable[[], float], second: Callable[[], float]) -> float:
    """Returns the median of how many times as many updates a second the ``first`` has as the ``second``."""
    ratios = []
    for number in range(_SLICES):
        if number % 2:
            ratios.append(first() / second())
        else:
            rate = second()
            ratios.append(first() / rate)
    return median(ratios)


class _Writers:
    """Processes that each update a session of their own."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(_WRITERS)]
        self._ends = [own for own, _ in pairs]
        for _, theirs in pairs:
            context.Process(target=_write, args=(theirs,), daemon=True).start()

    def rate(self, root: str) -> float:
        """Returns how many updates a second all make together."""
        for end in self._ends:
            end.send(root)
        made: list[int] = [end.recv() for end in self._ends]
        return sum(made) / _SLICE

    def end(self) -> None:
        """Ends the processes."""
        for end in self._ends:
            end.send(None)


def _write(end: Connection) -> None:
    """Updates a session in each root that it is told, for a while, and tells how often."""
    while root := end.recv():
        with Sessions(root).store as store:
            agent_id = samples.create_paused(store, utc_now())
            until, number = time.monotonic() + _SLICE, 0
            while time.monotonic() < until:
                number += 1
                _update(store, agent_id, number)
        end.send(number)


def _update(store: Store, agent_id: str, number: int) -> Record:
    return store.change(agent_id, lambda record: with_activity(with_metadata(record, {"step": number}), utc_now()))


def _script(url: str) -> str:
    """Returns the statements of one update as a script of pgbench, for a session of each client."""
    from gaia_sessions.postgres import connections, transaction

    sent = []

    def execute(connection: connections.Connection, sql: str, **seconds: float) -> object:
        sent.append(sql)
        return connections.execute(connection, sql, **seconds)

    store = Sessions(url).store
    agent_id = samples.create_paused(store, utc_now())
    for client in range(_WRITERS):
        store.create({**store.read(agent_id), "agent_id": f"client-{client}"})
    with patch.object(transaction, "execute", execute):
        _update(store, agent_id, 1)
    read, write = (sql.replace("; ", "\\; ") for sql in sent)
    read = read.replace(f"id = '{agent_id}'", "id = 'client-' || :client_id")
    write = re.sub(r"incarnation = \d+", "incarnation = :incarnation", write)
    write = re.sub(r"committed \(id\) VALUES \('[^']+'\)", "committed (id) VALUES (gen_random_uuid())", write)
    return f"{read} \\gset\n{write};\n"


def _rate_of_pgbench(url: str, script: str) -> float:
    command = ["pgbench", "-n", "-f", script, "-c", str(_WRITERS), "-j", "2", "-T", str(_SLICE), url]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(re.findall(r"tps = ([\d.]+)", ended.stdout)[-1])
