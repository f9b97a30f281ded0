"""``subagent_stop`` from a host: exact keys join a stop to its session, and the last message sets the phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.errors import SessionFinal
from tests.hook.conftest import ASKS, own_host, whole
from tests.table import table

if TYPE_CHECKING:
    from typing import Any

    from tests.hook.conftest import Host


def ended(host: Host, *phases: str, **run: object) -> dict[str, object]:
    """The record of a session that went through ``phases`` and whose run has stopped."""
    final = phases[-1] in {"completed", "failed"}
    ending: dict[str, object] = {"finalized_at": "TIME", "duration_seconds": "SECONDS"} if final else {}
    known = {
        "host": "claude-code",
        "host_session_id": host.SESSION,
        "tool_use_id": "toolu_1",
        "run": 1,
        "claimed_at": "TIME",
        "host_agent_id": "a1",
        "transcript_path": str(host.agents / "agent-a1.jsonl"),
        "ended_at": "TIME",
        "end": "stopped",
        **run,
    }
    history = host.moved(*phases)
    return whole(phase=phases[-1], resume_ready=not final, history=history, revision=2, runs=[known], **ending)


def test_a_stop_ends_only_its_own_session(host: Host) -> None:
    mine, other = host.delegate("toolu_1", "a1"), host.delegate("toolu_2", "a2")
    before = host.records()[other]

    host.stop("a1", "Found 42.")

    records = host.records()
    assert host.timeless(records[mine]) == ended(
        host, "initializing", "investigating", "completed", last_message="Found 42."
    )
    assert records[other] == before
    assert set(records) == {mine, other}


@table("phase", ["approval", "planning", "failed"])
@own_host
def test_a_marker_in_the_last_message_sets_the_phase(host: Host, phase: str) -> None:
    host.delegate()
    message = f"So far.\n[gaia-sessions: {phase}] why"

    host.stop(message=message)

    assert host.timeless(host.record()) == ended(
        host,
        *("initializing", "investigating", phase),
        last_message=message,
        reported=phase,
        detail="said so in its last line",
    )


def test_a_paused_session_may_be_resumed(host: Host) -> None:
    agent_id = host.delegate()

    host.stop(message=ASKS)

    answer = host.ask("pre_delegate", {"agent_id": agent_id})
    assert (answer["should_resume"], answer["resume_metadata"]["previous_phase"]) == (True, "approval")


def test_words_like_failed_in_the_message_do_not_set_the_phase(host: Host) -> None:
    host.delegate()

    host.stop(message="Error: 3 errors, failed, waiting for approval, exit code 1")

    assert host.record()["phase"] == "completed"


REPORTED: dict[str, tuple[list[str], str]] = {
    "approval": (["approval"], "approval"),
    "approval after other work": (["planning", "approval"], "approval"),
    "approval and then more work": (["approval", "executing"], "completed"),
    "planning": (["planning"], "completed"),
    "executing": (["executing"], "completed"),
}


@table(("phases", "phase"), REPORTED.values())
@own_host
def test_a_session_pauses_when_approval_was_reported_last_during_its_run(
    host: Host, phases: list[str], phase: str
) -> None:
    agent_id = host.delegate()
    for reported in phases:
        gaia_sessions.update_state(agent_id, reported, root=str(host.root))

    host.stop()

    record = host.record()
    assert (record["phase"], record["runs"][0]["reported"], record["runs"][0]["end"]) == (phase, phases[-1], "stopped")
    assert record["resume_ready"] is (phase == "approval")
    assert ("finalized_at" in record) is (phase == "completed")


@table("message", [None, "", " \n"])
@own_host
def test_a_stop_without_a_last_message_leaves_the_session_open(host: Host, message: str | None) -> None:
    host.delegate()

    host.stop(message=message)

    expected: dict[str, Any] = ended(host, "initializing", "investigating", detail="stopped without a word")
    [run] = expected["runs"]
    del run["ended_at"], run["transcript_path"]
    assert host.timeless(host.record()) == expected


def test_a_further_stop_of_the_same_run_changes_nothing(host: Host) -> None:
    host.delegate()
    host.stop()
    before = host.tree(host.root)

    host.stop()
    host.stop(message="Something else.")
    host.stop(message=ASKS)

    assert host.tree(host.root) == before
    assert [line["decision"] for line in host.log("subagent_stop")] == ["finalized", "known", "known", "known"]


def test_a_stop_after_a_blocked_stop_moves_a_completed_session_to_approval(host: Host) -> None:
    host.delegate()
    host.stop(message="Done.")

    host.stop(message=ASKS, stop_hook_active=True)

    expected = ended(
        host,
        *("initializing", "investigating", "completed", "approval"),
        last_message=ASKS,
        reported="approval",
        detail="said so in its last line",
    )
    assert host.timeless(host.record()) == {**expected, "revision": 3}


def test_a_second_stop_is_joined_by_its_agent_id_without_the_hosts_note(host: Host) -> None:
    host.delegate()
    host.stop(message="Done.")
    (host.agents / "agent-a1.meta.json").unlink()

    host.stop(message=ASKS, stop_hook_active=True)

    assert host.record()["phase"] == "approval"


def test_a_command_cannot_change_a_session_that_a_stop_completed(host: Host) -> None:
    agent_id = host.delegate()
    host.stop()
    before = host.tree(host.root)

    with pytest.raises(SessionFinal):
        gaia_sessions.update_state(agent_id, "approval", root=str(host.root))
    with pytest.raises(SessionFinal):
        gaia_sessions.finalize_session(agent_id, "failed", root=str(host.root))
    answer = host.ask("subagent_stop", {"agent_id": agent_id, "exit_code": 1, "stop_hook_active": True})

    assert (answer["finalized"], answer["reason"]) == (False, "error")
    assert host.tree(host.root) == before


def test_a_second_stop_does_not_change_a_session_that_a_command_ended(host: Host) -> None:
    agent_id = host.delegate()
    host.stop(message=ASKS)
    gaia_sessions.finalize_session(agent_id, "abandoned", root=str(host.root))
    before = host.tree(host.root)

    host.stop(message="Done.", stop_hook_active=True)

    assert host.tree(host.root) == before


def test_if_a_command_ended_the_session_a_stop_closes_only_the_run(host: Host) -> None:
    agent_id = host.delegate()
    gaia_sessions.finalize_session(agent_id, "abandoned", "Not needed", root=str(host.root))
    before = host.record()

    host.stop(message=ASKS)

    record = host.record()
    assert (record["runs"][0]["end"], record["runs"][0]["last_message"]) == ("stopped", ASKS)
    kept = [key for key in before if key not in {"runs", "revision", "last_updated"}]
    assert {key: record[key] for key in kept} == {key: before[key] for key in kept}


def test_an_id_in_the_marker_joins_a_stop_without_a_host_key(host: Host) -> None:
    agent_id = host.delegate()
    (host.agents / "agent-a1.meta.json").unlink()

    host.stop(message=f"[gaia-sessions: approval {agent_id}] shall I?")

    assert host.record()["phase"] == "approval"
    assert host.record()["runs"][0]["host_agent_id"] == "a1"


def test_an_id_in_the_marker_does_not_join_a_stop_from_another_conversation(host: Host) -> None:
    agent_id = host.delegate()
    (host.agents / "agent-a1.meta.json").unlink()
    before = host.records()

    host.stop(message=f"[gaia-sessions: approval {agent_id}] shall I?", session_id="another")

    assert host.records() == before


def test_a_stop_whose_keys_lead_to_different_sessions_changes_nothing(host: Host) -> None:
    host.delegate("toolu_1", "a1")
    other = host.delegate("toolu_2", "a2")
    before = host.tree(host.root)

    host.stop("a1", f"[gaia-sessions: approval {other}] shall I?")

    assert host.tree(host.root) == before
    assert [line["decision"] for line in host.log("subagent_stop")] == ["keys_disagree"]


def test_an_agent_does_not_end_the_run_of_another_agent(host: Host) -> None:
    host.delegate("toolu_1", "a1")
    host.stop("a1", message=None)
    host.knows("a2", "toolu_1")
    before = host.tree(host.root)

    host.stop("a2")

    assert host.tree(host.root) == before
    assert [line["decision"] for line in host.log("subagent_stop")] == ["joined", "keys_disagree"]


NO_KEY: dict[str, dict[str, Any]] = {
    "an unknown agent": {"agent_id": "a9"},
    "another session of the host": {"session_id": "another", "agent_id": "a9"},
    "a note in another folder": {"transcript_path": "host/0e23a513-af54.jsonl"},
    "no transcript": {"transcript_path": None},
    "a missing transcript": {"transcript_path": "/nonexistent/x.jsonl"},
    "an agent ID that is a path": {"agent_id": "../subagents/agent-a1"},
    "a marker with an unknown id": {"agent_id": "a9", "last_assistant_message": "[gaia-sessions: failed agent-404]"},
}


@table("changes", NO_KEY.values())
@own_host
def test_a_stop_without_a_key_changes_nothing_and_waits_only_if_a_key_may_follow(
    host: Host, changes: dict[str, Any]
) -> None:
    host.delegate()
    before = host.records()

    host.stop(**changes)

    assert host.records() == before
    [waits] = [line["decision"] == "deferred" for line in host.log("subagent_stop")]
    assert waits == any("key_file" in event for event in host.deferred())


NOT_OURS: dict[str, dict[str, Any]] = {
    "a compaction": {"agent_type": ""},
    "no type": {"agent_type": None},
    "another event": {"hook_event_name": "SubagentStart"},
    "the main agent's stop": {"hook_event_name": "Stop"},
    "a failed stop": {"hook_event_name": "StopFailure"},
    "no agent": {"agent_id": None},
    "an agent ID that is not a string": {"agent_id": ["a1"]},
    "no session of the host": {"session_id": None},
}


@table("changes", NOT_OURS.values())
@own_host
def test_an_event_that_is_not_a_sub_agents_stop_changes_nothing(host: Host, changes: dict[str, Any]) -> None:
    host.delegate()
    before = host.tree(host.root)

    assert host.run("subagent_stop", {**host.ending(), **changes}) == (0, b"", b"")

    assert host.tree(host.root) == before
    assert [line["decision"] for line in host.log("subagent_stop")] == ["not_ours"]


def test_the_end_of_a_long_last_message_is_stored_without_control_characters(host: Host) -> None:
    host.delegate()

    host.stop(message="the beginning" + "ü" * 5_000 + "\x1b[31mred\r\n\tand\x7f\x9b the end")

    end = "[31mred\n\tand the end"
    assert host.record()["runs"][0]["last_message"] == "ü" * (4_000 - len(end)) + end


def test_last_messages_are_not_stored_if_that_is_switched_off(host: Host) -> None:
    host.delegate()

    assert host.run("subagent_stop", host.ending(message=ASKS), {"GAIA_SESSIONS_KEEP_LAST_MESSAGE": "off"}).out == b""

    assert host.timeless(host.record()) == ended(
        host,
        *("initializing", "investigating", "approval"),
        reported="approval",
        detail="said so in its last line",
    )
    assert not [path for path, entry in host.tree(host.project).items() if "Ready to apply" in str(entry)]


def test_every_stop_leaves_one_line_in_the_log_without_the_message(host: Host) -> None:
    agent_id = host.delegate()
    host.stop(message=ASKS)

    [line] = host.log("subagent_stop")
    assert line.pop("ms") >= 0
    assert host.timeless(line) == {
        "at": "TIME",
        "event": "SubagentStop",
        "session_id": host.SESSION,
        "agent_id": "a1",
        "agent_type": "Explore",
        "host": "claude-code",
        "host_session_id": host.SESSION,
        "kinds": ["stop"],
        "decision": "paused",
        "session": host.timeless(agent_id),
    }
