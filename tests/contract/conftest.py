"""Every store there is, made in one place: a new one joins by one line in ``STORES``.

``made`` is a store made of nothing yet; ``store`` is the same for tests that begin with a clean one.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.session.record import new_record
from gaia_sessions.store import locks
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    New = Callable[..., Record]

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _folder: MemoryStore(),
    "files, waiting by filelock": lambda folder: FileStore(f"{folder}/root", wait=locks.wait_with_filelock),
    "files, waiting by sleep": lambda folder: FileStore(f"{folder}/root", wait=locks.sleep_and_retry),
}

BEGAN = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[request.param](tmp_path)


@pytest.fixture(params=["with its hints", "without hints", "with hints made anew"])
def put_to_the_test(request: pytest.FixtureRequest) -> Callable[[Store], None]:
    """Brings a store into the state in which its answers are asked for: none of it may change them."""

    def bring(store: Store) -> None:
        if isinstance(store, FileStore) and request.param != "with its hints":
            shutil.rmtree(f"{store.root}/.index")
        if request.param == "with hints made anew":
            store.ensure_index()

    return bring


@pytest.fixture
def began() -> datetime:
    """When every record of these tests was created."""
    return BEGAN


@pytest.fixture
def new() -> New:
    """Makes a record as a session begins, with ``changes`` laid over it."""

    def make(agent_id: str = "agent-1", metadata: dict[str, Json] | None = None, **changes: object) -> Record:
        record = new_record(agent_id, "Explore", "look around", metadata or {}, BEGAN)
        return {**record, **changes}  # type: ignore[typeddict-item]  # a test may lay anything over it

    return make


@pytest.fixture
def new_with_run(new: New) -> New:
    """Makes a record whose only run has the host's ``keys``: host_session_id, tool_use_id, host_agent_id."""

    def make(agent_id: str, **keys: str) -> Record:
        return new(agent_id, runs=[{"run": 1, **keys}])

    return make
