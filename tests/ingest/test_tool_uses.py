"""What a sub-agent does with its tools, told by a host that was asked to: real payloads through the hook."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.config import Config
from gaia_sessions.errors import LockTimeout
from gaia_sessions.ingest import Terms
from gaia_sessions.ingest.dispatch import apply_event
from gaia_sessions.session.ids import quick_digest
from tests.hook.conftest import SILENT, own_host
from tests.hook.conftest import asking as asking_for
from tests.ingest.conftest import wired
from tests.memory_store import MemoryStore
from tests.records import START, WHEN, record_with
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hook.conftest import Host

HOSTS = Path(__file__).parents[1] / "data" / "hosts"
OLD, NEW = "claude-code-2.1.197", "claude-code-2.1.330"

_calls = count(1)


def hear(host: Host, payload: object, *arguments: str) -> None:
    """The one hook is told ``payload``, wired to follow tools unless ``arguments`` say otherwise; it is silent."""
    assert wired(host, *(arguments or ("--track-tools",))).run("every_event", payload) == SILENT


def tool(host: Host, name: str = "Read", event: str = "PostToolUse", **changes: object) -> dict[str, Any]:
    """The payload with which the host tells that the agent ``a1`` used a tool."""
    keys: dict[str, Any] = {
        "agent_id": "a1",
        "agent_type": "Explore",
        "tool_name": name,
        "tool_input": {"command": "make"} if name == "Bash" else {"file_path": "/x"},
        "tool_use_id": f"toolu_t{next(_calls)}",
    }
    return host.event_payload(event, **{**keys, **changes})


def bash(host: Host, command: object, event: str = "PostToolUse") -> dict[str, Any]:
    return tool(host, "Bash", event, tool_input={"command": command})


def asking(host: Host) -> dict[str, Any]:
    payload = tool(host, "Bash", "PermissionRequest", permission_suggestions=[])
    del payload["tool_use_id"]  # as the host sends it
    return payload


def phases(record: Any) -> list[str]:
    return ["initializing", *(move["to_phase"] for move in record["history"])]


# Captures


def payloads_of(host: Host, capture: Path) -> Iterator[dict[str, Any]]:
    """Each payload of ``capture``, in a project where the captured one was, after the host's note of its agent."""
    text = re.sub(r"/project\b|/run-dir", str(host.project), capture.read_text(encoding="utf-8"))
    for line in text.replace("/home/user", str(Path.home())).splitlines():
        told = json.loads(line)
        payload = told.get("stdin")
        if not isinstance(payload, dict):
            continue
        meta = told["files_at_hook_time"].get("agent_meta")
        if isinstance(meta, dict):
            agents = Path(payload["transcript_path"].removesuffix(".jsonl"), "subagents")
            agents.mkdir(parents=True, exist_ok=True)
            (agents / f"agent-{payload['agent_id']}.meta.json").write_text(json.dumps(meta), encoding="utf-8")
        yield payload


def replay(host: Host, capture: Path) -> None:
    """Tells the hook, which tracks tools, every payload of ``capture``."""
    for payload in payloads_of(host, capture):
        assert wired(host, "--host", "claude-code", "--track-tools").run("every_event", payload).code == 0


@table(
    ("version", "capture", "counts", "between"),
    [
        (OLD, "single-with-tools", {"Bash": 2}, []),
        (NEW, "single-with-tools", {"Bash": 2}, []),
        (OLD, "sub-tool-deny", {}, []),
        (NEW, "sub-tool-deny", {}, []),
        (OLD, "permission-denied", {}, []),
        (NEW, "permission-denied", {}, ["approval"]),
        (OLD, "permission-allowed-by-hook", {}, []),
        (NEW, "permission-allowed-by-hook", {"Bash": 1}, ["approval", "investigating"]),
        (OLD, "single", {}, []),
        (NEW, "single", {}, []),
    ],
)
@own_host
def test_what_real_hosts_sent_is_counted_and_its_phases_are_seen(
    host: Host, version: str, capture: str, counts: dict[str, int], between: list[str]
) -> None:
    """A call that was refused leaves no trace; the older host does not tell that it asks."""
    replay(host, HOSTS / version / f"{capture}.jsonl")

    record = host.record()
    assert record.get("tools", {"counts": {}})["counts"] == counts
    assert phases(record) == ["initializing", "investigating", *between, "completed"]
    assert record["runs"][0].get("inferred") == (between[-1] if between else None)
    assert host.deferred() == []


# One piece of news at a time


def test_a_tool_that_only_reads_is_counted_and_is_activity(host: Host) -> None:
    host.work()
    before = host.record()

    hear(host, tool(host, "Read", tool_use_id="toolu_r"))

    tools = {"counts": {"Read": 1}, "recent": [quick_digest("toolu_r")]}
    after = host.record()
    assert after["last_updated"] > before["last_updated"]
    assert host.timeless(after) == host.timeless({**before, "tools": tools, "revision": before["revision"] + 1})
    assert [entry["kind"] for entry in host.journal(after["agent_id"])] == ["delegate", "start"]


def test_an_edit_begins_the_execution_and_the_journal_says_on_what_evidence(host: Host) -> None:
    agent_id = host.work()

    hear(host, tool(host, "Edit", tool_use_id="toolu_e"))

    record = host.record()
    assert (phases(record)[-1], record["runs"][0]["inferred"]) == ("executing", "executing")
    assert "reported" not in record["runs"][0]
    assert host.journal(agent_id)[-1] == {
        "at": "TIME",
        "kind": "tool",
        "run": 1,
        "phase": "executing",
        "revision": record["revision"],
        "evidence": {
            "host": "claude-code",
            "host_session_id": host.SESSION,
            "host_agent_id": "a1",
            "tool_name": "Edit",
            "call": "toolu_e",
        },
    }


@table(
    ("name", "event", "asked", "phase"),
    [
        ("Edit", "PostToolUse", {}, "executing"),
        ("MultiEdit", "PostToolUse", {}, "executing"),
        ("Write", "PostToolUse", {}, "executing"),
        ("NotebookEdit", "PostToolUse", {}, "executing"),
        ("Edit", "PostToolUseFailure", {}, "investigating"),
        ("Edit", "PostToolUse", None, "executing"),
        ("Bash", "PostToolUse", {"command": "ls"}, "investigating"),
        ("Bash", "PostToolUse", {"command": "make > out"}, "investigating"),
        ("Bash", "PostToolUseFailure", {"command": "make"}, "investigating"),
        ("Bash", "PostToolUse", None, "investigating"),
        ("PowerShell", "PostToolUse", {"command": "Remove-Item x"}, "investigating"),
        ("WebFetch", "PostToolUse", {}, "investigating"),
        ("mcp__db__query", "PostToolUse", {}, "investigating"),
    ],
)
@own_host
def test_the_phase_is_inferred_from_edits_and_from_nothing_else(
    host: Host, name: str, event: str, asked: object, phase: str
) -> None:
    host.work()

    hear(host, tool(host, name, event, tool_input=asked))

    record = host.record()
    assert (record["phase"], record["tools"]["counts"]) == (phase, {name: 1})


def test_a_request_for_permission_is_an_approval_until_a_tool_has_been_used(host: Host) -> None:
    agent_id = host.work()

    hear(host, asking(host))
    waiting, decided = host.record(), gaia_sessions.explain_resume(agent_id, root=str(host.root))
    hear(host, bash(host, "make"))
    ran = host.record()
    hear(host, asking(host))
    hear(host, tool(host, "Edit"))

    assert (waiting["phase"], waiting["resume_ready"], decided["reason"]) == ("approval", True, "running")
    assert gaia_sessions.explain_resume(agent_id, root=str(host.root))["reason"] == "phase_not_resumable"
    assert ran["phase"] == "investigating"
    assert phases(host.record())[2:] == ["approval", "investigating", "approval", "executing"]
    kinds = [(entry["kind"], entry["phase"]) for entry in host.journal(agent_id)][2:]
    assert kinds == [
        ("permission", "approval"),
        ("tool", "investigating"),
        ("permission", "approval"),
        ("tool", "executing"),
    ]


def test_work_that_only_ran_commands_stays_resumable_after_a_crash(host: Host) -> None:
    with host.client():
        agent_ids = [host.work("toolu_1", "a1"), host.work("toolu_2", "a2")]
        hear(host, bash(host, "make install"))
        hear(host, tool(host, "Edit", agent_id="a2"))

    may_resume = [gaia_sessions.explain_resume(agent_id, root=str(host.root)) for agent_id in agent_ids]
    assert [answer["reason"] for answer in may_resume] == ["session_resumable", "phase_not_resumable"]


# Twice, at once, too early, too late


def hear_at_once(host: Host, payloads: list[dict[str, Any]]) -> None:
    """Each payload is told to a process of its own, four at a time."""
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(partial(wired(host, "--track-tools").start, "every_event"), payloads)) == {SILENT}


def test_the_same_call_told_twice_at_once_counts_once(host: Host) -> None:
    host.work()
    payload = tool(host, "Edit")

    hear_at_once(host, [payload] * 4)

    record = host.record()
    assert record["tools"] == {"counts": {"Edit": 1}, "recent": [quick_digest(payload["tool_use_id"])]}
    assert phases(record) == ["initializing", "investigating", "executing"]


@pytest.mark.parametrize("times", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_of_many_calls_at_once_none_is_lost(host: Host, times: int) -> None:
    host.work()
    payloads = [tool(host, name) for name in ("Read", "Grep", "Glob") for _ in range(times)]

    hear_at_once(host, payloads)

    tools = host.record()["tools"]
    assert tools["counts"] == {"Read": times, "Grep": times, "Glob": times}
    assert sorted(tools["recent"]) == sorted(quick_digest(payload["tool_use_id"]) for payload in payloads)


def test_news_that_meets_a_held_lock_is_let_go(host: Host) -> None:
    agent_id = host.work()
    before = host.record()

    with host.held(agent_id):
        hear(host, tool(host, "Edit"))

    assert (host.record(), host.deferred()) == (before, [])
    assert host.log("hook")[-1]["decision"] == "busy"


def test_the_first_tool_brings_a_start_that_waits_into_the_record(host: Host) -> None:
    host.begin()
    assert [event["kind"] for event in host.deferred()] == ["start"]

    hear(host, tool(host, "Edit"))

    record = host.record()
    assert (host.deferred(), record["tools"]["counts"]) == ([], {"Edit": 1})
    assert phases(record) == ["initializing", "investigating", "executing"]


def test_tools_of_an_agent_that_nobody_knows_are_let_go(host: Host) -> None:
    host.work()
    before = host.tree(host.root)

    for payload in (tool(host, "Edit", agent_id="a9"), asking(host) | {"agent_id": "a9"}):
        hear(host, payload)

    assert host.tree(host.root) == before


def test_tools_of_an_agent_that_stopped_change_nothing(host: Host) -> None:
    host.work()
    hear(host, host.ending())
    before = host.tree(host.root)

    for payload in (tool(host, "Edit"), tool(host, "Edit", "PreToolUse"), asking(host)):
        hear(host, payload)

    assert host.tree(host.root) == before


def test_an_agent_that_is_resumed_is_followed_in_its_new_run(host: Host) -> None:
    agent_id = host.work()
    hear(host, tool(host, "Edit"))
    hear(host, host.ending(message="[gaia-sessions: planning] the rest"))
    host.begin("toolu_2", "a2", tool_input=asking_for(agent_id))
    paused = host.record()

    hear(host, tool(host, "Write", agent_id="a2"))

    record = host.record()
    assert (paused["phase"], record["phase"]) == ("planning", "executing")
    assert [run.get("inferred") for run in record["runs"]] == ["executing", "executing"]
    assert record["tools"]["counts"] == {"Edit": 1, "Write": 1}


# What is none of it


def news_of_tools(host: Host) -> Iterator[dict[str, Any]]:
    for event in ("PostToolUse", "PostToolUseFailure"):
        for name in ("Read", "Edit", "Bash", "SomethingNew"):
            yield tool(host, name, event)
    yield asking(host)


def test_without_the_option_such_news_changes_not_a_byte(host: Host) -> None:
    host.edit(host.work(), last_updated=host.ago(minutes=20))
    before = host.tree(host.root)

    for payload in news_of_tools(host):
        if payload["hook_event_name"] != "PermissionRequest":  # it marks the run, see test_waiting
            hear(host, payload, "--host", "claude-code")

    assert host.tree(host.root) == before


def test_tools_of_the_main_agent_change_nothing(host: Host) -> None:
    host.edit(host.work(), last_updated=host.ago(minutes=20))
    before = host.tree(host.root)

    for payload in news_of_tools(host):
        hear(host, {key: value for key, value in payload.items() if key not in {"agent_id", "agent_type"}})

    assert host.tree(host.root) == before


def test_agents_that_are_ignored_are_not_followed(host: Host) -> None:
    host.edit(host.work(), last_updated=host.ago(minutes=20))
    (host.project / ".claude" / "gaia-sessions.toml").write_text('[hooks]\nignore_agents = ["Explore"]\n')
    before = host.tree(host.project)

    for payload in news_of_tools(host):
        hear(host, payload)

    assert host.tree(host.project) == before


def test_a_delegation_by_a_sub_agent_is_a_session_and_no_tool(host: Host) -> None:
    parent = host.work()

    hear(host, host.delegation("toolu_2", agent_id="a1", agent_type="Explore"))
    hear(host, host.failing("toolu_2", agent_id="a1", agent_type="Explore"))
    hear(host, host.delegation("", agent_id="a1", agent_type="Explore"))

    records = host.records()
    assert len(records) == 2
    assert [record.get("tools") for record in records.values()] == [None, None]
    assert records[parent]["phase"] == "investigating"


class OneWrite(MemoryStore):
    """A store in which nobody gets the lock a second time."""

    def append(self, agent_id: str, journal: str, entries: list[Any], *, timeout: float | None = None) -> None:  # noqa: ARG002
        raise LockTimeout(agent_id, timeout or 0, None)


def test_an_inferred_phase_and_its_line_are_one_write() -> None:
    store = OneWrite()
    store.create(record_with({"run": 1, "host_session_id": "s", "host_agent_id": "a", "started_at": WHEN}))
    agent: dict[str, Any] = {"host_session_id": "s", "host_agent_id": "a"}
    told: list[Any] = [
        {"kind": "tool", "at": WHEN, **agent, "tool_name": "Edit", "call": call, "writes": True}
        for call in ("c1", "c2")
    ]
    now = START + timedelta(minutes=5)
    used = [apply_event(store, event, Terms(now, Config({}), 0)).word for event in told]

    assert used == ["inferred", "noted"]
    [line] = store.entries("agent-1", "events.jsonl")
    assert isinstance(line, dict)
    assert (line["kind"], line["phase"], line["revision"]) == ("tool", "executing", 2)


@table(
    "changes",
    [
        {"tool_name": None},
        {"tool_name": ""},
        {"tool_name": ["Edit"]},
        {"tool_name": "\x1b\x07"},
        {"tool_use_id": None},
        {"tool_use_id": ""},
        {"tool_use_id": 7},
        {"agent_id": 7},
        {"session_id": ["x"]},
        {"hook_event_name": "PostToolUseLater"},
    ],
)
@own_host
def test_news_that_lacks_what_it_takes_changes_nothing(host: Host, changes: dict[str, Any]) -> None:
    host.work()
    before = host.tree(host.root)

    hear(host, tool(host, "Edit") | changes)

    assert host.tree(host.root) == before


def test_names_and_keys_can_be_anybodys_text(host: Host) -> None:
    host.work()

    hear(host, tool(host, "\x1b[31mEdit\n\u202e" + "x" * 500, tool_use_id="\x01\n" + "k" * 500))

    tools = host.record()["tools"]
    assert tools == {"counts": {"[31mEdit " + "x" * 55: 1}, "recent": [quick_digest("\x01\n" + "k" * 500)]}
