"""Programs that fork while they write: a lock ends with its holder, and a child does not have it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import LockTimeout
from gaia_sessions.store import locks
from gaia_sessions.store.directory import Directory
from tests.forks import forks

from . import forker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Start = Callable[..., tuple[int, int]]

FORKER = Path(forker.__file__)
EACH_WROTE_ALL = {f"of-{number}": forker.WRITES + 1 for number in range(forker.THREADS)}


def told_by(role: str, root: str, *arguments: str) -> Any:
    done = forks().run([sys.executable, str(FORKER), role, root, *arguments])
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture
def holder_and_child(root: str) -> Iterator[Start]:
    """Starts a role that holds the lock of the session ``one`` and has a child. Returns the pids of both."""
    pids: list[int] = []
    started: list[subprocess.Popen[str]] = []

    def start(role: str, *prefix: str) -> tuple[int, int]:
        words = [*prefix, sys.executable, str(FORKER), role, root]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        assert started[0].stdout is not None
        told = json.loads(started[0].stdout.readline())
        pids.extend([told["holder"], told["child"]])
        return told["holder"], told["child"]

    yield start
    for pid in pids:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    for process in started:
        process.communicate()


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return False


def is_free(root: str, seconds: float = 0) -> bool:
    with Directory.at(f"{root}/.locks") as folder:
        try:
            with locks.acquire(folder, locks.name_for("one"), seconds, locks.sleep_and_retry):
                return True
        except LockTimeout:
            return False


def test_forked_children_that_live_on_keep_no_thread_from_writing(root: str) -> None:
    assert told_by("forks", root) == EACH_WROTE_ALL


@pytest.mark.parametrize("manner", ["wait_with_filelock", "sleep_and_retry"])
def test_forked_children_do_not_block_threads_that_wait_for_one_lock(root: str, manner: str) -> None:
    assert told_by("forks_among_waiting", root, manner) == {"shared": forker.THREADS * forker.WRITES + 1}


def test_programs_that_inherit_descriptors_keep_no_thread_from_writing(root: str) -> None:
    assert told_by("starts", root) == EACH_WROTE_ALL


def test_workers_of_a_forked_pool_can_write_beside_the_threads_of_their_parent(root: str) -> None:
    assert told_by("pools", root) == EACH_WROTE_ALL


def test_a_child_forked_under_a_lock_waits_until_its_parent_releases_the_lock(root: str) -> None:
    assert told_by("forks_in_rule", root) == {"child": 0, "held": 3, "other": 2}


@pytest.mark.parametrize("manner", ["wait_with_filelock", "sleep_and_retry"])
def test_a_forked_child_that_returns_from_a_rule_cannot_write_but_its_parent_can(root: str, manner: str) -> None:
    told = told_by("returns_from_rule_twice", root, manner)

    assert told.pop("in the child").startswith("StoreFailure: ")
    assert told == {"held": 4}


def test_leaving_a_block_in_a_forked_child_does_not_free_the_parents_key_lock(root: str) -> None:
    assert told_by("leaves_key_lock_twice", root) == {"during": "LockTimeout", "afterwards": "free"}


def test_the_lock_of_a_holder_that_is_killed_is_free_while_its_child_lives_on(
    root: str, holder_and_child: Start
) -> None:
    holder, child = holder_and_child("holds_beside_child")
    assert not is_free(root)

    os.kill(holder, signal.SIGKILL)

    assert is_free(root, 5)
    assert is_alive(child)


def test_killing_a_child_does_not_free_the_lock_of_its_parent(root: str, holder_and_child: Start) -> None:
    holder, child = holder_and_child("holds_beside_child")

    os.kill(child, signal.SIGKILL)
    while is_alive(child):
        continue

    assert not is_free(root)
    assert is_alive(holder)


def test_a_child_that_was_forked_while_its_parent_opened_the_lock_file_does_not_share_the_lock(
    root: str, tmp_path: Path, holder_and_child: Start
) -> None:
    # strace delays the return of the call by a second: the file is open, but Python does not know its descriptor yet.
    if which("strace") is None:
        pytest.skip("needs strace to delay a call")
    slowly = ["strace", "-f", "-qq", "-o", str(tmp_path / "log"), "-P", "one.lock"]
    slowly += ["-e", "trace=openat", "-e", "inject=openat:delay_exit=1000000:when=1"]
    holder, child = holder_and_child("holds_beside_child_of_opening", *slowly)
    assert not is_free(root)

    os.kill(holder, signal.SIGKILL)

    assert is_free(root, 5)
    assert is_alive(child)
