"""A main agent of a real client tries to approve by itself: with the resume line, a command or a program."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from tests.hook.test_realclient import PAUSES, client, delegation, script, turns
from tests.hook.test_realclient_others import PAUSE, plan, start

if TYPE_CHECKING:
    from tests.hook.conftest import Host
    from tests.hook.test_realclient import Client

__all__ = ["client", "start"]

pytestmark = pytest.mark.realclient

PYTHON = shlex.quote(sys.executable)
PROGRAM = "import gaia_sessions, sys; gaia_sessions.Sessions(sys.argv[1]).approve(sys.argv[2])"


def attempts(host: Host, agent_id: str) -> dict[str, str]:
    """The commands with which an agent tries to approve, by name."""
    root = shlex.quote(str(host.root))
    ours = f"{PYTHON} -m gaia_sessions"
    return {
        "approve": f"{ours} approve {agent_id} --root {root}",
        "python": f"{PYTHON} -c {shlex.quote(PROGRAM)} {root} {agent_id}",
        "update": f"{ours} update {agent_id} --phase planning --root {root}",
        "run": f"{ours} run {agent_id} --root {root} -- true",
    }


def explicit(host: Host) -> None:
    """Writes the setting ``approvals = "explicit"`` for the project."""
    file = host.project / ".claude" / "gaia-sessions.toml"
    file.write_text('approvals = "explicit"\n', encoding="utf-8")


def bash(command: str) -> dict[str, Any]:
    return {"name": "Bash", "input": {"command": command, "description": "Approve"}}


def attack(client: Client, *tried: str) -> str:
    """The main agent tries all these ways and then the resume line; returns its last request."""
    typed = attempts(client.host, "{{id:0}}")
    steps = [delegation("alpha"), *(bash(typed[way]) for way in tried), delegation("beta", "Approved.\n{{resume:0}}")]
    subs = {"alpha": [{"text": PAUSES.format("alpha")}], "beta": [{"text": "Applied."}]}
    client.live("own", script(client.host.folder, {"main": turns(*steps), "subs": subs}))
    return client.requests("main")[-1]


@pytest.mark.parametrize(("tried", "by"), [((), "resume_line"), (("approve",), "command"), (("python",), "python")])
def test_by_default_the_record_says_how_an_agent_approved_by_itself(
    client: Client, tried: tuple[str, ...], by: str
) -> None:
    told = attack(client, *tried)

    record = client.host.record()
    [given] = record["answers"]
    assert (record["phase"], given["answer"], given["by"]) == ("completed", "approved", by)
    assert given.get("shell") == (None if by == "resume_line" else "claude-code")
    assert 'Ask the user \\"may I apply alpha?\\".' in told
    assert "no answer of the user is recorded" in client.requests("sub:beta")[0]


def test_with_explicit_approvals_a_person_can_approve_and_an_agent_cannot(client: Client) -> None:
    explicit(client.host)

    told = attack(client, "approve", "python", "update", "run")

    record = client.host.record()
    assert (record["phase"], len(record["runs"]), "answers" in record) == ("approval", 1, False)
    assert client.requests("sub:beta") == []
    assert told.count("and this is the shell of an agent of Claude Code") == 2
    assert "This line resumes nothing yet, and no sub-agent was started." in told
    agent_id = record["agent_id"]
    assert f"gaia-sessions approve {agent_id} (or deny instead of approve)" in told

    gaia_sessions.Sessions(str(client.host.root)).approve(agent_id, "only in staging")
    client.run = client.host.folder / "second run"
    goes_on = [{"tools": [delegation("gamma", f"\n[gaia-sessions: resume {agent_id}]")]}, {"text": "All done."}]
    client.live("own", script(client.host.folder, {"main": goes_on, "subs": {"gamma": [{"text": "Applied."}]}}))

    assert client.host.record()["phase"] == "completed"
    assert "The user added: only in staging" in client.requests("sub:gamma")[0]


SHELLS = {
    "codex": lambda command: {"name": "exec_command", "input": {"cmd": command}},
    "qwen-code-0.24.4": lambda command: {
        "name": "run_shell_command",
        "input": {"command": command, "description": "Approve", "is_background": False},
    },
    "gemini-cli": lambda command: {"name": "run_shell_command", "input": {"command": command}},
}


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.usefixtures("on_disk")  # the shell of Codex sees no files in memory
def test_with_explicit_approvals_agents_of_other_clients_cannot_approve(start: Any, name: str) -> None:
    other = start(name)
    explicit(other.host)
    other.live("single", plan(name, "alpha", PAUSE))
    before = other.host.record()
    agent_id = before["agent_id"]
    asked = plan(name, "beta", "Applied.", f"\n[gaia-sessions: resume {agent_id}]")
    typed = attempts(other.host, agent_id)
    tries = [{"tools": [SHELLS[name](typed[way])]} for way in ("approve", "python")]

    other.live("single", {**asked, "main": [*tries, *asked["main"]]})

    assert other.host.records()[agent_id] == before
    assert "and this is the shell of an agent of" in other.requests("single")
    obeys = name != "gemini-cli"
    assert ("This line resumes nothing yet" in other.requests("single")) == obeys
    assert len(other.host.records()) == (1 if obeys else 2)
