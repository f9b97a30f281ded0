"""A full disk, a read-only root, too few descriptors, a file size limit: writes are refused and nothing is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.errors import StoreFailure
from gaia_sessions.store.file_store import FileStore
from tests.faults.conftest import command
from tests.figures import left, unread
from tests.forks import Forks
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.conftest import Documents, Run, Tree

    TreeOf = Callable[[str | Path], Tree]
    DocumentsOf = Callable[[str | Path], Documents]

READS = (("get", "agent-1"), ("list",), ("should-resume", "agent-1"), ("entries", "agent-1"), ("messages", "agent-1"))
WRITES = (
    ("create", "agent-new"),
    ("update", "agent-1"),
    ("finalize", "agent-1"),
    ("append", "agent-1"),
    ("add-message", "agent-1"),
    ("empty-transcript", "agent-1"),
    ("cleanup",),
)
# Without these privileges, even root can do only what the modes allow.
PRIVILEGES = "-dac_override,-dac_read_search"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", str(disk)]
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a small disk: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture(params=["read-only file system", "modes without a write bit"])
def read_only(request: pytest.FixtureRequest, populated: str) -> tuple[str, list[str]]:
    """A populated read-only root, and the command that must start the commands on it."""
    if request.param == "read-only file system":
        disk = request.getfixturevalue("small_disk")
        root = shutil.copytree(populated, f"{disk}/session")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        return root, []
    for path in (Path(populated), *Path(populated).rglob("*")):
        path.chmod(path.stat().st_mode & 0o555)
    if os.geteuid():
        return populated, []
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv to run without the privileges of root, who can write everywhere")
    return populated, ["setpriv", f"--bounding-set={PRIVILEGES}", f"--inh-caps={PRIVILEGES}"]


def test_a_full_disk_refuses_writes_and_loses_nothing_until_there_is_room(
    small_disk: Path, run: Run, documents: DocumentsOf, leftovers: Callable[[str], list[str]]
) -> None:
    root = str(small_disk / "session")
    gaia_sessions.create_session("worker", agent_id="agent-1", root=root)
    fill(small_disk / "filling")
    before = documents(root)

    codes = {}
    for words in (("update", "agent-1", "9000"), ("finalize", "agent-1"), ("create", "agent-new")):
        ended = run(words[0], root, *words[1:])
        codes[words[0]] = ended.returncode
        assert root in ended.stderr

    assert codes == {"update": 8, "finalize": 8, "create": 8}
    assert documents(root) == before
    assert leftovers(root) == []
    (small_disk / "filling").unlink()
    assert run("update", root, "agent-1", "9000").returncode == 0
    assert run("create", root, "agent-new").returncode == 0


def test_a_full_disk_stores_exactly_the_acknowledged_appends(small_disk: Path) -> None:
    root = str(small_disk / "session")
    gaia_sessions.create_session("worker", agent_id="agent-1", root=root)
    store = FileStore(root)
    fill(small_disk / "filling", leave=20_000)

    acknowledged = []
    for number in range(100):
        try:
            store.append("agent-1", "events.jsonl", [{"number": number, "text": "x" * 700}])
        except StoreFailure:
            continue
        acknowledged.append(number)
    (small_disk / "filling").unlink()
    store.append("agent-1", "events.jsonl", [{"number": 100}])

    entries = list(store.entries("agent-1", "events.jsonl"))
    assert [entry["number"] for entry in entries if isinstance(entry, dict)] == [*acknowledged, 100]
    assert len(entries) == len(acknowledged) + 1
    assert 0 < len(acknowledged) < 100


def test_a_read_only_root_can_be_read(read_only: tuple[str, list[str]], run: Run) -> None:
    root, through = read_only

    told = {words[0]: run(words[0], root, *words[1:], through=through) for words in READS}

    assert {name: (ended.returncode, ended.stderr) for name, ended in told.items()} == dict.fromkeys(told, (0, ""))
    assert '"revision": 3' in told["get"].stdout
    assert all(agent_id in told["list"].stdout for agent_id in ("agent-1", "agent-2", "old-1", "old-2"))
    assert "somebody before" in told["entries"].stdout


def test_a_read_only_root_refuses_every_write_and_does_not_change(
    read_only: tuple[str, list[str]], run: Run, tree: TreeOf
) -> None:
    root, through = read_only
    before = tree(root)

    told = {words[0]: run(words[0], root, *words[1:], through=through) for words in WRITES}

    assert {name: ended.returncode for name, ended in told.items()} == dict.fromkeys(told, 8)
    assert [ended.stderr for ended in told.values() if root not in ended.stderr or "Traceback" in ended.stderr] == []
    assert tree(root) == before


def test_resume_in_a_read_only_root_prints_resume_lines_and_renews_no_session(
    read_only: tuple[str, list[str]], tree: TreeOf
) -> None:
    root, through = read_only
    before = tree(root)

    def resume(*words: str, idle: str) -> subprocess.CompletedProcess[str]:
        known = {**os.environ, "GAIA_SESSIONS_ROOT": root, "GAIA_SESSIONS_IDLE_MINUTES": idle}
        line = [*through, sys.executable, "-m", "gaia_sessions", "resume", *words]
        return subprocess.run(line, env=known, capture_output=True, text=True, check=False)

    listed, named = resume(idle="1000d"), resume("agent-1", idle="1000d")
    expired, unwritable = resume(idle="1ms"), resume("agent-1", "nobody", idle="1ms")

    assert [(ended.returncode, ended.stderr) for ended in (listed, named, expired)] == [(0, "")] * 3
    assert named.stdout.endswith("[gaia-sessions: resume agent-1]\n  agent-1\n")
    assert (unwritable.returncode, root in unwritable.stderr) == (8, True)
    assert unwritable.stdout.startswith("no: there is no session nobody (not_found)\n")
    assert tree(root) == before


@table("most", [0, 100, 4096])
def test_an_update_refused_by_a_file_size_limit_leaves_the_old_state(
    populate: Callable[[], str], run: Run, tree: TreeOf, most: int
) -> None:
    populated = populate()
    before = tree(f"{populated}/agent-1")

    ended = run("update", populated, "agent-1", "9000", through=["prlimit", f"--fsize={most}"])

    assert (ended.returncode, populated in ended.stderr) == (8, True)
    assert tree(f"{populated}/agent-1") == before
    assert run("update", populated, "agent-1").returncode == 0


@table("more", [0, 1, 100, 500])
def test_cleanup_removes_sessions_if_the_figures_file_cannot_grow_and_its_lines_stay_whole(
    populate: Callable[[], str], run: Run, more: int
) -> None:
    root = populate()
    store, file = FileStore(root), Path(root, ".stats.jsonl")
    run("rm", root, "agent-2")
    before, lines = file.read_bytes(), left(store)

    ended = run("cleanup", root, through=["prlimit", f"--fsize={len(before) + more}"])

    assert (ended.returncode, "FiguresLost" in ended.stderr, sorted(store.ids())) == (0, True, ["agent-1"])
    assert (file.read_bytes(), len(lines)) == (before, 1)
    assert run("rm", root, "agent-1").returncode == 0
    assert (len(left(store)), unread(store)) == (2, 0)


def test_cleanup_on_a_full_disk_removes_sessions_without_their_figures(
    small_disk: Path, populated: str, run: Run
) -> None:
    root = shutil.copytree(populated, f"{small_disk}/session")
    store = FileStore(root)
    fill(small_disk / "filling")

    ended = run("cleanup", root)

    assert (ended.returncode, "FiguresLost" in ended.stderr) == (0, True)
    assert (sorted(store.ids()), left(store), unread(store)) == (["agent-1", "agent-2"], {}, 0)


@pytest.fixture(scope="module")
def beginners() -> Iterator[Forks]:
    """Processes that import most modules only when they need them, as the programs of users do."""
    forks = Forks(
        [
            "gaia_sessions.adk.app_events",
            "gaia_sessions.api.app_sessions",
            "gaia_sessions.api.removal",
            "gaia_sessions.store.planned",
            "resource",
        ]
    )
    yield forks
    forks.close()


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["some limits", "each limit"])
@table("operation", [*READS, *WRITES])
def test_too_few_file_descriptors_cause_no_traceback_and_leave_the_old_state(
    populate: Callable[[], str], beginners: Forks, documents: DocumentsOf, operation: tuple[str, ...], step: int
) -> None:
    told = {}
    for most in range(4, 17, step):  # with 3, Python cannot import our modules
        root = populate()
        before = documents(root)
        words = command(operation[0], root, *operation[1:])
        ended = beginners.run(words, environment={**os.environ, "FEWEST_FILES": str(most)})
        told[most] = (ended.returncode, "Traceback" in ended.stderr)
        if ended.returncode and operation[0] != "cleanup":
            assert documents(root) == before

    assert {most: code for most, code in told.items() if code not in {(0, False), (8, False)}} == {}
    assert (told[4][0], told[16]) == (8, (0, False))


def fill(path: Path, leave: int = 0) -> None:
    """Fills the disk, except for ``leave`` bytes."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 12))
        except OSError:
            file.truncate(max(0, file.tell() - leave))


def test_a_log_on_a_full_disk_keeps_its_beginning_and_completes_once_there_is_room(small_disk: Path) -> None:
    root = str(small_disk / "session")
    gaia_sessions.create_session("worker", agent_id="agent-1", root=root)
    store = FileStore(root)
    fill(small_disk / "filling", leave=20_000)
    written = b"".join(b"%07d\n" % number for number in range(10_000))

    output = store.open_output(store.read("agent-1"), 1)
    for start in range(0, len(written), 1000):
        output.write(written[start : start + 1000])
    kept = store.output(store.read("agent-1"), 1)
    full = store.open_output(store.read("agent-1"), 2)
    full.write(written)
    full.close()

    assert len(kept) >= 4096
    assert written.startswith(kept)
    assert written.startswith(store.output(store.read("agent-1"), 2))
    (small_disk / "filling").unlink()
    output.close()
    assert store.output(store.read("agent-1"), 1) == written
