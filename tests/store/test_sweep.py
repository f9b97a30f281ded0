"""Sweeping: leftovers older than an hour are removed, but nothing that a process has locked.

Leftovers in the folder of a session are removed by ``doctor --fix`` or with the session.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.api import cleaning
from gaia_sessions.session import index_keys
from gaia_sessions.session.record import encode, new_record
from gaia_sessions.session.runs import delegation_alias
from gaia_sessions.store import atomic, index, locks
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.sweep import sweep_sessions
from tests.records import LIMITS, id_found

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record, Run

HOUR = timedelta(hours=1)
ALIAS = delegation_alias("host", "tool")


@pytest.fixture
def store(root: str, now: datetime) -> FileStore:
    """A store that has all its folders and one open session."""
    store = FileStore(root, durable=False)
    store.create(new_record("one", "Explore", "-", {}, now))
    with store.lock_key(("delegation", "host", "tool"), 0):
        return store


def planted(now: datetime, age: timedelta, path: str | Path) -> Path:
    """Makes a file, or a staged session if ``path`` ends in a slash, last changed ``age`` before ``now``."""
    place = Path(path)
    if str(path).endswith("/"):
        place.mkdir(parents=True)
        (place / "state.json").write_bytes(b"{}")
    else:
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(b"" if place.suffix == ".lock" else b"{")
    then = (now - age).timestamp()
    os.utime(place, (then, then))
    return place


def leftovers(root: str, now: datetime, age: timedelta, tag: str) -> set[Path]:
    digits = tag.encode().hex()[:6]
    return {
        planted(now, age, f"{root}/.stage/{tag}.0123456789abcdef/"),
        planted(now, age, f"{root}/..gitignore.0123456789{digits}.tmp"),
        planted(now, age, f"{root}/..stats.jsonl.0123456789{digits}.tmp"),
        planted(now, age, f"{root}/.inbox/.20260108-180530-000000-01234567.json.0123456789{digits}.tmp"),
        planted(now, age, f"{root}/.index/.complete.0123456789{digits}.tmp"),
        planted(now, age, f"{root}/.locks/gone-{tag}.lock"),
        planted(now, age, f"{root}/.locks/.key.delegation.host.{tag}.lock"),
    }


def leftovers_in_session(root: str, now: datetime, age: timedelta, tag: str) -> set[Path]:
    digits = tag.encode().hex()[:6]
    return {
        planted(now, age, f"{root}/one/.state.json.0123456789{digits}.tmp"),
        planted(now, age, f"{root}/one/.transcript-1.jsonl.0123456789{digits}.tmp"),
    }


def test_a_sweep_removes_and_names_leftovers_older_than_an_hour_and_no_younger_ones(
    root: str, store: FileStore, now: datetime
) -> None:
    Path(root, ".stage").mkdir(exist_ok=True)
    old = leftovers(root, now, HOUR + timedelta(seconds=1), "old")
    young = leftovers(root, now, HOUR - timedelta(seconds=1), "young")

    swept = store.sweep(now)

    assert sorted(swept) == sorted(map(str, old))
    assert {path for path in old | young if path.exists()} == young
    assert store.read("one") == new_record("one", "Explore", "-", {}, now)


def test_leftovers_in_a_session_folder_are_removed_only_by_sweep_sessions(
    root: str, store: FileStore, now: datetime
) -> None:
    old = leftovers_in_session(root, now, HOUR + timedelta(seconds=1), "old")
    young = leftovers_in_session(root, now, HOUR - timedelta(seconds=1), "young")

    assert store.sweep(now) == []
    assert all(path.exists() for path in old | young)
    assert sorted(sweep_sessions(store.folder, now)) == sorted(map(str, old))
    assert {path for path in old | young if path.exists()} == young
    assert store.read("one") == new_record("one", "Explore", "-", {}, now)


def test_cleanup_removes_leftovers_in_a_session_folder_with_the_session(
    root: str, store: FileStore, now: datetime
) -> None:
    leftovers_in_session(root, now, timedelta(0), "young")
    store.change("one", lambda record: {**record, "phase": "completed"})

    cleaning.remove_unused(store, cleaning.CleanupPolicy(now + 25 * HOUR, 24, LIMITS, keep_days=7))

    assert not Path(root, "one").exists()
    assert list(Path(root, ".trash").iterdir()) == []


def test_a_sweep_keeps_old_files_that_the_store_did_not_make(root: str, store: FileStore, now: datetime) -> None:
    """A user may have put them there."""
    names = (".notes.0123456789abcdef.tmp", "..gitignore.0123456789ABCDEF.tmp", "one/.notes.0123456789abcdef.tmp")
    places = (*names, ".locks/precious", ".stage/mine/", ".stage/one.0123/", ".stage/one.0123456789abcdef", "one/x.tmp")
    of_session = [f"one/{name}" for name in ("events.jsonl", "notes.tmp", ".hidden", "transcript.jsonl", ".tmp.keep")]
    everywhere = (*places, *of_session, ".trash/keep.0123456789abcde")
    kept = {planted(now, 99 * HOUR, f"{root}/{place}") for place in everywhere}
    Path(root, ".locks", "yarn.lock").write_bytes(b"not empty, as ours are")
    Path(root, ".locks", "folder.lock").mkdir()
    os.mkfifo(Path(root, ".locks", "pipe.lock"))
    for name in ("folder.lock", "pipe.lock", "yarn.lock"):
        os.utime(Path(root, ".locks", name), (0, 0))

    assert [*store.sweep(now), *sweep_sessions(store.folder, now)] == []
    assert all(path.exists() for path in (*kept, Path(root, ".locks/pipe.lock"), Path(root, ".locks/folder.lock")))


def test_cleanup_reports_the_leftovers_it_swept(root: str, store: FileStore, now: datetime) -> None:
    old = leftovers(root, now, 2 * HOUR, "old")

    report = cleaning.remove_unused(store, cleaning.CleanupPolicy(now, 24, LIMITS, keep_days=7))

    assert sorted(report["swept"]) == sorted(map(str, old))
    assert cleaning.remove_unused(store, cleaning.CleanupPolicy(now, 24, LIMITS, keep_days=7))["swept"] == []


def test_a_dry_run_sweeps_nothing(root: str, now: datetime) -> None:
    old = leftovers(root, now, 2 * HOUR, "old")

    report = gaia_sessions.cleanup_sessions(24, dry_run=True, root=root)

    assert report["swept"] == []
    assert all(path.exists() for path in old)


def test_the_next_sweep_empties_the_trash_of_a_killed_cleanup(root: str, store: FileStore, now: datetime) -> None:
    Path(root, ".trash", "two.0123456789abcdef", "folder").mkdir(parents=True)
    Path(root, ".trash", "two.0123456789abcdef", "state.json").write_bytes(b"{}")
    Path(root, ".trash", "link.0123456789abcdef").symlink_to(root)

    store.sweep(now)

    assert list(Path(root, ".trash").iterdir()) == []
    assert {agent_id for agent_id, _ in store.scan()} == {"one"}


def test_cleanup_removes_a_pipe_in_the_trash_without_waiting(root: str) -> None:
    """Cleanup runs in a separate process, because opening the pipe could wait for a writer forever."""
    FileStore(root, durable=False).create(new_record("one", "Explore", "-", {}, datetime.now(UTC)))
    Path(root, ".trash", "two.0123456789abcdef").mkdir(parents=True)
    os.mkfifo(Path(root, ".trash", "two.0123456789abcdef", "pipe"))
    os.mkfifo(Path(root, ".trash", "three.0123456789abcdef"))

    subprocess.run([sys.executable, "-B", "-m", "gaia_sessions", "--root", root, "cleanup"], check=True, timeout=20)

    assert list(Path(root, ".trash").iterdir()) == []


def test_leftovers_with_a_held_lock_are_not_swept(root: str, store: FileStore, now: datetime) -> None:
    kept = {
        planted(now, 2 * HOUR, f"{root}/.stage/two.0123456789abcdef/"),
        planted(now, 2 * HOUR, f"{root}/one/.state.json.0123456789abcdef.tmp"),
        planted(now, 2 * HOUR, f"{root}/.locks/two.lock"),
        planted(now, 2 * HOUR, f"{root}/.locks/.key.delegation.host.tool.lock"),
    }

    with Directory.at(f"{root}/.locks") as folder:
        names = ["one.lock", "two.lock", ".key.delegation.host.tool.lock"]
        held = [locks.acquire(folder, name, 0, locks.sleep_and_retry) for name in names]
        swept = [*store.sweep(now), *sweep_sessions(store.folder, now)]
        for lock in held:
            lock.release()

    assert swept == []
    assert all(path.exists() for path in kept)


def test_a_sweep_keeps_old_lock_files_of_sessions_and_of_the_index(root: str, store: FileStore, now: datetime) -> None:
    store.create(new_record("FINAL", "Explore", "-", {}, now))
    store.change("FINAL", lambda record: {**record, "phase": "completed"})
    before = sorted(os.listdir(f"{root}/.locks"))

    store.sweep(now + timedelta(days=1000))

    assert sorted(os.listdir(f"{root}/.locks")) == before == [".index.lock", "FINAL.lock", "one.lock"]


def test_a_sweep_keeps_index_entries_of_a_session_that_is_being_created(
    root: str, store: FileStore, now: datetime
) -> None:
    """These are the steps of ``create`` under the lock of the session, with a sweep after the index entries."""
    run: Run = {"run": 1, "host_session_id": "host", "tool_use_id": "tool"}
    record: Record = {**new_record("two", "Explore", "-", {}, now), "runs": [run]}

    with (
        Directory.at(root) as opened,
        opened.make(".locks") as folder,
        locks.acquire(folder, "two.lock", 0, locks.sleep_and_retry),
    ):
        index.add(opened, "two", index_keys.keys_of(record))
        store.sweep(now)
        with opened.make("two") as session:
            atomic.write_new(session, "state.json", encode(record), durable=False)

    assert store.read("two") == record
    assert ({agent_id for agent_id, _ in store.scan(active_only=True)}, id_found(store, ALIAS)) == (
        {"one", "two"},
        "two",
    )


def test_a_second_sweep_changes_nothing(root: str, store: FileStore) -> None:
    leftovers(root, datetime.now(UTC), 2 * HOUR, "old")
    store.sweep(datetime.now(UTC))
    before = {str(path) for path in Path(root).rglob("*")}

    assert store.sweep(datetime.now(UTC)) == []

    assert {str(path) for path in Path(root).rglob("*")} == before
