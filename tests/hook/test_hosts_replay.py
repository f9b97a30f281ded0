"""Captured lives of sub-agents of other hosts, replayed in order, doubled, and in other orders.

No option names the host: the hook must recognize it by the payload and the captured environment.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api.reconciling import close_runs
from gaia_sessions.api.standing import read_and_decide
from gaia_sessions.config import Config
from gaia_sessions.ingest.deferred import apply_deferred
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.runs import with_run
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from tests.hook.test_lives import (
    DENIED,
    DONE,
    FAILED,
    INTERRUPTED,
    KILLED,
    NOT_ENDED,
    STATES,
    WITH_HOST,
    Life,
    of_captures,
)
from tests.records import LIMITS, WHEN, record_with
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import Record
    from tests.hook.test_lives import End

    Fresh = Callable[[], "OtherLife"]

HOSTS = Path(__file__).parents[1] / "data" / "hosts"
FOLDERS = {"codex": "codex-0.169.0", "qwen-code": "qwen-code-0.15.10", "gemini-cli": "gemini-cli-0.61.0"}
LATEST_QWEN = "qwen-code-0.24.4"
CAPTURES = [
    (host, file)
    for host, folder in [*FOLDERS.items(), ("qwen-code", LATEST_QWEN)]
    for file in sorted((HOSTS / folder).glob("*.jsonl"))
]


def name_of(host: str, capture: Path) -> str:
    return f"{host if capture.parent.name in FOLDERS.values() else capture.parent.name}-{capture.stem}"


# A capture that is not listed has one delegation whose agent completed its work.
ENDS: dict[str, list[End]] = {
    "codex-close-agent": [KILLED],
    "codex-interrupt-agent": [INTERRUPTED],
    "codex-multi-agent-v2": [WITH_HOST],  # its stop can be joined only while the agent's transcript exists
    "codex-parallel": [DONE, WITH_HOST],  # nobody waited for the second
    "codex-pre-deny": [DENIED],
    "codex-send-input": [DONE, DONE],  # it woke after its end, which is new work
    "codex-sigint": [WITH_HOST],
    "codex-sub-error": [FAILED],
    "gemini-cli-parallel": [DONE, DONE],
    "gemini-cli-parallel-same": [DONE],  # two equal delegations at once cannot be told apart
    "gemini-cli-pre-deny": [DENIED],
    "gemini-cli-pre-updated-input": [DENIED],  # it returned with the prompt of another hook, so it cannot be joined
    "gemini-cli-same-again": [DONE, DONE],
    "gemini-cli-sub-error": [FAILED],
    "qwen-code-parallel": [DONE, DONE],
    "qwen-code-pre-deny": [DENIED],
    "qwen-code-sigint": [FAILED],  # only its launcher died
    "qwen-code-sub-error": [FAILED],
    "qwen-code-0.24.4-background-false-error": [FAILED],
    "qwen-code-0.24.4-max-turns": [FAILED],
    "qwen-code-0.24.4-max-turns-foreground": [("investigating", "returned", 0)],
    "qwen-code-0.24.4-nested": [DONE, DONE],
    "qwen-code-0.24.4-parallel": [DONE, DONE],
    "qwen-code-0.24.4-pre-deny": [DENIED],
    "qwen-code-0.24.4-send-message": [DONE, DONE],  # it woke after its end, which is new work
    "qwen-code-0.24.4-sigint": [NOT_ENDED],  # no further event; its process shows that it is lost
    "qwen-code-0.24.4-sub-error": [FAILED],
    "qwen-code-0.24.4-task-stop": [KILLED],
}
DEFERRED = {"codex-multi-agent-v2": ["stop"], "gemini-cli-pre-updated-input": ["returned", "stop"]}


class OtherLife(Life):
    """A new project of another host; the hooks get the environment of the capture."""

    def told(self, capture: Path) -> list[dict[str, Any]]:
        text = capture.read_text(encoding="utf-8").replace("/project", f"{self.folder}/project")
        lines = [json.loads(line) for line in text.splitlines()]
        return [line for line in lines if isinstance(line.get("stdin"), dict)]

    def play(self, lines: list[dict[str, Any]]) -> OtherLife:
        self.monkeypatch.chdir(self.folder / "project")
        self.monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")
        self.monkeypatch.setattr("gaia_sessions.system.streams.read_input", lambda _limit, _seconds: self.data)
        self.monkeypatch.setattr("gaia_sessions.system.streams.write_output", self.hear)
        for line in lines:
            with self.monkeypatch.context() as given:
                for name, value in line["env"].items():
                    given.setenv(name, value)
                self.tell(line["stdin"])
        apply_deferred(FileStore(str(self.root)), utc_now(), Config({}))
        return self

    def waiting(self) -> list[str]:
        return sorted(json.loads(file.read_bytes())["kind"] for file in (self.root / ".inbox").glob("*.json"))


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fresh:
    numbers = itertools.count()
    return lambda: OtherLife(tmp_path / f"l{next(numbers)}", monkeypatch)


_once: dict[Path, OtherLife] = {}


def told_once(capture: Path, fresh: Fresh) -> OtherLife:
    """The life of the capture in order, replayed once for all tests that only read its result."""
    if capture not in _once:
        life = fresh()
        _once[capture] = life.play(life.told(capture))
    return _once[capture]


@table(("host", "capture"), CAPTURES)
def test_every_delegation_is_one_session_of_its_host_with_its_true_end(host: str, capture: Path, fresh: Fresh) -> None:
    life = told_once(capture, fresh)
    name = name_of(host, capture)

    assert life.errors == []
    assert life.ends() == sorted(ENDS.get(name, [DONE]))
    assert life.states() == sorted(STATES[end] for end in life.ends())
    assert {run["host"] for record in life.records() for run in record["runs"]} == {host}
    assert life.waiting() == DEFERRED.get(name, [])


FILES = [file for _, file in CAPTURES]


@of_captures(*FILES, at_once=FILES[::4])
def test_an_event_that_arrives_twice_changes_nothing(capture: Path, fresh: Fresh) -> None:
    twice = fresh()

    twice.play([line for line in twice.told(capture) for _ in range(2)])

    assert (twice.errors, twice.timeless()) == ([], told_once(capture, fresh).timeless())


BESIDE = ({"PostToolUse", "SubagentStart"}, {"PostToolUse", "UserPromptSubmit"}, {"PostToolUse", "SubagentStop"})
"""Pairs of hooks that Codex runs at the same time: one of an agent, one of the tool that spawned it."""


@table("capture", [file for host, file in CAPTURES if host == "codex"])
def test_parallel_events_may_arrive_in_any_order(capture: Path, fresh: Fresh) -> None:
    once = told_once(capture, fresh)
    lines = once.told(capture)
    spawned = [number for number, line in enumerate(lines) if is_spawn(line)]
    for place in spawned:
        for later in range(place + 1, len(lines)):
            if {lines[place]["event"], lines[later]["event"]} not in BESIDE:
                break
            life = fresh()
            moved = life.told(capture)
            moved.insert(later, moved.pop(place))
            life.play(moved)
            assert (later, life.errors, life.ends()) == (later, [], once.ends())


def is_spawn(line: dict[str, Any]) -> bool:
    return line["event"] == "PostToolUse" and "spawn_agent" in line["stdin"]["tool_name"]


HEARD_OF_QWEN = {"PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "Stop"}
QWEN_CAPTURES = [file for _, file in CAPTURES if file.parent.name == LATEST_QWEN]


def heard_of_agents(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events that the settings of Qwen Code send to the hook, in the captured order."""
    heard = [line for line in lines if line["event"] in HEARD_OF_QWEN]
    return [line for line in heard if line["stdin"].get("tool_name", "agent") == "agent"]


def is_awaited(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether the host waits for the hooks of the first event before the second can happen."""
    of_agents = all(line["event"] in {"SubagentStart", "SubagentStop"} for line in (first, second))
    of_one_agent = of_agents and first["stdin"]["agent_id"] == second["stdin"]["agent_id"]
    return of_one_agent or (first["event"], second["event"]) == ("PreToolUse", "Stop")


def reports(life: OtherLife) -> list[tuple[str, str, str]]:
    return sorted(
        (record["phase"], run["end"], run.get("last_message", ""))
        for record in life.records()
        for run in record["runs"]
        if "end" in run
    )


@of_captures(*QWEN_CAPTURES, at_once=QWEN_CAPTURES[::4])
def test_events_of_qwen_code_may_overtake_each_other(capture: Path, fresh: Fresh) -> None:
    once = fresh()
    lines = heard_of_agents(once.told(capture))
    once.play(lines)
    for place, pair in enumerate(itertools.pairwise(lines)):
        if is_awaited(*pair):
            continue
        life = fresh()
        swapped = heard_of_agents(life.told(capture))
        swapped[place : place + 2] = reversed(swapped[place : place + 2])
        life.play(swapped)
        assert (place, life.errors, life.ends(), life.waiting()) == (place, [], once.ends(), [])
        assert (place, reports(life)) == (place, reports(once))


@table("capture", QWEN_CAPTURES)
def test_the_end_of_a_qwen_code_agent_is_known_without_subagent_events(capture: Path, fresh: Fresh) -> None:
    """As with the settings of an earlier version, which do not send the message that wakes an agent."""
    life = fresh()

    life.play([line for line in life.told(capture) if not line["event"].startswith("Subagent")])

    heard = told_once(capture, fresh).ends() if capture.stem != "send-message" else [DONE]
    assert (life.errors, life.ends(), life.waiting()) == ([], heard, [])


def test_the_last_message_of_a_qwen_code_agent_counts_even_after_its_end(fresh: Fresh) -> None:
    life = fresh()
    lines = heard_of_agents(life.told(HOSTS / LATEST_QWEN / "tools.jsonl"))
    [stop] = [line for line in lines if line["event"] == "SubagentStop"]
    stop["stdin"]["last_assistant_message"] = "The plan.\n[gaia-sessions: approval] may I?"
    lines.remove(stop)

    life.play(lines)
    assert life.ends() == [DONE]
    assert life.records()[0]["runs"][0]["detail"] == "stopped without a word"
    life.play([stop, lines[-1], stop])

    [record] = life.records()
    [run] = record["runs"]
    assert (record["phase"], record["resume_ready"], run["end"]) == ("approval", True, "stopped")
    assert (run["last_message"], run["detail"]) == (
        "The plan.\n[gaia-sessions: approval] may I?",
        "said so in its last line",
    )


def test_a_qwen_code_agent_has_the_agent_that_started_it_as_parent(fresh: Fresh) -> None:
    life = fresh()
    life.play(life.told(HOSTS / LATEST_QWEN / "nested.jsonl"))
    [parent, child] = sorted(life.records(), key=lambda record: record["created_at"])
    assert child["parent_id"] == parent["agent_id"]
    assert "parent_id" not in parent


def test_a_stop_that_comes_before_its_agent_is_known_waits(fresh: Fresh) -> None:
    life = fresh()
    lines = life.told(HOSTS / FOLDERS["codex"] / "single.jsonl")
    [spawn] = [number for number, line in enumerate(lines) if is_spawn(line)]
    [stop] = [number for number, line in enumerate(lines) if line["event"] == "SubagentStop"]

    lines.insert(stop, lines.pop(spawn))
    life.play(lines)

    assert (life.ends(), life.waiting()) == ([DONE], [])


def test_the_report_of_an_agent_is_stored_and_its_marker_is_read(fresh: Fresh) -> None:
    for host, capture in [item for item in CAPTURES if item[1].stem == "single"]:
        life = fresh()
        text = capture.read_text(encoding="utf-8").replace(
            "Report of alpha: 42.", "Report of alpha: 42.\\n[gaia-sessions: approval] may I?"
        )
        file = life.folder / capture.name
        file.write_text(text, encoding="utf-8")
        life.play(life.told(file))
        [record] = life.records()
        [run] = record["runs"]
        assert (host, record["phase"], run["end"]) == (host, "approval", "stopped")
        assert run["last_message"] == "Report of alpha: 42.\n[gaia-sessions: approval] may I?"


def test_a_delegation_cut_off_by_the_end_of_its_conversation_counts_as_started(fresh: Fresh) -> None:
    life = fresh()
    lines = life.told(HOSTS / FOLDERS["gemini-cli"] / "single.jsonl")

    life.play([line for line in lines if line["event"] not in {"AfterTool", "AfterAgent"}])

    assert life.ends() == [WITH_HOST]
    [record] = life.records()
    assert record["runs"][0]["started_at"] == record["runs"][0]["claimed_at"]


def test_the_run_of_a_woken_codex_agent_has_its_process_and_transcript(
    fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gaia_sessions.system.processes.nearest_ancestor", lambda names: names == ("codex",) and os.getpid()
    )
    life = fresh()
    lines = life.told(HOSTS / FOLDERS["codex"] / "send-input.jsonl")
    woken = [line["stdin"] for line in lines if line["event"] == "UserPromptSubmit" and "agent_id" in line["stdin"]][-1]

    life.play(lines)

    [_, last] = sorted(life.records(), key=lambda record: record["created_at"])
    [run] = last["runs"]
    known = (run["host_agent_id"], run["transcript_path"], run["host_process"]["pid"])
    assert known == (woken["agent_id"], woken["transcript_path"], os.getpid())


KILLED_AT_WORK = [(host, HOSTS / FOLDERS[host] / "single.jsonl") for host in ("gemini-cli", "qwen-code")]


@table(("host", "capture"), KILLED_AT_WORK)
def test_work_of_a_killed_host_is_lost_and_can_be_resumed(
    host: str, capture: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start was not reported; only the delegation is known, and that it was not refused."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        monkeypatch.setattr("gaia_sessions.system.processes.nearest_ancestor", lambda _: child.pid)
        life = fresh()
        before = next(line for line in life.told(capture) if line["event"] in {"PreToolUse", "BeforeTool"})
        life.play([before])
        store = FileStore(str(life.root))
        [record] = life.records()
        alive = close_runs(store, utc_now() + timedelta(hours=1))
        child.kill()
    [verdict] = close_runs(store, utc_now() + timedelta(hours=1))["verdicts"]

    assert (host, [verdict["verdict"] for verdict in alive["verdicts"]]) == (host, ["running"])
    assert (verdict["verdict"], verdict["closed"]) == ("lost", True)
    assert life.ends() == [("investigating", "lost", 0)]
    decided = read_and_decide(store, utc_now(), record["agent_id"], LIMITS)[0]
    assert decided["should_resume"]


def asked_to_resume(capture: dict[str, Any], agent_id: str, session_id: str) -> dict[str, Any]:
    told = capture["stdin"]
    asked = {**told["tool_input"], "prompt": f"Go on.\n[gaia-sessions: resume {agent_id}]"}
    return {**capture, "stdin": {**told, "session_id": session_id, "tool_input": asked, "tool_use_id": session_id}}


@table(("host", "capture"), KILLED_AT_WORK)
def test_only_a_new_claim_of_the_same_conversation_replaces_an_old_claim(
    host: str, capture: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gaia_sessions.system.processes.nearest_ancestor", lambda _: os.getpid())
    life = fresh()
    store = FileStore(str(life.root))
    paused = record_with({"run": 1, "ended_at": WHEN, "end": "stopped"}, phase="approval")
    store.create({**paused, "last_updated": format_time(utc_now()), "resume_ready": True})
    before = next(line for line in life.told(capture) if line["event"] in {"PreToolUse", "BeforeTool"})
    mine = before["stdin"]["session_id"]
    life.play([asked_to_resume(before, "agent-1", mine)])

    def age(record: Record) -> Record:
        run: Any = {**record["runs"][-1], "claimed_at": format_time(utc_now() - timedelta(minutes=20))}
        return with_run(record, run)

    store.change("agent-1", age)
    assert (host, read_and_decide(store, utc_now(), "agent-1", LIMITS)[0]["reason"]) == (host, "running")

    life.play([asked_to_resume(before, "agent-1", "another")])
    assert "end" not in store.read("agent-1")["runs"][1]
    again = asked_to_resume(before, "agent-1", mine)
    again["stdin"]["tool_use_id"] = "again"
    again["stdin"]["tool_input"]["prompt"] += "\nPlease."
    life.play([again])
    assert [run.get("end") for run in store.read("agent-1")["runs"]] == ["stopped", "denied", None]


def with_path(life: OtherLife) -> list[dict[str, Any]]:
    """The events of a Codex agent with a path, and the file that its client writes about it."""
    lines = life.told(HOSTS / FOLDERS["codex"] / "multi-agent-v2.jsonl")
    transcript = Path.home() / ".codex" / "sessions" / "2026" / "rollout.jsonl"
    transcript.parent.mkdir(parents=True, exist_ok=True)
    first = {"type": "session_meta", "payload": {"agent_path": "/root/alpha", "base_instructions": "x" * 60_000}}
    transcript.write_text(json.dumps(first, separators=(",", ":")) + "\n", encoding="utf-8")
    for line in lines:
        if line["event"].startswith("Subagent"):
            key = "transcript_path" if line["event"] == "SubagentStart" else "agent_transcript_path"
            line["stdin"][key] = str(transcript)
    return lines


def test_a_codex_agent_that_has_a_path_is_joined_by_its_path(fresh: Fresh) -> None:
    life = fresh()

    life.play(with_path(life))

    assert (life.ends(), life.waiting()) == ([DONE], [])


def interrupted(lines: list[dict[str, Any]], target: str = "/root/alpha") -> dict[str, Any]:
    """The event of Codex after an agent was interrupted; the agent itself sends nothing more."""
    waited = next(line for line in lines if line["event"] == "PostToolUse" and "wait_agent" in str(line["stdin"]))
    told = {"tool_name": "collaborationinterrupt_agent", "tool_input": {"target": target}, "tool_use_id": "i"}
    return {**waited, "stdin": {**waited["stdin"], **told, "tool_response": '{"previous_status":"running"}'}}


@table("target", ["/root/alpha", "alpha"])
@table("times", [1, 2])
def test_an_interrupted_codex_agent_can_be_resumed(target: str, times: int, fresh: Fresh) -> None:
    life = fresh()
    lines = with_path(life)
    begun = [line for line in lines if line["event"] not in {"SubagentStop", "SessionEnd"}]

    life.play([*begun[:-1], *[interrupted(lines, target)] * times, begun[-1]])

    [record] = life.records()
    decided = read_and_decide(FileStore(str(life.root)), utc_now(), record["agent_id"], LIMITS)[0]
    [run] = record["runs"]
    said = (run["interruption"], run["detail"])
    assert (life.ends(), life.states(), said) == (
        [INTERRUPTED],
        ["interrupted"],
        ("interrupted", "interrupted by another agent"),
    )
    assert (decided["should_resume"], life.waiting(), life.errors) == (True, [], [])


def test_an_interrupted_codex_agent_that_is_woken_stays_in_its_session(fresh: Fresh) -> None:
    life = fresh()
    lines = with_path(life)
    start, stop = ([line for line in lines if line["event"] == f"Subagent{name}"] for name in ("Start", "Stop"))
    woken = {**start[0], "stdin": {**start[0]["stdin"], "hook_event_name": "UserPromptSubmit", "prompt": "Go on."}}
    begun = lines[: lines.index(stop[0])]

    life.play([*begun, interrupted(lines), woken, *stop])

    [record] = life.records()
    assert [run["end"] for run in record["runs"]] == ["killed", "stopped"]
    assert life.ends() == [DONE]


def test_a_stop_of_a_codex_agent_overrides_its_interruption(fresh: Fresh) -> None:
    life = fresh()
    lines = with_path(life)
    stopped = next(number for number, line in enumerate(lines) if line["event"] == "SubagentStop")

    life.play([*lines[:stopped], interrupted(lines), *lines[stopped:]])

    assert life.ends() == [DONE]


def test_a_wait_for_several_codex_agents_gets_one_reply_with_all_resume_lines(fresh: Fresh) -> None:
    life = fresh()
    lines = life.told(HOSTS / FOLDERS["codex"] / "parallel.jsonl")
    [second] = [line for line in lines if line["event"] == "SubagentStart"][1:]
    stop = next(line for line in lines if line["event"] == "SubagentStop")
    waited = next(number for number, line in enumerate(lines) if "wait_agent" in str(line["stdin"].get("tool_name")))
    keys = {"agent_id": second["stdin"]["agent_id"], "last_assistant_message": "[gaia-sessions: planning] which?"}
    lines.insert(waited, {**stop, "stdin": {**stop["stdin"], **keys}})
    lines.insert(waited, {**stop, "stdin": {**stop["stdin"], "last_assistant_message": "[gaia-sessions: approval]"}})
    lines.remove(stop)
    agents = {line["stdin"]["agent_id"]: {"completed": "x"} for line in lines if line["event"] == "SubagentStart"}
    returned = next(line for line in lines[waited + 3 :] if line["event"] == "PostToolUse")
    returned["stdin"]["tool_response"] = json.dumps({"status": agents, "timed_out": False})

    life.play(lines)

    [words] = [told["hookSpecificOutput"] for event, told in life.answers if event == "PostToolUse"]
    ids = sorted(record["agent_id"] for record in life.records())
    assert sorted(word for word in words["additionalContext"].split("\n") if "resume agent-" in word) == [
        f"[gaia-sessions: resume {agent_id}]" for agent_id in ids
    ]
    assert sorted(record["phase"] for record in life.records()) == ["approval", "planning"]


def qwen(event: str, session: str = "s", **changes: object) -> dict[str, Any]:
    asked = {"description": "Count", "prompt": "Count quokkas", "subagent_type": "Explore"}
    told = {"session_id": session, "hook_event_name": event, "tool_name": "agent", "tool_input": asked}
    report = {"returnDisplay": {"status": "completed", "result": "Twelve."}}
    back = {"tool_response": report} if event == "PostToolUse" else {}
    return {
        "env": {"QWEN_PROJECT_DIR": "/p"},
        "stdin": {**told, "timestamp": WHEN, "tool_use_id": "call_0", **back, **changes},
    }


def test_a_reused_id_is_a_new_delegation_once_the_first_has_returned(fresh: Fresh) -> None:
    life = fresh().play([qwen(event) for event in ("PreToolUse", "PreToolUse", "PostToolUse", "PostToolUse")])
    assert [record["phase"] for record in life.records()] == ["completed"]
    again = fresh().play([qwen(event) for event in ("PreToolUse", "PostToolUse") * 2])
    assert [record["phase"] for record in again.records()] == ["completed", "completed"]
    assert (life.errors, again.errors) == ([], [])


def test_two_hosts_with_the_same_ids_have_a_session_each(fresh: Fresh) -> None:
    asked: dict[str, Any] = {"tool_input": {"message": "Count quokkas"}, "turn_id": "t", "model": "m"}
    life = fresh().play([qwen("PreToolUse", tool_name="spawn_agent", **asked), qwen("PreToolUse")])
    runs = [run for record in life.records() for run in record["runs"]]
    assert sorted(run["host"] for run in runs) == ["codex", "qwen-code"]
    life.play([qwen("PostToolUse")])
    phases = {record["runs"][0]["host"]: record["phase"] for record in life.records()}
    assert phases == {"codex": "initializing", "qwen-code": "completed"}
