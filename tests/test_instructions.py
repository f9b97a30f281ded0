"""The cost of a hook in processor instructions, which hardly differ from run to run.

The limit is a number of bare starts of the interpreter: every call of a hook needs one start.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions

if TYPE_CHECKING:
    from collections.abc import Mapping

    Count = int

SCRIPTS = Path(__file__).parents[1] / "hooks"

MOST = 2.0

COUNTED = re.compile(rb"Collected : (\d+)")
CALLGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]

SESSION = "0e23a513-af54"
DELEGATION = {
    "session_id": SESSION,
    "hook_event_name": "PreToolUse",
    "tool_name": "Agent",
    "tool_input": {"description": "Count quokkas", "prompt": "Count them all", "subagent_type": "Explore"},
}

pytestmark = [
    pytest.mark.slow,  # quick tests limit the modules that each call loads
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind to count instructions"),
]


class Project:
    """A project with sessions, and a host that runs hooks there and counts instructions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = str(folder / ".claude" / "session")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
            "PYTHONHASHSEED": "0",
            "CLAUDE_PROJECT_DIR": str(folder),
        }

    def run(self, *command: str | Path, told: object = None, through: tuple[str, ...] = ()) -> bytes:
        """Runs Python with ``command`` and returns stderr."""
        asked = json.dumps(told).encode()
        done = subprocess.run(
            [*through, sys.executable, *command], input=asked, capture_output=True, check=True, env=self.environment
        )
        return done.stderr

    def count(self, *command: str | Path, told: object = None) -> Count:
        [count] = COUNTED.findall(self.run(*command, told=told, through=tuple(CALLGRIND)))
        return int(count)

    def cost(self, hook: str, warm: object, told: object) -> float:
        """The cost of one call in bare starts of the interpreter, after another call has compiled everything."""
        script = SCRIPTS / f"{hook}.py"
        self.run(script, told=warm)
        return self.count(script, told=told) / bare_start()

    def session(self, phase: str) -> str:
        agent_id = gaia_sessions.create_session("Explore", root=self.root)
        gaia_sessions.update_state(agent_id, phase, {"ticket": "T-1"}, root=self.root)
        return agent_id

    def agent(self, number: int) -> Mapping[str, object]:
        """Starts an agent for delegation ``number``. Returns the payload of its stop."""
        self.run(SCRIPTS / "pre_delegate.py", told={**DELEGATION, "tool_use_id": f"toolu_{number}"})
        agents = Path.home() / ".claude" / "projects" / "-p" / SESSION / "subagents"
        agents.mkdir(parents=True, exist_ok=True)
        meta = {"agentType": "Explore", "toolUseId": f"toolu_{number}", "spawnDepth": 1}
        (agents / f"agent-a{number}.meta.json").write_text(json.dumps(meta), encoding="utf-8")
        return {
            "session_id": SESSION,
            "hook_event_name": "SubagentStop",
            "transcript_path": f"{agents.parent}.jsonl",
            "agent_id": f"a{number}",
            "agent_type": "Explore",
            "stop_hook_active": False,
            "last_assistant_message": "There are 42 of them.\nAll is counted.",
        }

    def resuming(self, number: int, messages: int, words: int) -> Mapping[str, object]:
        """Stops an agent with ``messages`` messages. Returns the payload of a delegation that resumes its session.

        words: the length of each message, in sentences.
        """
        stop = self.agent(number)
        asks = "All is counted.\n[gaia-sessions: approval] shall I go on?"
        texts = [f"So far {found}." + " And one more." * words for found in range(messages - 2)]
        said = [("user", "Count them all"), *(("assistant", text) for text in [*texts, asks])]
        keys = {"agentId": f"a{number}", "timestamp": "2026-01-08T18:05:30.123Z"}
        lines = (json.dumps({**keys, "type": role, "message": {"content": text}}) for role, text in said)
        file = Path.home() / ".claude" / "projects" / "-p" / SESSION / "subagents" / f"agent-a{number}.jsonl"
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        before = self.waiting()
        end = {"last_assistant_message": asks, "agent_transcript_path": str(file)}
        self.run(SCRIPTS / "subagent_stop.py", told={**stop, **end})
        [agent_id] = self.waiting() - before
        asked = {**DELEGATION["tool_input"], "prompt": f"Go on.\n[gaia-sessions: resume {agent_id}]"}  # type: ignore[dict-item]
        return {**DELEGATION, "tool_use_id": f"toolu_r{number}", "tool_input": asked}

    def waiting(self) -> set[str]:
        return {line["agent_id"] for line in gaia_sessions.list_sessions(root=self.root, phases=["approval"])}

    def phases(self) -> list[str]:
        return sorted(summary["phase"] for summary in gaia_sessions.list_sessions(root=self.root) if "phase" in summary)


@cache
def bare_start() -> Count:
    project = Project(Path.cwd())
    project.run("-c", "pass")
    return project.count("-c", "pass")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / ".claude").mkdir()
    return Project(tmp_path)


def test_a_direct_check_of_a_resumable_session_costs_at_most_two_starts(project: Project) -> None:
    asked = {"agent_name": "Explore", "agent_id": project.session("approval")}

    assert project.cost("pre_delegate", asked, asked) <= MOST


def test_a_direct_stop_that_finalizes_costs_at_most_two_starts(project: Project) -> None:
    warm, told = ({"agent_id": project.session("executing"), "exit_code": 0} for _ in range(2))

    assert project.cost("subagent_stop", warm, told) <= MOST
    assert project.phases() == ["completed", "completed"]


def test_a_stop_of_a_session_with_300_moves_costs_at_most_15_percent_more(project: Project) -> None:
    warm, few, many = (project.session("executing") for _ in range(3))
    for number in range(300):
        gaia_sessions.update_state(many, "planning" if number % 2 else "executing", root=project.root)
    costs = [project.cost("subagent_stop", {"agent_id": warm}, {"agent_id": agent_id}) for agent_id in (few, many)]

    assert costs[1] <= 1.15 * costs[0]
    assert project.phases() == ["completed"] * 3


def test_a_delegation_that_creates_a_session_costs_at_most_two_starts(project: Project) -> None:
    warm, told = ({**DELEGATION, "tool_use_id": f"toolu_{number}"} for number in range(2))

    assert project.cost("pre_delegate", warm, told) <= MOST
    assert project.phases() == ["initializing", "initializing"]


def test_a_host_stop_that_finalizes_costs_at_most_two_starts(project: Project) -> None:
    warm, told = (project.agent(number) for number in range(2))

    assert project.cost("subagent_stop", warm, told) <= MOST
    assert project.phases() == ["completed", "completed"]


@pytest.mark.parametrize(("few", "words"), [(10, 35), (400, 0)], ids=["long messages", "hundreds of messages"])
def test_a_resuming_delegation_costs_the_same_however_long_the_transcript_is(
    project: Project, few: int, words: int
) -> None:
    warm, *told = (project.resuming(number, messages, words) for number, messages in enumerate((10, few, 10_000)))
    costs = [project.cost("pre_delegate", warm, asked) for asked in told]

    assert costs[1] <= 1.1 * costs[0]
