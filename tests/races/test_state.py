"""Many processes at the state of one session, of one app and of one user: nothing acknowledged is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gaia_sessions import Sessions

PROCESSES, TIMES = 8, 50

SETS = """
import sys, gaia_sessions
root, agent_id, number, times = sys.argv[1:]
sessions = gaia_sessions.Sessions(root)
for turn in range(int(times)):
    sessions.change_state(agent_id, {f"key.{number}.{turn}": turn})
"""

COUNTS = """
import sys, gaia_sessions
root, agent_id, number, times = sys.argv[1:]
sessions = gaia_sessions.Sessions(root)
for turn in range(int(times)):
    sessions.change_state(agent_id, add={"plain": 1, "app:n": 1, "user:n": 2})
"""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_LOCK_TIMEOUT", "120")
    monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")


def run_all(code: str, root: str, agent_ids: list[str]) -> None:
    """Runs ``code`` in as many processes at once, each with one of the sessions."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, root, agent_ids[number % len(agent_ids)], str(number), str(TIMES)]
        )
        for number in range(PROCESSES)
    ]
    assert [process.wait(300) for process in processes] == [0] * PROCESSES


def test_of_the_keys_that_many_processes_set_none_is_lost(root: str) -> None:
    agent_id = Sessions(root).create()
    run_all(SETS, root, [agent_id])
    expected = {f"key.{number}.{turn}": turn for number in range(PROCESSES) for turn in range(TIMES)}
    found = Sessions(root).state(agent_id)
    assert (found["state"], found["revision"]) == (expected, PROCESSES * TIMES + 1)


def test_increments_of_what_is_shared_and_of_what_is_not_are_exact(root: str) -> None:
    sessions = Sessions(root)
    two = [sessions.create(app="kb", user="u1") for _ in range(2)]
    run_all(COUNTS, root, two)
    all_of_them = PROCESSES * TIMES
    for agent_id in two:
        expected = {"plain": all_of_them // 2, "app:n": all_of_them, "user:n": 2 * all_of_them}
        assert sessions.state(agent_id)["state"] == expected
