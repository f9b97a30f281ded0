"""An attacker swaps a folder for a link while we work: nothing outside the root is written or removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.api.creating import store_new
from gaia_sessions.errors import SessionsError
from gaia_sessions.session.requests import NewSession
from gaia_sessions.store.file_store import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.conftest import Tree

    TreeOf = Callable[[str | Path], Tree]
    Attack = Callable[[str], None]

SWAPPER = str(Path(__file__).with_name("swapper.py"))
WORKER = str(Path(__file__).with_name("worker.py"))
LONG_AGO = timedelta(days=2)
UPDATES = 500
MOST = 20_000
"""The most rounds of an attack. After UPDATES rounds it ends as soon as each of three outcomes was seen."""


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder outside the root that looks like an old session, so that a cleanup would remove it."""
    elsewhere = str(tmp_path / "elsewhere")
    store_new(
        FileStore(elsewhere), datetime.now(UTC) - LONG_AGO, os.urandom, NewSession("victim", "-", None, "agent-1")
    )
    folder = Path(shutil.move(f"{elsewhere}/agent-1", tmp_path / "victim"))
    shutil.rmtree(elsewhere)
    (folder / ".state.json.0123456789abcdef.tmp").write_bytes(b"{}")
    (folder / "precious").write_bytes(b"precious")
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (0, 0))
    return folder


@pytest.fixture
def attack(root: str, victim: Path, tmp_path: Path) -> Iterator[Attack]:
    """Starts a process that swaps a session for a link to the victim until the test ends."""
    attackers = []
    stop = tmp_path / "stop"

    def start(agent_id: str) -> None:
        words = [sys.executable, SWAPPER, f"{root}/{agent_id}", f"{root}/.{agent_id}.aside", str(victim), str(stop)]
        attackers.append(subprocess.Popen(words, stdout=subprocess.PIPE))
        pipe = attackers[-1].stdout
        assert pipe is not None
        assert pipe.readline() == b"ready\n"

    yield start
    stop.touch()
    for attacker in attackers:
        attacker.communicate()


def test_five_hundred_updates_and_cleanups_beside_a_swapper_change_nothing_outside_the_root(
    root: str, victim: Path, attack: Attack, tree: TreeOf
) -> None:
    store = FileStore(root, durable=False)
    store_new(store, datetime.now(UTC), os.urandom, NewSession("worker", "-", None, "agent-1"))
    before = tree(victim)
    attack("agent-1")

    told: Counter[str] = Counter()
    for number in range(MOST):
        told[_outcome(lambda: gaia_sessions.update_state("agent-1", metadata={"number": 1}, root=root))] += 1
        if number % 2:
            told["removed"] += len(gaia_sessions.cleanup_sessions(corrupt=number % 4 == 1, root=root)["removed"])
        if not any(Path(root, name).exists() for name in ("agent-1", ".agent-1.aside")):
            _outcome(lambda: store_new(store, _long_ago(), os.urandom, NewSession("worker", "-", None, "agent-1")))
        if number >= UPDATES and all(told[met] for met in ("done", "corrupt", "removed")):
            break

    assert tree(victim) == before
    assert min(told[met] for met in ("done", "corrupt", "removed")) > 0


def test_a_waiting_writer_does_not_write_after_the_lock_folder_becomes_a_link(
    root: str, tmp_path: Path, tree: TreeOf
) -> None:
    gaia_sessions.create_session("worker", agent_id="agent-1", root=root)
    untouched = gaia_sessions.get_session("agent-1", root=root)
    outside = tmp_path / "outside"
    outside.mkdir()
    locks = Path(root, ".locks")
    with (locks / "agent-1.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        words = [sys.executable, WORKER, "update", root, "agent-1"]
        environment = {**os.environ, "GAIA_SESSIONS_LOCK_TIMEOUT": "5"}
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
            _until(lambda: _has_open(waiting.pid, locks))
            locks.rename(tmp_path / "aside")
            locks.symlink_to(outside)
            waiting.communicate()

    assert tree(outside) in ({}, {"agent-1.lock": ("-", 0o600, b"")})  # filelock opens the file by its path
    assert waiting.returncode in {5, 8}
    assert gaia_sessions.get_session("agent-1", root=root) == untouched


@pytest.mark.usefixtures("needs_strace")
def test_a_new_folder_swapped_for_a_link_leaves_the_mode_of_the_target_unchanged(
    populated: str, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    outside.chmod(0o755)
    locks = Path(populated, ".locks")
    shutil.rmtree(locks)
    second = "1000000"
    words = ["strace", "-f", "-o", os.devnull, "-e", f"inject=mkdirat:delay_exit={second}:when=1"]
    words += [sys.executable, WORKER, "update", populated, "agent-1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as making:
        _until(locks.is_dir)
        locks.rmdir()
        locks.symlink_to(outside)
        making.communicate()

    assert making.returncode == 8
    assert outside.stat().st_mode & 0o777 == 0o755


def _outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except SessionsError as error:
        return error.code
    return "done"


def _long_ago() -> datetime:
    return datetime.now(UTC) - LONG_AGO


def _has_open(pid: int, folder: Path) -> bool:
    """Whether the process has opened ``folder`` and has had time to begin to wait there."""
    try:
        opened = str(folder) in [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
    except FileNotFoundError:
        return False
    time.sleep(0.5 if opened else 0)
    return opened


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)
