"""More processes than a server has connections: each takes one for a moment, and none keeps it."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.api.sessions import Sessions
from gaia_sessions.postgres.setup import init
from tests.cli.conftest import PATIENCE
from tests.servers import PROGRAMS, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECTIONS = 5
RUNS = WAITS = 8


@pytest.fixture
def small_server() -> Iterator[Server]:
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed")
    server = Server("superuser_reserved_connections = 0", connections=CONNECTIONS)
    init(server.url)
    yield server
    server.remove()


@pytest.mark.slow
def test_idle_runs_and_waits_leave_the_few_connections_of_a_server_to_others(small_server: Server) -> None:
    sessions = Sessions(small_server.url)
    waited = [sessions.create("waited") for _ in range(WAITS)]
    commands = [["run", "--agent", "ran", "--", "cat"]] * RUNS + [["wait", agent_id] for agent_id in waited]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "gaia_sessions", "--root", small_server.url, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for words in commands
    ]
    until = time.monotonic() + PATIENCE
    at_work = 0
    while at_work < RUNS:
        assert time.monotonic() < until
        other = sessions.create("other")
        sessions.update(other, "planning")
        at_work = len([one for one in sessions.list(active_only=True, agent_name="ran") if one.get("running")])
    for agent_id in waited:
        sessions.finalize(agent_id, "completed")
    ended = [(*one.communicate(timeout=PATIENCE), one.returncode) for one in started]
    assert [code for _, _, code in ended] == [0] * len(started), ended
