"""Sessions are private to a user: a second user is told the owner, and can neither read nor change anything."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.users.conftest import SILENT, Ended, tree
from tests.users.test_search import DELEGATES, STARTS, create, repository

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.users.conftest import User

HINT = 'sessions are private to a user; store yours elsewhere: export GAIA_SESSIONS_ROOT="$HOME/gaia-sessions"'
COMMANDS = [
    ["create"],
    ["get", "agent-1"],
    ["update", "agent-1"],
    ["should-resume", "agent-1"],
    ["list"],
    ["finalize", "agent-1", "completed"],
    ["cleanup"],
    ["show", "agent-1"],
    ["events", "agent-1"],
    ["usage", "agent-1"],
    ["usage", "agent-1", "--charge", "5"],
    ["skill", "add", "agent-1", "terraform", "--tokens", "5"],
    ["todo", "add", "agent-1", "write"],
    ["todo", "done", "agent-1", "1"],
    ["todo", "list", "agent-1"],
    ["reconcile"],
    ["hooks", "install"],
    ["hooks", "uninstall", "--local"],
    ["hooks", "status"],
]
STOPS: dict[str, Any] = {"hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "a"}


OWN_SETTINGS = "use your own settings, which apply to every project: gaia-sessions hooks install --user"


def refusal(path: Path, owner: User, user: User, hint: str = HINT) -> Ended:
    said = (
        f"Error: {path}: cannot use the sessions: it belongs to {owner.name}, and you are {user.name}\nHint: {hint}\n"
    )
    return Ended(8, "", said)


@pytest.fixture(params=["with sessions", "with a .claude", "a repository", "a folder"])
def project(request: pytest.FixtureRequest, world: Path, alice: User) -> Path:
    """A world-writable project of alice."""
    folder = repository(alice, world / "project") if request.param == "a repository" else alice.make(world / "project")
    if request.param == "with sessions":
        create(alice, folder)
    elif request.param == "with a .claude":
        alice.make(folder / ".claude").chmod(0o777)
    folder.chmod(0o777)
    return folder


def blamed(project: Path) -> Path:
    """The folder whose owner is the owner of ``project``."""
    return next(path for path in (project / ".claude", project / ".git", project) if path.exists())


def test_every_command_of_a_second_user_names_the_owner_and_changes_nothing(
    world: Path, alice: User, bob: User
) -> None:
    project = alice.make(world / "project")
    create(alice, project)
    before, own = tree(project), tree(bob.home)

    ended = [bob.gaia(project, *command) for command in COMMANDS]

    settings = [words[:2] in (["hooks", "install"], ["hooks", "uninstall"]) for words in COMMANDS]
    hints = [OWN_SETTINGS if of_settings else HINT for of_settings in settings]
    assert ended == [refusal(project / ".claude", alice, bob, hint) for hint in hints]
    assert (tree(project), tree(bob.home)) == (before, own)


def test_a_second_user_cannot_create_a_session_in_a_project_however_it_is_named(
    alice: User, bob: User, project: Path
) -> None:
    before = tree(project)

    made = [
        bob.gaia(project, "create"),
        bob.gaia(bob.home, "create", CLAUDE_PROJECT_DIR=str(project)),
        bob.gaia(bob.home, "--root", f"{project}/.claude/session", "create"),
    ]

    assert made == [refusal(blamed(project), alice, bob)] * 3
    assert tree(project) == before
    assert create(alice, project)[1] == ""


def test_hooks_of_a_second_user_do_nothing(alice: User, bob: User, project: Path) -> None:
    before, own = tree(project), tree(bob.home)

    ended = [bob.hook(project, told) for told in (STARTS, DELEGATES, STOPS)]
    ended += [bob.hook(bob.home, told, CLAUDE_PROJECT_DIR=str(project)) for told in (STARTS, DELEGATES, STOPS)]

    assert ended == [SILENT] * 6
    assert (tree(project), tree(bob.home)) == (before, own)
    assert alice.hook(project, DELEGATES).code == 0
    assert [*(project / ".claude" / "logs").glob("*.log")], "the first user's log is still writable"


def test_the_direct_form_of_a_hook_answers_a_second_user_with_an_error(alice: User, bob: User, project: Path) -> None:
    before = tree(project)
    asked = {"agent_id": "agent-1", "agent_name": "x", "create": True}

    answer = bob.ask(project, "pre_delegate", asked)

    assert answer == {
        "should_resume": False,
        "reason": "error",
        "agent_id": "agent-1",
        "error": f"{blamed(project)}: cannot use the sessions: it belongs to {alice.name}, and you are {bob.name}",
        "original_context": asked,
    }
    assert tree(project) == before


def test_the_settings_of_another_user_are_not_read(world: Path, alice: User, bob: User) -> None:
    folder = alice.make(world / "project", world / "project" / ".claude")
    (folder / "gaia-sessions.toml").write_text("this = is no setting", encoding="utf-8")

    assert bob.gaia(world / "project", "list") == refusal(folder, alice, bob)


def test_the_root_that_the_hint_suggests_works(bob: User, project: Path) -> None:
    elsewhere = {"GAIA_SESSIONS_ROOT": f"{bob.home}/gaia-sessions"}
    before = tree(project)

    agent_id, said = create(bob, project, **elsewhere)
    delegated = bob.hook(project, DELEGATES, **elsewhere)

    assert said == ""
    assert delegated.code == 0
    assert tree(project) == before
    assert (bob.home / "gaia-sessions" / agent_id).is_dir()
    assert len([*(bob.home / "gaia-sessions").glob("*/state.json")]) == 2


def test_hooks_uninstall_user_works_in_the_project_of_another_user(bob: User, project: Path) -> None:
    before = tree(project)

    ended = bob.gaia(project, "hooks", "uninstall", "--user")

    assert (ended.code, ended.err) == (0, "")
    assert tree(project) == before


@pytest.mark.parametrize("name", ["session", "elsewhere"])
def test_a_store_of_another_user_is_neither_read_nor_written_wherever_it_is(
    world: Path, alice: User, bob: User, name: str
) -> None:
    create(alice, alice.home, GAIA_SESSIONS_ROOT=f"{world}/{name}")
    (world / name).chmod(0o777)
    before = tree(world / name)

    ended = [bob.gaia(bob.home, *command[:2], "--root", f"{world}/{name}") for command in (["list"], ["create"])]

    assert ended == [refusal(world / name, alice, bob)] * 2
    assert tree(world / name) == before


def test_a_link_that_another_user_made_in_the_working_folder_is_not_followed(
    world: Path, alice: User, bob: User
) -> None:
    ours, here = bob.make(world / "ours"), alice.make(world / "here", mode=0o777)
    create(bob, ours)
    (here / ".claude").symlink_to(ours / ".claude")
    os.chown(here / ".claude", alice.uid, alice.gid, follow_symlinks=False)
    before = tree(ours)

    assert bob.gaia(here, "create") == refusal(here / ".claude", alice, bob)
    assert bob.hook(here, DELEGATES) == SILENT
    assert tree(ours) == before


def test_the_root_option_accepts_a_link_of_root_to_the_users_own_store(world: Path, bob: User) -> None:
    create(bob, bob.home, GAIA_SESSIONS_ROOT=f"{bob.home}/sessions")
    (world / "link").symlink_to(bob.home / "sessions")

    assert bob.gaia(bob.home, "list", "--root", f"{world}/link").code == 0


def test_a_user_can_begin_a_project_in_a_world_writable_folder_of_root(world: Path, alice: User, bob: User) -> None:
    agent_id, said = create(bob, world)

    assert said == ""
    assert (world / ".claude" / "session" / agent_id).is_dir()
    assert alice.gaia(world, "create") == refusal(world / ".claude", bob, alice)


@pytest.mark.parametrize(("mode", "code"), [(0o755, 0), (0o700, 8)], ids=["readable", "private"])
def test_sessions_of_another_user_can_be_imported_if_they_are_readable(
    world: Path, alice: User, bob: User, mode: int, code: int
) -> None:
    create(alice, alice.make(world / "project"))
    (session,) = (world / "project" / ".claude" / "session").glob("agent-*")
    left = alice.make(world / "left")
    os.rename(session, left / session.name)
    (left / session.name).chmod(mode)
    (left / session.name / "state.json").chmod(0o644)
    before = tree(left)

    done = bob.gaia(bob.home, "import", str(left))

    assert (done.code, tree(left)) == (code, before)
    taken = bob.home / ".claude" / "session" / session.name / "state.json"
    assert [path.stat().st_uid for path in [taken] if path.exists()] == [bob.uid] * (code == 0)
    said = f"{session.name}: not imported: {left}/{session.name}: cannot open: Permission denied"
    assert (said in done.err) == (code == 8)


def test_an_index_shard_with_a_wrong_owner_or_mode_is_replaced(world: Path, alice: User, bob: User) -> None:
    project = alice.make(world / "project", world / "project" / ".claude").parent
    shard = project / ".claude" / "session" / ".index" / "active.keys"
    ids = set()
    for owner, mode in ((alice, 0o400), (bob, 0o644), (bob, 0o666), (bob, 0o600)):
        ids.add(create(alice, project)[0])
        os.chown(shard, owner.uid, owner.gid)
        shard.chmod(mode)

        ids.add(create(alice, project)[0])
        listed = json.loads(alice.gaia(project, "list", "--active-only", "--json").out)
        assert {row["agent_id"] for row in listed} == ids
        assert alice.gaia(project, "cleanup").code == 0
        status = shard.stat()
        assert (status.st_uid, status.st_mode & 0o777) == (alice.uid, 0o600)
