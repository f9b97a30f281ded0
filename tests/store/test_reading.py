"""Reading sessions and journals: missing and corrupt ones are distinguished, and none hides another."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.errors import CorruptSession, InvalidInput, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.session.record import encode, new_record
from gaia_sessions.store import reading
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
from tests.contract.conftest import finished
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


SOUND = b'{"agent_id": "one"}'


def folder_instead(state: Path) -> None:
    state.unlink()
    state.mkdir()


def pipe_instead(state: Path) -> None:
    state.unlink()
    os.mkfifo(state)


def link_instead(state: Path) -> None:
    state.rename(state.with_name("real.json"))
    state.symlink_to("real.json")


def linked_folder(state: Path) -> None:
    real = state.parent.with_name(".real")
    state.parent.rename(real)
    state.parent.symlink_to(real)


def file_instead_of_folder(state: Path) -> None:
    state.unlink()
    state.parent.rmdir()
    state.parent.write_bytes(SOUND)


def changed(**changes: object) -> Callable[[Path], object]:
    return lambda state: state.write_bytes(json.dumps({**json.loads(state.read_bytes()), **changes}).encode())


def holding(data: bytes) -> Callable[[Path], object]:
    return lambda state: state.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": holding(b""),
    "zeros": holding(b"\0" * 500),
    "cut off": lambda state: os.truncate(state, 100),
    "an array": holding(b"[]"),
    "no UTF-8": holding(b'{"agent_id": "\xff"}'),
    "a key twice": holding(b'{"agent_id": "one", "agent_id": "one"}'),
    "no number": holding(b'{"agent_id": "one", "revision": NaN}'),
    "too deep": holding(b'{"agent_id": "one", "metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "too large": lambda state: os.truncate(state, (1 << 20) + 1),
    "keys missing": holding(SOUND),
    "the id of another": changed(agent_id="two"),
    "the id in another case": changed(agent_id="ONE"),
    "an unknown phase": changed(phase="resting"),
    "a revision in words": changed(revision="one"),
    "a schema in words": changed(schema="1"),
    "no time": changed(last_updated="yesterday"),
    "a folder": folder_instead,
    "a pipe": pipe_instead,
    "a link": link_instead,
    "a linked session": linked_folder,
    "a file for a session": file_instead_of_folder,
}

NOT_OURS = {"a folder", "a linked session", "a file for a session"}
"""The store never makes these, so it does not delete them."""


@pytest.fixture
def store(root: str, now: datetime) -> FileStore:
    return store_of_two(root, now)


def store_of_two(root: str, now: datetime) -> FileStore:
    store = FileStore(root, durable=False)
    for agent_id in ("one", "two"):
        store.create(new_record(agent_id, "Explore", "-", {}, now))
    return store


@table("damage", DAMAGES)
def test_a_damaged_session_is_corrupt_stays_unchanged_and_hides_no_other_until_it_is_deleted(
    new_folder: Callable[[], Path], now: datetime, damage: str
) -> None:
    root = f"{new_folder()}/root"
    store = store_of_two(root, now)
    DAMAGES[damage](Path(root, "one", "state.json"))
    before = sorted((str(path), path.lstat().st_ino, path.lstat().st_mtime_ns) for path in Path(root).glob("[!.]*/*"))

    with pytest.raises(CorruptSession) as read:
        store.read("one")
    with pytest.raises(CorruptSession):
        store.change("one", finished)
    with pytest.raises(CorruptSession):
        gaia_sessions.get_session("one", root=root)

    assert read.value.agent_id == "one"
    assert read.value.path.startswith(f"{root}/one")
    assert gaia_sessions.should_resume("one", root=root) is False
    assert store.has("one") is True
    assert sorted(store.ids()) == (["two"] if damage == "a file for a session" else ["one", "two"])
    found = dict(store.scan())
    assert found["two"] == new_record("two", "Explore", "-", {}, now)
    if damage != "a file for a session":
        assert isinstance(found["one"], CorruptSession)
    assert before == sorted(
        (str(path), path.lstat().st_ino, path.lstat().st_mtime_ns) for path in Path(root).glob("[!.]*/*")
    )
    check_deletion(store, damage, now)


def check_deletion(store: FileStore, damage: str, now: datetime) -> None:
    if damage in NOT_OURS:
        with pytest.raises(StoreFailure):
            deleted(store, "one", lambda found: isinstance(found, CorruptSession))
        assert os.path.lexists(f"{store.root}/one")
        return
    assert deleted(store, "one", lambda found: isinstance(found, CorruptSession)) is True
    assert dict(store.scan()) == {"two": new_record("two", "Explore", "-", {}, now)}
    assert os.path.lexists(f"{store.root}/one") == (damage == "a link"), (
        "the target of the link is not a file of the store"
    )


@table("name", ["", "notes.txt", "events.jsonl", "cancelled.json", "state.json.bak"])
def test_a_folder_without_a_record_is_not_a_session_even_with_other_files(
    new_folder: Callable[[], Path], now: datetime, name: str
) -> None:
    root = f"{new_folder()}/root"
    store = store_of_two(root, now)
    Path(root, "docs").mkdir()
    Path(root, "docs", name or "empty").write_bytes(b"theirs")
    Path(root, "linked").symlink_to("docs")
    Path(root, "dangling").symlink_to("nothing")
    if not name:
        Path(root, "docs", "empty").unlink()

    assert (store.has("docs"), sorted(store.ids())) == (False, ["one", "two"])
    assert sorted(agent_id for agent_id, _ in store.scan()) == ["one", "two"]
    for asks in (store.read, lambda agent_id: store.change(agent_id, finished)):
        with pytest.raises(SessionNotFound):
            asks("docs")
    with pytest.raises(SessionNotFound):
        deleted(store, "docs", lambda _found: True)


def test_a_record_cut_off_anywhere_is_corrupt(root: str, store: FileStore) -> None:
    state = Path(root, "one", "state.json")
    data = state.read_bytes()

    for length in range(len(data) - 2):
        state.write_bytes(data[:length])
        with pytest.raises(CorruptSession):
            store.read("one")

    state.write_bytes(data)
    assert encode(store.read("one")) == data


def test_files_and_foreign_folders_in_the_root_are_no_sessions(root: str, store: FileStore) -> None:
    Path(root, "README.md").write_bytes(b"hello")
    Path(root, ".hidden").mkdir()
    Path(root, "white space").mkdir()
    Path(root, "con").mkdir()

    assert sorted(agent_id for agent_id, _ in store.scan()) == ["one", "two"]


def test_a_session_deleted_while_a_reader_has_it_open_is_missing_and_not_corrupt(root: str, store: FileStore) -> None:
    """The folder of the session is moved and emptied between two steps of the reader."""
    with Directory.at(root) as opened, reading.open_session(opened, "one") as session:
        deleted(store, "one", lambda _found: True)
        with pytest.raises(SessionNotFound):
            reading.load(session, "one")


def test_a_journal_reader_skips_an_unfinished_last_line_and_reports_bad_lines(root: str, store: FileStore) -> None:
    path = Path(root, "one", "events.jsonl")
    path.write_bytes(b'{"number": 1}\nnot json\n\n{"number": 2}\n{"number": 3')

    found = list(store.entries("one", "events.jsonl"))

    assert [entry for entry in found if not isinstance(entry, SessionsError)] == [{"number": 1}, {"number": 2}]
    assert [entry.where for entry in found if isinstance(entry, InvalidInput)] == [f"{path} line 2", f"{path} line 3"]


def test_the_first_hundred_bad_lines_of_a_journal_are_reported_and_the_rest_counted(
    root: str, store: FileStore
) -> None:
    path = Path(root, "one", "events.jsonl")
    path.write_bytes(b"not json\n" * 150 + b'{"number": 1}\n' + b"not json\n" * 50)

    found = list(store.entries("one", "events.jsonl"))

    assert [entry for entry in found if not isinstance(entry, SessionsError)] == [{"number": 1}]
    places = [entry.where for entry in found if isinstance(entry, InvalidInput)]
    assert places == [*(f"{path} line {number}" for number in range(1, 101)), str(path)]
    assert str(found[-1]).startswith(f"{path}: 100 further lines cannot be read")


def test_reading_a_journal_does_not_load_the_whole_file_into_memory(root: str, store: FileStore) -> None:
    Path(root, "one", "events.jsonl").write_bytes(b"12\n" * 100_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in store.entries("one", "events.jsonl")) == 100_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000  # the file has 300,000 bytes


def test_a_journal_reader_does_not_yield_entries_that_are_appended_meanwhile(store: FileStore) -> None:
    store.append("one", "events.jsonl", [1, 2])

    found = []
    for entry in store.entries("one", "events.jsonl"):
        store.append("one", "events.jsonl", [3])
        found.append(entry)

    assert found == [1, 2]


def test_an_unfinished_journal_line_of_a_killed_writer_spoils_no_other_line(root: str, store: FileStore) -> None:
    path = Path(root, "one", "events.jsonl")
    path.write_bytes(b'{"number": 1}\n{"number": 2')

    store.append("one", "events.jsonl", [{"number": 3}])

    found = list(store.entries("one", "events.jsonl"))
    assert [entry for entry in found if not isinstance(entry, SessionsError)] == [{"number": 1}, {"number": 3}]
    assert [entry.where for entry in found if isinstance(entry, InvalidInput)] == [f"{path} line 2"]
