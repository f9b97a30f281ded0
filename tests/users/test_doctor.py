"""``doctor`` with several users: one finding for each cause, and only commands that the user may run."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.users.conftest import findings, tree
from tests.users.test_search import DELEGATES, create

if TYPE_CHECKING:
    from pathlib import Path

    from tests.users.conftest import User


def run(user: User, cwd: Path, command: str) -> None:
    """Runs a command that doctor shows, as that user."""
    subprocess.run(["sh", "-euc", command], check=True, cwd=cwd, user=user.uid, group=user.gid, extra_groups=[])


@pytest.fixture
def project(world: Path, alice: User) -> Path:
    """A project of alice with one session, in which hooks have run."""
    folder = alice.make(world / "project")
    alice.gaia(folder, "create", "--id", "agent-1")
    alice.hook(folder, DELEGATES)
    return folder


@pytest.mark.parametrize("fix", [[], ["--fix"]], ids=["doctor", "doctor --fix"])
def test_a_second_user_gets_one_finding_that_names_the_owner_of_the_sessions(
    project: Path, alice: User, bob: User, fix: list[str]
) -> None:
    project.chmod(0o777)
    before = tree(project)

    ended = bob.gaia(project, "doctor", "--json", *fix)

    found = (
        f"{project}/.claude: cannot use the sessions: it belongs to {alice.name}, and you are {bob.name};"
        " sessions are private to a user"
    )
    command = 'export GAIA_SESSIONS_ROOT="$HOME/gaia-sessions"'
    report = json.loads(ended.out)
    assert (ended.code, ended.err, report["fixed"]) == (1, "", [])
    first, *others = report["checks"]
    assert first == {"name": "root", "state": "problem", "found": found, "fix": command, "fixable": False}
    assert {other["state"] for other in others} == {"not_checked"}
    assert tree(project) == before
    assert findings(bob, project, GAIA_SESSIONS_ROOT=f"{bob.home}/gaia-sessions") == {}


def test_a_skipped_project_is_one_finding_with_the_command_that_resolves_it(
    project: Path, alice: User, bob: User, root_user: User
) -> None:
    below = bob.make(project / "below")
    of_root = root_user.make(project / "of-root")

    for user, cwd, root in ((bob, below, below), (root_user, of_root, project)):
        found = findings(user, cwd)
        assert list(found) == ["project"]
        assert f"the project {project} was skipped: {project} belongs to {alice.name}" in found["project"]["found"]
        assert found["project"]["fix"] == f"export GAIA_SESSIONS_ROOT={root}/.claude/session"
        assert user.gaia(cwd, "doctor").err == ""
        assert findings(user, cwd, GAIA_SESSIONS_ROOT=f"{root}/.claude/session") == {}


@pytest.mark.parametrize("name", ["agent-1", "agent-1/state.json", ".locks", ".index", ".inbox", ".index/active.keys"])
def test_a_file_of_root_is_one_finding_with_a_command_for_root_only(
    world: Path, project: Path, alice: User, root_user: User, name: str
) -> None:
    path = project / ".claude" / "session" / name
    if name == ".inbox":
        alice.make(path, mode=0o700)
    os.chown(path, 0, 0)

    told = findings(alice, project)
    told_root = findings(root_user, project)

    assert list(told) == list(told_root) == ["owner"]
    assert told["owner"]["fix"] is None
    words, command, rest = told["owner"]["found"].split("`")
    assert words == f"1 entry not owned by {alice.name}: {path}; they belong to root; to see the repair command, type "
    sudo, *typed = shlex.split(command)
    assert (sudo, rest) == ("sudo", "")
    assert told_root["owner"]["fix"] in root_user.gaia(world, *typed[typed.index("--root") :]).out
    assert told_root["owner"]["fix"] == f"chown -h {alice.uid}:{alice.gid} -- {path}"
    run(root_user, project, told_root["owner"]["fix"])
    assert findings(alice, project) == findings(root_user, project) == {}


def test_doctor_offers_no_fix_for_a_file_of_another_user_in_a_store(
    project: Path, alice: User, bob: User, root_user: User
) -> None:
    path = project / ".claude" / "session" / "agent-1" / "state.json"
    os.chown(path, bob.uid, bob.gid)

    for user in (alice, root_user):
        found = findings(user, project)
        assert list(found) == ["owner"]
        assert (found["owner"]["fix"], found["owner"]["fixable"]) == (None, False)
        what = f"these entries belong to {bob.name}: move away or delete what you do not need"
        assert f"; {what}; doctor does not change another user's files" in found["owner"]["found"]


@pytest.mark.parametrize("mode", [0o000, 0o500, 0o300])
@pytest.mark.parametrize("by_hand", [True, False], ids=["the command", "--fix"])
def test_a_root_whose_mode_denies_its_owner_access_is_one_finding_with_a_fix(
    project: Path, alice: User, mode: int, *, by_hand: bool
) -> None:
    root = project / ".claude" / "session"
    root.chmod(mode)

    found = findings(alice, project)

    assert list(found) == ["root"]
    assert found["root"]["found"] == f"{root}: its mode ({mode:03o}) denies its owner access"
    if by_hand:
        run(alice, project, found["root"]["fix"])
    else:
        alice.gaia(project, "doctor", "--fix")
    assert findings(alice, project) == {}


def test_a_record_whose_mode_denies_its_owner_access_is_one_finding_with_a_fix(project: Path, alice: User) -> None:
    (project / ".claude" / "session" / "agent-1" / "state.json").chmod(0o000)

    found = findings(alice, project)

    assert list(found) == ["modes"]
    typed = shlex.split(found["modes"]["fix"])
    assert alice.gaia(project, *typed[typed.index("--root") :]).out.startswith("fixed modes: 1 made private\n")
    assert findings(alice, project) == {}


def test_the_command_for_logs_of_another_user_moves_them_aside(project: Path, alice: User) -> None:
    logs = project / ".claude" / "logs"
    os.chown(logs, 0, 0)

    found = findings(alice, project)

    assert list(found) == ["log"]
    assert found["log"]["found"] == f"{logs} is not writable: it belongs to root"
    run(alice, project, found["log"]["fix"])
    alice.hook(project, DELEGATES)
    assert findings(alice, project) == {}
    assert (logs.stat().st_uid, (project / ".claude" / "logs.old").stat().st_uid) == (alice.uid, 0)


def test_an_unwritable_folder_is_one_finding_with_a_command_for_another_root(world: Path, alice: User) -> None:
    here = world / "here"
    here.mkdir(mode=0o755)

    found = findings(alice, here)

    assert list(found) == ["root"]
    assert found["root"]["fix"] == 'export GAIA_SESSIONS_ROOT="$HOME/gaia-sessions"'
    assert create(alice, here, GAIA_SESSIONS_ROOT=f"{alice.home}/sessions")[1] == ""
