"""A user without HOME whom the system does not know, as in many containers: what needs no home works."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.users.conftest import User

if TYPE_CHECKING:
    from pathlib import Path

    from tests.forks import Forks
    from tests.users.conftest import Ended, Machine

HOMELESS = {"HOME": "", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""}
ALL = ("claude-code", "codex", "qwen-code", "gemini-cli")
UNKNOWN = "HOME is not set, and the system knows no home folder for you"


class Stranger(User):
    """A user with a number and no name."""

    def does(self, cwd: Path, *words: str, **environment: str) -> Ended:
        return self.gaia(cwd, *words, **(HOMELESS | environment))


@pytest.fixture
def stranger(machine: Machine, user_forks: Forks, world: Path) -> Stranger:
    return Stranger("", 54321, 54321, world / "nowhere", world, machine, user_forks)


@pytest.fixture
def project(world: Path, stranger: Stranger) -> Path:
    folder = stranger.make(world / "project")
    assert stranger.does(folder, "create", "--id", "agent-1", CLAUDE_PROJECT_DIR=str(folder)).code == 0
    return folder


def test_hooks_of_a_project_can_be_installed_and_removed_without_a_home(stranger: Stranger, project: Path) -> None:
    for scope, name in (("--project", "settings.json"), ("--local", "settings.local.json")):
        settings = project / ".claude" / name
        for action, is_there in (("install", True), ("uninstall", False)):
            done = stranger.does(project, "hooks", action, scope)
            assert (done.code, settings.exists()) == (0, is_there), done
            assert f"not checked: your own settings of claude-code, because {UNKNOWN}" in done.out
            assert stranger.does(project, "hooks", action, scope, "--json").code == 0


def test_status_and_doctor_name_the_settings_that_they_did_not_check(stranger: Stranger, project: Path) -> None:
    stranger.does(project, "hooks", "install", "--project")

    status = stranger.does(project, "hooks", "status")
    report = json.loads(stranger.does(project, "hooks", "status", "--json").out)
    checked = stranger.does(project, "doctor", "--json")

    assert status.code == 0, status
    expected = f"your own settings of {', '.join(ALL)}, because {UNKNOWN}"
    assert status.out.splitlines()[0] == f"not checked: {expected}"
    assert [found["scope"] for found in report["installed"] if found["command"]] == ["project"]
    told = [found for found in json.loads(checked.out)["checks"] if UNKNOWN in found["found"]]
    assert [(found["name"], found["state"], found["found"], found["fix"]) for found in told] == [
        ("hooks", "not_checked", expected, None)
    ]


def test_hooks_install_user_uses_the_folder_that_the_variable_of_a_client_names(
    stranger: Stranger, project: Path, world: Path
) -> None:
    own = stranger.make(world / "claude")

    done = stranger.does(project, "hooks", "install", "--user", CLAUDE_CONFIG_DIR=str(own))

    assert (done.code, (own / "settings.json").exists()) == (0, True), done
    assert UNKNOWN not in done.out


def test_a_users_own_settings_cannot_be_changed_and_the_message_says_why(stranger: Stranger, project: Path) -> None:
    for action in ("install", "uninstall"):
        done = stranger.does(project, "hooks", action, "--user")
        assert (done.code, done.out) == (2, ""), done
        assert f"HOME: {UNKNOWN[5:]}" in done.err
