"""Real clients with the hooks of ``hooks install``: a sub-agent may use only the report command without permission.

See ``test_realclient``, whose harness this uses.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.config import load_with_faults
from gaia_sessions.doctor.hooks import hook_status
from gaia_sessions.hook.texts import find_program
from gaia_sessions.install import plan
from gaia_sessions.install.executable import hook_program
from gaia_sessions.install.places import HOSTS, Places
from gaia_sessions.system import utc_now
from tests.hook.test_realclient import VERSIONS, client, delegation, script

if TYPE_CHECKING:
    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = [pytest.mark.realclient, pytest.mark.skipif(find_program() is None, reason="needs the console script")]


@pytest.fixture
def installed(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """The client in a project where the hooks were installed with the report permission."""
    places = Places(str(client.host.root), os.environ)

    def install() -> None:
        client.errors.write_bytes(b"")
        request = plan.InstallRequest("install", "claude-code", "project", report=True)
        plan.carry_out(places, request, lambda _: None)

    monkeypatch.setattr(client, "configure", install)
    return client


def trusting(project: Path) -> dict[str, str]:
    """The environment of a client that trusts ``project`` and gives its last hook 60 seconds."""
    folder = project.parent / "configuration"
    folder.mkdir()
    told = {"projects": {str(project): {"hasTrustDialogAccepted": True}}, "hasCompletedOnboarding": True}
    (folder / ".claude.json").write_text(json.dumps(told), encoding="utf-8")
    return {"CLAUDE_CONFIG_DIR": str(folder), "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "60000"}


def bash(command: str) -> dict[str, Any]:
    return {"text": "So.", "tools": [{"name": "Bash", "input": {"command": command, "description": "Run it"}}]}


def test_the_installed_hooks_run_and_the_allowed_report_command_needs_no_permission(installed: Client) -> None:
    tool, root = shlex.quote(find_program() or ""), shlex.quote(str(installed.host.root))
    reports = f"{tool} update of-somebody --root {root} --phase planning"
    commands = [
        "{{report}}",
        reports,
        f"{reports} && {tool} cleanup --root {root}",
        f"{tool} create --root {root} --id made",
    ]
    scenario = {
        "main": [{"tools": [delegation("alpha")]}, {"text": "All done."}],
        "subs": {"alpha": [*(bash(command) for command in commands), {"text": "Report."}]},
        "allowed": ["Agent"],
        "env": trusting(installed.host.project),
    }

    installed.live("own", script(installed.host.folder, scenario))

    answers = tool_results(installed.requests("sub:alpha")[-1])
    assert ["no session 'of-somebody'" in answer for answer in answers] == [False, True, False, False]
    assert ["approval" in answer for answer in answers] == [False, False, True, True]
    assert installed.host.record()["runs"][0]["reported"] == "planning"
    phases = [move["to_phase"] for move in installed.host.record()["history"]]
    assert phases == ["investigating", "planning", "completed"]
    assert [run["end"] for run in installed.host.record()["runs"]] == ["stopped"]
    root, variables = str(installed.host.root), {"HOME": str(installed.host.folder)}
    heard = hook_status(Places(root, variables), utc_now(), load_with_faults(root, variables))["last_received"]
    expected = {"SessionStart", "PreToolUse", "SubagentStart", "SubagentStop", "PostToolUse", "SessionEnd"}
    assert expected <= set(heard), (installed.run / "debug.log").read_text(encoding="utf-8")[-4000:]


# Without a terminal, the earlier client makes no permission request.
@pytest.mark.parametrize("client", VERSIONS[-1:], indirect=True)
def test_only_a_tool_call_that_needs_permission_starts_the_hook(client: Client) -> None:
    program = Path(sys.executable).with_name("gaia-sessions")
    refused, later, listing = bash("python3 -c 'print(6*7)'"), bash("sleep 2"), bash(f"{program} list --json")
    # The client may write the result of the first wait only during the second one.
    subs = [*[bash("ls")] * 4, refused, later, later, listing, *[bash("ls")] * 4, {"text": "Report."}]
    scenario = {
        "main": [{"tools": [delegation("alpha")]}, {"text": "All done."}],
        "subs": {"alpha": subs},
        "allowed": ["Agent", "Bash(ls:*)", "Bash(sleep:*)", f"Bash({program} list:*)"],
        "env": trusting(client.host.project),
    }

    client.live("own", script(client.host.folder, scenario), installed=True)

    own = {"PermissionRequest", "SubagentStart", "SubagentStop"}
    heard = [line["event"] for line in client.host.log("hook") if line.get("agent_id")]
    assert (set(heard), heard.count("PermissionRequest")) == (own, 1), heard
    results = tool_results(client.requests("sub:alpha")[-1])
    assert "approval" in results[4]
    [listed] = json.loads(json.loads(results[7]))
    assert listed["liveness"] == {"state": "working"}, "it has written more than a second after the request"
    assert ["waiting" in run for run in client.host.record()["runs"]] == [False]


@pytest.mark.parametrize("gone", ["program", "interpreter"])
def test_a_missing_hook_program_does_not_disturb_the_conversation(
    installed: Client, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    install, moved = installed.configure, installed.host.folder / "gone" / "gaia-sessions-hook"

    def install_and_remove_the_program() -> None:
        install()
        settings = installed.host.project / ".claude" / "settings.json"
        changed = settings.read_bytes().replace(hook_program()[0].encode(), str(moved).encode())
        assert changed.count(str(moved).encode()) == len(HOSTS["claude-code"].entries())
        settings.write_bytes(changed)
        if gone == "interpreter":
            moved.parent.mkdir()
            moved.write_bytes(b"#!/gone/bin/python3\n")
            moved.chmod(0o755)

    monkeypatch.setattr(installed, "configure", install_and_remove_the_program)
    scenario = {
        "main": [{"tools": [delegation("alpha")]}, {"text": "All done."}],
        "subs": {"alpha": [bash("echo it went on"), {"text": "Report."}]},
        "allowed": ["Agent", "Bash"],
    }

    installed.live("own", script(installed.host.folder, scenario))

    [answer] = tool_results(installed.requests("sub:alpha")[-1])
    assert "it went on" in answer
    assert "Report." in tool_results(installed.requests("main")[-1])[0]
    assert [request for request in installed.requests("main") if str(moved) in request] == [], "the model is not told"
    assert not installed.host.root.exists()


def tool_results(request: str) -> list[str]:
    told = json.loads(request)
    messages = told.get("body", told)["messages"]
    parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    return [json.dumps(part["content"]) for part in parts if part["type"] == "tool_result"]


def test_an_agent_older_than_the_hooks_is_the_parent_of_its_delegation(client: Client) -> None:
    words = [sys.executable, "-m", "gaia_sessions", "hooks", "install", "--project", "--root", str(client.host.root)]
    scenario = {
        "main": [{"tools": [delegation("alpha")]}, {"text": "All done."}],
        "subs": {
            "alpha": [
                bash(f"{shlex.join(words)}; sleep 1"),
                {"tools": [delegation("beta")]},
                {"text": "Report of alpha."},
            ],
            "beta": [{"text": "Report of beta."}],
        },
    }

    client.live("own", script(client.host.folder, scenario), wired=False)

    records = {record["purpose"]: record for record in client.host.records().values()}
    assert sorted(records) == ["Job alpha", "Job beta"]
    assert [(record["phase"], len(record["runs"])) for record in records.values()] == [("completed", 1)] * 2
    assert records["Job beta"]["parent_id"] == records["Job alpha"]["agent_id"]
    assert "host_process" in records["Job alpha"]["runs"][0]
