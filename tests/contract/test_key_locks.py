"""Contract of ``lock_key``: two blocks with the same key exclude each other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import LockTimeout
from gaia_sessions.system.processes import is_alive
from tests.contract.conftest import STORES, files_waiting_by_sleep
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New


KEY = ("delegation", "host", "tool")


@pytest.fixture(params=[*STORES, "files, waiting by sleep"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return STORES.get(request.param, files_waiting_by_sleep)(tmp_path)


def can_enter(store: Store, key: tuple[str, ...]) -> bool:
    try:
        with store.lock_key(key, 0):
            return True
    except LockTimeout:
        return False


@table("seconds", [0, 0.05])
def test_a_block_with_a_locked_key_cannot_be_entered(store: Store, seconds: float) -> None:
    with store.lock_key(KEY, 1), pytest.raises(LockTimeout) as refused, store.lock_key(KEY, seconds):
        raise AssertionError("two are in the block")

    assert refused.value.seconds == seconds


def test_a_refused_block_does_not_free_the_key(store: Store) -> None:
    with store.lock_key(KEY, 1):
        assert [can_enter(store, KEY), can_enter(store, KEY)] == [False, False]

    assert can_enter(store, KEY)


def test_a_lock_that_is_freed_early_is_not_freed_again(store: Store) -> None:
    lock = store.lock_key(KEY, 1)
    assert not lock.is_held

    with lock:
        assert lock.is_held
        lock.__exit__()
        assert (lock.is_held, can_enter(store, KEY)) == (False, True)
        with store.lock_key(KEY, 1):
            lock.__exit__()
            assert not can_enter(store, KEY)


@table("sends_to", [None, "agent-1"])
def test_a_lease_names_this_process_as_holder_while_it_is_held(store: Store, new: New, sends_to: str | None) -> None:
    agent_id = sends_to or "agent-2"
    lease = store.lease(sends_to)
    assert not lease.is_held

    with lease:
        run: Any = {"run": 1, "wrapper": lease.holder()}
        store.create(new(agent_id, runs=[run]))
        holder = store.read(agent_id)["runs"][0]["wrapper"]
        assert (lease.is_held, lease.is_over, holder["pid"], is_alive(holder)) == (True, False, os.getpid(), True)
        lease.__exit__()
        assert not lease.is_held


def test_a_block_that_fails_frees_its_key(store: Store) -> None:
    with pytest.raises(LookupError), store.lock_key(KEY, 1):
        raise LookupError

    assert can_enter(store, KEY)


@table(
    "other",
    [
        ("delegation", "host", "too"),
        ("delegation", "hosttool"),
        ("delegation", "host.tool"),
        KEY[1:],
        ("Delegation", "host", "tool"),
    ],
)
def test_locking_one_key_leaves_similar_keys_free(store: Store, other: tuple[str, ...]) -> None:
    with store.lock_key(KEY, 1):
        assert can_enter(store, other)


def test_sessions_can_be_written_inside_a_block(store: Store, new: New) -> None:
    with store.lock_key(KEY, 1):
        store.create(new())
        store.change("agent-1", lambda record: {**record})

    assert dict(store.scan()) == {"agent-1": new(revision=2)}
