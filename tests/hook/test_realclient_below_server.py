"""A real client as the command of `run` on a server: its sub-agent is in files, and a cancellation reaches both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from tests.hook.preset_client import LONGEST, preset_of, until, waiting
from tests.hook.test_realclient import client as client  # noqa: PLC0414  # a fixture
from tests.hook.test_realclient import delegation
from tests.machines import Machine
from tests.servers import empty_url

if TYPE_CHECKING:
    from tests.hook.test_realclient import Client

pytestmark = pytest.mark.realclient

AT_WORK = {
    "main": [{"tools": [delegation("alpha")]}, {"text": "Never said."}],
    "subs": {"alpha": [{"text": "A step.", "tools": [waiting(300)]}, {"text": "Never said."}]},
}


def test_a_cancellation_on_another_machine_ends_client_and_agent_and_both_roots_say_so(client: Client) -> None:
    url = empty_url()
    other = Machine(client.host.folder / "other", url)
    client.install()
    with preset_of(client, AT_WORK) as preset:
        preset.settings["GAIA_SESSIONS_ROOT"] = url
        process = preset.start("run", "--json", "--id", "work", "--task", "[[main]] Do it.", "--", *preset.words)
        until(lambda: preset.requests("sub:alpha"), LONGEST)

        cancelled = other.gaia("cancel", "work", "--reason", "wrong branch")

        out, err = process.communicate(timeout=LONGEST)
        assert (cancelled.returncode, process.returncode) == (0, 10), cancelled.stderr + err
        assert preset.processes() == {}
    files = Sessions(str(client.host.root))
    record: Any = Sessions(url).get("work")
    agents: list[Any] = [*files.list()]
    [agent] = agents
    mark: Any = files.cancellation(agent["agent_id"])
    assert (json.loads(out)["status"], record["phase"]) == ("cancelled", "abandoned")
    assert (agent["parent_id"], agent["state"], agent["running"], mark["by"], mark["reason"]) == (
        "work",
        "cancelled",
        False,
        "work",
        "wrong branch",
    )
    assert record["runs"][-1]["below"] == {"agents": 1, "states": {"cancelled": 1}, "tokens": 120}
