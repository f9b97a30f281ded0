"""Cancelled sub-agents of a host: their sessions and all sessions below end as abandoned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gaia_sessions
from gaia_sessions.api import at, resuming
from gaia_sessions.store.file_store import FileStore
from tests.hook.conftest import own_host, paused
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hook.conftest import Host


def cancel(host: Host, agent_id: str, **options: bool) -> None:
    gaia_sessions.Sessions(str(host.root)).cancel(agent_id, "enough", **options)


ENDS: dict[str, tuple[Callable[[Host], dict[str, Any]], str]] = {
    "a stop": (lambda host: host.ending(), "stopped"),
    "a pause": (lambda host: host.ending(message="[gaia-sessions: approval] may I?"), "stopped"),
    "a failure": (lambda host: host.dying(), "failed"),
    "a kill": (lambda host: host.killing(), "killed"),
    "a return": (lambda host: host.returning(), "returned"),
    "a failed delegation": (lambda host: host.failing(is_interrupt=True), "killed"),
    "a notification": (lambda host: host.notifying("killed"), "killed"),
    "the end of the conversation": (lambda host: host.event_payload("SessionEnd", reason="exit"), "ended_with_host"),
}


@table(("payload", "end"), ENDS.values())
@own_host
def test_l17_a_cancelled_session_is_abandoned_however_its_run_ends(
    host: Host, payload: Callable[[Host], dict[str, Any]], end: str
) -> None:
    agent_id = host.work()
    gaia_sessions.update_state(agent_id, metadata={"found": "half of it"}, root=str(host.root))
    cancel(host, agent_id)

    assert host.hear(payload(host)) is None

    record = host.record()
    assert (record["phase"], record["runs"][0]["end"], record["metadata"]) == (
        "abandoned",
        end,
        {"found": "half of it"},
    )
    assert record["history"][-1]["to_phase"] == "abandoned"
    entries: Any = list(gaia_sessions.Sessions(str(host.root)).events(agent_id))
    assert entries[-1]["phase"] == "abandoned"


def test_a_session_below_a_cancelled_session_is_abandoned_too(host: Host) -> None:
    parent_id = host.work()
    child_id = host.work("toolu_2", "a2", agent_id="a1", agent_type="Explore")
    cancel(host, parent_id)

    host.hear(host.ending("a2"))

    assert host.records()[child_id]["phase"] == "abandoned"
    assert host.records()[child_id]["parent_id"] == parent_id
    assert host.records()[parent_id]["phase"] == "investigating"
    host.hear(host.ending("a1"))
    assert host.records()[parent_id]["phase"] == "abandoned"


def test_l21_a_stop_after_the_end_does_not_change_the_outcome(host: Host) -> None:
    agent_id = host.work()
    cancel(host, agent_id)
    host.hear(host.ending(message="First."))
    ended = host.record()
    host.hear(host.ending(message="Then this.", stop_hook_active=True))
    again = host.record()
    keys = ("phase", "finalized_at", "history", "resume_ready")
    assert {key: again[key] for key in keys} == {key: ended[key] for key in keys}


def test_e7_the_resume_line_of_a_cancelled_session_begins_new_work_without_a_briefing(host: Host) -> None:
    agent_id = paused(host)
    cancel(host, agent_id)

    assert host.hear(host.resuming(agent_id)) is None

    [new_id] = set(host.records()) - {agent_id}
    assert "continues" not in host.records()[new_id]
    assert host.log("hook")[-1]["refused"] == "cancelled"
    assert len(host.records()[agent_id]["runs"]) == 1


def test_e7_a_cancelled_session_is_offered_to_nobody(host: Host) -> None:
    agent_id = paused(host)
    other = host.event_payload("SessionStart", source="startup", session_id="another")
    assert agent_id in host.hear(other)["additionalContext"]
    cancel(host, agent_id)
    assert host.hear(other) is None
    answer = host.ask("pre_delegate", {"agent_id": agent_id})
    assert (answer["should_resume"], answer["detail"]) == (False, "cancelled")
    assert at.read(gaia_sessions.Sessions(str(host.root)), resuming.resumptions) == ([], {})


def test_a_session_of_an_app_is_offered_to_nobody(host: Host) -> None:
    agent_id = paused(host)
    other = host.event_payload("SessionStart", source="startup", session_id="another")
    assert agent_id in host.hear(other)["additionalContext"]
    FileStore(str(host.root)).change(agent_id, lambda record: {**record, "app": "kb", "user": "u1"})
    assert host.hear(other) is None
    assert at.read(gaia_sessions.Sessions(str(host.root)), resuming.resumptions) == ([], {})


def test_a_direct_stop_of_a_cancelled_session_answers_abandoned(host: Host) -> None:
    agent_id = gaia_sessions.create_session(root=str(host.root))
    cancel(host, agent_id)
    answer = host.ask("subagent_stop", {"agent_id": agent_id, "outcome": "completed", "summary": "half of it"})
    assert (answer["finalized"], answer["outcome"]) == (True, "abandoned")
    assert (host.record()["phase"], host.record()["summary"]) == ("abandoned", "half of it")


def test_an_agent_woken_in_a_cancelled_session_stays_in_it_and_ends_abandoned(host: Host) -> None:
    agent_id = paused(host)
    cancel(host, agent_id)
    host.hear(host.starting("a1"))
    assert (len(host.record()["runs"]), host.record()["phase"]) == (2, "executing")
    host.hear(host.ending())
    assert host.record()["phase"] == "abandoned"
