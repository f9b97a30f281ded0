"""Repairing a record that is followed by other bytes: what is repaired, what is refused, and full disks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import CorruptSession, LockTimeout, SessionNotFound, StoreFailure
from gaia_sessions.session.record import encode, new_record
from gaia_sessions.store import atomic, reading, record_repair
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.record_repair import is_repairable
from tests.records import START
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

RECORD = new_record("one", "Explore", "read the code", {"x": "}\\u00e9"}, START)
OTHER = new_record("other", "Explore", "read the code", {}, START)
NEWER: Any = {**RECORD, "schema": 99}
WHOLE, LATER = encode(RECORD), encode({**RECORD, "revision": 7})


@pytest.fixture
def store(root: str) -> FileStore:
    store = FileStore(root)
    store.create(RECORD)
    return store


def spoiled(store: FileStore, data: bytes) -> Path:
    state = Path(store.root, "one", "state.json")
    state.write_bytes(data)
    return state


def may_repair(store: FileStore, agent_id: str = "one") -> bool:
    with Directory.at(store.root) as root:
        return is_repairable(root, agent_id)


RESTS = [
    b'"phase": "approval"}}\n' + b"x" * 1111,
    b"\0" * 4096,
    b"\xff\xfe",
    b"{}",
    b"{",
    encode(OTHER),
    b"x" * (2 << 20),
    WHOLE[:-9],
]


@table("rest", RESTS)
@table("before", [b"", b"\n  "])
def test_a_repair_restores_the_record_and_stores_the_damaged_file_beside_it(
    root: str, before: bytes, rest: bytes
) -> None:
    store = FileStore(f"{root}-{len(before)}-{RESTS.index(rest)}")
    store.create(RECORD)
    damaged = before + WHOLE + rest
    state = spoiled(store, damaged)
    assert may_repair(store)

    aside = store.repair("one")

    assert (store.read("one"), state.read_bytes()) == (RECORD, WHOLE)
    assert aside == f"{store.root}/one/state-damaged-1.json"
    assert Path(aside).read_bytes() == damaged
    assert (Path(aside).stat().st_mode & 0o777, reading.is_file_name("state-damaged-1.json")) == (0o600, True)
    assert store.repair("one") is None, "the record can be read now"

    spoiled(store, WHOLE + b"again")
    assert store.repair("one") == f"{store.root}/one/state-damaged-2.json"
    assert Path(aside).read_bytes() == damaged


@table(
    "data",
    [
        b"",
        b"x",
        WHOLE[:-9],
        b"x" + WHOLE,
        b"\xef\xbb\xbf" + WHOLE + b"x",
        encode(OTHER) + b"x",
        json.dumps(NEWER).encode() + b"x",
        b"{}" + WHOLE,
        b"[" + WHOLE + b"]x",
        WHOLE.replace(b'"Explore"', b"7") + b"x",
        WHOLE[:-2].rstrip() + b', "phase": "planning"}x',  # a key twice
        b"[" * 100_000,
        WHOLE + LATER,
        WHOLE + b"\0\0" + LATER,
        LATER + WHOLE,
        WHOLE + b"x" * (17 << 20),
    ],
)
def test_a_file_that_does_not_begin_with_its_only_record_is_not_repaired(store: FileStore, data: bytes) -> None:
    state = spoiled(store, data)
    assert not may_repair(store)
    with pytest.raises(CorruptSession, match="cannot be repaired"):
        store.repair("one")
    assert (state.read_bytes(), [file.name for file in state.parent.iterdir()]) == (data, ["state.json"])


def test_a_repair_checks_the_file_again_under_the_lock(store: FileStore) -> None:
    state = spoiled(store, WHOLE + b"x")
    held = store.open("one")
    with held, pytest.raises(LockTimeout):
        FileStore(store.root, lock_timeout=0).repair("one")
    assert state.read_bytes() == WHOLE + b"x"

    assert may_repair(store)
    spoiled(store, b"{")
    with pytest.raises(CorruptSession):
        store.repair("one")


def link_instead(state: Path) -> None:
    state.rename(state.with_name("real.json"))
    state.symlink_to("real.json")


def folder_instead(state: Path) -> None:
    state.unlink()
    state.mkdir()


@table("harm", [link_instead, folder_instead])
def test_a_repair_refuses_a_link_or_folder_in_place_of_the_record(root: str, harm: Callable[[Path], object]) -> None:
    store = FileStore(f"{root}-{harm.__name__}")
    store.create(RECORD)
    harm(spoiled(store, WHOLE + b"x"))
    assert not may_repair(store)
    with pytest.raises((CorruptSession, StoreFailure)):
        store.repair("one")


def test_a_missing_session_cannot_be_repaired(store: FileStore) -> None:
    with pytest.raises(SessionNotFound):
        store.repair("nobody")
    assert not may_repair(store, "nobody")


@pytest.mark.parametrize("step", ["write_new", "replace"])
def test_a_repair_on_a_full_disk_leaves_the_file_and_can_be_repeated(
    store: FileStore, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = spoiled(store, WHOLE + b"x")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(atomic, step, refuse)
        with pytest.raises(StoreFailure):
            store.repair("one")
    assert state.read_bytes() == WHOLE + b"x"
    assert store.repair("one")
    assert store.read("one") == RECORD


def test_a_repaired_session_can_be_found_changed_and_deleted(store: FileStore) -> None:
    spoiled(store, WHOLE + b"x")
    store.repair("one")
    assert [agent_id for agent_id, _ in store.scan(active_only=True)] == ["one"]
    store.change("one", lambda record: {**record, "purpose": "go on"})
    assert deleted(store, "one", lambda _: True, timeout=0)
    assert not Path(store.root, "one").exists()
    assert record_repair.__doc__
