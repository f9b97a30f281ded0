"""Several processes at one session of ADK and at the state of its app: what was acknowledged is there."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROCESSES, KEYS = 8, 50
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

pytestmark = pytest.mark.skipif(not (find_spec("google") and find_spec("google.adk")), reason="needs google-adk")


def test_of_increments_by_four_processes_none_that_was_acknowledged_is_lost() -> None:
    words = [sys.executable, str(INCREMENTS), "gaia", "--seconds", "2", "--processes", "4"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    name, acknowledged, _, failed, *lost = ended.stdout.splitlines()[1].split()
    assert (name, failed, lost, int(acknowledged) > 0) == ("gaia", "0", ["0", "0"], True)


@pytest.mark.slow
def test_of_the_keys_that_eight_processes_set_none_is_lost(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from gaia_sessions.adk import GaiaSessionService

    monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")
    service = GaiaSessionService(root=root)
    asyncio.run(service.create_session(app_name="app", user_id="u", session_id="s"))
    words = [[sys.executable, "-c", SETS, root, str(number), str(KEYS)] for number in range(PROCESSES)]
    started = [subprocess.Popen(one) for one in words]
    assert [process.wait(300) for process in started] == [0] * PROCESSES
    session = asyncio.run(service.get_session(app_name="app", user_id="u", session_id="s"))
    assert session is not None
    assert session.state == {f"key.{number}.{key}": key for number in range(PROCESSES) for key in range(KEYS)}
    assert len(session.events) == PROCESSES * KEYS
