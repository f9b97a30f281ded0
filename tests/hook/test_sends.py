"""Sends to the agent of a host: later events of the host still find their runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import Sessions, SubAgentSession
from gaia_sessions.errors import AgentAtWork

if TYPE_CHECKING:
    from tests.hook.conftest import Host

SENDS = 1000


@pytest.mark.slow
def test_a_late_stop_of_a_host_finds_its_run_after_1000_sends(host: Host) -> None:
    agent_id = host.delegate()
    host.hear(host.returning())
    root = str(host.root)
    written = [sum(path.stat().st_size for path in Path(root, agent_id).iterdir())]
    talk = SubAgentSession(lambda _: "answer " * 20, agent_id=agent_id, root=root)
    for number in range(1, SENDS + 1):
        assert talk.send(f"question {number:>4}")["turn"] == number
        written.append(sum(path.stat().st_size for path in Path(root, agent_id).iterdir()))

    host.stop(message="Done at last.")

    record = Sessions(root).store.read(agent_id)
    assert [run["run"] for run in record["runs"]] == [1, SENDS, SENDS + 1]
    assert (record["runs"][0]["end"], record["runs"][0]["last_message"]) == ("stopped", "Done at last.")
    assert (record["phase"], record["turns"], record["runs_dropped"]) == ("investigating", SENDS, SENDS - 2)
    assert Path(root, agent_id, "state.json").stat().st_size < 64 << 10
    early, late = ((written[end] - written[end - 100]) / 100 for end in (200, SENDS))
    assert late < 1.05 * early


def test_an_agent_that_wakes_during_a_send_is_at_work_after_the_send(host: Host) -> None:
    agent_id = host.work()
    host.hear(host.ending(message="May I?\n[gaia-sessions: approval] may I?"))

    def agent(_: object) -> str:
        host.run("every_event", host.messaging())
        host.run("every_event", host.starting())
        return "answer"

    talk = SubAgentSession(agent, agent_id=agent_id, root=str(host.root))
    assert talk.send("go on")["turn"] == 1
    with pytest.raises(AgentAtWork):
        talk.send("too early")
    host.run("every_event", host.ending(message="Done."))
    record = Sessions(str(host.root)).store.read(agent_id)
    assert [(run.get("turn"), run["end"]) for run in record["runs"]] == [
        (None, "stopped"),
        (1, "returned"),
        (None, "stopped"),
    ]
    assert (record["phase"], record["turns"]) == ("completed", 1)
