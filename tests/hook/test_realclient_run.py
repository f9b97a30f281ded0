"""A real client as the command of ``run``: its sub-agents are below the session of the run and end with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.hook.test_realclient import client as client  # noqa: PLC0414  # a fixture
from tests.hook.test_realclient import delegation, script

if TYPE_CHECKING:
    from tests.hook.test_realclient import Client

pytestmark = pytest.mark.realclient

STEP = {"text": "A step.", "tools": [{"name": "Bash", "input": {"command": "sleep 300", "description": "Run it"}}]}
AT_WORK = {
    "main": [{"tools": [delegation("alpha")]}, {"text": "Never said."}],
    "subs": {"alpha": [STEP, STEP]},
    "env": {"GAIA_SESSION_ID": "outer"},  # the harness passes no other variable to the client
}


@pytest.mark.parametrize("options", [[], ["--contain"]], ids=["", "contained"])
def test_a_sub_agent_of_a_client_in_run_and_its_tools_end_with_the_run(client: Client, options: list[str]) -> None:
    client.install()
    root = str(client.host.root)
    scenarios = script(client.host.folder, AT_WORK)
    harness = [str(client.harness / "run.sh"), "own", str(client.host.project), "--run-dir", str(client.run)]
    command = [sys.executable, "-m", "gaia_sessions", "--root", root, "run", "--json", "--id", "outer", *options]
    done = subprocess.run(
        [*command, "--timeout", "20", "--grace", "1", "--", *harness],
        capture_output=True,
        check=False,
        timeout=300,
        env={**os.environ, "REALCLIENT_SCENARIOS": str(scenarios), "REALCLIENT_TAG": root},
    )

    assert (done.returncode, json.loads(done.stdout)["status"]) == (124, "timeout")
    records = client.host.records()
    assert records.pop("outer")["phase"] == "failed"
    [agent] = records.values()
    assert (agent["parent_id"], agent["phase"], agent["runs"][-1]["end"]) == ("outer", "investigating", "lost")
    tagged = subprocess.run(["grep", "-lsz", root, *os_environs()], capture_output=True, text=True, check=False)
    assert tagged.stdout == ""


def os_environs() -> list[str]:
    return [f"/proc/{pid}/environ" for pid in os.listdir("/proc") if pid.isdecimal() and int(pid) != os.getpid()]
