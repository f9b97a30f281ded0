"""Storms over a server: it is killed, its backends are terminated, a proxy cuts. Nothing is lost or done twice."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from gaia_sessions import Sessions
from gaia_sessions.errors import SessionsError
from gaia_sessions.postgres.setup import init
from gaia_sessions.postgres.store import PostgresStore
from gaia_sessions.session.tree_limits import MAX_CHILDREN_AT_WORK
from tests import servers
from tests.faults.proxy import Proxy
from tests.faults.server_worker import KB
from tests.forks import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.store.port import Entry

    Fault = Callable[[], object]

WORKER = str(Path(__file__).with_name("server_worker.py"))
ROLES = ("counts", "adds", "writes", "creates", "sends")
SIZES = [pytest.param(4, 30, 3, marks=pytest.mark.slow), pytest.param(8, 200, 50, marks=pytest.mark.thorough)]
"""How many writers, how many acts of each of them, and how many faults."""


class Storm:
    """Writers of one role. ``outcomes`` are what each act came to; a fault comes each time some more acts ended."""

    def __init__(self, role: str, url: str, writers: int, times: int) -> None:
        self.outcomes: dict[str, list[tuple[str, str]]] = {f"w{number}": [] for number in range(writers)}
        self._all, self._ended = writers * times, 0
        self._more = threading.Condition()
        self._running = {me: self._start(role, url, me, times) for me in self.outcomes}
        self._errors: dict[str, str] = {}
        self._readers = [threading.Thread(target=self._read, args=(me,)) for me in self.outcomes]
        for reader in self._readers:
            reader.start()

    def _start(self, role: str, url: str, me: str, times: int) -> subprocess.Popen[str]:
        words = [sys.executable, WORKER, role, url, me, str(times)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _read(self, me: str) -> None:
        running = self._running[me]
        assert running.stdout
        assert running.stderr
        for line in running.stdout:
            outcome, name = line.split()
            with self._more:
                self.outcomes[me].append((outcome, name))
                self._ended += 1
                self._more.notify()
        with self._more:
            self._errors[me] = running.stderr.read()
            self._more.notify()

    def blow(self, fault: Fault, faults: int) -> None:
        """Calls ``fault`` after each equal share of the acts, and waits for the end. No writer may fail."""
        for number in range(1, faults + 1):
            with self._more:
                due = number * self._all // (faults + 1)
                while self._ended < due and not self._errors:
                    self._more.wait()
            fault()
        for me, running in self._running.items():
            self._readers[int(me[1:])].join()
            assert running.wait(PATIENCE) == 0, self._errors[me][-3000:]

    def names(self, me: str, *outcomes: str) -> list[str]:
        return [name for outcome, name in self.outcomes[me] if outcome in outcomes]

    def end(self) -> None:
        for running in self._running.values():
            running.kill()
            running.communicate()


@pytest.fixture
def server() -> Iterator[servers.Server]:
    """A server that may be killed, with one session that all writers share."""
    if not servers.PROGRAMS:
        pytest.skip("PostgreSQL is not installed")
    server = servers.Server()
    init(server.url)
    Sessions(server.url).create("worker", agent_id="shared", app="kb", user="u1")
    yield server
    server.remove()


@pytest.fixture
def storm(server: servers.Server) -> Iterator[Callable[..., Storm]]:
    storms: list[Storm] = []

    def start(role: str, writers: int, times: int, url: str = server.url) -> Storm:
        if role == "sends":
            for number in range(writers):
                Sessions(server.url).create("worker", agent_id=f"talk-w{number}")
        storms.append(Storm(role, url, writers, times))
        return storms[-1]

    yield start
    for one in storms:
        one.end()


def check(role: str, storm: Storm, url: str) -> None:
    """What is acknowledged is there once, what was refused is not there, and the rest is there once or not at all."""
    store = PostgresStore(url)
    came_to = Counter(outcome for outcomes in storm.outcomes.values() for outcome, _ in outcomes)
    assert came_to["done"] > came_to.total() // 2
    for me in storm.outcomes:
        done, refused, unknown = (storm.names(me, one) for one in ("done", "refused", "unknown"))
        for count in CHECKS[role](store, me, done, refused):
            assert len(done) <= count <= len(done) + len(unknown), (me, count, Counter(storm.outcomes[me]))


def _counted(store: PostgresStore, me: str, _done: list[str], _refused: list[str]) -> list[int]:
    noted = [one["n"] for one in _entries(store, "shared") if one.get("by") == me]
    assert noted == [*range(1, len(noted) + 1)]
    return [store.read("shared")["metadata"].get(me, 0), len(noted)]  # type: ignore[list-item]  # a number


def _added(store: PostgresStore, me: str, _done: list[str], _refused: list[str]) -> list[int]:
    state = Sessions(store.root).state("shared")["state"]
    return [state.get(key, 0) for key in (me, f"app:{me}", f"user:{me}")]  # type: ignore[misc]  # numbers


def _written(store: PostgresStore, me: str, _done: list[str], _refused: list[str]) -> list[int]:
    document = store.document(KB)
    return [document["state"].get(me, 0) if document else 0]  # type: ignore[list-item]  # a number


def _created(store: PostgresStore, me: str, done: list[str], refused: list[str]) -> list[int]:
    made = [one["agent_id"] for one in store.children(["shared"]) if one["agent_id"].startswith(f"{me}-")]
    assert {*done} <= {*made}
    assert not {*refused} & {*made}
    assert len(made) == len({*made})
    assert len(store.children(["shared"], open_only=True)) <= MAX_CHILDREN_AT_WORK
    return [len(made)]


def _sent(store: PostgresStore, me: str, done: list[str], refused: list[str]) -> list[int]:
    said = [one["content"] for one in store.messages(f"talk-{me}") if not isinstance(one, SessionsError)]
    asked = said[::2]
    assert said[1::2] == [f"answer to {one}" for one in asked]
    assert sorted(asked, key=lambda one: int(one.split(".")[1])) == asked
    assert {*done} <= {*asked}
    assert not {*refused} & {*asked}
    assert store.read(f"talk-{me}")["turns"] == len(asked) == len({*asked})
    return [len(asked)]


def _entries(store: PostgresStore, agent_id: str) -> list[Entry]:
    return [one for one in store.entries(agent_id, "events.jsonl") if isinstance(one, dict)]


CHECKS = {"counts": _counted, "adds": _added, "writes": _written, "creates": _created, "sends": _sent}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("writers", "times", "kills"), SIZES)
def test_nothing_is_lost_or_doubled_by_a_killed_server(
    server: servers.Server, storm: Callable[..., Storm], role: str, writers: int, times: int, kills: int
) -> None:
    blown = storm(role, writers, times)

    def kill() -> None:
        server.kill()
        server.start()

    blown.blow(kill, kills)
    check(role, blown, server.url)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("writers", "times", "faults"), SIZES)
def test_nothing_is_lost_or_doubled_by_terminated_backends(
    server: servers.Server, storm: Callable[..., Storm], role: str, writers: int, times: int, faults: int
) -> None:
    blown = storm(role, writers, times)

    def terminate() -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    blown.blow(terminate, 5 * faults)
    check(role, blown, server.url)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("writers", "times", "_faults"), SIZES)
def test_nothing_is_lost_or_doubled_by_a_proxy_that_cuts_at_random(
    server: servers.Server, storm: Callable[..., Storm], role: str, writers: int, times: int, _faults: int
) -> None:
    proxy, seed = Proxy(server.folder), random.randrange(1 << 32)  # shown if the test fails
    proxy.cut_often(0.2, seed)
    blown = storm(role, writers, times, proxy.url)
    blown.blow(lambda: None, 0)
    proxy.close()
    check(role, blown, server.url)
    assert sum(proxy.cuts.values()) > writers * times // 10
