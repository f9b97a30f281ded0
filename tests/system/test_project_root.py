"""Where the sessions live. Every search here ends below ``home``, so that it never leaves the test."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import BadSetting, LinkedElsewhere
from gaia_sessions.system.project_root import SESSIONS_PATH, check_links, find_root
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def folders(base: Path, *names: str) -> Path:
    """``base`` with these folders in it."""
    for name in names:
        (base / name).mkdir(parents=True, exist_ok=True)
    return base


def found(cwd: Path, home: Path, **environ: str) -> str:
    return find_root(None, {"HOME": str(home), **environ}, str(cwd))


def root_of(project: Path) -> str:
    return str(project / ".claude" / "session")


def git(cwd: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *words], cwd=cwd, check=True, capture_output=True)


def repository(path: Path) -> Path:
    """A real repository with one commit, which a worktree needs."""
    path.mkdir(parents=True)
    git(path, "init")
    git(path, "commit", "--allow-empty", "--no-gpg-sign", "-m", "first")
    return path


def test_the_suite_itself_runs_far_from_every_project_and_setting(away_from_home: Path) -> None:
    ours = [name for name in os.environ if name.startswith(("GAIA_SESSIONS_", "CLAUDE_", "XDG_", "GIT_"))]
    assert (os.environ["HOME"], ours) == (str(away_from_home), [])
    assert find_root(None, os.environ, os.getcwd()) == root_of(away_from_home / "elsewhere")


@table(
    ("flag", "root"),
    [
        ("/srv/agents", "/srv/agents"),  # absolute
        ("agents", "/p/sub/agents"),  # relative to where one stands
        ("../agents/", "/p/agents"),  # upwards, a slash at the end
        (".", "/p/sub"),  # here
    ],
)
def test_a_flag_beats_everything(flag: str, root: str) -> None:
    environ = {"GAIA_SESSIONS_ROOT": "/other", "CLAUDE_PROJECT_DIR": "/another"}
    assert find_root(flag, environ, "/p/sub") == root


def test_the_variable_beats_the_hosts_project() -> None:
    environ = {"GAIA_SESSIONS_ROOT": "/srv/x/../agents/", "CLAUDE_PROJECT_DIR": "/p"}
    assert find_root(None, environ, "/p") == "/srv/agents"


def test_an_empty_flag_is_refused_and_nothing_else_is_asked() -> None:
    with pytest.raises(BadSetting) as caught:
        find_root("", {"GAIA_SESSIONS_ROOT": "/srv/agents", "CLAUDE_PROJECT_DIR": "/p"}, "/p")
    assert (caught.value.origin, str(caught.value), caught.value.hint) == (
        "--root",
        "--root: is empty",
        "name a directory, or leave it out",
    )


@table("fixed", ["agents", "./agents", "a/~"])
def test_a_relative_variable_is_refused(fixed: str) -> None:
    with pytest.raises(BadSetting) as caught:
        find_root(None, {"GAIA_SESSIONS_ROOT": fixed, "CLAUDE_PROJECT_DIR": "/p"}, "/p")
    assert (caught.value.origin, str(caught.value), caught.value.hint) == (
        "GAIA_SESSIONS_ROOT",
        f"GAIA_SESSIONS_ROOT: {fixed!r} is not absolute",
        "give the whole path",
    )


@table("origin", ["--root", "GAIA_SESSIONS_ROOT"])
@table(
    ("given", "meant"),
    [
        ("~/agents", "/home/me/agents"),
        ("~", "/home/me"),
        ("~root/agents", "/root/agents"),
    ],
)
def test_a_home_that_no_shell_expanded_is_refused_with_the_path_that_was_meant(
    origin: str, given: str, meant: str
) -> None:
    environ = {"HOME": "/home/me"} | ({} if origin == "--root" else {origin: given})
    with pytest.raises(BadSetting) as caught:
        find_root(given if origin == "--root" else None, environ, "/p")
    assert (caught.value.origin, str(caught.value), caught.value.hint) == (
        origin,
        f"{origin}: {given!r} was not expanded by the shell",
        f"use {meant}",
    )


def test_a_folder_that_is_really_called_so_can_be_named() -> None:
    assert find_root("./~/agents", {"HOME": "/home/me"}, "/p") == "/p/~/agents"
    assert find_root("~nobody-of-that-name", {"HOME": "/home/me"}, "/p") == "/p/~nobody-of-that-name"


@table("url", ["postgresql://user:s3cret@db/agents", "file:///srv/agents", "/srv/s3://agents"])
@table("origin", ["--root", "GAIA_SESSIONS_ROOT"])
def test_a_url_is_refused_and_not_repeated(origin: str, url: str) -> None:
    flag, environ = (url, {}) if origin == "--root" else (None, {origin: url})
    with pytest.raises(BadSetting) as caught:
        find_root(flag, environ, "/p")
    assert (caught.value.origin, str(caught.value), caught.value.hint) == (
        origin,
        f"{origin}: is a URL",
        "give the path of a directory: sessions are kept in files",
    )


def test_the_hosts_project_beats_the_search(home: Path) -> None:
    project = folders(home / "p", ".claude/session")
    assert found(project, home, CLAUDE_PROJECT_DIR="/q/") == "/q/.claude/session"


@table("unusable", ["", "q", "./q"])
def test_a_hosts_project_that_is_no_absolute_path_is_passed_over(home: Path, unusable: str) -> None:
    project = folders(home / "p", ".git")
    assert found(project, home, CLAUDE_PROJECT_DIR=unusable, GAIA_SESSIONS_ROOT="") == root_of(project)


@table(
    ("there", "cwd", "project"),
    [
        ([], "a/b/c", "a/b/c"),  # nothing above: where one stands
        (["a/.git"], "a/b/c", "a"),  # a repository
        (["a/.claude"], "a/b/c", "a"),  # a project of the host's
        (["a/.git", "a/b/.claude"], "a/b/c", "a/b"),  # the nearest of both, .claude
        (["a/.claude", "a/b/.git"], "a/b/c", "a/b"),  # the nearest of both, .git
        (["a/.claude/session"], "a/b/c", "a"),  # sessions
        (["a/.claude/session", "a/b/.git"], "a/b/c", "a/b"),  # a repository nearer than sessions
        (["a/.claude/session", "a/b/.claude"], "a/b/c", "a/b"),  # a project nearer than sessions
        (["a/.claude/session", "a/b/.claude/session"], "a/b/c", "a/b"),  # the nearest sessions
        (["a/b/c/.claude/session"], "a/b/c", "a/b/c"),  # sessions where one stands
        (["a/.claude/session/agent-1"], "a/.claude/session/agent-1", "a"),  # inside a session
        (["a/.claude"], "a/.claude", "a"),  # inside .claude
        (["a/b/c/.claude/session"], "a/b", "a/b"),  # never downwards
    ],
)
def test_the_search_goes_upwards(tmp_path: Path, there: list[str], cwd: str, project: str) -> None:
    home = tmp_path / f"home with {' '.join(there)}".replace("/", "-")
    folders(home, cwd, *there)
    assert found(home / cwd, home) == root_of(home / project)


def test_a_folder_that_is_removed_during_the_search_is_nothing_to_pass_over(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = folders(home / "a", ".git", "b/c/.claude", "b/c/sub")
    going, looked, lstat = project / "b" / "c", [], os.lstat

    def lstat_and_remove(path: str) -> os.stat_result:
        seen = lstat(path)
        if str(path) == str(going / ".claude"):
            looked.append(path)
            going.rename(home / "gone")
        return seen

    monkeypatch.setattr(os, "lstat", lstat_and_remove)

    assert found(going / "sub", home) == root_of(project)
    assert looked == [str(going / ".claude")]


def test_a_pipe_in_the_place_of_a_git_file_makes_nobody_wait(home: Path) -> None:
    project = folders(home / "p", "sub")
    os.mkfifo(project / ".git")
    assert found(project / "sub", home) == root_of(project)


def test_a_link_that_leads_nowhere_marks_no_project(home: Path) -> None:
    project = folders(home / "p", ".claude", "sub")
    (project / "sub" / ".claude").symlink_to("nowhere")
    assert found(project / "sub", home) == root_of(project)


def test_a_worktree_with_sessions_of_its_own_still_counts_as_its_main_checkout(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "../linked")
    linked = folders(home / "linked", ".claude/session")
    assert found(linked, home) == found(linked, home, CLAUDE_PROJECT_DIR=str(linked)) == root_of(main)


def test_a_file_in_the_place_of_the_sessions_is_none(home: Path) -> None:
    project = folders(home / "p", ".claude", "sub/.git")
    (project / ".claude" / "session").write_text("")
    assert found(project / "sub", home) == root_of(project / "sub")


def test_the_search_stops_before_home(home: Path) -> None:
    folders(home, ".claude/session", ".git", "work")
    folders(home.parent, ".claude/session")
    assert found(home / "work", home) == root_of(home / "work")


def test_at_home_the_sessions_are_where_one_stands(home: Path) -> None:
    folders(home, ".git")
    folders(home.parent, ".claude/session")
    assert found(home, home) == root_of(home)


def test_beside_home_the_search_goes_on(home: Path) -> None:
    beside = folders(home.parent / "beside", ".claude/session", "a/b")
    assert found(beside / "a" / "b", home) == root_of(beside)


def test_the_search_ends_at_the_top_of_the_system() -> None:
    assert find_root(None, {"HOME": "/nowhere"}, "/") == "/.claude/session"


def test_a_slash_at_the_end_of_home_makes_no_difference(home: Path) -> None:
    folders(home, ".claude", "work")
    assert find_root(None, {"HOME": f"{home}/"}, str(home / "work")) == root_of(home / "work")


def test_a_home_behind_a_link_is_still_home(home: Path) -> None:
    folders(home, ".claude", "work")
    link = home.parent / "link"
    link.symlink_to(home)
    assert find_root(None, {"HOME": str(link)}, os.path.realpath(link / "work")) == root_of(home / "work")


def test_a_linked_worktree_counts_as_its_main_checkout(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "../linked")
    linked = folders(home / "linked", "deep/down")
    assert (linked / ".git").is_file()
    assert [found(cwd, home) for cwd in (linked, linked / "deep" / "down", main)] == [root_of(main)] * 3


def test_a_linked_worktree_that_the_host_names_counts_as_its_main_checkout(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "../linked")
    assert found(home, home, CLAUDE_PROJECT_DIR=str(home / "linked")) == root_of(main)


def test_a_linked_worktree_counts_as_its_main_checkout_even_with_a_claude_of_its_own(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "../linked")
    linked = folders(home / "linked", ".claude", "sub/.claude")
    assert found(linked, home) == root_of(main)
    assert found(linked / "sub", home) == root_of(linked / "sub")


def test_a_worktree_inside_its_main_checkout_finds_the_same_sessions(home: Path) -> None:
    main = folders(repository(home / "main"), ".claude/session")
    git(main, "worktree", "add", ".claude/worktrees/linked")
    assert found(main / ".claude" / "worktrees" / "linked", home) == root_of(main)


def test_a_linked_worktree_with_a_relative_gitfile_counts_as_its_main_checkout(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "../linked")
    (home / "linked" / ".git").write_text("gitdir: ../main/.git/worktrees/linked\n")
    assert found(home / "linked", home) == root_of(main)


def test_a_linked_worktree_of_which_git_names_relative_paths_counts_as_its_main_checkout(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "../linked")
    (home / "linked" / ".git").write_text("gitdir: ../main/.git/worktrees/linked\n")
    (main / ".git" / "worktrees" / "linked" / "gitdir").write_text("../../../../linked/.git\n")
    assert found(home / "linked", home) == root_of(main)


def test_a_linked_worktree_behind_a_link_counts_as_its_main_checkout(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "../linked")
    (home / "link").symlink_to("linked")
    assert found(home, home, CLAUDE_PROJECT_DIR=str(home / "link")) == root_of(main)


def _copy_gitfile(project: Path, linked: Path, _main: Path) -> None:
    (project / ".git").write_bytes((linked / ".git").read_bytes())


def _link_gitfile(project: Path, linked: Path, _main: Path) -> None:
    (project / ".git").symlink_to(linked / ".git")


def _make_gitdir(project: Path, _linked: Path, main: Path) -> None:
    gitdir = project / "own"
    gitdir.mkdir()
    (gitdir / "commondir").write_text(f"{main}/.git\n")
    (gitdir / "gitdir").write_text(f"{project}/.git\n")
    (project / ".git").write_text("gitdir: own\n")


def _link_gitdir(project: Path, _linked: Path, main: Path) -> None:
    (project / "linked").symlink_to(main / ".git" / "worktrees" / "linked")
    (project / ".git").write_text("gitdir: linked\n")


@pytest.mark.parametrize("plant", [_copy_gitfile, _link_gitfile, _make_gitdir, _link_gitdir])
def test_a_project_that_git_did_not_make_a_worktree_of_another_is_not_led_there(
    home: Path, plant: Callable[[Path, Path, Path], None]
) -> None:
    main, linked = repository(home / "main"), home / "linked"
    git(main, "worktree", "add", "../linked")
    project = folders(home / "p", "sub")
    plant(project, linked, main)
    places = [found(project / "sub", home), found(home, home, CLAUDE_PROJECT_DIR=str(project))]
    assert places == [root_of(project)] * 2


def test_a_worktree_of_a_bare_repository_stands_for_itself(home: Path) -> None:
    main = repository(home / "main")
    git(home, "clone", "--bare", str(main), "bare.git")
    git(home / "bare.git", "worktree", "add", str(home / "linked"))
    assert found(home / "linked", home) == root_of(home / "linked")


def test_a_submodule_is_a_project_of_its_own(home: Path) -> None:
    main = folders(home / "main", ".git/modules/sub", "sub")
    (main / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")
    assert found(main / "sub", home) == root_of(main / "sub")


@table(
    "gitfile",
    [
        b"",  # empty
        b"nonsense\n",  # no gitfile
        b"gitdir: nowhere\n",  # to nothing
        b"gitdir: a\0b\n",  # with a NUL
        b"gitdir: p/.git/worktrees/" + b"x" * 300,  # too long a name
        b"\xff\xfe",  # no text
        b"gitdir: " + b"x" * 5000,  # too long a path
    ],
)
def test_a_broken_git_file_still_marks_a_project(home: Path, gitfile: bytes) -> None:
    project = folders(home / "p", "sub")
    (project / ".git").write_bytes(gitfile)
    assert found(project / "sub", home) == root_of(project)


@pytest.mark.parametrize(
    ("link", "target", "leads_to"),
    [
        (".claude", "../other", "other/session"),  # a folder beside the project
        (".claude", "../nothing", "nothing/session"),  # one that would be made there
        (".claude", "..", "session"),  # what is above
        (".claude/session", "../../other", "other"),
        (".claude/session", "../../other/.claude/session", "other/.claude/session"),  # the sessions of another project
        (".claude/session", "../../project-2", "project-2"),  # whose name begins alike
        (".claude/session", "..", "project"),  # the whole project
        (".claude", "kept", None),  # below the project
        (".claude/session", "../kept", None),
    ],
)
@pytest.mark.parametrize("through_link", [False, True])
def test_links_of_a_project_may_lead_its_sessions_only_below_the_project(
    home: Path, link: str, target: str, leads_to: str | None, *, through_link: bool
) -> None:
    project = folders(home / "project", os.path.dirname(link), "kept")
    folders(home, "other/.claude/session", "project-2")
    (project / link).symlink_to(target)
    (home / "link").symlink_to(project)
    root = root_of(home / "link" if through_link else project)
    if leads_to is None:
        check_links(root)
        return
    with pytest.raises(LinkedElsewhere) as caught:
        check_links(root)
    assert (caught.value.path, caught.value.target) == (root, str(home / leads_to))


def test_a_folder_of_the_users_own_may_be_a_link_to_anything(home: Path) -> None:
    folders(home, "other")
    (home / "session").symlink_to("other")
    check_links(str(home / "session"))


def test_the_search_creates_nothing(home: Path) -> None:
    project = folders(home / "p", ".claude", "sub")
    before = sorted(home.rglob("*"))
    found(project / "sub", home)
    assert sorted(home.rglob("*")) == before


def test_sessions_are_kept_where_the_users_documents_say() -> None:
    assert SESSIONS_PATH == ".claude/session"
