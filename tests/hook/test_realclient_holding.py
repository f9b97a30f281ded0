"""Sub-agents of a real client that stop with open todos, with the hooks that ``hooks install --enforce`` writes.

See ``test_realclient``, whose harness this uses. The requests to the API show what an agent was told.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.hook.texts import find_program
from tests.hook.test_realclient import client, delegation, script
from tests.hook.test_realclient_installed import tool_results, trusting

if TYPE_CHECKING:
    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = [
    pytest.mark.realclient,
    pytest.mark.skipif(find_program() is None, reason="needs the console script"),
    pytest.mark.parametrize("client", ["2.1.330", "2.1.332"], indirect=True),
]

_REMINDER = re.compile(r"You have open todos \(reminder (\d) of at most")


def bash(command: str) -> dict[str, Any]:
    return {"text": "So.", "tools": [{"name": "Bash", "input": {"command": command, "description": "Do it"}}]}


ADD, CLOSE, LOOK = bash("{{todo add}}"), bash("{{close:1}}"), bash("echo look")
REPORT, PAUSE = {"text": "Report."}, {"text": "So far.\n[gaia-sessions: approval] may I?"}
RUNNER = "---\nname: runner\ndescription: Runs commands\ntools: Bash, Read\nmaxTurns: 3\n---\nYou are the runner.\n"


def live(client: Client, *sub: dict[str, Any], kind: str = "general-purpose", twice: bool = False, **more: Any) -> Any:
    """The record of the only sub-agent, which answers by this script; with ``twice``, two hooks receive its stops."""
    client.install("--enforce", "--allow-report")
    if twice:
        settings = client.host.project / ".claude" / "settings.json"
        said = json.loads(settings.read_bytes())
        [group] = said["hooks"]["SubagentStop"]
        [handler] = group["hooks"]
        other = {**handler, "args": [*handler["args"], "--not-known"]}
        said["hooks"]["SubagentStop"].append({**group, "hooks": [other]})
        settings.write_text(json.dumps(said), encoding="utf-8")
    own_settings = client.host.project / ".claude" / "gaia-sessions.toml"
    own_settings.write_text("limits.completion_check = true\n", encoding="utf-8")
    asked = delegation("alpha")
    asked["input"]["subagent_type"] = kind
    scenario = {
        "main": [{"tools": [asked]}, {"text": "All done."}],
        "subs": {"alpha": [*sub]},
        "allowed": ["Agent"],
        **more,
        "env": {**trusting(client.host.project), **more.get("env", {})},
    }
    client.live("own", script(client.host.folder, scenario), wired=False)
    [record] = client.host.records().values()
    return record


def outcome(record: Any) -> tuple[Any, ...]:
    """The phase, the end of the only run, how often the run was held, and the status of each todo."""
    [run] = record["runs"]
    still_open = [todo["status"] for todo in record["todos"]]
    return record["phase"], run.get("end"), len(run.get("held", [])), still_open


def reminders(client: Client) -> list[int]:
    """The number of reminders in each request of the sub-agent; the client repeats each reminder."""
    return [len(set(_REMINDER.findall(request))) for request in client.requests("sub:alpha")]


def test_a_held_agent_closes_its_todos_without_a_permission_request(client: Client) -> None:
    record = live(client, ADD, REPORT, CLOSE, {"text": "Report: all of it."})

    assert outcome(record) == ("completed", "stopped", 1, ["completed"])
    assert record["runs"][0]["last_message"] == "Report: all of it."
    added, closed = tool_results(client.requests("sub:alpha")[-1])
    assert ("todo 1 pending: it" in added, "todo 1 completed: it" in closed) == (True, True)
    assert "with open todos" not in client.requests("main")[-1]


@pytest.mark.parametrize(
    "between",
    [
        pytest.param([], id="in a row"),
        pytest.param([REPORT, REPORT, LOOK, REPORT, REPORT, REPORT, LOOK], id="with tools in between"),
    ],
)
def test_an_agent_that_closes_no_todo_stops_after_eight_reminders(client: Client, between: Any) -> None:
    record = live(client, ADD, *between, REPORT, allowed=["Agent", "Bash(echo:*)"])

    assert outcome(record) == ("completed", "stopped", 8, ["pending"])
    assert max(reminders(client)) == 8
    assert "The sub-agent stopped with open todos: 1 of 1, after 8 reminders." in client.requests("main")[-1]


def test_a_lower_limit_of_the_client_reduces_the_reminders(client: Client) -> None:
    record = live(client, ADD, REPORT, env={"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2"})

    assert outcome(record) == ("completed", "stopped", 2, ["pending"])


def test_an_agent_that_reaches_its_turn_limit_while_held_can_be_resumed(client: Client) -> None:
    record = live(client, ADD, REPORT, kind="runner", agents={"runner.md": RUNNER})

    phase, end, held, still_open = outcome(record)
    assert (phase, end, held > 0, still_open) == ("investigating", "returned", True, ["pending"])
    assert gaia_sessions.should_resume(record["agent_id"], root=str(client.host.root)) is True


def test_an_agent_that_pauses_with_open_todos_is_not_held(client: Client) -> None:
    record = live(client, ADD, PAUSE)

    assert outcome(record) == ("approval", "stopped", 0, ["pending"])


def test_a_session_that_is_ended_from_a_shell_while_held_stays_ended(client: Client) -> None:
    code = f"import gaia_sessions; s = gaia_sessions.Sessions({str(client.host.root)!r})"
    code += "; [s.finalize(one['agent_id'], 'failed') for one in s.list()]"
    ends = bash(f"{sys.executable} -c {shlex.quote(code)}")
    record = live(client, ADD, REPORT, ends, {"text": "Report, once more."}, allowed=["Agent", "Bash"])

    assert outcome(record) == ("failed", "stopped", 1, ["pending"])
    assert max(reminders(client)) == 1


def test_a_stop_that_two_hooks_receive_counts_as_one_reminder(client: Client) -> None:
    record = live(client, ADD, REPORT, REPORT, CLOSE, {"text": "Report: all of it."}, twice=True)

    assert outcome(record) == ("completed", "stopped", 2, ["completed"])
    assert [line["decision"] for line in client.host.log("hook") if line["event"] == "SubagentStop"].count("held") == 4


def test_an_agent_that_runs_one_command_per_reminder_is_in_no_loop(client: Client) -> None:
    enforced: dict[str, Any] = {"allowed": ["Agent", "Bash"], "env": {"GAIA_SESSIONS_LIMITS_REPEATS": "cancel"}}
    record = live(client, ADD, *[LOOK, REPORT] * 6, CLOSE, REPORT, **enforced)
    assert outcome(record) == ("completed", "stopped", 6, ["completed"])
    assert not [line for line in client.host.log("hook") if line["decision"] in ("warned", "denied")]
