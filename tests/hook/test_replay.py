"""Captured payloads of real hosts, line by line through both hooks: each line changes only its own session.

Some calls start the scripts as processes; the others run in this process.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.hook.conftest import Host
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.calls import Ran

HOOKS = ("pre_delegate", "subagent_stop")
HOSTS = Path(__file__).parents[1] / "data" / "hosts"
CAPTURES = [
    file
    for file in sorted(HOSTS.glob("claude-code-*/*.jsonl"))
    if not file.stem.startswith("workflow") and file.stem != "late-hooks"
]
"""The captures of delegations; ``test_lives`` replays all captures, with the client's files."""

ENDED = ("completed", "failed", "planning", "approval")


class Call(NamedTuple):
    """One line of a capture for one hook."""

    capture: Path
    line: int
    hook: str


def calls_worth_a_process() -> set[Call]:
    """Every call that changes a session, and one call of each shape that is ignored."""
    seen: set[object] = set()
    chosen: set[Call] = set()
    for capture in CAPTURES:
        for number, line in enumerate(capture.read_text(encoding="utf-8").splitlines(), 1):
            payload = json.loads(line).get("stdin")
            if not isinstance(payload, dict):
                continue
            event, tool = payload["hook_event_name"], payload.get("tool_name")
            for hook in HOOKS:
                shape = (capture.parent.name, hook, event, tool, *sorted(payload))
                if shape not in seen or (event, tool) == ("PreToolUse", "Agent") or event == "SubagentStop":
                    chosen.add(Call(capture, number, hook))
                seen.add(shape)
    return chosen


class Replay:
    """A new project in which one capture is replayed; ``faults`` lists what went wrong.

    The keys are the host's keys of delegations: ``sessions`` maps them to session ids, ``stopped`` has the delegations
    whose agent stopped, ``silent`` those that stopped without a message, ``early`` those without a captured beginning.
    """

    def __init__(self, folder: Path, plan: set[Call] | None, *, starts: bool) -> None:
        self.plan = plan
        self.folder = folder
        self.host = Host(folder)
        self.hear = self.host.start if starts else self.host.run
        self.root = self.host.root
        self.sessions: dict[tuple[str, str], str] = {}
        self.stopped: dict[tuple[str, str], object] = {}
        self.silent: set[tuple[str, str]] = set()
        self.early: set[tuple[str, str]] = set()
        self.at_work: set[str] = set()
        self.faults: list[object] = []
        self.calls = 0

    def play(self, capture: Path) -> Replay:
        for number, line in enumerate(capture.read_text(encoding="utf-8").splitlines(), 1):
            told = json.loads(self._moved_here(line))
            if isinstance(told.get("stdin"), dict):
                self._note_meta(told)
                told_to = [hook for hook in HOOKS if self.plan is None or Call(capture, number, hook) in self.plan]
                self._tell(number, told_to, told["stdin"], told["files_at_hook_time"].get("agent_meta"))
        return self

    def _moved_here(self, line: str) -> str:
        line = re.sub(r"/project\b", f"{self.folder}/project", line)
        return line.replace("/home/user", f"{self.folder}/home").replace("/run-dir", f"{self.folder}/run")

    def _note_meta(self, told: Any) -> None:
        """Writes the note of the host: which delegation the agent works on."""
        meta = told["files_at_hook_time"].get("agent_meta")
        if isinstance(meta, dict):
            agents = Path(told["stdin"]["transcript_path"].removesuffix(".jsonl"), "subagents")
            agents.mkdir(parents=True, exist_ok=True)
            file = agents / f"agent-{told['stdin']['agent_id']}.meta.json"
            file.write_text(json.dumps(meta), encoding="utf-8")

    def _tell(self, number: int, told_to: list[str], payload: Any, meta: object) -> None:
        before = self._records()
        for hook in told_to:
            done = self._run(hook, payload)
            if done != (0, b"", b""):
                self.faults.append((number, hook, done))
        after = self._records()
        changed = {agent_id for agent_id in after if after[agent_id] != before.get(agent_id)}
        expected = self._expected(payload, meta, sorted(set(after) - set(before)))
        if changed != expected or not set(before) <= set(after):
            self.faults.append((number, payload["hook_event_name"], "changed", changed, "instead of", expected))

    def _expected(self, payload: Any, meta: object, new: list[str]) -> set[str]:
        """The sessions that this line must change."""
        event = payload["hook_event_name"]
        if event == "PreToolUse" and payload["tool_name"] == "Agent":
            key = (payload["session_id"], payload["tool_use_id"])
            if key in self.sessions:
                return set()
            self.sessions[key] = new[0] if len(new) == 1 else f"{len(new)} new sessions"
            return {self.sessions[key], *self._first_news_of(payload, meta)}
        if event == "SubagentStop" and isinstance(meta, dict):
            return self._ended(payload, (payload["session_id"], meta["toolUseId"]), new)
        if event == "SubagentStop" and payload["agent_type"]:  # nothing in this conversation says what it worked on
            self.early.add((payload["session_id"], payload["agent_id"]))
        return set()

    def _first_news_of(self, payload: Any, meta: object) -> set[str]:
        """The session of the delegating agent, if this is the first sign that it works."""
        if "agent_id" not in payload or not isinstance(meta, dict) or payload["agent_id"] in self.at_work:
            return set()
        self.at_work.add(payload["agent_id"])
        return {self.sessions[payload["session_id"], meta["toolUseId"]]}

    def _ended(self, payload: Any, key: tuple[str, str], new: list[str]) -> set[str]:
        """The session of a stop, if the stop is the first one or has a new message after a stop hook.

        A delegation that no hook received belongs to another conversation, or its session begins with the stop.
        """
        if key not in self.sessions:
            elsewhere = [known for known in self.sessions if known[1] == key[1]]
            key = elsewhere[0] if elsewhere else key
            self.sessions.setdefault(key, new[0] if len(new) == 1 else f"{len(new)} new sessions")
        if waits_for_own_command(payload):
            return {self.sessions[key]}
        said = payload.get("last_assistant_message")
        if key in self.stopped and (not payload["stop_hook_active"] or said == self.stopped[key]):
            return set()
        self.stopped[key] = said
        if "last_assistant_message" not in payload:
            self.silent.add(key)
        return {self.sessions[key]}

    def _run(self, hook: str, payload: object) -> Ran:
        self.calls += 1
        return self.hear(hook, json.dumps(payload, ensure_ascii=False).encode(), {"HOME": str(self.folder / "home")})

    def _records(self) -> dict[str, bytes]:
        return {file.parent.name: file.read_bytes() for file in self.root.glob("[!.]*/state.json")}

    def waiting(self) -> set[tuple[str, str]]:
        events = [json.loads(file.read_bytes()) for file in self.root.glob(".inbox/*.json")]
        return {(event["host_session_id"], event.get("tool_use_id", event["host_agent_id"])) for event in events}

    def runs(self) -> Iterator[Run]:
        for agent_id, record in self._records().items():
            told = json.loads(record)
            for run in told["runs"]:
                key = (run["host_session_id"], run["tool_use_id"])
                yield Run(key, agent_id, told["phase"], run.get("end"), "ended_at" in run)


def waits_for_own_command(payload: Any) -> bool:
    """Whether a background agent stopped while a command runs that may be its own."""
    tasks = {(task["id"], task["type"]) for task in payload.get("background_tasks", ())}
    return (payload["agent_id"], "subagent") in tasks and not {"shell", "monitor"}.isdisjoint(kind for _, kind in tasks)


class Run(NamedTuple):
    key: tuple[str, str]
    agent_id: str
    phase: str
    end: str | None
    is_over: bool


class Span(NamedTuple):
    """The captures of one test, whether each call is a process, and the least number of calls."""

    captures: list[Path]
    whole: bool
    starts: bool
    calls: int


SAMPLE = [capture for number, capture in enumerate(CAPTURES) if number % 4 == 0 or capture.stem == "empty-report"]
FEW = [capture for capture in CAPTURES if capture.stem in {"empty-report", "parallel"}]
SPANS = {
    "each shape of a few, as processes": Span(FEW, whole=False, starts=True, calls=20),
    "each shape of some": Span(SAMPLE, whole=False, starts=False, calls=100),
    "each shape of some, as processes": Span(SAMPLE, whole=False, starts=True, calls=100),
    "each call": Span(CAPTURES, whole=True, starts=False, calls=2_000),
}
QUICK = list(SPANS)[:2]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SPANS]
)
def test_captured_payloads_change_the_right_sessions_and_the_hooks_stay_silent(name: str, tmp_path: Path) -> None:
    span = SPANS[name]
    plan = None if span.whole else calls_worth_a_process()
    replayed = {
        capture: Replay(tmp_path / str(number), plan, starts=span.starts).play(capture)
        for number, capture in enumerate(span.captures)
    }

    assert sum(replay.calls for replay in replayed.values()) >= span.calls
    assert sum(len(replay.sessions) for replay in replayed.values()) >= 0.6 * len(span.captures)
    assert sum(len(replay.stopped) for replay in replayed.values()) >= 0.5 * len(span.captures)
    assert {capture.stem for capture, replay in replayed.items() if replay.silent} == {"empty-report"}
    assert len(CAPTURES) >= 100
    table(("capture", "replay"), replayed.items())(check)()


def check(capture: Path, replay: Replay) -> None:
    assert (capture, replay.faults) == (capture, [])
    assert sorted((run.key, run.agent_id) for run in replay.runs()) == sorted(replay.sessions.items())
    assert {run.key for run in replay.runs() if run.end == "stopped"} == set(replay.stopped)
    assert {run.key for run in replay.runs() if run.end == "stopped" and not run.is_over} == replay.silent
    assert {run.phase for run in replay.runs() if run.is_over} <= set(ENDED)
    assert {run.phase for run in replay.runs() if not run.is_over} <= {"initializing", "investigating"}
    assert replay.waiting() == replay.early
