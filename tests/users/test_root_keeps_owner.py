"""Root works in the project of a user, with sudo or in a container: new files belong to the user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.store import locks
from gaia_sessions.store.directory import Directory
from tests.users.conftest import SILENT, findings, tree
from tests.users.test_search import DELEGATES, STARTS, create

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.users.conftest import User

STOPS: dict[str, Any] = {
    "hook_event_name": "SubagentStop",
    "session_id": "s",
    "agent_id": "a1",
    "agent_type": "Explore",
    "last_assistant_message": "done",
}
BEGINS: dict[str, Any] = {
    "hook_event_name": "SubagentStart",
    "session_id": "s",
    "agent_id": "a1",
    "agent_type": "Explore",
}
RETURNS: dict[str, Any] = {
    **DELEGATES,
    "hook_event_name": "PostToolUse",
    "tool_response": {"status": "completed", "agentId": "a1", "content": [{"type": "text", "text": "done"}]},
}


def owners(folder: Path) -> set[tuple[int, int]]:
    return {(uid, gid) for _, uid, gid, _, _ in tree(folder).values()}


@pytest.fixture(params=["the working folder", "CLAUDE_PROJECT_DIR"])
def place(
    request: pytest.FixtureRequest, world: Path, alice: User, root_user: User
) -> tuple[Path, Path, dict[str, str]]:
    """A project of alice without a ``.claude``, the working folder of root, and the environment of root."""
    project = alice.make(world / "project")
    if request.param == "the working folder":
        return project, project, {}
    return project, root_user.home, {"CLAUDE_PROJECT_DIR": str(project)}


def test_files_that_commands_and_hooks_of_root_make_belong_to_the_project_owner(
    alice: User, root_user: User, place: tuple[Path, Path, dict[str, str]]
) -> None:
    project, here, environment = place

    agent_id, said = create(root_user, here, **environment)
    other, _ = create(root_user, here, **environment)
    done = [
        root_user.gaia(here, *words, **environment)
        for words in (
            ["update", agent_id, "--phase", "approval"],
            ["transcript", agent_id, "--append", "user", "hello"],
            ["finalize", other, "completed"],
            ["hooks", "install"],
        )
    ]
    hooks = [root_user.hook(here, told, **environment) for told in (STARTS, DELEGATES, BEGINS, STOPS, RETURNS)]
    root_user.gaia(here, "cleanup", "--hours", "0", **environment)

    assert said == ""
    assert [ended.code for ended in done + hooks] == [0] * 9
    assert owners(project) == {(alice.uid, alice.gid)}
    assert [*(project / ".claude" / "logs").glob("*.log")]
    assert (project / ".claude" / "session" / ".index").is_dir()
    assert (project / ".claude" / "session" / ".stats.jsonl").is_file()
    phases = {
        session["agent_id"]: session["phase"] for session in json.loads(alice.gaia(project, "list", "--json").out)
    }
    assert (len(phases), phases[agent_id]) == (2, "approval"), "cleanup removed the one that had ended"
    assert alice.gaia(project, "finalize", agent_id, "completed").code == 0
    assert findings(alice, project) == {}


def test_files_that_root_adds_to_a_store_belong_to_the_owner_of_the_store(
    world: Path, alice: User, root_user: User
) -> None:
    project = alice.make(world / "project")
    agent_id, _ = create(alice, project)

    assert root_user.gaia(project, "update", agent_id, "--phase", "planning").code == 0
    assert root_user.hook(project, DELEGATES).code == 0

    assert owners(project) == {(alice.uid, alice.gid)}
    assert alice.gaia(project, "update", agent_id, "--phase", "approval").code == 0


def test_a_root_below_the_home_of_a_user_belongs_to_that_user(alice: User, root_user: User) -> None:
    create(root_user, root_user.home, GAIA_SESSIONS_ROOT=f"{alice.home}/deep/down/sessions")

    assert owners(alice.home / "deep") == {(alice.uid, alice.gid)}


def test_files_that_root_makes_in_its_own_folder_belong_to_root(world: Path, root_user: User) -> None:
    create(root_user, world)

    assert owners(world / ".claude") == {(0, 0)}


def test_a_lock_file_that_filelock_makes_belongs_to_the_owner_of_the_folder(world: Path, alice: User) -> None:
    folder = alice.make(world / "locks")

    with Directory.at(str(folder)) as opened:
        release = locks.wait_with_filelock(opened, "a.lock", 1)
    assert release is not None
    release()

    assert owners(folder) == {(alice.uid, alice.gid)}


@pytest.mark.parametrize("name", [".locks/agent-1.lock", "agent-1/events.jsonl"])
def test_a_file_of_root_that_a_user_puts_into_the_store_is_not_given_away(
    world: Path, alice: User, root_user: User, name: str
) -> None:
    project = alice.make(world / "project")
    alice.gaia(project, "create", "--id", "agent-1")
    secret = project / ".claude" / "session" / name
    secret.unlink(missing_ok=True)
    secret.write_text("secret\n", encoding="utf-8")
    secret.chmod(0o600)

    root_user.gaia(project, "update", "agent-1", "--phase", "planning")
    root_user.hook(project, DELEGATES)

    assert (secret.stat().st_uid, secret.stat().st_mode & 0o777) == (0, 0o600)
    assert secret.read_text(encoding="utf-8").startswith("secret\n")


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_figures_are_not_written_to_a_file_of_another_user(
    world: Path, alice: User, root_user: User, mode: int
) -> None:
    project = alice.make(world / "project")
    agent_id, _ = create(alice, project)
    file = project / ".claude" / "session" / ".stats.jsonl"
    file.write_text("mine\n", encoding="utf-8")
    file.chmod(mode)

    ended = alice.gaia(project, "rm", "--force", agent_id)

    assert (ended.code, "figures of removed sessions could not be stored" in ended.err) == (0, True)
    assert (file.read_text(encoding="utf-8"), file.stat().st_uid, root_user.uid) == ("mine\n", 0, 0)
    assert findings(alice, project).keys() >= {"owner"}


def test_a_folder_of_root_that_a_user_puts_into_the_store_is_not_given_away(
    world: Path, alice: User, root_user: User
) -> None:
    project = alice.make(world / "project")
    create(alice, project)
    planted = project / ".claude" / "session" / ".stage"
    planted.rmdir()
    planted.mkdir(mode=0o700)
    (planted / "secret").write_text("secret", encoding="utf-8")

    create(root_user, project)

    assert planted.stat().st_uid == (planted / "secret").stat().st_uid == 0


def test_root_follows_no_link_of_a_user_into_a_folder_of_root(world: Path, alice: User, root_user: User) -> None:
    project, target = alice.make(world / "project"), root_user.make(world / "target")
    (project / ".claude").symlink_to(target)
    os.chown(project / ".claude", alice.uid, alice.gid, follow_symlinks=False)

    ended = root_user.gaia(project, "create")

    assert (ended.code, ended.out) == (8, "")
    assert f"{project}/.claude: cannot use the sessions: it belongs to {alice.name}, and you are root" in ended.err
    assert root_user.hook(project, DELEGATES) == SILENT
    assert [*target.iterdir()] == []


def test_root_follows_a_link_of_a_user_into_a_folder_of_that_user(world: Path, alice: User, root_user: User) -> None:
    project = alice.make(world / "project")
    target = alice.make(project / "target")
    (project / ".claude").symlink_to(target)
    os.chown(project / ".claude", alice.uid, alice.gid, follow_symlinks=False)

    agent_id, _ = create(root_user, project)

    assert (target / "session" / agent_id).is_dir()
    assert owners(target) == {(alice.uid, alice.gid)}


def test_root_uses_no_store_that_a_user_planted_in_a_folder_of_root(world: Path, bob: User, root_user: User) -> None:
    common = root_user.make(world / "common", mode=0o1777)
    create(bob, common)
    before = tree(common)

    refused = [root_user.gaia(common, *words) for words in (["list"], ["create"], ["hooks", "install"])]
    heard = root_user.hook(common, {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"})

    assert [ended.code for ended in refused] == [8, 8, 8]
    assert heard == SILENT
    assert tree(common) == before


EXCHANGES = """
import ctypes, sys

libc, names = ctypes.CDLL(None), [name.encode() for name in sys.argv[1:]]
while libc.renameat2(-100, names[0], -100, names[1], 2) == 0:
    pass
"""


@pytest.mark.parametrize("times", [2, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("exchanged", [".claude/session", ".claude", "."])
def test_root_changes_no_private_folder_while_a_user_exchanges_a_folder_with_a_link(
    world: Path, alice: User, root_user: User, exchanged: str, times: int
) -> None:
    alice.make(world / "of-alice", project := world / "of-alice" / "project")
    create(alice, project)
    (project / ".claude" / "logs").mkdir(exist_ok=True)
    os.chown(project / ".claude" / "logs", alice.uid, alice.gid)
    secret = root_user.make(root_user.home / "secret", mode=0o700)
    shutil.copytree(project, secret / "project")
    root_user.gaia(secret, "create", "--root", f"{secret}/project/.claude/session")
    (secret / "project" / ".claude" / "session" / "torn").mkdir()
    before = tree(secret)
    folder = os.path.normpath(project / exchanged)
    aside = world / "of-alice" / "aside"
    aside.symlink_to(os.path.normpath(secret / "project" / exchanged))
    os.chown(aside, alice.uid, alice.gid, follow_symlinks=False)

    exchanging = subprocess.Popen(
        ["/usr/bin/python3", "-c", EXCHANGES, folder, aside], user=alice.uid, group=alice.gid, extra_groups=[]
    )
    try:
        for _ in range(times):
            for words in (["cleanup", "--corrupt", "--hours", "0"], ["create"]):
                root_user.gaia(root_user.home, *words, CLAUDE_PROJECT_DIR=str(project))
            root_user.hook(root_user.home, DELEGATES, CLAUDE_PROJECT_DIR=str(project))
        assert exchanging.poll() is None
    finally:
        exchanging.kill()
        exchanging.wait()

    assert tree(secret) == before


@pytest.mark.parametrize("there", [True, False])
def test_root_installs_no_hooks_through_a_link_of_a_user_to_a_file_of_root(
    world: Path,
    alice: User,
    root_user: User,
    there: bool,  # noqa: FBT001  # given by name
) -> None:
    project, secret = alice.make(world / "project"), root_user.make(root_user.home / "secret", mode=0o700)
    alice.make(project / ".claude")
    link, target = project / ".claude" / "settings.local.json", secret / "deep" / "settings.json"
    if there:
        target.parent.mkdir()
        target.write_text('{"secret": 1}\n', encoding="utf-8")
    link.symlink_to(target)
    os.chown(link, alice.uid, alice.gid, follow_symlinks=False)
    before = tree(secret)

    ended = root_user.gaia(project, "hooks", "install")

    assert (ended.code, ended.out) == (8, "")
    assert f"a link of {alice.name} leads to a file or folder of root" in ended.err
    assert tree(secret) == before
    assert root_user.gaia(project, "hooks", "status").code == 0


def test_root_installs_hooks_through_a_link_of_a_user_to_a_file_of_that_user(
    world: Path, alice: User, root_user: User
) -> None:
    project, target = alice.make(world / "project"), alice.make(world / "target") / "settings.json"
    alice.make(project / ".claude")
    link = project / ".claude" / "settings.local.json"
    link.symlink_to(target)
    os.chown(link, alice.uid, alice.gid, follow_symlinks=False)

    assert root_user.gaia(project, "hooks", "install").code == 0

    assert link.is_symlink()
    assert "SessionStart" in json.loads(target.read_text(encoding="utf-8"))["hooks"]
    assert owners(target.parent) == {(alice.uid, alice.gid)}
