"""Faults at any system call on the index: no entry that a reader needs is missing.

Each act runs once for each of its calls on the index, on a new copy.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.session import index_keys
from gaia_sessions.session.record import new_record
from gaia_sessions.store import index
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
from tests.faults.conftest import A_SAMPLE, EACH_CALL, STRACE, copy, run, touching
from tests.index_files import entries, line, plant, shard_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.schema import Record, Run
    from tests.faults.conftest import Call

NOW = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)
MANY = 12
OF_THE_KEY_THAT_IT_MAY_GET = line("one", "host_key", "delegation", "host", "tool/2")
"""An extra entry of a killed writer. It is harmless: a search for that key reads one more record."""

ACTS = """
import sys
from gaia_sessions.session import index_keys
from gaia_sessions.store import index
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
root, act = sys.argv[1:]
store = FileStore(root)
def resumed(record):
    return {**record, "runs": [*record["runs"], {"run": 2, "host_session_id": "host", "tool_use_id": "tool/2"}]}
with Directory.at(root) as opened:
    if act == "add":
        store.change("one", resumed)
    elif act == "remove":
        store.change("one", lambda record: {**record, "phase": "failed"})
    elif act == "remove many":
        keys = {f"over-{number}": [index_keys.parent_key("above")] for number in range(12)}
        index.remove(opened, keys)
    elif act == "compact":
        with opened.below(".index") as folder:
            index.rewrite(folder, "active.keys")
    else:
        store.ensure_index()
"""


def for_host(agent_id: str) -> Record:
    of_host: Run = {"run": 1, "host_session_id": "host", "tool_use_id": f"tool/{agent_id}"}
    return {**new_record(agent_id, "Explore", "-", {}, NOW), "runs": [of_host], "parent_id": "above"}


def prepare(root: str, act: str) -> None:
    """Open and ended sessions, entries of missing sessions, and for a rebuild an index of an earlier boot."""
    store = FileStore(root, durable=False)
    for agent_id in ("one", "two", "over"):
        store.create(for_host(agent_id))
    store.change("over", lambda record: {**record, "phase": "completed"})
    for number in range(MANY):
        plant(root, f"over-{number}", "parent", "above")
        plant(root, f"over-{number}", "active")
    if act == "rebuild":
        Path(root, ".index", "complete").write_bytes(b"5 another boot")
        shard_of(root, "name", "Explore").unlink()


def wanted(store: FileStore) -> set[str]:
    """Every entry that the records need."""
    keys = {agent_id: index_keys.keys_of(store.read(agent_id)) for agent_id in store.ids()}
    return {entry.decode() for found in index.lines_by_shard(keys).values() for entry in found}


def what_is_wrong(root: str) -> list[str]:
    """The entries that a reader misses now, and the faults that remain after a cleanup."""
    store = FileStore(root, durable=False)
    with Directory.at(root) as opened:
        missing = wanted(store) - entries(root) if index.is_complete(opened) else set()
    wrong = [f"missing: {entry}" for entry in missing]
    if {agent_id for agent_id, _ in store.scan(active_only=True)} < {"two"}:
        wrong.append("an active session is not found")
    FileStore(root, durable=False).sweep(NOW)
    left = {name for name in entries(root) if not name.endswith(".tmp")} ^ (wanted(store) | {"complete"})
    return wrong + [f"not corrected: {entry}" for entry in left if entry != OF_THE_KEY_THAT_IT_MAY_GET]


def calls_of(act: str, folder: Path) -> list[Call]:
    project = copy(folder / "made", folder / "traced")
    ended = run([sys.executable, "-c", ACTS, f"{project}/root", act], trace=[*STRACE, "-o", f"{project}.trace"])
    assert (ended.returncode, ended.stderr) == (0, "")
    return [call for call in touching(f"{project}.trace", project) if ".index" in call.line]


def faults(call: Call) -> Iterator[str]:
    yield "signal=SIGKILL"
    yield from ("error=EIO", "error=ENOSPC") if call.name in ("write", "pwrite64", "openat") else ["error=EIO"]


@pytest.mark.usefixtures("needs_strace")
@pytest.mark.parametrize("reach", [A_SAMPLE, pytest.param(EACH_CALL, marks=pytest.mark.slow)])
@pytest.mark.parametrize("act", ["add", "remove", "remove many", "compact", "rebuild"])
def test_a_fault_at_any_index_call_loses_no_entry_and_a_cleanup_corrects_the_rest(
    tmp_path: Path, act: str, reach: str
) -> None:
    (tmp_path / "made").mkdir()
    prepare(f"{tmp_path}/made/root", act)
    calls = calls_of(act, tmp_path)
    wrong = {}
    assert len(calls) > 5  # the act touches the index

    for number, call in enumerate(calls if reach == EACH_CALL else calls[:: len(calls) // 6]):
        for fault in faults(call):
            project = copy(tmp_path / "made", tmp_path / f"{number}-{fault}")
            trace = ["strace", "-f", "-o", f"{project}.trace", "-e", f"trace={call.name}", "-e", "signal=none"]
            inject = ["-e", f"inject={call.name}:{fault}:when={call.ordinal}"]
            run([sys.executable, "-c", ACTS, f"{project}/root", act], trace=[*trace, *inject])
            wrong[f"{fault} at {call}"] = what_is_wrong(f"{project}/root")
            shutil.rmtree(project)

    assert {where: what for where, what in wrong.items() if what} == {}


WRITES = """
import os, sys
from gaia_sessions.session import index_keys
from gaia_sessions.store import index
from gaia_sessions.store.directory import Directory
number, key = int(sys.argv[2]), index_keys.ACTIVE_KEY
with Directory.at(sys.argv[1]) as root:
    for step in range(int(sys.argv[3])):
        kept, gone = f"kept-{number}-{step}", f"gone-{number}-{step}"
        index.add(root, kept, [key])
        index.add(root, gone, [key])
        index.remove(root, {gone: [key]})
        os.write(1, f"{kept}\\n".encode())
"""

READS = """
import sys
from gaia_sessions.session import index_keys
from gaia_sessions.store import index
from gaia_sessions.store.directory import Directory
with Directory.at(sys.argv[1]) as root:
    for _ in range(300):
        if "here" not in (index.ids_under(root, index_keys.ACTIVE_KEY) or []):
            sys.exit("an entry was missing")
"""

REWRITES = """
import sys, time
from gaia_sessions.store import index
from gaia_sessions.store.directory import Directory
with Directory.at(sys.argv[1]) as root, root.below(".index") as folder:
    while True:
        index.rewrite(folder, "active.keys")
        time.sleep(0.002)  # so that a waiting process can get the lock
"""


def test_readers_miss_no_entry_while_other_processes_change_the_shard_and_are_killed(root: str) -> None:
    FileStore(root, durable=False).create(new_record("here", "Explore", "-", {}, NOW))

    def start(script: str, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", script, root, *words], stdout=subprocess.PIPE, text=True)

    rewriting, reading = start(REWRITES), start(READS)
    writers = [start(WRITES, str(number), "120") for number in range(4)]
    killed = start(WRITES, "4", "100000")
    assert killed.stdout
    acknowledged = [killed.stdout.readline().strip() for _ in range(50)]
    for process in (killed, rewriting):
        process.kill()
    acknowledged += [line for line in killed.communicate()[0].split("\n")[:-1] if line]
    acknowledged += [line for writer in writers for line in writer.communicate()[0].splitlines()]
    rewriting.communicate()

    assert (reading.communicate()[0], reading.returncode) == ("", 0)
    with Directory.at(root) as opened:
        ids = set(index.ids_under(opened, index_keys.ACTIVE_KEY) or [])
    assert set(acknowledged) - ids == set()
    assert len([name for name in ids if name.startswith("gone")]) <= 1  # of the killed writer


def test_two_concurrent_rebuilds_and_a_writer_leave_every_entry_once(root: str) -> None:
    store = FileStore(root, durable=False)
    for number in range(30):
        store.create(for_host(f"s-{number}"))
    shutil.rmtree(f"{root}/.index")

    rebuilds = [subprocess.Popen([sys.executable, "-c", ACTS, root, "rebuild"]) for _ in range(2)]
    for number in range(30, 60):
        store.create(for_host(f"s-{number}"))
    assert [rebuild.wait() for rebuild in rebuilds] == [0, 0]
    store.ensure_index()

    assert entries(root) == wanted(store) | {"complete"}
    with Directory.at(root) as opened:
        assert index.is_complete(opened)
        assert sorted(index.ids_under(opened, index_keys.ACTIVE_KEY) or ()) == sorted(store.ids())
