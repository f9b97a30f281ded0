"""The record cache of one call: a record is decoded once, and a change always sees the current record."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import CorruptSession, SessionNotFound
from gaia_sessions.session.record import decode, new_record
from gaia_sessions.session.runs import aliases_of
from gaia_sessions.store import reading
from gaia_sessions.store.file_store import FileStore
from tests.records import id_found
from tests.removals import deleted

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.schema import Record, Run

RUN: Run = {
    "run": 1,
    "host": "claude-code",
    "host_session_id": "s",
    "host_agent_id": "a",
    "claimed_at": "2026-01-08T18:05:30Z",
}


def one_call(root: str) -> FileStore:
    """Returns the store of a hook that has enough time."""
    return FileStore(root, seconds_left=lambda: 60.0)


@pytest.fixture
def state(tmp_path: Path, now: datetime) -> Path:
    """The record file of session ``one``, which has a run."""
    store = FileStore(str(tmp_path / "root"))
    store.create({**new_record("one", "Explore", "-", {"step": 1}, now), "runs": [RUN]})
    return Path(store.root, "one", "state.json")


@pytest.fixture
def root(state: Path) -> str:
    return str(state.parents[1])


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The IDs of the decoded records, in order."""
    ids: list[str] = []

    def noted(data: bytes, agent_id: str) -> Record:
        ids.append(agent_id)
        return decode(data, agent_id)

    monkeypatch.setattr(reading, "decode", noted)
    return ids


def step_on(record: Record) -> Record:
    step = record["metadata"]["step"]
    assert isinstance(step, int)
    return {**record, "metadata": {"step": step + 1}}


def test_one_call_decodes_a_record_once_to_find_read_and_change_it(root: str, decoded: list[str]) -> None:
    store = one_call(root)
    [alias] = [alias for alias in aliases_of(store.read("one")) if "a" in alias[1]]

    assert id_found(store, alias) == "one"
    assert store.read("one")["metadata"] == {"step": 1}
    assert store.change("one", step_on)["metadata"] == {"step": 2}

    assert decoded == ["one"]


def test_each_read_of_a_program_returns_a_separate_record(root: str) -> None:
    store = FileStore(root)
    store.read("one")["metadata"]["step"] = 1000
    for _, record in store.scan():
        assert not isinstance(record, Exception)
        record["metadata"]["step"] = 1000

    assert store.read("one")["metadata"] == {"step": 1}
    assert store.change("one", step_on)["metadata"] == {"step": 2}


def replaced(state: Path) -> None:
    FileStore(str(state.parents[1])).change("one", lambda record: {**record, "metadata": {"step": 7}})


def edited_in_place(state: Path) -> None:
    """Edits the record without changing its size, times or inode."""
    before = state.stat()
    data = state.read_bytes().replace(b'"step": 1', b'"step": 7')
    with state.open("r+b") as file:
        file.write(data)
    os.utime(state, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = state.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)


def deleted_and_created_anew(state: Path) -> None:
    record = decode(state.read_bytes(), "one")
    store = FileStore(str(state.parents[1]))
    assert deleted(store, "one", lambda _found: True)
    store.create({**record, "metadata": {"step": 7}})


def restored_from_a_copy(state: Path) -> None:
    edited = state.parents[2] / "copy"
    shutil.copytree(state.parent, edited)
    shutil.rmtree(state.parent)
    shutil.copytree(edited, state.parent)
    state.write_bytes(state.read_bytes().replace(b'"step": 1', b'"step": 7'))


@pytest.mark.parametrize("happens", [replaced, edited_in_place, deleted_and_created_anew, restored_from_a_copy])
def test_a_change_sees_what_happened_to_the_record_since_it_was_read(
    root: str, state: Path, happens: Callable[[Path], None]
) -> None:
    store = one_call(root)
    assert store.read("one")["metadata"] == {"step": 1}
    happens(state)

    assert store.change("one", step_on)["metadata"] == {"step": 8}
    assert store.read("one")["metadata"] == {"step": 8}


def test_a_change_does_not_find_a_session_deleted_since_it_was_read(root: str) -> None:
    store = one_call(root)
    store.read("one")
    assert deleted(FileStore(root), "one", lambda _found: True)

    with pytest.raises(SessionNotFound):
        store.change("one", step_on)


def test_a_change_refuses_a_record_that_became_corrupt_since_it_was_read(root: str, state: Path) -> None:
    store = one_call(root)
    store.read("one")
    state.write_bytes(b"{")

    with pytest.raises(CorruptSession):
        store.change("one", step_on)

    assert state.read_bytes() == b"{"


def test_a_record_copied_under_another_id_is_corrupt(root: str, state: Path) -> None:
    store = one_call(root)
    store.read("one")
    shutil.copytree(state.parent, Path(root, "two"))

    with pytest.raises(CorruptSession, match="is the ID of another session"):
        store.read("two")


COUNTS = """
import sys
from gaia_sessions.store.file_store import FileStore
for _ in range(40):
    store = FileStore(sys.argv[1], lock_timeout=60.0, durable=False, seconds_left=lambda: 60.0)
    store.read("one")
    store.change("one", lambda record: {**record, "metadata": {"step": record["metadata"]["step"] + 1}})
"""


def test_processes_that_read_before_they_change_lose_no_update(root: str, state: Path) -> None:
    counting = [subprocess.Popen([sys.executable, "-c", COUNTS, root]) for _ in range(2)]

    assert [process.wait(120) for process in counting] == [0, 0]
    assert json.loads(state.read_bytes())["metadata"] == {"step": 81}
