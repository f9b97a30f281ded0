"""How runs end: each kind of evidence alone, in any order, twice and concurrently."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gaia_sessions
from gaia_sessions.hook.run import HookCall
from gaia_sessions.hosts import HOOK, claude_code
from gaia_sessions.system import streams
from tests.hook.conftest import ASKS, SILENT, another, own_host
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hook.conftest import Host

    Evidence = Callable[[Host], dict[str, Any]]

EVIDENCE: dict[str, Evidence] = {
    "a stop": lambda host: host.ending(),
    "a stop that asks": lambda host: host.ending(message=ASKS),
    "a silent stop": lambda host: host.ending(message=None),
    "a return": lambda host: host.returning(),
    "a failed agent": lambda host: host.dying(),
    "a failed delegation": lambda host: host.failing(),
    "an interrupt": lambda host: host.failing(is_interrupt=True),
    "a task stop": lambda host: host.killing(),
    "notified: completed": lambda host: host.notifying("completed"),
    "notified: failed": lambda host: host.notifying("failed"),
    "notified: killed": lambda host: host.notifying("killed"),
    "the main stop": lambda host: host.pausing(),
    "a limit": lambda host: {**host.dying(error=LIMIT), "error": "rate_limit"},
    "the session's end": lambda host: host.event_payload("SessionEnd", reason="other"),
}

LIMITED = "stopped at a limit that is reset at"
LIMIT = "You've hit your limit · resets 2:23pm (UTC)"

End = tuple[str, str | None, int]
"""The phase of a session, the end of its latest run, and its number of errors."""

# The result for an agent that investigates, and for an agent that executes.
AT_WORK: dict[str, tuple[End, End]] = {
    "a stop": (("completed", "stopped", 0), ("completed", "stopped", 0)),
    "a stop that asks": (("approval", "stopped", 0), ("approval", "stopped", 0)),
    "a return": (("investigating", "returned", 0), ("executing", "returned", 0)),
    "a failed agent": (("investigating", "failed", 1), ("failed", "failed", 1)),
    "a failed delegation": (("investigating", "failed", 1), ("failed", "failed", 1)),
    "an interrupt": (("investigating", "killed", 0), ("planning", "killed", 0)),
    "a limit": (("investigating", "killed", 0), ("planning", "killed", 0)),
    "a task stop": (("abandoned", "killed", 0), ("abandoned", "killed", 0)),
    "notified: completed": (("investigating", "returned", 0), ("failed", "returned", 0)),
    "notified: failed": (("investigating", "failed", 1), ("failed", "failed", 1)),
    "notified: killed": (("abandoned", "killed", 0), ("abandoned", "killed", 0)),
    "the main stop": (("investigating", "killed", 0), ("planning", "killed", 0)),
    "the session's end": (("investigating", "ended_with_host", 0), ("abandoned", "ended_with_host", 0)),
}


def end(record: Any) -> End:
    run = record["runs"][-1]
    return record["phase"], run["end"] if "ended_at" in run else None, record["error_count"]


def tell(host: Host, *names: str) -> None:
    """Reports each piece of evidence; a reply may only say how to resume the work."""
    for name in names:
        told = host.hear(EVIDENCE[name](host))
        assert told is None or any(words in told["additionalContext"] for words in ("This is possible until", LIMITED))


@table("name", AT_WORK)
@own_host
def test_each_evidence_ends_a_working_agents_run_sets_the_phase_and_counts_once(host: Host, name: str) -> None:
    host.work("toolu_1", "a1")

    tell(host, name)
    assert end(host.record()) == AT_WORK[name][0]
    before = host.records()
    tell(host, name)

    assert host.records() == before


@table("name", AT_WORK)
@own_host
def test_each_evidence_sets_the_end_and_the_phase_of_an_agent_that_executes(host: Host, name: str) -> None:
    gaia_sessions.update_state(host.work(), "executing", root=str(host.root))

    tell(host, name)

    record = host.record()
    final = record["phase"] in {"completed", "failed", "abandoned"}
    assert end(record) == AT_WORK[name][1]
    assert (record["resume_ready"], "finalized_at" in record) == (record["phase"] in {"approval", "planning"}, final)


DENIALS = [("a failed delegation", "denied"), ("the main stop", "denied"), ("the session's end", "denied")]


@table(("name", "word"), [*DENIALS, ("an interrupt", "killed")])
@own_host
def test_a_delegation_that_never_started_ends_as_denied_or_killed(host: Host, name: str, word: str) -> None:
    assert host.hear(host.delegation()) is None

    tell(host, name, name)

    assert end(host.record()) == ("abandoned", word, 0)
    assert host.timeless(host.record()["history"]) == host.moved("initializing", "abandoned")


# The result is the same in every order.
TOGETHER: list[tuple[tuple[str, ...], End]] = [
    (("a stop", "a return", "the main stop"), ("completed", "stopped", 0)),
    (("a stop that asks", "a return", "the main stop"), ("approval", "stopped", 0)),
    (("a failed agent", "a failed delegation"), ("investigating", "failed", 1)),
    (("a failed agent", "a return"), ("investigating", "failed", 1)),
    (("a failed agent", "notified: failed"), ("investigating", "failed", 1)),
    (("a stop", "notified: completed"), ("completed", "stopped", 0)),
    (("a task stop", "notified: killed"), ("abandoned", "killed", 0)),
    (("an interrupt", "the session's end"), ("investigating", "killed", 0)),
    (("an interrupt", "a stop"), ("completed", "stopped", 0)),
    (("the main stop", "a stop"), ("completed", "stopped", 0)),
    (("the main stop", "a failed agent"), ("investigating", "failed", 1)),
    (("the main stop", "a return"), ("investigating", "returned", 0)),
    (("a limit", "a return", "the main stop"), ("investigating", "killed", 0)),
    (("a limit", "notified: completed"), ("investigating", "killed", 0)),
    (("a limit", "the session's end"), ("investigating", "killed", 0)),
    (("a silent stop", "a failed delegation"), ("investigating", "failed", 1)),
    (("a stop", "a silent stop"), ("completed", "stopped", 0)),
]


@table(("names", "expected"), TOGETHER)
def test_evidence_in_any_order_gives_the_same_end(host: Host, names: tuple[str, ...], expected: End) -> None:
    for order in itertools.permutations(names):
        one = another(host)
        one.work()

        tell(one, *order)

        assert (order, end(one.record())) == (order, expected)


BEFORE_ITS_NOTE = ("a start", "a failed agent", "a failed delegation", "the main stop", "its note")


ORDERS = [
    order
    for names in (BEFORE_ITS_NOTE, tuple(name for name in BEFORE_ITS_NOTE if name != "a failed delegation"))
    for order in itertools.permutations(names)
    if all(order.index("a start") < order.index(name) for name in names if name not in ("a start", "the main stop"))
]


def test_a_failure_is_recorded_no_matter_when_the_host_notes_the_delegation(host: Host) -> None:
    for order in ORDERS:
        one = another(host)
        one.hear(one.delegation())

        for name in order:
            if name == "its note":
                one.knows("a1", "toolu_1")
            else:
                one.hear(one.starting() if name == "a start" else EVIDENCE[name](one))
        one.hear(one.event_payload("SessionStart", source="resume"))

        [run] = one.record()["runs"]
        told = (end(one.record()), run["host_agent_id"], one.deferred())
        assert (order, told) == (order, (("investigating", "failed", 1), "a1", []))


def test_a_silent_stop_leaves_the_run_open_until_its_delegation_returns(host: Host) -> None:
    host.work()

    tell(host, "a silent stop")

    [run] = host.record()["runs"]
    assert (run["end"], run["detail"], "ended_at" in run) == ("stopped", "stopped without a word", False)
    assert host.record()["phase"] == "investigating"

    tell(host, "a return")
    assert end(host.record()) == ("completed", "stopped", 0)


def test_a_late_stop_replaces_the_phase_that_the_end_of_the_turn_concluded(
    host: Host,
) -> None:
    gaia_sessions.update_state(host.work(), "executing", root=str(host.root))
    tell(host, "a return")
    assert end(host.record()) == ("executing", "returned", 0)

    tell(host, "the main stop", "the main stop")
    assert end(host.record()) == ("failed", "returned", 0)

    tell(host, "a stop")
    assert end(host.record()) == ("completed", "stopped", 0)

    tell(host, "a task stop")
    assert end(host.record()) == ("completed", "killed", 0)


@table("order", [["start", "launch"], ["launch", "start"]])
@own_host
def test_a_background_launch_and_its_start_may_come_in_either_order(host: Host, order: list[str]) -> None:
    host.hear(host.delegation())
    news = {"start": host.starting(), "launch": host.launching()}
    for name in order:
        told = host.hear(news[name])
        assert (told is not None) is (name == "start")
    host.knows("a1", "toolu_1")
    host.hear(host.pausing("a1"))

    record = host.record()
    [run] = record["runs"]
    assert (run["host_agent_id"], run["background"], "started_at" in run) == ("a1", True, True)
    assert (record["phase"], "end" in run, host.deferred()) == ("investigating", False, [])

    tell(host, "a stop", "notified: completed", "the main stop")
    assert end(host.record()) == ("completed", "stopped", 0)
    assert host.timeless(host.record()["history"]) == host.moved("initializing", "investigating", "completed")


def test_a_main_stop_ends_neither_background_agents_nor_their_delegations(host: Host) -> None:
    host.hear(host.delegation("toolu_1"))
    host.hear(host.launching("toolu_1", "a1"))
    host.hear(host.delegation("toolu_2", agent_id="a1"))
    host.hear(host.delegation("toolu_3", session_id="another"))
    before = host.records()

    host.hear(host.pausing("a1"))

    assert host.records() == before


def in_background(host: Host) -> dict[str, Any]:
    asked = {"description": "Count", "prompt": "p", "subagent_type": "Explore", "run_in_background": True}
    return host.delegation(tool_input=asked)


def test_a_main_stop_denies_an_unlisted_background_delegation_until_it_starts(host: Host) -> None:
    host.hear(in_background(host))

    tell(host, "the main stop")

    assert end(host.record()) == ("abandoned", "denied", 0)
    assert host.record()["runs"][0]["detail"] == "never started"
    host.knows("a1", "toolu_1")
    host.hear(host.starting())
    assert end(host.record()) == ("investigating", None, 0)


@table(
    ("task", "expected"),
    [
        ({"id": "a9", "type": "subagent", "status": "running", "agent_type": "Explore"}, ("initializing", None, 0)),
        ({"id": "b1", "type": "shell", "status": "running", "command": "sleep 60"}, ("abandoned", "denied", 0)),
    ],
)
@own_host
def test_only_a_listed_agent_keeps_a_delegation_without_a_start_open(
    host: Host, task: dict[str, str], expected: End
) -> None:
    host.hear(in_background(host))

    host.hear({**host.pausing(), "background_tasks": [task]})

    assert end(host.record()) == expected


def test_a_completed_notification_without_a_stop_fails_a_validating_session(host: Host) -> None:
    # Claude Code reports an agent that reached its turn limit like this.
    host.hear(host.delegation())
    host.hear(host.launching())
    gaia_sessions.update_state(host.record()["agent_id"], "validating", root=str(host.root))

    tell(host, "notified: completed", "notified: completed")

    assert end(host.record()) == ("failed", "returned", 0)


@table("keys", [{"agent": ""}, {"tool_use_id": ""}])
@own_host
def test_a_notification_is_joined_by_either_key(host: Host, keys: dict[str, str]) -> None:
    host.work()

    host.hear(host.notifying("failed", **keys))

    assert end(host.record()) == ("investigating", "failed", 1)
    assert host.record()["last_error"]["message"] == "Agent failed"


LOST_WITH_CLIENT = (
    'Background agent "Job alpha" was running when the previous Claude Code process exited and did not complete. '
    "Its in-process state was lost."
)


@table("is_reported", [False, True])
@own_host
def test_an_agent_that_ended_with_its_client_counts_no_error(host: Host, *, is_reported: bool) -> None:
    host.work()
    if is_reported:
        host.hear(host.event_payload("SessionEnd", reason="other"))

    host.hear(host.notifying("failed", summary=LOST_WITH_CLIENT))

    assert end(host.record()) == ("investigating", "killed", 0)
    assert host.record()["runs"][0]["interruption"] == "interrupted"
    assert gaia_sessions.should_resume(host.record()["agent_id"], root=str(host.root))


def test_a_killed_notification_after_the_end_of_the_conversation_changes_nothing(host: Host) -> None:
    host.work()
    host.hear(host.event_payload("SessionEnd", reason="other"))
    before = host.record()

    host.hear(host.notifying("killed", summary='Agent "Job alpha" was stopped by user'))

    assert (end(before), host.record()) == (("investigating", "ended_with_host", 0), before)


@table("prompt", ["Please go on", "see <task-notification><task-id>a1</task-id>", "", 7, None])
@own_host
def test_a_typed_prompt_that_is_no_notification_changes_nothing(host: Host, prompt: object) -> None:
    host.work()
    before = host.records()

    assert host.hear(host.event_payload("UserPromptSubmit", prompt=prompt)) is None

    assert host.records() == before
    assert host.log("hook")[-1]["decision"] == "not_ours"


@table(("phase", "expected"), [("investigating", "session_resumable"), ("executing", "phase_not_resumable")])
@own_host
def test_killing_the_host_makes_a_session_resumable_if_its_phase_allows_it(
    host: Host, phase: str, expected: str
) -> None:
    with host.client() as client:
        agent_id = host.work()
        gaia_sessions.update_state(agent_id, phase, root=str(host.root))
        before = host.record()
        running = gaia_sessions.explain_resume(agent_id, root=str(host.root))
        client.kill()

    decided = gaia_sessions.explain_resume(agent_id, root=str(host.root))

    assert before["runs"][0]["host_process"]["pid"] == client.pid
    assert running["reason"] == ("running" if phase == "investigating" else expected)
    assert decided["reason"] == expected
    assert host.record() == before


def test_a_session_with_a_waiting_start_is_resumable_once_its_host_was_killed(host: Host) -> None:
    with host.client() as client:
        host.begin()
        agent_id = host.record()["agent_id"]
        running = gaia_sessions.explain_resume(agent_id, root=str(host.root))
        client.kill()
    before = host.tree(host.root)

    decided = gaia_sessions.explain_resume(agent_id, root=str(host.root))

    assert (running["reason"], decided["reason"]) == ("running", "session_resumable")
    assert (decided["phase"], host.record()["phase"]) == ("investigating", "initializing")
    assert host.tree(host.root) == before
    told = host.hear(host.resuming(agent_id, session_id="another"))
    assert f"[gaia-sessions: briefing {agent_id}]\nYou resume work" in told["updatedInput"]["prompt"]


def test_a_full_record_does_not_block_the_next_event_of_the_same_payload(host: Host) -> None:
    first, second = host.work("toolu_1", "a1"), host.work("toolu_2", "a2")
    file = host.root / first / "state.json"
    padding = (1 << 20) - len(json.dumps(host.records()[first])) - 50  # leaves no room for another change
    host.edit(first, metadata={"x": "y" * padding})
    full = file.read_bytes()
    said = {"type": "user", "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]}}
    for agent in ("a2", "a1"):  # the hook reads the newest file first
        (host.agents / f"agent-{agent}.jsonl").write_text(json.dumps(said) + "\n", encoding="utf-8")

    told = host.hear(host.event_payload("UserPromptSubmit", prompt="Go on"))

    assert f"resume {second}]" in told["additionalContext"]
    assert file.read_bytes() == full
    assert end(host.records()[second]) == ("investigating", "killed", 0)
    line = host.log("hook")[-1]
    assert (line["kinds"], line["decision"], line["session"]) == (["notification"] * 2, "broken_off", second)
    assert [event["host_agent_id"] for event in host.deferred()] == ["a1"]


def test_an_unreadable_inbox_file_does_not_prevent_a_decision(host: Host) -> None:
    agent_id = host.work()
    (host.root / ".inbox").mkdir(exist_ok=True)
    (host.root / ".inbox" / "20260108-180530-000000-00000000.json").write_bytes(b"\xff")
    (host.root / ".inbox" / "20260108-180530-000000-00000001.json").mkdir()

    assert gaia_sessions.explain_resume(agent_id, root=str(host.root))["reason"] == "running"


def test_a_delegation_resumes_the_work_of_a_killed_host(host: Host) -> None:
    with host.client() as client:
        host.hear(host.delegation())
        host.knows("a1", "toolu_1")
        host.hear(host.starting())
        client.kill()
    agent_id = host.record()["agent_id"]

    told = host.hear(host.resuming(agent_id, session_id="another"))

    assert f"[gaia-sessions: briefing {agent_id}]\nYou resume work" in told["updatedInput"]["prompt"]
    runs = host.record()["runs"]
    assert [(run.get("end"), run.get("detail")) for run in runs] == [
        ("lost", "Claude Code crashed or was closed while the agent was at work"),
        (None, None),
    ]
    assert (host.record()["phase"], host.record()["error_count"]) == ("investigating", 0)


def test_a_message_to_a_finished_agent_starts_a_new_session_that_continues_the_old_one(host: Host) -> None:
    first = host.work()
    tell(host, "a stop", "a return")
    before = host.record()

    assert host.hear(host.messaging()) is None
    assert host.records() == {first: before}
    host.hear(host.starting())
    host.hear(host.ending(message="And 43."))
    tell(host, "notified: completed")

    records = host.records()
    assert records.pop(first) == before
    [second] = records.values()
    assert (second["continues"], second["phase"], second["purpose"]) == (first, "completed", "Count quokkas")
    [run] = second["runs"]
    assert (run["host_agent_id"], run["end"], run["last_message"]) == ("a1", "stopped", "And 43.")
    assert "tool_use_id" not in run


def test_a_message_to_a_paused_agent_starts_a_new_run_of_the_same_session(host: Host) -> None:
    host.work()
    tell(host, "a stop that asks", "a return")
    before = host.record()

    assert host.hear(host.messaging()) is None
    host.hear(host.starting())
    woken = host.record()
    assert (woken["phase"], woken["last_updated"] > before["last_updated"]) == ("executing", True)
    host.hear(host.ending(message="Applied."))

    record = host.record()
    assert [(run["run"], run["host_agent_id"], run["end"]) for run in record["runs"]] == [
        (1, "a1", "stopped"),
        (2, "a1", "stopped"),
    ]
    assert end(record) == ("completed", "stopped", 0)


def test_a_message_to_a_running_agent_changes_nothing_but_its_journal(host: Host) -> None:
    agent_id = host.work()
    before = host.record()

    assert host.hear(host.messaging()) is None
    host.hear(host.starting())

    assert host.record() == before
    assert [entry["kind"] for entry in host.journal(agent_id)] == ["delegate", "start", "message"]


def test_each_message_is_recorded_once_even_if_it_is_reported_often(host: Host) -> None:
    agent_id = host.work()

    for call in ("toolu_m", "toolu_m", "toolu_n", "toolu_m"):
        host.hear({**host.messaging(), "tool_use_id": call})

    told = [entry for entry in host.journal(agent_id) if entry["kind"] == "message"]
    assert [entry["evidence"]["call"] for entry in told] == ["toolu_m", "toolu_n"]


def test_a_stop_after_a_blocked_stop_counts_once_if_it_is_reported_twice(host: Host) -> None:
    agent_id = host.work()
    host.hear(host.ending(message="First try."))
    host.hear(host.ending(message="Second try.", stop_hook_active=True))
    before = host.record()

    host.hear(host.ending(message="Second try.", stop_hook_active=True))

    assert (host.record(), before["runs"][0]["last_message"]) == (before, "Second try.")
    assert [entry["kind"] for entry in host.journal(agent_id)] == ["delegate", "start", "stop", "stop"]
    host.hear(host.ending(message="[gaia-sessions: approval] well?", stop_hook_active=True))
    assert host.record()["phase"] == "approval"


@table("to", ["scout", "", None, 7, "a" * 600, "../a1"])
@own_host
def test_a_message_to_an_unknown_agent_changes_nothing(host: Host, to: Any) -> None:
    host.work()
    before = host.tree(host.root)

    assert host.hear(host.messaging(to)) is None

    assert host.tree(host.root) == before


def test_the_journal_has_one_line_for_each_event_that_changed_the_session(host: Host) -> None:
    agent_id = host.work()
    tell(host, "a silent stop", "a failed delegation", "a failed delegation", "a return", "the session's end")

    known = {"host": "claude-code", "host_session_id": host.SESSION}
    agent, key = {"host_agent_id": "a1"}, {"tool_use_id": "toolu_1"}
    entries = [
        {"kind": "delegate", "phase": "initializing", "evidence": {**known, **key}},
        {"kind": "start", "phase": "investigating", "evidence": {**known, **agent, **key}},
        {
            "kind": "stop",
            "phase": "investigating",
            "end": "stopped",
            "detail": "stopped without a word",
            "evidence": {**known, **agent, **key, "after_block": False},
        },
        {
            "kind": "fail",
            "phase": "investigating",
            "end": "failed",
            "detail": "No such agent",
            "evidence": {**known, **agent, **key},
        },
    ]
    expected = [{"at": "TIME", "run": 1, "revision": number, **entry} for number, entry in enumerate(entries, 1)]
    assert host.journal(agent_id) == expected


def all_at_once(host: Host, payloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Starts one hook for each payload, all at the same time, and returns their log lines."""
    before = len(host.log("hook"))
    with ThreadPoolExecutor(len(payloads)) as pool:
        ran = list(pool.map(partial(host.start, "every_event"), payloads))
    assert {(one.code, one.err) for one in ran} == {(0, b"")}
    lines = host.log("hook")[before:]
    assert len(lines) == len(payloads)
    assert max(line["ms"] for line in lines) < 3_000
    return lines


@pytest.mark.parametrize("each", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_many_concurrent_hooks_on_one_store_lose_nothing(host: Host, each: int) -> None:
    begun = [host.delegate(f"toolu_{number}", f"a{number}") for number in range(each)]
    stops = [host.ending(f"a{number}", f"Found {number}.") for number in range(each)]
    fresh = [host.delegation(f"toolu_new_{number}") for number in range(each)]

    lines = all_at_once(host, [payload for pair in zip(stops, fresh, strict=True) for payload in pair])

    records = host.records()
    said = {agent_id: records[agent_id]["runs"][0].get("last_message") for agent_id in begun}
    assert list(said.values()) == [f"Found {number}." for number in range(each)]
    assert {records.pop(agent_id)["phase"] for agent_id in begun} == {"completed"}
    assert sorted(record["runs"][0]["tool_use_id"] for record in records.values()) == [
        f"toolu_new_{number}" for number in range(each)
    ]
    assert sorted(line["decision"] for line in lines) == ["created"] * each + ["finalized"] * each
    assert host.deferred() == []


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_many_concurrent_hooks_about_one_agent_record_one_end(host: Host, times: int) -> None:
    agent_id = host.work()
    payloads = [host.ending(), host.returning(), host.pausing(), host.ending("a1", None)] * times

    all_at_once(host, payloads)
    host.hear(host.delegation("toolu_2"))  # applies the events that wait

    record = host.records()[agent_id]
    assert (end(record), len(record["runs"]), host.deferred()) == (("completed", "stopped", 0), 1, [])


def whole(host: Host) -> list[dict[str, Any]]:
    """A valid payload of every event that has a reader."""
    return [
        *(EVIDENCE[name](host) for name in EVIDENCE),
        *(host.delegation(), host.starting(), host.launching(), host.messaging()),
        host.event_payload("SessionStart", source="startup"),
        host.event_payload("PermissionRequest", agent_id="a1", agent_type="Explore", tool_name="Bash", tool_input={}),
    ]


def test_the_sample_payloads_cover_every_event(host: Host) -> None:
    assert {payload["hook_event_name"] for payload in whole(host)} == set(claude_code.READERS)


WRONG: list[object] = [None, True, 0, -1.5, "", " \n", "../x", "x" * 100_000, [], [[]], ["a1"], {}, {"id": {"id": 1}}]


def outputs(host: Host, monkeypatch: pytest.MonkeyPatch, payload: object) -> list[Any]:
    """What the hook prints for ``payload``; the hook must not log an error."""
    said: list[Any] = []
    data = json.dumps(payload).encode()
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(host.project))
    monkeypatch.setenv("CLAUDE_PID", "0")
    monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")
    monkeypatch.setattr(streams, "read_input", lambda _limit, _seconds: data)
    monkeypatch.setattr(streams, "write_output", lambda answer, _seconds: said.append(json.loads(answer)))
    call = HookCall(HOOK, [])
    call.run()
    assert "error" not in call.line
    return said


def is_harmless(payload: dict[str, Any], answer: Any) -> bool:
    """Whether ``answer`` has the form of a reply to this event and decides nothing."""
    told = answer["hookSpecificOutput"]
    event = payload["hook_event_name"]
    allowed = "updatedInput" if event == "PreToolUse" else "additionalContext"
    return event != "SubagentStop" and set(answer) == {"hookSpecificOutput"} and set(told) == {"hookEventName", allowed}


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_payload_with_one_wrong_value_decides_nothing(host: Host, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    host.work()
    changed = [(payload, key, value) for payload in whole(host) for key in payload for value in WRONG]

    for payload, key, value in changed[::step]:
        answers = outputs(host, monkeypatch, {**payload, key: value})
        assert [(key, value, answer) for answer in answers if not is_harmless(payload, answer)] == []

    assert {record["schema"] for record in host.records().values()} == {1}


_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=8,
)
_names = sorted(
    {"session_id", "agent_id", "agent_type", "tool_name", "tool_input", "tool_response", "tool_use_id", "tool_calls"}
    | {"prompt", "last_assistant_message", "transcript_path", "agent_transcript_path", "background_tasks", "error"}
    | {"subagent_type", "description", "task_id", "agentId", "status", "to", "id", "is_interrupt", "stop_hook_active"}
)
_part = st.dictionaries(st.sampled_from(_names), _json | st.dictionaries(st.sampled_from(_names), _json), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_payload_of_any_event_makes_a_hook_raise_or_decide(
    host: Host, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    payload = data.draw(st.sampled_from(whole(host)))
    changed = {**payload, **data.draw(_part)}
    for name in ("tool_input", "tool_response"):
        if isinstance(changed.get(name), dict):
            changed[name] = {**changed[name], **data.draw(_part)}

    answers = outputs(host, monkeypatch, changed)

    assert [answer for answer in answers if not is_harmless(payload, answer)] == []


@table("value", [None, 7, "", [[]], {"a": {}}])
@own_host
def test_a_payload_of_only_wrong_types_prints_and_records_nothing(host: Host, value: object) -> None:
    for event in claude_code.READERS:
        payload = next(payload for payload in whole(host) if payload["hook_event_name"] == event)
        wrong = {**dict.fromkeys(payload, value), "hook_event_name": event}
        assert (event, host.run("every_event", wrong)) == (event, SILENT)
    assert host.records() == {}


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "blanks": b" \n",
    "cut off": b'{"hook_event_name": "SubagentStart", "agent_id',
    "a list": b'["SubagentStart"]',
    "a word": b'"SubagentStart"',
    "no event": b'{"session_id": "s"}',
    "deep": b'{"hook_event_name": "Stop", "a": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "a direct question": b'{"agent_id": "agent-1", "create": true}',
}


@table("data", HOSTILE.values())
@own_host
def test_input_that_no_host_sends_makes_the_hook_print_and_write_nothing(host: Host, data: bytes) -> None:
    assert host.run("every_event", data) == SILENT

    assert not host.root.exists()


def test_no_hook_prints_anything_about_a_stop(host: Host) -> None:
    host.work()
    pauses = [host.ending(message=message) for message in (None, "Done.", ASKS, "x" * 100_000)]
    again = [payload | {"stop_hook_active": True} for payload in pauses]
    unknown = [host.ending("a9"), host.ending(agent_type=""), host.ending(session_id="another")]

    for payload in [*pauses, *again, *unknown]:
        for hook in ("every_event", "subagent_stop", "pre_delegate"):
            assert host.run(hook, payload) == SILENT


def test_a_hook_that_is_switched_off_leaves_no_trace(host: Host) -> None:
    before = host.tree(host.project)

    assert [host.hear(payload, {"GAIA_SESSIONS_HOOKS": "off"}) for payload in whole(host)] == [None] * len(whole(host))

    assert host.tree(host.project) == before
