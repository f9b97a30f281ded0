"""Several processes change one session of ADK and the state of its app: no acknowledged change is lost."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.forks import Forks
from tests.servers import empty_url, root_of

SETS = """
import asyncio, sys
from google.adk.errors import StaleSessionError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from gaia_sessions.adk import GaiaSessionService

async def main(root, number):
    service, who = GaiaSessionService(root=root), {"app_name": "app", "user_id": "u", "session_id": "s"}
    for key in range(int(sys.argv[3])):
        while True:
            session = await service.get_session(**who)
            delta = {f"key.{number}.{key}": key}
            try:
                await service.append_event(session, Event(author="a", actions=EventActions(state_delta=delta)))
            except StaleSessionError:
                await asyncio.sleep(0.002 * int(number))
            else:
                break

asyncio.run(main(*sys.argv[1:3]))
"""

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


@pytest.mark.parametrize("kind", ["files", "server"])
@pytest.mark.parametrize(("processes", "keys"), [(4, 15), pytest.param(8, 50, marks=pytest.mark.thorough)])
def test_no_state_key_that_many_processes_set_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int, keys: int, kind: str
) -> None:
    import asyncio

    from gaia_sessions.adk import GaiaSessionService

    monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")
    root = root_of(kind, tmp_path)
    service = GaiaSessionService(root=root)
    asyncio.run(service.create_session(app_name="app", user_id="u", session_id="s"))
    forks = Forks(["google.adk.events.event", "gaia_sessions.adk"])
    words = [[sys.executable, "-c", SETS, root, str(number), str(keys)] for number in range(processes)]
    started = [forks.start(one, [0, 1, 2]) for one in words]
    assert [forks.wait(pid) for pid in started] == [0] * processes
    forks.close()
    session = asyncio.run(service.get_session(app_name="app", user_id="u", session_id="s"))
    assert session is not None
    assert session.state == {f"key.{number}.{key}": key for number in range(processes) for key in range(keys)}
    assert len(session.events) == processes * keys
