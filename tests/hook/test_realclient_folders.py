"""Real clients in the folder where the hooks were installed, below it, and in a linked worktree.

See ``test_realclient``, whose harness this uses. The harness writes its recorder to ``settings.local.json`` where it
starts the client, so the hooks are installed after that, right before the client starts.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import get_session, list_sessions
from gaia_sessions.install.executable import hook_program
from gaia_sessions.store.hook_log_reader import read_lines
from tests.hook.test_realclient import client, delegation, script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = pytest.mark.realclient

SCENARIO = {
    "main": [{"tools": [delegation("alpha")]}, {"text": "All done."}],
    "subs": {"alpha": [{"text": "Report."}]},
    "allowed": ["Agent"],
}
DONE = ["completed", "stopped", 1]
READS_FROM_BELOW = {"2-1-197": False, "2-1-330": True}
"""Whether a version that starts in a subfolder reads ``settings.local.json`` at the top of the repository."""


@pytest.fixture
def repository(client: Client) -> Path:
    """A repository with a subfolder."""
    project = client.host.project
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", project, "-c", "user.name=me", "-c", "user.email=me@here", *words], check=True)
    (project / "modules").mkdir()
    return project


def live(client: Client, start: Path, *installs: tuple[Path, str]) -> None:
    """Runs ``hooks install`` in each of these folders with its options, and then the client in ``start``."""
    ask = f"{shlex.quote(sys.executable)} -m gaia_sessions hooks install"
    program = f"{os.environ['REALCLIENT_BASE']}/client/node_modules/@anthropic-ai/claude-code-linux-x64/claude"
    wrapper = client.host.folder / "client"
    before = [f"(cd {shlex.quote(str(folder))} && {ask} {words} >&2)" for folder, words in installs]
    wrapper.write_text("\n".join(["#!/bin/sh -e", *before, f'exec {shlex.quote(program)} "$@"\n']), encoding="utf-8")
    wrapper.chmod(0o755)
    scenarios = script(client.host.folder, SCENARIO)
    command = [str(client.harness / "run.sh"), "own", str(start), "--run-dir", str(client.run)]
    environment = {**os.environ, "REALCLIENT_SCENARIOS": str(scenarios)}
    command += ["--client-binary", str(wrapper)]
    subprocess.run(command, check=True, capture_output=True, timeout=900, env=environment)
    assert "Report." in client.requests("main")[-1], "the conversation went on in any case"


def ends(root: Path) -> list[list[object]]:
    """The phase of each session, how its last run ended, and how many runs it had."""
    records = [get_session(str(found["agent_id"]), root=str(root)) for found in list_sessions(root=str(root))]
    return [[told["phase"], told["runs"][-1].get("end"), len(told["runs"])] for told in records if told]


def heard(root: Path) -> list[object]:
    return [line["event"] for line in read_lines(str(root))]


@pytest.mark.parametrize("words", ["", "--project", "--enforce"])
def test_hooks_installed_at_the_repository_root_record_a_client_started_there(
    client: Client, repository: Path, words: str
) -> None:
    live(client, repository, (repository, words))

    name = "settings.json" if words == "--project" else "settings.local.json"
    assert hook_program()[0] in (repository / ".claude" / name).read_text(encoding="utf-8")
    assert ends(repository / ".claude" / "session") == [DONE]


def test_hooks_installed_from_a_subfolder_record_a_client_started_at_the_repository_root(
    client: Client, repository: Path
) -> None:
    live(client, repository, (repository / "modules", ""))

    assert ends(repository / ".claude" / "session") == [DONE]


@pytest.mark.parametrize("words", ["", "--project"])
def test_from_a_subfolder_only_the_newer_client_reads_the_local_settings_of_the_repository(
    client: Client, repository: Path, words: str
) -> None:
    live(client, repository / "modules", (repository, words))

    newer = READS_FROM_BELOW[os.environ["REALCLIENT_BASE"].rpartition("/")[2]]
    assert ends(repository / "modules" / ".claude" / "session") == [DONE] * (newer and not words)
    assert not (repository / ".claude" / "session").exists()


def test_hooks_installed_with_here_in_a_subfolder_record_each_event_once(client: Client, repository: Path) -> None:
    live(client, repository / "modules", (repository, ""), (repository / "modules", "--here"))

    root = repository / "modules" / ".claude" / "session"
    assert ends(root) == [DONE]
    events = heard(root)
    assert [events.count(event) for event in ("SessionStart", "SubagentStop", "Stop", "SessionEnd")] == [1, 1, 1, 1]


def test_hooks_in_a_worktree_and_in_the_main_checkout_record_each_event_once(client: Client, repository: Path) -> None:
    tree = client.host.folder / "tree"
    subprocess.run(["git", "-C", repository, "worktree", "add", "-q", tree], check=True)

    live(client, tree, (repository, ""), (tree, ""))

    root = repository / ".claude" / "session"
    assert hook_program()[0] in (tree / ".claude" / "settings.local.json").read_text(encoding="utf-8")
    assert ends(root) == [DONE]
    events = heard(root)
    assert [events.count(event) for event in ("SessionStart", "SubagentStop", "Stop", "SessionEnd")] == [1, 1, 1, 1]
