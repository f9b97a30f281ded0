"""Several processes change one session of ADK and the state of its app: no acknowledged change is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.forks import Forks
from tests.machines import Machine
from tests.servers import empty_url, root_of

APPENDS = """
import asyncio, sys
from google.adk.errors import StaleSessionError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from gaia_sessions.adk import GaiaSessionService

async def main(root, session_id, me, times):
    service, who = GaiaSessionService(root=root), {"app_name": "app", "user_id": "u", "session_id": session_id}
    told = 0
    for number in range(int(times)):
        while True:
            session = await service.get_session(**who)
            delta = {key: session.state.get(key, 0) + 1 for key in ("app:n", "user:n", "n")}
            delta |= {f"key.{me}.{number}": number, "app:last": f"{me}.{number}"}
            try:
                await service.append_event(session, Event(author="a", actions=EventActions(state_delta=delta)))
            except StaleSessionError:
                told += 1
                await asyncio.sleep(0.002 * int(me))
            else:
                break
    print(told)

asyncio.run(main(*sys.argv[1:]))
"""
"""A process that appends events to a session, each with a key of its own, increments, and a key that all set."""

INCREMENTS = Path(__file__).parents[2] / "scripts" / "adk_increments"

pytestmark = [
    pytest.mark.skipif(not (find_spec("google") and find_spec("google.adk")), reason="needs google-adk"),
    pytest.mark.slow,
]


@pytest.mark.parametrize("kind", ["files", "server"])
def test_no_acknowledged_increment_of_four_processes_is_lost(kind: str) -> None:
    service = empty_url() if kind == "server" else "gaia"
    words = [sys.executable, str(INCREMENTS), service, "--seconds", "1", "--processes", "4"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    name, acknowledged, _, failed, *lost = ended.stdout.splitlines()[1].split()
    assert (name, failed, lost, int(acknowledged) > 0) == (service, "0", ["0", "0"], True)


def create(root: str, *session_ids: str) -> None:
    from gaia_sessions.adk import GaiaSessionService

    for session_id in session_ids:
        asyncio.run(GaiaSessionService(root=root).create_session(app_name="app", user_id="u", session_id=session_id))


def check_all_are_stored(root: str, writers: dict[str, list[int]], times: int) -> None:
    """Checks that each event of the ``writers`` of each session is stored, and that each increment counts."""
    from gaia_sessions.adk import GaiaSessionService

    load = GaiaSessionService(root=root).get_session
    sessions = [asyncio.run(load(app_name="app", user_id="u", session_id=session_id)) for session_id in writers]
    deltas = [[event.actions.state_delta for event in session.events] for session in sessions if session]
    everything = [delta for of_session in deltas for delta in of_session]
    shared = {key: times * sum(map(len, writers.values())) for key in ("app:n", "user:n")}
    for key, total in shared.items():
        assert sorted(delta[key] for delta in everything) == [*range(1, total + 1)]
    last = max(everything, key=lambda delta: delta["app:n"])
    for session, found, numbers in zip(sessions, deltas, writers.values(), strict=True):
        own = {f"{me}.{number}": number for me in numbers for number in range(times)}
        keys = {f"key.{name}": number for name, number in own.items()}
        assert sorted(delta["app:last"] for delta in found) == sorted(own)
        assert [delta["n"] for delta in found] == [*range(1, len(own) + 1)]
        assert session is not None
        assert session.state == {**keys, **shared, "n": len(own), "app:last": last["app:last"]}


@pytest.mark.parametrize("kind", ["files", "server"])
@pytest.mark.parametrize(("processes", "times"), [(4, 15), pytest.param(8, 50, marks=pytest.mark.thorough)])
def test_no_event_and_no_key_of_many_processes_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int, times: int, kind: str
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")
    root = root_of(kind, tmp_path)
    create(root, "s")
    forks = Forks(["google.adk.events.event", "gaia_sessions.adk"])
    words = [[sys.executable, "-c", APPENDS, root, "s", str(me), str(times)] for me in range(processes)]
    started = [forks.start(one, [0, 1, 2]) for one in words]
    assert [forks.wait(pid) for pid in started] == [0] * processes
    forks.close()
    check_all_are_stored(root, {"s": [*range(processes)]}, times)


def test_no_event_and_no_key_of_two_machines_is_lost_and_the_stale_are_told(tmp_path: Path) -> None:
    root, times = empty_url(), 250
    machines = [Machine(tmp_path / name, root) for name in "ab"]
    writers = {"s1": [0, 1], "s2": [2, 3]}
    create(root, *writers)
    started = [
        machines[me % 2].start(sys.executable, "-c", APPENDS, root, session_id, str(me), str(times))
        for session_id, numbers in writers.items()
        for me in numbers
    ]
    ended = [(process.communicate()[0], process.returncode) for process in started]
    assert [code for _, code in ended] == [0] * 4, ended
    assert sum(int(told) for told, _ in ended) > 0
    check_all_are_stored(root, writers, times)
