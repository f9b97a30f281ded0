"""An event that meets a held lock or has no session yet waits in the inbox. The next writer applies it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import gaia_sessions
from gaia_sessions.api import standing
from gaia_sessions.api.foresight import foreseen
from gaia_sessions.config import Config
from gaia_sessions.ingest import deferred
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from tests.hook.conftest import ASKS, own_host, stopped_while_held
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hook.conftest import Host

    Writer = Callable[[Host], object]


def test_a_direct_stop_that_finds_the_lock_held_is_deferred(host: Host) -> None:
    agent_id = gaia_sessions.create_session(agent_id="agent-1", root=str(host.root))
    before = host.records()
    asked = {"agent_id": agent_id, "exit_code": 1, "summary": "Half", "error": "No access"}

    with host.held(agent_id):
        answer = host.ask("subagent_stop", asked)

    assert answer == {
        "finalized": False,
        "agent_id": agent_id,
        "outcome": "failed",
        "reason": "deferred",
        "original_context": asked,
    }
    assert host.records() == before
    assert host.timeless(host.deferred()) == [
        {
            "kind": "finalize",
            "at": "TIME",
            "agent_id": agent_id,
            "outcome": "failed",
            "summary": "Half",
            "error": "No access",
        }
    ]


def test_a_hosts_stop_that_finds_the_lock_held_is_deferred(host: Host) -> None:
    agent_id = host.delegate()
    before = host.records()

    with host.held(agent_id):
        host.stop(message="Done.")

    assert host.records() == before
    assert host.timeless(host.deferred()) == [
        {
            "kind": "stop",
            "at": "TIME",
            "host": "claude-code",
            "host_session_id": host.SESSION,
            "host_agent_id": "a1",
            "agent_name": "Explore",
            "after_block": False,
            "tool_use_id": "toolu_1",
            "transcript_path": str(host.agents / "agent-a1.jsonl"),
            "has_message": True,
            "last_message": "Done.",
        }
    ]
    assert [line["decision"] for line in host.log("subagent_stop")] == ["deferred"]


WRITERS: dict[str, Writer] = {
    "a delegation": lambda host: host.run("pre_delegate", host.delegation("toolu_2")),
    "a stop that can have no note of a host": lambda host: host.stop("../a9"),
    "a direct stop": lambda host: host.ask("subagent_stop", {"agent_id": "other"}),
    "a direct creation": lambda host: host.ask("pre_delegate", {"create": True}),
    "Python that creates": lambda host: gaia_sessions.create_session(root=str(host.root)),
    "Python that updates": lambda host: gaia_sessions.update_state("other", "planning", root=str(host.root)),
    "Python that finalizes": lambda host: gaia_sessions.finalize_session("other", "completed", root=str(host.root)),
    "Python that cleans up": lambda host: gaia_sessions.cleanup_sessions(root=str(host.root)),
}


@table("writer", WRITERS)
@own_host
def test_the_next_writer_applies_a_waiting_event(host: Host, writer: str) -> None:
    gaia_sessions.create_session(agent_id="other", root=str(host.root))
    agent_id = stopped_while_held(host, ASKS)
    [waited] = host.deferred()

    WRITERS[writer](host)

    record = host.records()[agent_id]
    assert (record["phase"], record["runs"][0]["end"]) == ("approval", "stopped")
    assert record["runs"][0]["ended_at"] == record["last_updated"] == waited["at"]
    assert host.deferred() == []


def test_a_stop_without_a_delegation_is_recorded_and_the_late_delegation_adds_no_session(host: Host) -> None:
    host.knows("a1", "toolu_1")
    host.stop("a1", "Done.")
    assert host.record()["phase"] == "completed"

    host.run("pre_delegate", host.delegation("toolu_1"))
    host.run("pre_delegate", host.delegation("toolu_1"))

    assert (host.record()["phase"], host.record()["runs"][0]["last_message"]) == ("completed", "Done.")
    assert host.deferred() == []


def test_an_event_waits_while_the_lock_of_its_session_is_held(host: Host) -> None:
    agent_id = host.delegate()
    with host.held(agent_id):
        host.stop()
        before = host.deferred()

        host.run("pre_delegate", host.delegation("toolu_2"))

        assert host.deferred() == before
        assert host.log("pre_delegate")[-1]["inbox"] == [f"{host.waiting()[0].name} waits: lock_timeout"]


def test_an_event_that_finds_the_lock_held_for_over_a_day_is_not_dropped(host: Host) -> None:
    agent_id = host.delegate()
    with host.held(agent_id):
        host.stop()
        for file in host.waiting():
            aged = {**json.loads(file.read_bytes()), "at": host.ago(hours=25)}
            file.write_text(json.dumps(aged), encoding="utf-8")
        before = host.deferred()

        host.run("pre_delegate", host.delegation("toolu_2"))

        assert host.deferred() == before != []


# The next event of a host, or a direct call.
TOLD_NEXT: list[Callable[[Host], dict[str, Any]]] = [
    lambda host: host.delegation("toolu_2"),
    lambda _: {"create": True},
]


@table(("hours", "waits"), [(23.9, True), (24.1, False)])
@table("told", TOLD_NEXT)
@own_host
def test_an_event_that_finds_no_session_for_a_day_is_dropped_and_logged(
    host: Host, told: Callable[[Host], dict[str, Any]], hours: float, *, waits: bool
) -> None:
    host.hear(host.failing())
    [file] = host.waiting()
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "at": host.ago(hours=hours)}), encoding="utf-8")

    host.run("pre_delegate", told(host))

    assert bool(host.deferred()) is waits
    said = "waits: not_joined" if waits else "dropped after a day: not_joined"
    assert host.log("pre_delegate")[-1]["inbox"] == [f"{file.name} {said}"]


NEVER = {
    "not JSON": (b"{torn", "not JSON"),
    "not an object": (b"[1]", "expected a JSON object, not an array"),
    "an unknown kind": (b'{"kind": "nap", "at": "2026-01-08T18:05:30Z"}', "kind: must be one of delegate, "),
    "an event without its keys": (b'{"kind": "stop", "at": "2026-01-08T18:05:30Z"}', "host_session_id: missing"),
    "an end of an unknown session": (
        b'{"kind": "finalize", "at": "2026-01-08T18:05:30Z", "agent_id": "agent-404", "outcome": "failed"}',
        "no session 'agent-404'",
    ),
    "an impossible id": (
        b'{"kind": "finalize", "at": "2026-01-08T18:05:30Z", "agent_id": "../x", "outcome": "failed"}',
        "'../x' is not a session ID",
    ),
}


@table(("content", "words"), NEVER.values())
@own_host
def test_an_event_that_can_never_be_applied_is_dropped_and_blocks_no_other(
    host: Host, content: bytes, words: str
) -> None:
    agent_id = stopped_while_held(host)
    (host.root / ".inbox" / "20260108-180530-000000-00000000.json").write_bytes(content)

    host.run("pre_delegate", host.delegation("toolu_2"))

    assert host.deferred() == []
    assert host.records()[agent_id]["phase"] == "completed"
    first, second = host.log("pre_delegate")[-1]["inbox"]
    assert first.startswith("20260108-180530-000000-00000000.json dropped: ")
    assert words in first
    assert second.endswith("finalized")


def test_applying_a_waiting_event_a_second_time_changes_nothing(host: Host) -> None:
    agent_id = stopped_while_held(host)
    [file] = host.waiting()
    event = file.read_bytes()
    host.run("pre_delegate", host.delegation("toolu_2"))
    before = host.records()[agent_id]

    file.write_bytes(event)
    host.run("pre_delegate", host.delegation("toolu_2"))

    assert host.records()[agent_id] == before
    assert host.deferred() == []


def test_ends_of_one_session_are_applied_in_the_order_in_which_they_came(host: Host) -> None:
    gaia_sessions.create_session(agent_id="agent-1", root=str(host.root))
    with host.held("agent-1"):
        host.ask("subagent_stop", {"agent_id": "agent-1", "outcome": "abandoned"})
        host.ask("subagent_stop", {"agent_id": "agent-1", "outcome": "completed"})

    host.run("pre_delegate", host.delegation())

    assert host.records()["agent-1"]["phase"] == "abandoned"
    assert host.deferred() == []


WAITING_STOPS: dict[str, tuple[dict[str, object], str | None, str, str, str]] = {
    "in approval by then": ({}, None, "approval", "approval", "waits_for_approval"),
    "executing by then": ({"exit_code": 0}, None, "executing", "completed", "finalized"),
    "failed": ({"exit_code": 1}, "failed", "approval", "failed", "finalized"),
    "with an outcome": ({"outcome": "completed"}, "completed", "approval", "completed", "finalized"),
}


@table(("told", "outcome", "meanwhile", "phase", "word"), WAITING_STOPS.values())
@own_host
def test_a_waiting_direct_stop_is_judged_by_the_phase_when_it_is_applied(
    host: Host, told: dict[str, object], outcome: str | None, meanwhile: str, phase: str, word: str
) -> None:
    agent_id = gaia_sessions.create_session(agent_id="agent-1", root=str(host.root))
    gaia_sessions.update_state(agent_id, "planning", root=str(host.root))
    with host.held(agent_id):
        answer = host.ask("subagent_stop", {"agent_id": agent_id, **told})
    [file] = host.waiting()
    host.edit(agent_id, phase=meanwhile)

    host.run("pre_delegate", host.delegation())

    assert (answer["finalized"], answer["outcome"], answer["reason"]) == (False, outcome, "deferred")
    assert (host.records()[agent_id]["phase"], host.deferred()) == (phase, [])
    assert host.log("pre_delegate")[-1]["inbox"] == [f"{file.name} {word}"]


def test_a_waiting_direct_stop_of_an_earlier_version_ends_the_session_with_its_outcome(host: Host) -> None:
    gaia_sessions.create_session(agent_id="agent-1", root=str(host.root))
    gaia_sessions.update_state("agent-1", "approval", root=str(host.root))
    event = {"kind": "finalize", "at": host.ago(minutes=5), "agent_id": "agent-1", "outcome": "completed"}
    (host.root / ".inbox").mkdir(exist_ok=True)
    (host.root / ".inbox" / "20260108-180530-000000-00000000.json").write_text(json.dumps(event), encoding="utf-8")

    host.run("pre_delegate", host.delegation())

    assert (host.records()["agent-1"]["phase"], host.deferred()) == ("completed", [])


def test_an_event_is_not_dropped_if_the_system_refuses_to_write(host: Host) -> None:
    agent_id = stopped_while_held(host)
    before = host.deferred()

    # No file may grow, so every write fails, as on a full disk.
    host.start("pre_delegate", host.delegation("toolu_2"), {}, "sh", "-c", 'ulimit -f 0; exec "$@"', "sh")

    assert host.deferred() == before
    host.run("pre_delegate", host.delegation("toolu_3"))
    assert host.records()[agent_id]["phase"] == "completed"


def leave_waiting(host: Host, count: int, **changes: object) -> None:
    """Puts ``count`` old stops into the inbox, whose delegations are never reported."""
    store, then = FileStore(str(host.root), durable=False), datetime.now(UTC) - timedelta(hours=1)
    for number in range(count):
        stop: Any = {
            "kind": "stop",
            "at": format_time(then),
            "host": "claude-code",
            "host_session_id": host.SESSION,
            "host_agent_id": f"b{number}",
            "tool_use_id": f"toolu_b{number}",
            "has_message": True,
            **changes,
        }
        store.defer(stop, then)


def test_a_waiting_stop_is_applied_before_a_resume_even_among_a_hundred_events(
    host: Host,
) -> None:
    agent_id = host.delegate()
    leave_waiting(host, 100)
    with host.held(agent_id):
        host.stop(message=ASKS)

    host.hear(host.resuming(agent_id))

    assert host.log("hook")[-1]["decision"] == "claimed"
    assert [run.get("end") for run in host.records()[agent_id]["runs"]] == ["stopped", None]
    assert len(host.waiting()) == 100


@table("over", ["turn", "conversation"])
@own_host
def test_a_waiting_stop_counts_before_the_end_of_its_turn_or_conversation(host: Host, over: str) -> None:
    agent_id = host.work()
    host.hear(host.returning())
    gaia_sessions.update_state(agent_id, "executing", root=str(host.root))
    leave_waiting(host, 100)
    with host.held(agent_id):
        host.stop(message="Done.")

    host.hear(host.pausing() if over == "turn" else host.event_payload("SessionEnd"))

    record = host.records()[agent_id]
    assert (record["phase"], record["runs"][0]["end"]) == ("completed", "stopped")


def test_each_hook_call_tries_a_few_waiting_events_and_leaves_none_out_forever(host: Host) -> None:
    agent_id = host.delegate()
    leave_waiting(host, 50)
    with host.held(agent_id):
        host.stop()
    leave_waiting(host, 50, at=format_time(datetime.now(UTC) - timedelta(hours=25)))
    [concerned] = [name.name for name in host.waiting() if json.loads(name.read_bytes())["host_agent_id"] == "a1"]
    store, config, other = FileStore(str(host.root), durable=False), Config({}), host.event_payload("SessionStart")

    assert host.hear(other) is None
    by_hook = host.log("hook")[-1]["inbox"]
    assert len(by_hook) == deferred.OTHERS_PER_CALL

    tried = {
        line.partition(" ")[0] for line in by_hook
    }  # the choice is random: the first call may already try the stop of a1
    for _ in range(2_000):
        lines = deferred.apply_deferred(store, datetime.now(UTC), config, waiting=store.waiting())
        assert len(lines) <= deferred.OTHERS_PER_CALL
        tried |= {line.partition(" ")[0] for line in lines}
        if len(host.waiting()) == 50 and {file.name for file in host.waiting()} <= tried:
            break
    assert concerned in tried
    assert host.records()[agent_id]["phase"] == "completed"
    assert len(host.waiting()) == 50
    assert {file.name for file in host.waiting()} <= tried


def test_a_command_that_writes_handles_all_waiting_events(host: Host) -> None:
    leave_waiting(host, 20, at=format_time(datetime.now(UTC) - timedelta(hours=25)))

    gaia_sessions.create_session(root=str(host.root))

    assert host.waiting() == []
    assert len(host.log("inbox")[-1]["inbox"]) == 20


def test_an_inbox_file_named_by_an_earlier_version_counts_and_is_applied(host: Host) -> None:
    agent_id = stopped_while_held(host, ASKS)
    [file] = host.waiting()
    file.rename(file.with_name(f"{file.name[:31]}.json"))
    leave_waiting(host, 20)

    assert gaia_sessions.explain_resume(agent_id, root=str(host.root))["reason"] == "session_resumable"
    gaia_sessions.create_session(root=str(host.root))

    assert host.records()[agent_id]["phase"] == "approval"
    assert len(host.waiting()) == 20


def test_a_decision_counts_the_waiting_events_of_its_session_among_a_hundred_others(host: Host) -> None:
    agent_id = host.delegate()  # the start waits for a key that the host writes later
    with host.held(agent_id):
        host.stop(message=ASKS)
    leave_waiting(host, 100)
    before = host.tree(host.root)

    decided = gaia_sessions.explain_resume(agent_id, root=str(host.root))

    assert (decided["reason"], decided["phase"]) == ("session_resumable", "approval")
    assert host.record()["phase"] == "initializing"
    assert host.tree(host.root) == before


def test_a_decision_counts_an_event_that_another_process_applies_meanwhile(host: Host) -> None:
    agent_id = stopped_while_held(host, ASKS)

    class Overtaken(FileStore):
        def deferred(self, names: Any = None) -> Any:
            deferred.apply_deferred(FileStore(self.root), datetime.now(UTC), Config({}))
            return super().deferred(names)

    now, config = datetime.now(UTC), Config({})
    sessions = foreseen(Overtaken(str(host.root)), now, config)
    decided, _ = standing.read_and_decide(sessions, now, agent_id, config.limits)

    assert host.waiting() == []
    assert (decided["reason"], decided["phase"]) == ("session_resumable", "approval")
