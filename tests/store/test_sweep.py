"""What cleanup sweeps: leftovers older than an hour and nothing younger, never what somebody is at work on.

What killed writers left in the directory of a session goes when ``doctor`` fixes, and with the session.
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
    """With one open session, and every folder made."""
    store = FileStore(root, durable=False)
    store.create(new_record("one", "Explore", "-", {}, now))
    with store.lock_key(("delegation", "host", "tool"), 0):
        return store


def planted(now: datetime, age: timedelta, path: str | Path) -> Path:
    """A file or, where the name ends in a slash, a staged session, last changed ``age`` before ``now``."""
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


def test_leftovers_older_than_an_hour_go_and_are_named_and_younger_ones_stay(
    root: str, store: FileStore, now: datetime
) -> None:
    Path(root, ".stage").mkdir(exist_ok=True)
    old = leftovers(root, now, HOUR + timedelta(seconds=1), "old")
    young = leftovers(root, now, HOUR - timedelta(seconds=1), "young")

    swept = store.sweep(now)

    assert sorted(swept) == sorted(map(str, old))
    assert {path for path in old | young if path.exists()} == young
    assert store.read("one") == new_record("one", "Explore", "-", {}, now)


def test_those_in_the_directory_of_a_session_go_when_they_are_looked_for(
    root: str, store: FileStore, now: datetime
) -> None:
    old = leftovers_in_session(root, now, HOUR + timedelta(seconds=1), "old")
    young = leftovers_in_session(root, now, HOUR - timedelta(seconds=1), "young")

    assert store.sweep(now) == []
    assert all(path.exists() for path in old | young)
    assert sorted(sweep_sessions(store.folder, now)) == sorted(map(str, old))
    assert {path for path in old | young if path.exists()} == young
    assert store.read("one") == new_record("one", "Explore", "-", {}, now)


def test_those_in_the_directory_of_a_session_go_with_it(root: str, store: FileStore, now: datetime) -> None:
    leftovers_in_session(root, now, timedelta(0), "young")
    store.change("one", lambda record: {**record, "phase": "completed"})

    cleaning.remove_unused(store, cleaning.CleanupPolicy(now + 25 * HOUR, 24, LIMITS, keep_days=7))

    assert not Path(root, "one").exists()
    assert list(Path(root, ".trash").iterdir()) == []


def test_what_has_no_name_of_an_own_form_stays_however_old(root: str, store: FileStore, now: datetime) -> None:
    """Somebody had a reason to put it there."""
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


def test_cleanup_says_what_it_swept(root: str, store: FileStore, now: datetime) -> None:
    old = leftovers(root, now, 2 * HOUR, "old")

    report = cleaning.remove_unused(store, cleaning.CleanupPolicy(now, 24, LIMITS, keep_days=7))

    assert sorted(report["swept"]) == sorted(map(str, old))
    assert cleaning.remove_unused(store, cleaning.CleanupPolicy(now, 24, LIMITS, keep_days=7))["swept"] == []


def test_a_dry_run_sweeps_nothing(root: str, now: datetime) -> None:
    old = leftovers(root, now, 2 * HOUR, "old")

    report = gaia_sessions.cleanup_sessions(24, dry_run=True, root=root)

    assert report["swept"] == []
    assert all(path.exists() for path in old)


def test_trash_that_a_killed_cleanup_left_goes_with_the_next_sweep(root: str, store: FileStore, now: datetime) -> None:
    Path(root, ".trash", "two.0123456789abcdef", "folder").mkdir(parents=True)
    Path(root, ".trash", "two.0123456789abcdef", "state.json").write_bytes(b"{}")
    Path(root, ".trash", "link.0123456789abcdef").symlink_to(root)

    store.sweep(now)

    assert list(Path(root, ".trash").iterdir()) == []
    assert {agent_id for agent_id, _ in store.scan()} == {"one"}


def test_a_pipe_in_the_trash_goes_and_makes_nobody_wait(root: str) -> None:
    """In a process of its own: whoever opens a pipe to read it waits for a writer, for ever."""
    FileStore(root, durable=False).create(new_record("one", "Explore", "-", {}, datetime.now(UTC)))
    Path(root, ".trash", "two.0123456789abcdef").mkdir(parents=True)
    os.mkfifo(Path(root, ".trash", "two.0123456789abcdef", "pipe"))
    os.mkfifo(Path(root, ".trash", "three.0123456789abcdef"))

    subprocess.run([sys.executable, "-B", "-m", "gaia_sessions", "--root", root, "cleanup"], check=True, timeout=20)

    assert list(Path(root, ".trash").iterdir()) == []


def test_what_somebody_holds_the_lock_of_is_not_swept(root: str, store: FileStore, now: datetime) -> None:
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


def test_the_locks_of_sessions_and_of_the_index_stay_however_old(root: str, store: FileStore, now: datetime) -> None:
    store.create(new_record("FINAL", "Explore", "-", {}, now))
    store.change("FINAL", lambda record: {**record, "phase": "completed"})
    before = sorted(os.listdir(f"{root}/.locks"))

    store.sweep(now + timedelta(days=1000))

    assert sorted(os.listdir(f"{root}/.locks")) == before == [".index.lock", "FINAL.lock", "one.lock"]


def test_the_hints_of_a_session_that_is_just_being_created_stay(root: str, store: FileStore, now: datetime) -> None:
    """Step by step what ``create`` does under the session's lock, with a cleanup between its entries and its rename."""
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


def test_sweeping_twice_is_sweeping_once(root: str, store: FileStore) -> None:
    leftovers(root, datetime.now(UTC), 2 * HOUR, "old")
    store.sweep(datetime.now(UTC))
    before = {str(path) for path in Path(root).rglob("*")}

    assert store.sweep(datetime.now(UTC)) == []

    assert {str(path) for path in Path(root).rglob("*")} == before
