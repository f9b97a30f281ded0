"""Work of a real client that is cancelled, or waited for, from another terminal.

See ``test_realclient``, whose harness this uses; the hooks are those that ``hooks install`` writes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.session.clock import parse_time
from tests.hook.test_realclient import client, delegation, script

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = pytest.mark.realclient

LONGEST = 120
SOON = 5
"""Seconds. An idle machine needs one; a busy machine starts processes more slowly."""

OWN_ENDS: dict[str, list[dict[str, Any]]] = {
    "says what it found": [{"text": "Report of inner.", "delay": 6}],
    "fails": [{"text": "bad request", "status": 400, "delay": 6}],
}


def nested(inner: list[dict[str, Any]]) -> dict[str, Any]:
    """The main agent delegates ``outer``, which delegates ``inner``, which works for some seconds."""
    return {
        "main": [{"tools": [delegation("outer")]}, {"text": "All done."}],
        "subs": {"outer": [{"tools": [delegation("inner")]}, {"text": "Report of outer."}], "inner": inner},
    }


def gaia(client: Client, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gaia_sessions", "--root", str(client.host.root), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)


class Beside:
    """A user at other terminals while the client works."""

    def __init__(self, client: Client, act: Callable[[Beside], None]) -> None:
        self.client = client
        self.waited: subprocess.CompletedProcess[str] | None = None
        self.returned_at = 0.0
        self.error: Exception | None = None
        self._act = act
        self._threads = [threading.Thread(target=self._run)]
        self._threads[0].start()

    def _run(self) -> None:
        try:
            self._act(self)
        except Exception as error:  # noqa: BLE001  # ``done`` checks it
            self.error = error

    def at_work(self, number: int) -> list[Any]:
        """Waits until so many agents are at work; returns the listed sessions, oldest first."""
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline:
            listed = json.loads(gaia(self.client, "list", "--json").stdout or "[]")
            if len([line for line in listed if line["running"]]) == number:
                return sorted(listed, key=lambda line: line["created_at"])
            time.sleep(0.05)
        raise TimeoutError(f"{number} agents were never at work")

    def wait_for(self, agent_id: str) -> None:
        """Starts ``gaia-sessions wait`` for the session in a thread."""

        def wait() -> None:
            self.waited = gaia(self.client, "wait", agent_id, "--json", "--timeout", str(LONGEST))
            self.returned_at = time.time()

        self._threads.append(threading.Thread(target=wait))
        self._threads[-1].start()

    def done(self) -> None:
        for thread in self._threads:
            thread.join(LONGEST)
        assert self.error is None


@pytest.mark.parametrize("inner", OWN_ENDS.values(), ids=OWN_ENDS)
def test_a_cancelled_agent_and_its_sub_agents_are_abandoned_however_they_end(
    client: Client, inner: list[dict[str, Any]]
) -> None:
    def cancel(beside: Beside) -> None:
        outer, _ = beside.at_work(2)
        assert gaia(client, "cancel", outer["agent_id"], "--reason", "enough").returncode == 0

    beside = Beside(client, cancel)
    client.live("own", script(client.host.folder, nested(inner)), installed=True)
    beside.done()

    records = sorted(client.host.records().values(), key=lambda record: "parent_id" in record)
    assert [record.get("parent_id") for record in records] == [None, records[0]["agent_id"]]
    assert [record["phase"] for record in records] == ["abandoned"] * 2
    assert {"ended_at" in run for record in records for run in record["runs"]} == {True}
    reports = [gaia_sessions.Sessions(str(client.host.root)).report(record["agent_id"]) for record in records]
    assert [(report["status"], report["error"]) for report in reports] == [("cancelled", "enough")] * 2
    assert all(report["recent_messages"] for report in reports), "what they said is still there"
    assert client.host.waiting() == []


def test_a_wait_command_in_another_process_returns_soon_after_the_end(client: Client) -> None:
    def wait(beside: Beside) -> None:
        [alone] = beside.at_work(1)
        beside.wait_for(alone["agent_id"])

    beside = Beside(client, wait)
    scenario = {
        "main": [{"tools": [delegation("alpha")]}, {"text": "All done."}],
        "subs": {"alpha": [{"text": "Report of alpha.", "delay": 5}]},
    }
    client.live("own", script(client.host.folder, scenario), installed=True)
    beside.done()

    record = client.host.record()
    assert beside.waited is not None
    [report] = json.loads(beside.waited.stdout)
    assert (beside.waited.returncode, report["status"], report["result"]) == (0, "success", "Report of alpha.")
    written = parse_time(max(run["ended_at"] for run in record["runs"])).timestamp()
    assert 0 < beside.returned_at - written < SOON
