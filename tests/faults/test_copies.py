"""Copies between a folder and a server that are killed at any moment, and writers beside them."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.errors import LockTimeout, NewerSchema, SessionNotFound, StoreFailure
from gaia_sessions.postgres.setup import init
from tests.copies import contents, make_project, that_accept_changes
from tests.servers import Server, empty_url

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to kill at a system call"),
]

KILLS = 50
CALLS = "sendto,recvfrom,renameat,rename,fsync,unlinkat,openat,mkdirat"
"""System calls of all steps: questions to the server, and writes to files."""


def copy(source: str, target: str, at: tuple[str, int] | None = None) -> int:
    """Copies in a process of its own, killed ``at`` the call with this name and number; returns its exit code."""
    words = [sys.executable, "-m", "gaia_sessions", "store", "copy", source, target]
    if at is not None:
        fault = f"inject={at[0]}:signal=SIGKILL:when={at[1]}"
        words = ["strace", "-o", os.devnull, "-e", f"trace={at[0]}", "-e", fault, *words]
    done = subprocess.run(words, check=False, capture_output=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def calls_of_copy(source: str, target: str, trace: Path) -> list[tuple[str, int]]:
    """Copies, and returns each call with its number, from the first question to the server on."""
    words = ["strace", "-o", str(trace), "-e", f"trace={CALLS}", sys.executable, "-m", "gaia_sessions"]
    subprocess.run([*words, "store", "copy", source, target], check=True, capture_output=True)
    names = re.findall(r"^(\w+)\(", trace.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    numbered = [(name, names[: number + 1].count(name)) for number, name in enumerate(names)]
    return numbered[names.index("sendto") :]


def test_a_copy_that_is_killed_50_times_and_repeated_loses_and_doubles_nothing(tmp_path: Path) -> None:
    root, url, chance = str(tmp_path / "session"), empty_url(), random.Random(58)
    make_project(root)
    before = contents(root)
    open_ids = that_accept_changes(Sessions(root))
    calls = calls_of_copy(root, url, tmp_path / "trace")
    source, target, kills = url, root, 0
    while True:
        code = copy(source, target, chance.choice(calls) if kills < KILLS else None)
        here, there = that_accept_changes(Sessions(source)), that_accept_changes(Sessions(target))
        assert {*here} & {*there} == set()
        kills += code != 0
        if code == 0:
            assert (here, there) == ([], open_ids)
            source, target = target, source
            if kills >= KILLS and target == url:
                break
    assert contents(root) == before
    with Sessions(url).store as store:
        assert {*store.ids()} == {name.split("/")[0] for name in before if name[0] != "."} - {*open_ids}


@pytest.mark.parametrize("to_server", [True, False])
@pytest.mark.parametrize("at", [0, 6])
def test_a_copy_ends_when_the_server_goes_away_and_a_repeated_copy_goes_on(
    tmp_path: Path, at: int, *, to_server: bool
) -> None:
    root, server = str(tmp_path / "session"), Server()
    init(server.url)
    make_project(root)
    before = contents(root)
    open_ids = that_accept_changes(Sessions(root))
    source, target = (root, server.url) if to_server else (server.url, root)
    if not to_server:
        Sessions(root).copy_to(server.url)

    def stop(number: int, _: int) -> None:
        if number >= at and os.path.exists(f"{server.folder}/data/postmaster.pid"):
            server.stop("immediate")

    with pytest.raises(StoreFailure, match="cannot connect"):
        Sessions(source, {"lock_timeout": 1}).copy_to(target, on_session=stop)
    server.start()
    here, there = that_accept_changes(Sessions(source)), that_accept_changes(Sessions(target))
    assert {*here} & {*there} == set()
    report = Sessions(source).copy_to(target)
    assert (report["failed"], that_accept_changes(Sessions(target))) == ([], open_ids)
    if to_server:
        Sessions(target).copy_to(source)
    assert contents(root) == before


def test_each_change_during_copies_and_kills_is_made_in_one_place_and_none_is_lost(tmp_path: Path) -> None:
    root, url, chance = str(tmp_path / "session"), empty_url(), random.Random(85)
    make_project(root)
    calls = calls_of_copy(root, url, tmp_path / "trace")
    done = threading.Event()
    acknowledged: list[int] = []

    def write() -> None:
        while not done.is_set():
            for place in (root, url):
                number = len(acknowledged)
                try:
                    Sessions(place).add_message("talk", "user", json.dumps(number))
                except (SessionNotFound, NewerSchema, LockTimeout):
                    continue
                acknowledged.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    source, target = url, root
    for _ in range(20):
        if copy(source, target, chance.choice(calls)) == 0:
            source, target = target, source
    done.set()
    writer.join()
    assert copy(source, target) == 0
    if target == url:
        assert copy(url, root) == 0
    found: list[Any] = [*Sessions(root).messages("talk")]
    assert [json.loads(one["content"]) for one in found if one["content"].isdigit()] == acknowledged
    assert len(acknowledged) > KILLS
