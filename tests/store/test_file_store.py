"""The file store: modes and places of files, syncing, locks, and reads that write nothing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.errors import DurabilityUnknown, LockTimeout, SessionNotFound, StoreFailure
from gaia_sessions.session.record import new_record
from gaia_sessions.session.runs import delegation_alias
from gaia_sessions.session.updates import Change
from gaia_sessions.store import locks
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
from tests.contract.conftest import agree, finished, untouched
from tests.index_files import entries
from tests.records import id_found
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import RecordOrError

MANNERS = [locks.wait_with_filelock, locks.sleep_and_retry]
ALIAS = delegation_alias("host", "tool")

EVERYTHING_THAT_WRITES = """
import sys
from datetime import UTC, datetime
from gaia_sessions.session.record import new_record
from gaia_sessions.store.file_store import FileStore
store, now = FileStore(sys.argv[1], durable=sys.argv[2] == "durable"), datetime.now(UTC)
run_of_host = {"run": 1, "host_session_id": "host", "tool_use_id": "tool"}
store.create({**new_record("one", "Explore", "-", {}, now), "runs": [run_of_host]})
store.create(new_record("two", "Explore", "-", {}, now))
store.create(new_record("three", "Explore", "-", {}, now))
store.change("one", lambda record: {**record, "phase": "planning"})
store.change("two", lambda record: {**record, "phase": "completed"})
store.append("one", "events.jsonl", [{"number": 1}])
store.defer({"kind": "stop", "at": "2026-01-08T18:05:30Z"}, now)
list(store.delete_each(["three"], lambda *_: True))
with store.lock_key(("delegation", "host", "tool"), 1):
    store.sweep(now)
"""


def snapshot(path: str) -> dict[str, tuple[object, ...]]:
    """Returns everything below ``path`` with all that any write would change."""
    found: dict[str, tuple[object, ...]] = {}
    for entry in [Path(path), *Path(path).rglob("*")]:
        if entry.exists():
            seen = entry.lstat()
            content = entry.read_bytes() if entry.is_file() else None
            found[str(entry)] = (seen.st_mode, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, content)
    return found


def modes(path: str) -> dict[str, str]:
    """Returns the entries below ``path`` whose mode is not private."""
    wrong = {}
    for entry in [Path(path), *Path(path).rglob("*")]:
        mode = stat.S_IMODE(entry.lstat().st_mode)
        if mode != (0o700 if entry.is_dir() else 0o600):
            wrong[str(entry.relative_to(path))] = oct(mode)
    return wrong


def run(script: str, *arguments: str, umask: int = -1, through: tuple[str, ...] = ()) -> None:
    command = [*through, sys.executable, "-c", script, *arguments]
    completed = subprocess.run(command, umask=umask, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, "")


def syscalls(calls: str, script: str, *arguments: str, log: Path) -> list[str]:
    """Returns the lines that strace writes for ``calls`` while ``script`` runs."""
    if which("strace") is None:
        pytest.skip("needs strace to see the calls of a process")
    run(
        script, *arguments, through=("strace", "-f", "-qq", "-e", f"trace={calls}", "-e", "signal=none", "-o", str(log))
    )
    return log.read_text(encoding="utf-8", errors="replace").splitlines()


def record_for_host(agent_id: str, now: datetime) -> Record:
    run_of_host: Run = {"run": 1, "host_session_id": "host", "tool_use_id": "tool"}
    return {**new_record(agent_id, "Explore", "-", {}, now), "runs": [run_of_host]}


@pytest.fixture
def store(root: str) -> FileStore:
    return FileStore(root, lock_timeout=0.1)


@table("umask", [0, 0o777])
def test_all_files_of_a_root_are_private_with_any_umask(new_folder: Callable[[], Path], umask: int) -> None:
    root = f"{new_folder()}/root"
    run(EVERYTHING_THAT_WRITES, root, "durable", umask=umask)

    assert modes(root) == {}


def test_a_root_keeps_itself_out_of_version_control(root: str, store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))

    assert Path(root, ".gitignore").read_bytes() == b"*\n"


def test_a_session_folder_contains_only_the_record_and_its_lock_is_elsewhere(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create(new_record("One.session", "Explore", "-", {}, now))
    store.change("One.session", finished)

    assert sorted(os.listdir(root)) == [".gitignore", ".index", ".locks", ".stage", "One.session"]
    assert os.listdir(f"{root}/One.session") == ["state.json"]
    assert os.listdir(f"{root}/.stage") == []
    assert sorted(os.listdir(f"{root}/.locks")) == [".index.lock", "One.session.lock"]


def test_a_rule_that_changes_nothing_or_raises_writes_no_file(root: str, store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))
    before = snapshot(f"{root}/one")

    store.change("one", untouched)
    assert snapshot(f"{root}/one") == before

    with pytest.raises(ZeroDivisionError):
        store.change("one", lambda record: {**record, "revision": 1 // 0})

    assert snapshot(f"{root}/one") == before


@table("put", [Path.mkdir, lambda path: path.symlink_to("state.json")])
def test_a_change_with_a_refused_journal_is_applied_and_raises_durability_unknown(
    new_folder: Callable[[], Path], now: datetime, put: Callable[[Path], object]
) -> None:
    root = f"{new_folder()}/root"
    store = FileStore(root)
    store.create(new_record("one", "Explore", "-", {}, now))
    put(Path(root, "one", "events.jsonl"))
    applied = {**finished(store.read("one")), "revision": 2}

    with pytest.raises(DurabilityUnknown):
        store.change("one", lambda record: Change(finished(record), [{"phase": "completed"}]))

    assert store.read("one") == applied


def test_a_session_created_with_a_journal_entry_has_both_private_files(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create(new_record("one", "Explore", "-", {}, now), entry={"phase": "initializing"})

    found = {path.name: stat.filemode(path.stat().st_mode) for path in Path(root, "one").iterdir()}
    assert found == {"state.json": "-rw-------", "events.jsonl": "-rw-------"}
    assert Path(root, "one", "events.jsonl").read_bytes() == b'{"phase": "initializing"}\n'
    assert list(Path(root, ".stage").iterdir()) == []


def test_an_os_error_raised_by_a_rule_is_not_translated(store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))

    def refuse(_record: Record) -> Record:
        raise TimeoutError("the rule's own")

    with pytest.raises(TimeoutError):
        store.change("one", refuse)


def refused(ask: Callable[[], object]) -> None:
    with pytest.raises(SessionNotFound):
        ask()


READS: dict[str, Callable[[FileStore], object]] = {
    "read": lambda store: store.read("one"),
    "read, missing": lambda store: refused(lambda: store.read("missing")),
    "change, missing": lambda store: refused(lambda: store.change("missing", untouched)),
    "delete, missing": lambda store: refused(lambda: deleted(store, "missing", agree)),
    "scan": lambda store: list(store.scan()),
    "scan, active": lambda store: list(store.scan(active_only=True, agent_name="Explore")),
    "find": lambda store: [id_found(store, ALIAS), id_found(store, delegation_alias("nobody", "knows"))],
    "entries": lambda store: list(store.entries("one", "events.jsonl")),
    "deferred": lambda store: list(store.deferred()),
    "get_session": lambda store: gaia_sessions.get_session("one", root=store.root),
    "should_resume": lambda store: gaia_sessions.should_resume("one", root=store.root),
    "explain_resume": lambda store: gaia_sessions.explain_resume("missing", root=store.root),
    "list_sessions": lambda store: list(gaia_sessions.list_sessions(active_only=True, root=store.root)),
    "cleanup, dry": lambda store: gaia_sessions.cleanup_sessions(0, dry_run=True, root=store.root),
}


@table("complete", [True, False])
def test_reading_waits_for_no_lock_and_changes_nothing(
    new_folder: Callable[[], Path],
    now: datetime,
    complete: bool,  # noqa: FBT001  # given by name
) -> None:
    root = f"{new_folder()}/root"
    store = FileStore(root, lock_timeout=0.1)
    store.create(record_for_host("one", now))
    store.append("one", "events.jsonl", [{"number": 1}])
    store.defer({"kind": "stop"}, now)
    if not complete:
        Path(root, ".index", "complete").unlink()
    before = snapshot(root)

    with Directory.at(f"{root}/.locks") as folder:
        held = [locks.acquire(folder, file, 0, locks.sleep_and_retry) for file in folder.names()]
        for name, read in READS.items():
            read(store)
            assert snapshot(root) == before, name
        for lock in held:
            lock.release()

    assert snapshot(root) == before


@table("name", [name for name in READS if name not in ("read", "entries")])
def test_reading_without_a_root_does_not_create_the_root(root: str, store: FileStore, name: str) -> None:
    READS[name](store)

    assert not Path(root).exists()


@table("name", ["read", "change", "delete", "append", "scan", "create", "defer", "sweep", "find", "deferred"])
def test_a_root_that_is_a_file_raises_a_store_failure(root: str, store: FileStore, now: datetime, name: str) -> None:
    Path(root).write_bytes(b"mine")

    with pytest.raises(StoreFailure):
        USES[name](store, now)

    assert Path(root).read_bytes() == b"mine"


USES: dict[str, Callable[[FileStore, datetime], object]] = {
    "read": lambda store, _: store.read("one"),
    "change": lambda store, _: store.change("one", finished),
    "delete": lambda store, _: deleted(store, "one", agree),
    "append": lambda store, _: store.append("one", "events.jsonl", [1]),
    "scan": lambda store, _: list(store.scan()),
    "create": lambda store, now: store.create(new_record("one", "Explore", "-", {}, now)),
    "defer": lambda store, now: store.defer({"kind": "stop"}, now),
    "sweep": lambda store, now: store.sweep(now),
    "find": lambda store, _: id_found(store, ALIAS),
    "deferred": lambda store, _: list(store.deferred()),
}


def test_a_root_may_be_a_link(root: str, tmp_path: Path, now: datetime) -> None:
    Path(root).mkdir(0o700)
    (tmp_path / "link").symlink_to(root)

    FileStore(f"{tmp_path}/link").create(new_record("one", "Explore", "-", {}, now))

    assert FileStore(root).read("one") == new_record("one", "Explore", "-", {}, now)


def test_a_listing_of_active_sessions_reads_no_final_session(root: str, store: FileStore, now: datetime) -> None:
    """The final records are unreadable: only the full listing notices that."""
    for number in range(50):
        store.create(new_record(f"active-{number}", "Explore", "-", {}, now))
    for number in range(20):
        store.create(new_record(f"final-{number}", "Explore", "-", {}, now))
        store.change(f"final-{number}", finished)
        Path(root, f"final-{number}", "state.json").write_bytes(b"unreadable")

    active = list(gaia_sessions.list_sessions(active_only=True, root=root))
    everything = Counter(line["status"] for line in gaia_sessions.list_sessions(root=root))

    assert {line["agent_id"] for line in active} == {f"active-{number}" for number in range(50)}
    assert {line["status"] for line in active} == {"active"}
    assert everything == {"active": 50, "corrupt": 20}


def test_a_listing_of_active_sessions_opens_one_record_for_each(root: str, tmp_path: Path, now: datetime) -> None:
    store = FileStore(root, durable=False)
    for number in range(60):
        store.create(new_record(f"agent-{number}", "Explore", "-", {}, now))
        if number >= 50:
            store.change(f"agent-{number}", finished)
    script = "import sys, gaia_sessions; list(gaia_sessions.list_sessions(active_only=True, root=sys.argv[1]))"

    lines = syscalls("openat", script, root, log=tmp_path / "log")

    assert sum("state.json" in line for line in lines) == 50


def test_nothing_is_synced_when_durability_is_off(root: str, tmp_path: Path) -> None:
    lines = syscalls("fsync,fdatasync,sync,syncfs", EVERYTHING_THAT_WRITES, root, "fast", log=tmp_path / "log")

    assert lines == []


def test_writes_call_fsync_and_fdatasync_when_durability_is_on(root: str, tmp_path: Path) -> None:
    lines = syscalls("fsync,fdatasync", EVERYTHING_THAT_WRITES, root, "durable", log=tmp_path / "log")

    assert Counter(line.split()[1].partition("(")[0] for line in lines).keys() == {"fsync", "fdatasync"}


@pytest.mark.parametrize("manner", MANNERS)
def test_a_writer_that_waits_during_a_deletion_does_not_bring_the_session_back(
    root: str, now: datetime, manner: locks.WaitForLock
) -> None:
    waiting, outcomes = threading.Event(), []

    def noticed(folder: Directory, name: str, seconds: float) -> locks.Release | None:
        waiting.set()
        return manner(folder, name, seconds)

    def wait() -> None:
        try:
            FileStore(root, wait=noticed).change("one", finished)
        except SessionNotFound as error:
            outcomes.append(error.agent_id)

    waiter = threading.Thread(target=wait)

    def judge(_found: RecordOrError) -> bool:
        waiter.start()
        return waiting.wait(60)

    store = FileStore(root)
    store.create(new_record("one", "Explore", "-", {}, now))
    assert deleted(store, "one", judge) is True
    waiter.join()

    assert outcomes == ["one"]
    assert list(store.scan()) == list(store.scan(active_only=True)) == []
    assert not Path(root, "one").exists()


def _lock_of(store: FileStore, agent_id: str) -> locks.Lock:
    with Directory.at(f"{store.root}/.locks") as folder:
        kept = Directory(os.dup(folder.fd), folder.path)
    return locks.acquire(kept, f"{agent_id}.lock", 0, locks.sleep_and_retry)


def test_ids_that_differ_only_in_case_have_separate_locks(store: FileStore, now: datetime) -> None:
    for agent_id in ("one", "ONE"):
        store.create(new_record(agent_id, "Explore", "-", {}, now))

    with _lock_of(store, "one"):
        assert store.change("ONE", finished, timeout=0)["phase"] == "completed"


def test_deleting_a_locked_session_is_refused_at_once(store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))

    with _lock_of(store, "one"), pytest.raises(LockTimeout) as refused:
        deleted(FileStore(store.root, lock_timeout=3600), "one", agree)

    assert refused.value.seconds == 0
    assert dict(store.scan()) == {"one": new_record("one", "Explore", "-", {}, now)}


def test_the_timeout_of_a_call_replaces_the_timeout_of_the_store(store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))

    with _lock_of(store, "one"):
        with pytest.raises(LockTimeout) as own:
            store.change("one", finished)
        with pytest.raises(LockTimeout) as given:
            FileStore(store.root, lock_timeout=3600).change("one", finished, timeout=0.01)

    assert (own.value.seconds, given.value.seconds) == (0.1, 0.01)


def test_a_deleted_session_leaves_no_file_and_no_index_entry(root: str, store: FileStore, now: datetime) -> None:
    store.create(record_for_host("one", now))
    store.append("one", "events.jsonl", [1])

    deleted(store, "one", agree)

    remains = [path for path in Path(root).rglob("*") if path.is_file() and path.suffix != ".keys"]
    assert {str(path.relative_to(root)) for path in remains} == {".gitignore", ".index/complete", ".locks/.index.lock"}
    assert entries(root) == {"complete"}
    assert list(Path(root, ".trash").iterdir()) == []


def test_deleting_a_session_removes_its_folders_and_links_but_not_their_targets(
    root: str, store: FileStore, tmp_path: Path, now: datetime
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").write_bytes(b"kept")
    store.create(new_record("one", "Explore", "-", {}, now))
    Path(root, "one", "folder").mkdir()
    Path(root, "one", "folder", "link").symlink_to(victim)

    assert deleted(store, "one", agree)

    assert list(Path(root, ".trash").iterdir()) == []
    assert (victim / "kept").read_bytes() == b"kept"


def test_a_lock_on_a_key_named_index_is_not_the_lock_of_the_index(store: FileStore, now: datetime) -> None:
    with store.lock_key(("index",), 0):
        store.create(new_record("one", "Explore", "-", {}, now))

    assert dict(store.scan()) == {"one": new_record("one", "Explore", "-", {}, now)}
