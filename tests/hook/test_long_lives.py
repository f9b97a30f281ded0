"""A session that is woken again and again: its record stays small, and every end of it is told."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.hook.run import HookCall
from gaia_sessions.hosts import HOOK
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import streams

if TYPE_CHECKING:
    from pathlib import Path

SESSION = {"session_id": "0e23a513-af54", "cwd": "/project"}
AGENT = {**SESSION, "agent_id": "a5e63f64dec2a5c5f", "agent_type": "Explore"}
DELEGATION = "toolu_01"
ASKED = {"tool_name": "Agent", "tool_input": {"description": "d", "prompt": "p", "subagent_type": "Explore"}}


class Host:
    """Tells the one hook, in this process, what becomes of one agent."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / ".claude" / "session"
        self.transcript = folder / "host" / f"{SESSION['session_id']}.jsonl"
        self.root.parent.mkdir(parents=True)
        self.told: Any = {}
        self.words: list[str] = []
        monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(folder))
        monkeypatch.setenv("CLAUDE_PID", str(os.getppid()))
        monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")
        monkeypatch.setattr(streams, "read_input", lambda _limit, _seconds: json.dumps(self.told).encode())
        monkeypatch.setattr(streams, "write_output", self.hear)

    def hear(self, data: bytes, _seconds: float) -> bool:
        told = json.loads(data)["hookSpecificOutput"]
        self.words.append(told.get("additionalContext") or told["updatedInput"]["prompt"])
        return True

    def tell(self, event: str, **told: object) -> str:
        """What was done with it."""
        self.told = {"hook_event_name": event, "transcript_path": str(self.transcript), **told}
        call = HookCall(HOOK, [])
        call.run()
        return str(call.line["decision"])

    def delegate(self, key: str = DELEGATION, prompt: str = "p") -> None:
        asked = {**ASKED, "tool_input": {**ASKED["tool_input"], "prompt": prompt}}  # type: ignore[dict-item]
        self.tell("PreToolUse", **SESSION, **asked, tool_use_id=key)

    def start(self, agent: str = AGENT["agent_id"], key: str = DELEGATION) -> str:
        decision = self.tell("SubagentStart", **{**AGENT, "agent_id": agent})
        agents = self.transcript.with_suffix("") / "subagents"
        agents.mkdir(parents=True, exist_ok=True)
        note = {"agentType": "Explore", "toolUseId": key, "spawnDepth": 1}
        (agents / f"agent-{agent}.meta.json").write_text(json.dumps(note), encoding="utf-8")
        return decision

    def stop(self, words: str, agent: str = AGENT["agent_id"]) -> str:
        told = {**AGENT, "agent_id": agent, "stop_hook_active": False}
        return self.tell("SubagentStop", **told, last_assistant_message=words)

    def notify(self, key: str, status: str) -> str:
        words = f"<task-id>{AGENT['agent_id']}</task-id><tool-use-id>{key}</tool-use-id><status>{status}</status>"
        prompt = f"<task-notification>{words}</task-notification>"
        return self.tell("UserPromptSubmit", **SESSION, prompt=prompt)

    @property
    def state(self) -> Path:
        [state] = self.root.glob("[!.]*/state.json")
        return state

    @property
    def record(self) -> Any:
        return json.loads(self.state.read_bytes())

    @property
    def happened(self) -> list[Any]:
        lines = self.state.with_name("events.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def words(number: int) -> str:
    """A last message of which more is said than is kept."""
    return f"{number} begins here. {'x' * 5000} and ends {number}.\n[gaia-sessions: approval] step {number}"


def wake(host: Host, times: int) -> None:
    """The agent works and asks for an approval; then it is woken so many times, and asks every time."""
    host.delegate()
    host.start()
    host.stop(words(1))
    for number in range(2, times + 2):
        assert host.start() == "started"
        assert host.stop(words(number)) == "paused"


@pytest.mark.parametrize("times", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_session_woken_often_has_one_small_record_every_end_and_the_last_run_right(host: Host, times: int) -> None:
    wake(host, times)

    record = host.record
    assert host.state.stat().st_size < DOCUMENT_LIMIT / 10
    assert (record["phase"], record["resume_ready"], record["error_count"]) == ("approval", True, 0)
    assert [run["run"] for run in record["runs"]] == list(range(times - 48, times + 2))
    assert record["runs_dropped"] == times - 49
    assert {run["end"] for run in record["runs"]} == {"stopped"}
    last = words(times + 1)
    assert record["runs"][-1]["last_message"] == last[-4000:]
    assert [run["last_message"] for run in record["runs"][:-1]] == [
        words(number)[-200:] for number in range(times - 48, times + 1)
    ]
    told = [entry for entry in host.happened if entry["kind"] == "stop"]
    assert [(entry["run"], entry["end"], entry["phase"]) for entry in told] == [
        (number, "stopped", "approval") for number in range(1, times + 2)
    ]

    host.start()
    assert host.stop("It is all done.") == "finalized"
    assert (host.record["phase"], host.record["runs"][-1]["run"]) == ("completed", times + 2)


def test_late_news_of_a_run_that_was_dropped_says_nothing_about_those_that_are_left(host: Host) -> None:
    wake(host, 60)
    host.start()
    before, happened = host.record, len(host.happened)

    for status in ("completed", "failed", "killed"):
        assert host.notify(DELEGATION, status) == "known"
    assert (host.record, len(host.happened)) == (before, happened)

    host.notify("toolu_of_the_wake", "completed")
    assert (host.record["runs"][-1]["run"], host.record["runs"][-1]["end"]) == (62, "returned")


def test_a_late_stop_of_a_dropped_agent_does_not_end_the_run_of_another(host: Host) -> None:
    host.delegate()
    host.start()
    host.stop(words(1))
    agent_id = host.record["agent_id"]
    for number in range(2, 62):
        key, agent = f"toolu_{number}", f"b{number}"
        host.delegate(key, f"p\n[gaia-sessions: resume {agent_id}]")
        host.start(agent, key)
        host.stop(words(number), agent)
    host.delegate("toolu_62", f"p\n[gaia-sessions: resume {agent_id}]")
    assert (host.record["runs"][-1]["run"], host.record["runs_dropped"]) == (62, 12)
    before = host.record
    for note in host.transcript.with_suffix("").rglob("*.meta.json"):
        note.unlink()  # so that nothing but the agent's id says which run is meant

    marked = f"too late\n[gaia-sessions: failed {agent_id}] what an agent of a dropped run says"
    host.stop(marked, "b5")
    host.stop(marked, AGENT["agent_id"])

    assert host.record == before
    assert len(list(host.root.glob("[!.]*/state.json"))) == 1


def test_what_paused_is_briefed_whole_when_it_is_claimed_and_claimed_again(host: Host) -> None:
    host.delegate()
    host.start()
    host.stop(words(1))
    request = f"p\n[gaia-sessions: resume {host.record['agent_id']}]"

    for key in ("toolu_2", "toolu_3"):
        host.delegate(key, request)
        assert "x" * 3000 in host.words[-1]
        host.tell("Stop", **SESSION)  # the turn ended before it started
    assert [run.get("end") for run in host.record["runs"]] == ["stopped", "denied", "denied"]


def test_a_record_of_before_with_too_many_runs_is_read_and_trimmed_by_the_next_write(host: Host) -> None:
    wake(host, 2)
    record = host.record
    many = [{**record["runs"][0], "run": number, "last_message": words(number)[-4000:]} for number in range(1, 121)]
    host.state.write_text(json.dumps({**record, "runs": many}), encoding="utf-8")

    store = FileStore(str(host.root))
    assert len(store.read(record["agent_id"])["runs"]) == 120
    assert host.start() == "started"

    after = host.record
    assert [run["run"] for run in after["runs"]] == list(range(72, 122))
    assert (after["runs_dropped"], len(after["runs"][0]["last_message"])) == (71, 200)
    assert len(after["runs"][-2]["last_message"]) == 4000
