"""The search for a project skips folders of other users: no session goes there, and nothing there changes."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.users.conftest import tree

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.users.conftest import User

STARTS: dict[str, Any] = {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}
DELEGATES: dict[str, Any] = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "tool_name": "Agent",
    "tool_use_id": "toolu_1",
    "tool_input": {"description": "d", "prompt": "p", "subagent_type": "Explore"},
}


def git(user: User, cwd: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(
        ["git", *identity, *words],
        cwd=cwd,
        check=True,
        capture_output=True,
        user=user.uid,
        group=user.gid,
        extra_groups=[],
        env={"PATH": os.environ["PATH"], "HOME": str(user.home)},
    )


def repository(user: User, folder: Path) -> Path:
    user.make(folder)
    git(user, folder, "init")
    git(user, folder, "commit", "--allow-empty", "--no-gpg-sign", "-m", "first")
    return folder


def create(user: User, cwd: Path, **environment: str) -> tuple[str, str]:
    """Creates a session. Returns its ID and stderr."""
    ended = user.gaia(cwd, "create", **environment)
    assert ended.code == 0, ended
    return ended.out.strip(), ended.err


def test_a_store_planted_in_a_world_writable_folder_gets_no_sessions_of_other_users(
    world: Path, alice: User, bob: User
) -> None:
    planted, _ = create(alice, alice.make(world / "x", mode=0o1777))
    below = bob.make(world / "x" / "work")
    before = tree(world / "x" / ".claude")

    agent_id, said = create(bob, below)
    listed = json.loads(bob.gaia(below, "list", "--json").out)
    looked_up = bob.gaia(below, "get", planted)
    started = bob.hook(below, STARTS)
    delegated = bob.hook(below, DELEGATES)

    assert said == (
        f"Note: the project {world}/x was skipped: {world}/x belongs to {alice.name}, and you are {bob.name};"
        f" the sessions are in {below}/.claude/session\n"
        f"Hint: to store the sessions there without this notice: export GAIA_SESSIONS_ROOT={below}/.claude/session\n"
    )
    assert [session["agent_id"] for session in listed] == [agent_id]
    assert (looked_up.code, looked_up.out, "--root" in looked_up.err) == (3, "", False)
    assert (started.code, started.err, planted in started.out) == (0, "", False)
    assert (delegated.code, delegated.err) == (0, "")
    assert tree(world / "x" / ".claude") == before
    assert len([*(below / ".claude" / "session").glob("*/state.json")]) == 2


@pytest.mark.parametrize("planted", [".git", ".claude"])
def test_a_git_or_claude_folder_planted_in_a_folder_of_root_is_skipped(
    world: Path, alice: User, bob: User, planted: str
) -> None:
    alice.make(world / planted, mode=0o777)
    below = bob.make(world / "work")

    _, said = create(bob, below)

    assert f"Note: the project {world} was skipped: {world} belongs to root, and you are {bob.name};" in said
    assert (below / ".claude" / "session").is_dir()
    assert [*(world / planted).iterdir()] == []


@pytest.mark.parametrize("planted", [".git", ".claude"])
def test_a_git_or_claude_folder_planted_in_a_folder_of_the_user_is_skipped(
    world: Path, alice: User, bob: User, planted: str
) -> None:
    mine = bob.make(world / "mine", mode=0o777)
    alice.make(mine / planted, mode=0o777)
    below = bob.make(mine / "work")

    _, said = create(bob, below)

    assert f"the project {mine} was skipped: {mine}/{planted} belongs to {alice.name}, and you are" in said
    assert (below / ".claude" / "session").is_dir()
    assert [*(mine / planted).iterdir()] == []


def test_the_users_claude_folder_counts_beside_a_git_folder_of_another_user(
    world: Path, alice: User, bob: User
) -> None:
    mine = bob.make(world / "mine", mode=0o777)
    alice.make(mine / ".git")
    bob.make(mine / ".claude")

    _, said = create(bob, bob.make(mine / "work"))

    assert said == ""
    assert (mine / ".claude" / "session").is_dir()


def test_a_claude_link_that_another_user_made_is_not_followed(world: Path, alice: User, bob: User) -> None:
    ours = bob.make(world / "ours")
    create(bob, ours)
    before = tree(ours)
    open_to_all = bob.make(world / "open", mode=0o777)
    (open_to_all / ".claude").symlink_to(ours / ".claude")
    os.chown(open_to_all / ".claude", alice.uid, alice.gid, follow_symlinks=False)
    below = bob.make(open_to_all / "work")

    _, said = create(bob, below)

    assert f"{open_to_all}/.claude belongs to {alice.name}" in said
    assert tree(ours) == before
    assert (below / ".claude" / "session").is_dir()


def test_the_search_finds_the_users_project_above_a_project_of_another_user(
    world: Path, alice: User, bob: User
) -> None:
    project = bob.make(world / "project", world / "project" / ".claude").parent
    theirs = alice.make(project / "theirs")
    alice.make(theirs / ".git")

    agent_id, said = create(bob, bob.make(theirs / "work"))

    assert f"the project {theirs} was skipped" in said
    assert (project / ".claude" / "session" / agent_id).is_dir()


def test_with_json_a_skipped_project_is_reported_as_json(world: Path, alice: User, bob: User) -> None:
    create(alice, alice.make(world / "x", mode=0o1777))
    below = bob.make(world / "x" / "work")

    ended = bob.gaia(below, "list", "--json")

    notice = json.loads(ended.err)["notice"]
    assert (ended.code, ended.out) == (0, "[]\n")
    assert notice == {
        "code": "passed_over",
        "message": f"the project {world}/x was skipped: {world}/x belongs to {alice.name}, and you are {bob.name};"
        f" the sessions are in {below}/.claude/session",
        "hint": f"to store the sessions there without this notice: export GAIA_SESSIONS_ROOT={below}/.claude/session",
    }


def test_a_named_root_or_project_gives_no_notice_of_folders_above(world: Path, alice: User, bob: User) -> None:
    create(alice, alice.make(world / "x", mode=0o1777))
    below = bob.make(world / "x" / "work")

    for environment in ({"GAIA_SESSIONS_ROOT": f"{below}/mine"}, {"CLAUDE_PROJECT_DIR": str(below)}):
        assert create(bob, below, **environment)[1] == ""


def test_root_skips_the_project_of_a_user_and_is_told_how_to_use_it(world: Path, alice: User, root_user: User) -> None:
    project = repository(alice, world / "project")
    below = alice.make(project / "sub")

    ended = root_user.gaia(below, "list")
    named = root_user.gaia(below, "list", GAIA_SESSIONS_ROOT=f"{project}/.claude/session")

    said = (
        f"Note: the project {project} was skipped: {project} belongs to {alice.name}, and you are root;"
        f" the sessions are in {below}/.claude/session\n"
        f"Hint: as root, you can use {alice.name}'s sessions instead:"
        f" export GAIA_SESSIONS_ROOT={project}/.claude/session\n"
    )
    assert ended == (0, f"No sessions found: {below}/.claude/session does not exist\n", said)
    assert named == (0, f"No sessions found: {project}/.claude/session does not exist\n", "")


def test_a_worktree_uses_its_main_checkout_only_if_the_user_owns_the_checkout(
    world: Path, alice: User, bob: User
) -> None:
    main, other = repository(bob, world / "main"), repository(alice, world / "other")
    git(bob, main, "worktree", "add", "../linked")
    assert create(bob, world / "linked")[1] == ""
    assert len([*(main / ".claude" / "session").glob("*/state.json")]) == 1
    before = tree(other)
    git(alice, other, "worktree", "add", "../theirs")
    pointer = (world / "theirs" / ".git").read_bytes()
    (world / "linked" / ".git").write_bytes(pointer)
    (other / ".git" / "worktrees" / "theirs" / "gitdir").write_text(f"{world}/linked/.git\n")
    before = tree(other)

    for environment in ({}, {"CLAUDE_PROJECT_DIR": f"{world}/linked"}):
        _, said = create(bob, world / "linked", **environment)
        assert f"the project {other} was skipped: {other}" in said
        assert f"the sessions are in {world}/linked/.claude/session" in said

    assert tree(other) == before
    assert len([*(world / "linked" / ".claude" / "session").glob("*/state.json")]) == 2


def test_a_planted_git_file_does_not_lead_sessions_into_another_project_of_the_user(
    world: Path, alice: User, bob: User
) -> None:
    main = repository(bob, world / "main")
    git(bob, main, "worktree", "add", "../linked")
    here = bob.make(world / "here", mode=0o777)
    (here / ".git").write_bytes((world / "linked" / ".git").read_bytes())
    os.chown(here / ".git", alice.uid, alice.gid)
    (main / ".git" / "worktrees" / "linked" / "gitdir").write_text(f"{here}/.git\n")
    before = tree(main)

    _, said = create(bob, here)

    assert f"the project {main} was skipped: {here}/.git belongs to {alice.name}" in said
    assert tree(main) == before
    assert (here / ".claude" / "session").is_dir()
