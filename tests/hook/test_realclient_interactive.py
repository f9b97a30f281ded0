"""The interactive client in a terminal: agents that outlive their conversation, interruptions and permissions.

Also needs tmux. ``tui.py`` has what is typed and what the API answers.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hook.test_realclient import HERE, client
from tests.hook.tui import ASKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hook.test_realclient import Client

__all__ = ["client"]  # a fixture

OFFER = "[gaia-sessions: resume agent-"

pytestmark = [
    pytest.mark.realclient,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux to type into the client"),
]


class Terminal:
    """Runs a scenario; then has the record of its project and the requests to the API."""

    def __init__(self, client: Client, folder: Path, scenario: str) -> None:
        program = Path(sys.executable).with_name("gaia-sessions")
        environment = {**os.environ, "TUI_RUN": str(folder), "TUI_GAIA": str(program)}
        typed = [sys.executable, str(HERE / "tui.py"), str(client.harness), scenario]
        alone = ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec timeout 200 "$@"', "sh", *typed]
        done = subprocess.run(alone, capture_output=True, text=True, check=False, timeout=300, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        [self.project] = folder.glob(f"projects/*/{scenario}")
        [self.run] = folder.glob(f"runs/*/{scenario}")

    def record(self) -> Any:
        [file] = self.project.glob(".claude/session/[!.]*/state.json")
        return json.loads(file.read_bytes())

    def waiting(self) -> list[str]:
        return [file.name for file in self.project.glob(".claude/session/.inbox/*.json")]

    def told_to(self, words: str = OFFER) -> list[str]:
        """The roles of the requests to the API that contain ``words``, in order."""
        log = [json.loads(line) for line in (self.run / "api" / "api.jsonl").read_text(encoding="utf-8").splitlines()]
        requests = [(line["role"], self.run / "api" / f"request-{line['n']:03}.json") for line in log if "role" in line]
        return [role for role, file in requests if words in file.read_text(encoding="utf-8")]

    def offered_before_the_pause(self) -> list[str]:
        """The events before the agent's stop whose reply told how to resume."""
        lines = (self.project / ".claude" / "logs" / "hook.log").read_text(encoding="utf-8").splitlines()
        events = [json.loads(line) for line in lines]
        stop = next(place for place, line in enumerate(events) if line["event"] == "SubagentStop")
        return [line["event"] for line in events[:stop] if line.get("told") and line["event"] != "SubagentStart"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: the path of the tmux socket may have at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="gaia-tui-") as name:
        yield Path(name)


@pytest.mark.parametrize("scenario", ["cleared", "another-resumed"])
def test_an_agent_that_asks_after_its_conversation_ended_is_resumed_from_the_next(
    client: Client, folder: Path, scenario: str
) -> None:
    terminal = Terminal(client, folder, scenario)

    record = terminal.record()
    assert (record["phase"], [run["end"] for run in record["runs"]]) == ("completed", ["stopped", "stopped"])
    assert [run["last_message"] for run in record["runs"]] == [ASKS, "Applied."]
    assert [move["to_phase"] for move in record["history"]] == ["investigating", "approval", "executing", "completed"]
    first, second = record["runs"]
    assert first["current_host_session_id"] == second["host_session_id"] != first["host_session_id"]
    told = ["SessionStart"] if scenario == "cleared" else []  # it says that the agent still works
    assert (terminal.offered_before_the_pause(), terminal.waiting()) == (told, [])
    assert sorted(set(terminal.told_to())) == ["main", "sub:beta"]


def test_an_agent_that_was_moved_to_the_background_is_one_session_with_its_true_end(
    client: Client, folder: Path
) -> None:
    if "2.1.330" not in os.environ["REALCLIENT_PACKAGE"]:
        pytest.skip("needs Claude Code 2.1.330 or later, which moves agents to the background when it ends")

    terminal = Terminal(client, folder, "moved-to-background")

    record = terminal.record()
    assert (record["phase"], [run["end"] for run in record["runs"]]) == ("approval", ["stopped"])
    [run] = record["runs"]
    assert (run["last_message"], run["current_host_session_id"] != run["host_session_id"]) == (ASKS, True)
    assert (terminal.offered_before_the_pause(), terminal.waiting()) == ([], [])
    assert terminal.told_to() == ["main"]


def test_work_that_was_interrupted_with_esc_is_resumed_in_the_same_session(client: Client, folder: Path) -> None:
    terminal = Terminal(client, folder, "escaped")

    record = terminal.record()
    ends = [(run["end"], run.get("interruption"), run.get("last_message")) for run in record["runs"]]
    assert ends == [("killed", "interrupted", None), ("stopped", None, "Applied.")]
    assert (record["phase"], record["error_count"]) == ("completed", 0)
    assert (terminal.waiting(), sorted(set(terminal.told_to()))) == ([], ["main", "sub:beta"])


@pytest.mark.parametrize("scenario", ["stopped-in-panel", "all-stopped"])
def test_work_that_the_user_stopped_stays_open_but_is_offered_to_nobody(
    client: Client, folder: Path, scenario: str
) -> None:
    terminal = Terminal(client, folder, scenario)

    record = terminal.record()
    ends = [(run["end"], run.get("interruption")) for run in record["runs"]]
    assert (record["phase"], ends, record["error_count"]) == ("investigating", [("killed", "stopped_by_user")], 0)
    assert (terminal.waiting(), terminal.told_to()) == ([], [])
    assert set(terminal.told_to("Hello again.")) == {"main"}, "there was another conversation"


@pytest.mark.parametrize("answer", ["permitted", "refused"])
def test_an_agent_is_listed_as_waiting_until_its_permission_request_is_answered(
    client: Client, folder: Path, answer: str
) -> None:
    terminal = Terminal(client, folder, answer)

    [asked] = json.loads((terminal.project / "asked.json").read_bytes())
    liveness = asked["liveness"]
    assert (liveness["state"], liveness["for"], asked["phase"]) == ("waiting", "Bash", "investigating")
    [answered] = json.loads((terminal.project / "answered.json").read_bytes())
    assert (answered["liveness"], answered["running"]) == ({"state": "working"}, True)
    record = terminal.record()
    [run] = record["runs"]
    assert (record["phase"], run["end"], run["last_message"], "waiting" in run) == (
        *("completed", "stopped", "Report of alpha."),
        False,
    )
    assert terminal.waiting() == []


def test_work_of_a_closed_terminal_is_resumed_in_the_continued_conversation(client: Client, folder: Path) -> None:
    terminal = Terminal(client, folder, "hung-up")

    record = terminal.record()
    lost, resumed = record["runs"]
    assert lost["end"] in {"killed", "ended_with_host"}, "the next client of the older version tells that it was lost"
    assert (resumed["end"], resumed["last_message"]) == ("stopped", "Applied.")
    assert (record["phase"], record["error_count"]) == ("completed", 0)
    assert (terminal.waiting(), sorted(set(terminal.told_to()))) == ([], ["main", "sub:beta"])
