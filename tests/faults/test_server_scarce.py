"""A full disk under the server, and a server that restarts while other machines reconcile."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from gaia_sessions import Sessions, SubAgentSession
from gaia_sessions.errors import DurabilityUnknown, StoreFailure
from gaia_sessions.postgres import transaction
from gaia_sessions.postgres.setup import init
from gaia_sessions.postgres.store import PostgresStore
from gaia_sessions.session.record import new_record
from gaia_sessions.session.updates import Change
from tests import servers
from tests.faults.test_server_storms import Storm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gaia_sessions.session.schema import Record

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)
MIB = 1 << 20
CHILDREN = 200
ROOM = 120
"""MiB of the disk."""


@pytest.fixture
def server() -> Iterator[servers.Server]:
    if not servers.PROGRAMS:
        pytest.skip("PostgreSQL is not installed")
    server = servers.Server("min_wal_size = 32MB", "max_wal_size = 48MB")
    init(server.url)
    yield server
    with suppress(AssertionError):
        server.stop("immediate")
    server.remove()


@pytest.fixture
def disk(server: servers.Server, tmp_path: Path) -> Iterator[str]:
    """A small disk that has all files of the server."""
    disk = str(tmp_path / "disk")
    os.mkdir(disk)
    words = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}m,mode=0700", "none", disk]
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a small disk: {mounted.stderr.strip()}")
    subprocess.run(["umount", disk], check=True)
    server.stop()
    data = f"{server.folder}/data"
    os.rename(data, f"{server.folder}/old")
    os.mkdir(data)
    subprocess.run([*words[:-1], data], check=True)
    subprocess.run(["cp", "-a", f"{server.folder}/old/.", data], check=True)
    server.start()
    yield data
    with suppress(AssertionError):
        server.stop("immediate")
    subprocess.run(["umount", "--lazy", data], check=True)


def fill(disk: str, left: int) -> str:
    """Leaves ``left`` bytes on the disk; returns the file to remove."""
    found = os.statvfs(disk)
    path = f"{disk}/ballast"
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, found.f_bavail * found.f_frsize - left))
    return path


def noted(store: PostgresStore) -> list[object]:
    return [one["n"] for one in store.entries("one", "events.jsonl") if isinstance(one, dict)]


def outcome_of(store: PostgresStore, number: int) -> str:
    """Writes an entry of 40 kB with this number."""

    def rule(record: Record) -> Change:
        return Change({**record, "purpose": str(number)}, [{"n": number, "text": os.urandom(20_000).hex()}])

    try:
        store.change("one", rule)
    except DurabilityUnknown:
        return "unknown"
    except StoreFailure:
        return "refused"
    return "done"


@pytest.mark.parametrize("left", [0, 2 * MIB, 20 * MIB])
def test_a_full_disk_refuses_writes_and_loses_none(
    server: servers.Server, disk: str, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little room the tables are full first, else the log of the server, which then stops until there is room."""
    monkeypatch.setattr(transaction, "_SECONDS_TO_SETTLE", 2.0)
    store = PostgresStore(server.url, lock_timeout=0.5)
    store.create(new_record("one", "worker", "", {}, NOW))
    done: list[object] = []
    unsure: list[object] = []
    ballast = fill(disk, left)
    refused = 0
    for number in range(2000):
        outcome = outcome_of(store, number)
        if outcome == "done":
            done.append(number)
        elif outcome == "unknown":
            unsure.append(number)
        refused += outcome == "refused"
        if unsure or refused == 3:
            break
    assert unsure or refused
    os.unlink(ballast)
    with suppress(AssertionError):  # it runs
        server.start()
    store = PostgresStore(server.url)
    found = noted(store)
    assert found in (done, [*done, *unsure])
    assert store.change("one", lambda record: {**record, "purpose": "there is room"})["purpose"] == "there is room"


def test_a_server_that_restarts_while_others_reconcile_ends_each_session_once_and_no_live_run(
    server: servers.Server,
) -> None:
    sessions, may_answer = Sessions(server.url), threading.Event()
    sessions.create("worker", agent_id="above")
    with sessions.store as store:
        for number in range(CHILDREN):
            store.create({**new_record(f"child-{number}", "worker", "", {}, NOW), "parent_id": "above"})
    sessions.create("worker", agent_id="alive")
    sessions.cancel("above")
    answers: list[Any] = []
    talk = SubAgentSession(lambda _: may_answer.wait() and "answered", agent_id="alive", root=server.url)
    sender = threading.Thread(target=lambda: answers.append(talk.send("hello")))
    sender.start()
    storm = Storm("reconciles", server.url, 2, CHILDREN // 2)

    def restart() -> None:
        server.kill()
        server.start()
        with psycopg.connect(server.url) as connection:  # as if the server had been down for long
            connection.execute("UPDATE gaia_sessions.lease SET until = until - interval '1 hour'")

    try:
        storm.blow(restart, 3)
    finally:
        storm.end()
        may_answer.set()
        sender.join()
    ended = [name for me in storm.outcomes for name in storm.names(me, "done") if name.startswith("child-")]
    children = [f"child-{number}" for number in range(CHILDREN)]
    assert {*ended} <= {*children}
    store = PostgresStore(server.url)
    assert [store.read(child)["revision"] for child in children] == [2] * CHILDREN
    assert [turn["text"] for turn in answers] == ["answered"]
    assert [run["end"] for run in store.read("alive")["runs"]] == ["returned"]
