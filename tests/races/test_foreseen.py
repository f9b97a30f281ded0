"""Readers while many events wait: they show what the next writer will store, also in a read-only root."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.store.file_store import FileStore
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

WAITING = 300
WRITER = "next-writer"
READERS = get_context("fork")


def with_waiting(root: Path, number: int) -> str:
    """A root with ``number`` delegated sessions, each with a start event that waits in the inbox."""
    store, now = FileStore(str(root), durable=False), datetime.now(UTC)
    for one in range(number):
        keys: Any = {"host": "claude-code", "host_session_id": f"c-{one % 7}", "tool_use_id": f"t-{one}"}
        run: Any = {"run": 1, **keys, "claimed_at": format_time(now)}
        store.create({**new_record(f"s-{one:03}", "Explore", "-", {}, now), "runs": [run]})
        start: Any = {"kind": "start", "at": format_time(now), "host_agent_id": f"a-{one}", **keys}
        store.defer(start, now)
    store.close()
    return str(root)


def phases(root: str) -> Counter[str]:
    listed: Any = gaia_sessions.list_sessions(root=root)
    return Counter(line["phase"] for line in listed if line["agent_id"] != WRITER)


def create(root: str) -> None:
    gaia_sessions.create_session(agent_id=WRITER, root=root)


def test_readers_beside_a_writer_show_all_waiting_events_as_applied(tmp_path: Path) -> None:
    root = with_waiting(tmp_path / "session", WAITING)
    with READERS.Pool(5) as pool:
        readers = [pool.apply_async(phases, (root,)) for _ in range(2)]
        writer = pool.apply_async(create, (root,))
        readers += [pool.apply_async(phases, (root,)) for _ in range(6)]
        shown = [reader.get() for reader in readers]
        writer.get()

    assert shown == [{"investigating": WAITING}] * 8
    assert (phases(root), FileStore(root).waiting()) == ({"investigating": WAITING}, [])


def test_four_readers_of_a_read_only_root_show_all_waiting_events_as_applied(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "none", str(disk)], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a disk: {mounted.stderr.strip()}")
    try:
        root = with_waiting(disk / "session", WAITING)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with READERS.Pool(4) as pool:
            shown = pool.map(phases, [root] * 4, chunksize=1)
        assert (shown, len(FileStore(root).waiting())) == ([{"investigating": WAITING}] * 4, WAITING)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@table("without", [(".locks", ".index"), ()])
def test_listing_sessions_in_a_git_clone_shows_waiting_events_as_applied_and_changes_no_file(
    tmp_path: Path, without: tuple[str, ...]
) -> None:
    made, clone = (tmp_path / f"{name}-{len(without)}" for name in ("made", "clone"))
    root = with_waiting(made / ".claude/session", 3)
    with FileStore(root).lock_key(("any",), 0):  # this makes the folder of locks
        for name in without:
            shutil.rmtree(f"{root}/{name}", ignore_errors=True)

    def git(*words: str) -> str:
        author = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"]
        return subprocess.run(["git", *author, *words], check=True, capture_output=True, text=True).stdout

    git("init", "--quiet", str(made))
    git("-C", str(made), "add", "--force", ".")
    git("-C", str(made), "commit", "--quiet", "--message", "a store")
    git("clone", "--quiet", str(made), str(clone))

    assert phases(f"{clone}/.claude/session") == {"investigating": 3}
    assert git("-C", str(clone), "status", "--porcelain", "--ignored") == ""
    assert len(FileStore(f"{clone}/.claude/session").waiting()) == 3
