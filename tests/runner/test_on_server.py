"""Runs whose sessions are on a server, seen from two machines."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from gaia_sessions.api.reconciling import close_runs
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.system import utc_now
from tests.machines import Machine, gaia_words
from tests.servers import empty_url
from tests.table import table

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Start = Callable[..., subprocess.Popen[bytes]]

PATIENCE = 60
RUNNING = "running: gaia-sessions run runs: its lease is valid"
LOST = "lost: gaia-sessions run crashed or was closed: its lease has lapsed"
SAME = "0123456789abcdef" * 2

pytestmark = pytest.mark.slow


@pytest.fixture
def url() -> Iterator[str]:
    """An empty database on which a lease lapses in four seconds."""
    url = empty_url()
    set_lapse(url, "4 seconds")
    yield url
    set_lapse(url, "120 seconds")


def set_lapse(url: str, lapse: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION gaia_sessions.lapse () RETURNS interval LANGUAGE sql IMMUTABLE "
            f"AS $$ SELECT interval '{lapse}' $$"
        )


def until(condition: Callable[[], Any]) -> Any:
    """What ``condition`` returns once it is true."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


@pytest.fixture
def run() -> Iterator[Start]:
    """Starts a run of session agent-1 on a machine, and returns its process when the session has that run."""
    started = []

    def start(machine: Machine, *options: str, number: int = 1) -> subprocess.Popen[bytes]:
        process = machine.start(*gaia_words("run", *options, "--", "sleep", "1000"))
        started.append(process)
        until(lambda: f'"run": {number}' in machine.gaia("get", "agent-1").stdout)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def verdicts(machine: Machine) -> list[str]:
    answer = json.loads(machine.gaia("reconcile", "--json").stdout)
    return [f"{one['verdict']}: {one['evidence']}" for one in answer["verdicts"]]


@table("machine_ids", [(None, None), (SAME, SAME)])
def test_a_live_run_is_never_lost_for_another_machine_and_a_killed_one_is_after_its_lease(
    url: str, tmp_path: Path, run: Start, machine_ids: tuple[str | None, str | None]
) -> None:
    empty_url()
    folder = tmp_path / str(machine_ids[0])
    folder.mkdir()
    first, second = (Machine(folder / name, url, one) for name, one in zip("ab", machine_ids, strict=True))
    process = run(first, "--id", "agent-1")
    began = time.monotonic()
    while time.monotonic() < began + 6:  # longer than a lease
        assert verdicts(second) == [RUNNING]
    os.kill(process.pid, signal.SIGKILL)

    lost = until(lambda: [one for one in verdicts(second) if not one.startswith("running")])

    assert lost == [LOST]
    continued = second.gaia("run", "--continues", "agent-1", "--", "echo", "continued")
    assert (continued.returncode, continued.stdout) == (0, "continued\n"), continued.stderr


def test_a_run_that_was_stopped_past_its_lease_ends_its_command_and_says_that_its_end_does_not_count(
    url: str, tmp_path: Path, run: Start
) -> None:
    first, second = Machine(tmp_path / "a", url), Machine(tmp_path / "b", url)
    process = run(first, "--id", "agent-1")
    assert first.gaia("update", "agent-1", "--phase", "planning").returncode == 0  # so the work can be resumed
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: verdicts(second) == [LOST])
    run(second, "agent-1", number=2)

    os.kill(process.pid, signal.SIGCONT)

    assert (process.wait(PATIENCE), "the end of run 1 of session 'agent-1' does not count" in first.said) == (
        4,
        True,
    ), first.said
    assert verdicts(second) == [RUNNING]


def test_a_cancellation_on_one_machine_ends_the_command_on_another(url: str, tmp_path: Path, run: Start) -> None:
    first, second = Machine(tmp_path / "a", url), Machine(tmp_path / "b", url)
    process = run(first, "--id", "agent-1")

    assert second.gaia("cancel", "agent-1").returncode == 0

    assert process.wait(PATIENCE) == 10
    assert json.loads(second.gaia("get", "agent-1").stdout)["phase"] == "abandoned"


@table("minutes", [-5, 5])
def test_a_clock_that_is_five_minutes_off_changes_no_verdict(
    url: str, tmp_path: Path, run: Start, minutes: int
) -> None:
    empty_url()
    run(Machine(tmp_path / f"a{minutes}", url), "--id", "agent-1")

    with Sessions(url).store as store:
        found = close_runs(store, utc_now() + timedelta(minutes=minutes))

    assert [(one["verdict"], one["closed"]) for one in found["verdicts"]] == [("running", False)]
