"""The hints: where they stand, when they are believed, and what each write does to them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import CorruptSession, StoreFailure
from gaia_sessions.ids import encode_key
from gaia_sessions.record import new_record
from gaia_sessions.runs import delegation_alias
from gaia_sessions.stores import index
from gaia_sessions.stores.directory import Directory
from gaia_sessions.stores.files import FileStore

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.shape import Record, Run
    from gaia_sessions.stores.port import Found

ALIAS = delegation_alias("host", "tool/1")
ALIAS_LEAF = encode_key("host", "tool/1")


def agree(_found: Found) -> bool:
    return True


def finished(record: Record) -> Record:
    return {**record, "phase": "failed"}


def hints(root: str) -> set[str]:
    folder = Path(root, ".index")
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def for_host(agent_id: str, now: datetime, agent_name: str = "Explore") -> Record:
    run: Run = {"run": 1, "host_session_id": "host", "tool_use_id": "tool/1"}
    return {**new_record(agent_id, agent_name, "-", {}, now), "runs": [run]}


@pytest.fixture
def store(root: str) -> FileStore:
    return FileStore(root, durable=False)


MARKS = {"active/one", f"name/{encode_key('Explore')}/one"}


def test_a_new_session_is_marked_active_and_by_name_and_its_alias_leads_to_it(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create(for_host("one", now), [ALIAS])

    assert hints(root) == {"complete", *MARKS, f"alias/delegation/{ALIAS_LEAF}"}
    assert Path(root, ".index", "alias", "delegation", ALIAS_LEAF).read_text(encoding="ascii") == "one"


def test_a_final_session_is_marked_no_more_and_its_alias_stays(root: str, store: FileStore, now: datetime) -> None:
    store.create(for_host("one", now), [ALIAS])

    store.change("one", finished)

    assert hints(root) == {"complete", f"alias/delegation/{ALIAS_LEAF}"}


def test_a_reopened_session_is_marked_again(root: str, store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))
    store.change("one", finished)

    store.change("one", lambda record: {**record, "phase": "approval"})

    assert hints(root) == {"complete", *MARKS}


def test_a_deleted_session_leaves_no_hint(root: str, store: FileStore, now: datetime) -> None:
    store.create(for_host("one", now), [ALIAS])

    store.delete("one", agree)

    assert hints(root) == {"complete"}


def test_a_deleted_unreadable_session_leaves_no_hint(root: str, store: FileStore, now: datetime) -> None:
    store.create(for_host("one", now), [ALIAS])
    Path(root, "one", "state.json").write_bytes(b"unreadable")

    store.delete("one", agree)

    assert hints(root) == {"complete"}


def test_a_session_is_marked_before_it_is_there(root: str, store: FileStore, now: datetime) -> None:
    """So that whoever is killed between leaves a mark too many, never one too few."""
    store.create(new_record("another", "Explore", "-", {}, now))
    Path(root, ".stage").rmdir()
    Path(root, ".stage").write_bytes(b"in the way")

    with pytest.raises(StoreFailure):
        store.create(new_record("one", "Explore", "-", {}, now))

    assert hints(root) >= MARKS
    assert {agent_id for agent_id, _ in store.scan(active_only=True)} == {"another"}


FINALIZES = """
import sys
from gaia_sessions.stores.files import FileStore
FileStore(sys.argv[1]).change("one", lambda record: {**record, "phase": "failed"})
"""

ADDS_ALIAS = """
import sys
from gaia_sessions.runs import delegation_alias
from gaia_sessions.stores.files import FileStore
FileStore(sys.argv[1]).change("one", lambda record: {**record}, aliases=[delegation_alias("host", "tool/1")])
"""


def run_with(fault: str, script: str, root: str, *options: str) -> int:
    """How ``script`` ends when strace injects ``fault``."""
    if which("strace") is None:
        pytest.skip("strace is missing")
    command = ["strace", "-qq", "-e", f"inject={fault}", *options, sys.executable, "-c", script, root]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.parametrize("fault", ["fsync:error=EIO:when=1", "fsync:error=EIO:when=2", "/^rename:error=EIO"])
def test_a_session_is_unmarked_only_after_its_final_write(
    root: str, store: FileStore, now: datetime, fault: str
) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))

    assert run_with(fault, FINALIZES, root) == 1

    assert hints(root) == {"complete", *MARKS}


@pytest.mark.parametrize("fault", ["write", "/^rename"])
def test_whoever_is_killed_naming_a_session_again_leaves_it_findable(
    root: str, store: FileStore, now: datetime, fault: str
) -> None:
    store.create(for_host("one", now), [ALIAS])

    run_with(f"{fault}:signal=SIGKILL:when=1", ADDS_ALIAS, root)

    assert store.read("one")["revision"] == 1
    assert store.find(ALIAS) == "one"


def test_a_mark_too_many_leads_to_nothing_that_is_not_there(root: str, store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))
    for name in ("never-was", "con", "state.json"):
        Path(root, ".index", "active", name).touch()

    assert [agent_id for agent_id, _ in store.scan(active_only=True)] == ["one"]


@pytest.mark.parametrize("complete", [None, b"", b"the boot before this one", b"\xff\xfe"])
def test_without_a_vouched_index_of_this_boot_readers_scan_and_write_nothing(
    root: str, store: FileStore, now: datetime, complete: bytes | None
) -> None:
    store.create(for_host("one", now), [ALIAS])
    shutil.rmtree(f"{root}/.index")
    Path(root, ".index").mkdir()
    if complete is not None:
        Path(root, ".index", "complete").write_bytes(complete)
    before = hints(root)

    assert dict(store.scan(active_only=True, agent_name="Explore")) == {"one": for_host("one", now)}
    assert store.find(ALIAS) == "one"
    assert hints(root) == before


def test_without_any_index_readers_scan_and_make_none(root: str, store: FileStore, now: datetime) -> None:
    store.create(for_host("one", now), [ALIAS])
    shutil.rmtree(f"{root}/.index")

    assert dict(store.scan(active_only=True)) == {"one": for_host("one", now)}
    assert store.find(ALIAS) == "one"
    assert not Path(root, ".index").exists()


def test_an_index_lost_with_sessions_there_is_not_vouched_for_by_a_creation(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))
    shutil.rmtree(f"{root}/.index")

    store.create(new_record("two", "Explore", "-", {}, now))

    assert hints(root) == {"active/two", f"name/{encode_key('Explore')}/two"}
    assert {agent_id for agent_id, _ in store.scan(active_only=True)} == {"one", "two"}


@pytest.mark.parametrize("lost", [False, True])
def test_tending_rebuilds_the_index_whole(
    root: str,
    store: FileStore,
    now: datetime,
    lost: bool,  # noqa: FBT001  # given by name
) -> None:
    store.create(for_host("one", now), [ALIAS])
    store.create(new_record("two", "plan er", "-", {}, now))
    store.create(new_record("three", "Explore", "-", {}, now))
    store.change("three", finished)
    before = hints(root)
    if lost:
        shutil.rmtree(f"{root}/.index")
    else:
        Path(root, ".index", "complete").write_bytes(b"the boot before this one")
        Path(root, ".index", "active", "one").unlink()
        Path(root, ".index", "active", "three").touch()

    store.tend(now, ["one", "two"])

    assert hints(root) == before
    assert {agent_id for agent_id, _ in store.scan(active_only=True)} == {"one", "two"}
    assert store.find(ALIAS) == "one"
    with Directory.at(root) as opened:
        assert index.is_complete(opened)


def test_tending_mends_marks_too_many_and_too_few(root: str, store: FileStore, now: datetime) -> None:
    for agent_id in ("one", "two", "three"):
        store.create(new_record(agent_id, "Explore", "-", {}, now))
    store.change("three", finished)
    before = hints(root)
    Path(root, ".index", "active", "one").unlink()
    Path(root, ".index", "active", "three").touch()
    Path(root, ".index", "active", "never-was").touch()
    (Path(root, ".index", "alias", "agent")).mkdir(parents=True)
    (Path(root, ".index", "alias", "agent", "host.child")).write_bytes(b"never-was")

    store.tend(now, ["one", "two"])

    assert hints(root) == before


def test_an_unreadable_session_is_among_the_active_after_a_rebuild(root: str, store: FileStore, now: datetime) -> None:
    """It may have been active: nothing hides it, as nothing does after any other write."""
    store.create(new_record("one", "Explore", "-", {}, now))
    Path(root, "one", "state.json").write_bytes(b"unreadable")
    [(_, before)] = store.scan(active_only=True)
    assert isinstance(before, CorruptSession)
    shutil.rmtree(f"{root}/.index")

    store.tend(now, [])

    assert [agent_id for agent_id, _ in store.scan(active_only=True)] == ["one"]
