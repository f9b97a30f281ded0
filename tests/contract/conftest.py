"""All stores and plans that the contract tests run on. To test a new store, add one line to ``STORES``.

``test_machine`` uses the stores and a plan at random.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api.foresight import foreseen
from gaia_sessions.config import Config
from gaia_sessions.errors import SessionNotFound
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.store import locks
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.planned import Plan
from tests.memory_store import MemoryStore
from tests.removals import deleted
from tests.roles import WORKER, empty_url_of
from tests.servers import empty_pooled_url, empty_url

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Entry, IsWanted, Messages, RecordOrError, Store

    New = Callable[..., Record]

BEGAN = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)


class ReadThroughPlan:
    """A store that answers the methods of ``Reader`` through a plan."""

    def read(self, agent_id: str) -> Record:
        return self._foreseen().read(agent_id)

    def scan(self, **asked: Any) -> Iterator[tuple[str, RecordOrError]]:
        return self._foreseen().scan(**asked)

    def children(self, parent_ids: Collection[str], *, open_only: bool = False) -> list[Record]:
        return self._foreseen().children(parent_ids, open_only=open_only)

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        return self._foreseen().messages(agent_id, is_wanted=is_wanted)

    def messages_backwards(self, agent_id: str) -> Messages:
        return self._foreseen().messages_backwards(agent_id)

    def messages_from_turn(self, agent_id: str, turn: int) -> Messages:
        return self._foreseen().messages_from_turn(agent_id, turn)

    def marks(self, agent_ids: Iterable[str]) -> list[tuple[str, Mark]]:
        return self._foreseen().marks(agent_ids)

    def entries(self, agent_id: str, journal: str) -> Iterator[Json | SessionsError]:
        return self._foreseen().entries(agent_id, journal)

    def figures(self) -> Iterator[dict[str, Json] | None]:
        return self._foreseen().figures()

    def output(self, record: Record, number: int) -> bytes:
        return self._foreseen().output(record, number)

    def _foreseen(self) -> Plan:
        kind: Any = FileStore if isinstance(self, FileStore) else MemoryStore
        stored = kind.__new__(kind)
        stored.__dict__ = self.__dict__
        return foreseen(stored, BEGAN, Config({}))


class FilesReadThroughPlan(ReadThroughPlan, FileStore): ...


class MemoryReadThroughPlan(ReadThroughPlan, MemoryStore): ...


class PlanOverNewSessions(Plan):
    """A plan that creates new sessions in the store below and plans every later change."""

    _store: Store

    def create(self, record: Record, entry: Entry | None = None, **asked: Any) -> None:
        if self.has(record["agent_id"]) or self._store.has(record["agent_id"]):
            super().create(record, entry, **asked)
        else:
            self._store.create(record, entry, **asked)
            self._stored_by_key = {}


def plan_over_removed(below: Store) -> Plan:
    """Returns a plan that deletes all sessions below, which have the IDs and keys of the tests."""
    runs: list[Run] = [{"run": 1, "host_session_id": "host", "tool_use_id": "tool", "host_agent_id": "child"}]
    for agent_id in ("agent-1", "agent-2", "agent-12"):
        below.create({**new_record(agent_id, "Explore", "below", {}, BEGAN), "runs": runs}, {"below": True})
        below.mark(agent_id, lambda _: {"at": format_time(BEGAN), "below": True})
    plan = Plan(below)
    for agent_id in below.ids():
        deleted(plan, agent_id, lambda _found: True)
    return plan


def files_waiting_by_sleep(folder: Path) -> Store:
    return FileStore(f"{folder}/root", wait=locks.sleep_and_retry)


def postgres_store(url: str) -> Store:
    from gaia_sessions.postgres.store import PostgresStore  # without psycopg, ``url`` has skipped the test

    return PostgresStore(url)


STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _folder: MemoryStore(),
    "files": lambda folder: FileStore(f"{folder}/root", wait=locks.wait_with_filelock),
    "postgres": lambda _folder: postgres_store(empty_url()),
    "memory, read through a plan": lambda _folder: MemoryReadThroughPlan(),
    "files, read through a plan": lambda folder: FilesReadThroughPlan(f"{folder}/root"),
}
PLANS: dict[str, Callable[[Path], Any]] = {
    "a plan over nothing": lambda _folder: Plan(MemoryStore()),
    "a plan over new sessions in memory": lambda _folder: PlanOverNewSessions(MemoryStore()),
    "a plan over new sessions in files": lambda folder: PlanOverNewSessions(FileStore(f"{folder}/root")),
    "a plan over deleted sessions": lambda folder: plan_over_removed(FileStore(f"{folder}/root", durable=False)),
}
"""Plans write nothing. They have all that ingest, reconcile and cleanup call, and all reads."""


SLOW_STORES: dict[str, Callable[[Path], Store]] = {
    "postgres, through a pooler": lambda _folder: postgres_store(empty_pooled_url()),
    "postgres, as a worker": lambda _folder: postgres_store(empty_url_of(WORKER)),
}
_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in SLOW_STORES]


@pytest.fixture(params=[*STORES, *PLANS, *_SLOW])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return {**STORES, **PLANS, **SLOW_STORES}[request.param](tmp_path)


not_planned = pytest.mark.parametrize("store", [*STORES, *_SLOW], indirect=True)
"""For what plans do not have, and for tests that change a record in place: a plan returns the records that it holds."""


def in_every_state(store: Store) -> Iterator[None]:
    """Brings ``store`` into each state of its index in turn. The answers must be the same."""
    for state in STATES:
        bring_into(store, state)
        yield


STATES = ("with its index", "without index", "with a new index")


def bring_into(store: Store, state: str) -> None:
    if isinstance(store, FileStore) and state != "with its index":
        shutil.rmtree(f"{store.root}/.index", ignore_errors=True)
        store.close()  # so the next call sees that the index is gone
    if state == "with a new index":
        store.ensure_index()


def finished(record: Record) -> Record:
    return {**record, "phase": "completed"}


def noted(record: Record) -> Record:
    return {**record, "metadata": {**record["metadata"], "noted": True}}


def untouched(record: Record) -> Record:
    return record


def agree(_found: object) -> bool:
    return True


def never(_found: object) -> Any:
    raise AssertionError("this must not be called")


def everything(store: Store) -> dict[str, object]:
    return dict(store.scan())


def check_missing(store: Store, agent_id: str) -> None:
    """Checks that no method finds a session with that ID."""
    asked: list[Callable[[], object]] = [
        lambda: store.read(agent_id),
        lambda: store.change(agent_id, never),
        lambda: store.append(agent_id, "events.jsonl", [{}]),
        lambda: list(store.entries(agent_id, "events.jsonl")),
        lambda: deleted(store, agent_id, never),
    ]
    for ask in asked:
        with pytest.raises(SessionNotFound):
            ask()


@pytest.fixture
def began() -> datetime:
    """The time when every record of these tests was created."""
    return BEGAN


@pytest.fixture
def new() -> New:
    """Makes the record of a new session, with ``changes``."""

    def make(agent_id: str = "agent-1", metadata: dict[str, Json] | None = None, **changes: object) -> Record:
        record = new_record(agent_id, "Explore", "look around", metadata or {}, BEGAN)
        return {**record, **changes}  # type: ignore[typeddict-item]  # a test may change any key

    return make


@pytest.fixture
def new_with_run(new: New) -> New:
    """Makes a record with one run that has these keys of the host, such as ``tool_use_id``."""

    def make(agent_id: str, **keys: str) -> Record:
        return new(agent_id, runs=[{"run": 1, **keys}])

    return make
