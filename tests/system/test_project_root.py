"""Which folder is the root. Every search here ends below ``home``, so it stays inside the test."""

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
    """Makes these folders in ``base`` and returns it."""
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
    """Makes a real repository with one commit, as a worktree needs it."""
    path.mkdir(parents=True)
    git(path, "init")
    git(path, "commit", "--allow-empty", "--no-gpg-sign", "-m", "first")
    return path


def test_the_test_suite_runs_outside_every_project_and_without_settings(away_from_home: Path) -> None:
    ours = [name for name in os.environ if name.startswith(("GAIA_SESSIONS_", "CLAUDE_", "XDG_", "GIT_"))]
    assert (os.environ["HOME"], ours) == (str(away_from_home), [])
    assert find_root(None, os.environ, os.getcwd()) == root_of(away_from_home / "elsewhere")


@table(
    ("flag", "root"),
    [
        ("/srv/agents", "/srv/agents"),  # absolute
        ("agents", "/p/sub/agents"),  # relative to the current folder
        ("../agents/", "/p/agents"),  # upwards, with a slash at the end
        (".", "/p/sub"),  # the current folder
    ],
)
def test_the_root_option_takes_precedence_over_all_variables(flag: str, root: str) -> None:
    environ = {"GAIA_SESSIONS_ROOT": "/other", "CLAUDE_PROJECT_DIR": "/another"}
    assert find_root(flag, environ, "/p/sub") == root


def test_the_root_variable_takes_precedence_over_the_project_of_the_client() -> None:
    environ = {"GAIA_SESSIONS_ROOT": "/srv/x/../agents/", "CLAUDE_PROJECT_DIR": "/p"}
    assert find_root(None, environ, "/p") == "/srv/agents"


def test_an_empty_root_option_is_refused_and_no_variable_replaces_it() -> None:
    with pytest.raises(BadSetting) as caught:
        find_root("", {"GAIA_SESSIONS_ROOT": "/srv/agents", "CLAUDE_PROJECT_DIR": "/p"}, "/p")
    assert (caught.value.origin, str(caught.value), caught.value.hint) == (
        "--root",
        "--root: is empty",
        "name a folder after --root, or leave out --root",
    )


@table("fixed", ["agents", "./agents", "a/~"])
def test_a_relative_path_in_the_root_variable_is_refused(fixed: str) -> None:
    with pytest.raises(BadSetting) as caught:
        find_root(None, {"GAIA_SESSIONS_ROOT": fixed, "CLAUDE_PROJECT_DIR": "/p"}, "/p")
    assert (caught.value.origin, str(caught.value), caught.value.hint) == (
        "GAIA_SESSIONS_ROOT",
        f"GAIA_SESSIONS_ROOT: {fixed!r} is not absolute",
        "set it to a path that begins with /",
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
def test_an_unexpanded_tilde_is_refused_and_the_hint_gives_the_expanded_path(
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


def test_a_folder_with_a_name_that_begins_with_a_tilde_can_be_used() -> None:
    assert find_root("./~/agents", {"HOME": "/home/me"}, "/p") == "/p/~/agents"
    assert find_root("~nobody-of-that-name", {"HOME": "/home/me"}, "/p") == "/p/~nobody-of-that-name"


@table(
    "url, problem",
    [
        ("file:///srv/s3cret", "is a URL, but not of PostgreSQL"),
        ("/srv/s3cret://agents", "is a URL, but not of PostgreSQL"),
        ("postgresql://user:s3cret@db/agents", "has a password"),
        ("postgresql://user%3As3cret@db/agents", "has a password"),
        ("postgres://one,two/agents?user=me&password=s3cret", "has a password"),
        ("postgresql://db/agents?%70assword=s3cret", "has a password"),
        ("postgresql://db/agents?sslpassword=s3cret", "has a password"),
        ("postgresql://u:s3cret?x@h/db", "has a password"),
        ("postgresql://u:s3cret#x@h/db", "has a password"),
        ("postgresql://u:s3cret/x@h/db", "has a password"),
        ("postgresql://h/db#x?password=s3cret", "has a password"),
        ("postgresql://h/db?application_name=a#b&password=s3cret", "has a password"),
        ("POSTGRESQL://h/s3cret", "is a URL, but not of PostgreSQL"),
        ("postgresql://db/s3 cret", "has a blank or an invisible character"),
        ("postgresql://db/s3cret\n", "has a blank or an invisible character"),
    ],
)
@table("origin", ["--root", "GAIA_SESSIONS_ROOT"])
def test_a_url_that_cannot_be_a_root_is_refused_and_not_shown(origin: str, url: str, problem: str) -> None:
    flag, environ = (url, {}) if origin == "--root" else (None, {origin: url})
    with pytest.raises(BadSetting) as caught:
        find_root(flag, environ, "/p")
    assert (caught.value.origin, str(caught.value)) == (origin, f"{origin}: {problem}")
    assert "s3" not in caught.value.hint


@table("url", ["postgresql:///agents", "postgres://me@one:5433,two/agents?host=/run&sslmode=verify-full"])
@table("origin", ["--root", "GAIA_SESSIONS_ROOT"])
def test_the_url_of_a_database_is_a_root(origin: str, url: str) -> None:
    flag, environ = (url, {}) if origin == "--root" else (None, {origin: url})
    assert find_root(flag, environ, "/p") == url


def test_for_what_works_on_files_a_url_in_the_variable_does_not_count_and_one_as_option_is_refused(home: Path) -> None:
    project, environ = folders(home / "p", ".git"), {"HOME": str(home), "GAIA_SESSIONS_ROOT": "postgresql://db/agents"}

    assert find_root(None, environ, str(project), only_files=True) == root_of(project)
    with pytest.raises(BadSetting, match=r"--root: is a URL"):
        find_root("postgresql://db/agents", environ, str(project), only_files=True)


def test_the_project_of_the_client_takes_precedence_over_the_search(home: Path) -> None:
    project = folders(home / "p", ".claude/session")
    assert found(project, home, CLAUDE_PROJECT_DIR="/q/") == "/q/.claude/session"


@table("unusable", ["", "q", "./q"])
def test_a_client_project_without_an_absolute_path_is_ignored(home: Path, unusable: str) -> None:
    project = folders(home / "p", ".git")
    assert found(project, home, CLAUDE_PROJECT_DIR=unusable, GAIA_SESSIONS_ROOT="") == root_of(project)


@table(
    ("there", "cwd", "project"),
    [
        ([], "a/b/c", "a/b/c"),  # nothing above: the current folder
        (["a/.git"], "a/b/c", "a"),  # a repository
        (["a/.claude"], "a/b/c", "a"),  # a project of the client
        (["a/.git", "a/b/.claude"], "a/b/c", "a/b"),  # the nearest of both, .claude
        (["a/.claude", "a/b/.git"], "a/b/c", "a/b"),  # the nearest of both, .git
        (["a/.claude/session"], "a/b/c", "a"),  # sessions
        (["a/.claude/session", "a/b/.git"], "a/b/c", "a/b"),  # a repository nearer than sessions
        (["a/.claude/session", "a/b/.claude"], "a/b/c", "a/b"),  # a project nearer than sessions
        (["a/.claude/session", "a/b/.claude/session"], "a/b/c", "a/b"),  # the nearest sessions
        (["a/b/c/.claude/session"], "a/b/c", "a/b/c"),  # sessions in the current folder
        (["a/.claude/session/agent-1"], "a/.claude/session/agent-1", "a"),  # inside a session
        (["a/.claude"], "a/.claude", "a"),  # inside .claude
        (["a/b/c/.claude/session"], "a/b", "a/b"),  # never downwards
    ],
)
def test_the_search_goes_upwards_to_the_nearest_project(
    tmp_path: Path, there: list[str], cwd: str, project: str
) -> None:
    home = tmp_path / f"home with {' '.join(there)}".replace("/", "-")
    folders(home, cwd, *there)
    assert found(home / cwd, home) == root_of(home / project)


def test_a_folder_removed_during_the_search_does_not_count_as_a_project(
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


def test_a_pipe_in_place_of_the_git_file_marks_a_project_without_waiting(home: Path) -> None:
    project = folders(home / "p", "sub")
    os.mkfifo(project / ".git")
    assert found(project / "sub", home) == root_of(project)


def test_a_link_to_nothing_marks_no_project(home: Path) -> None:
    project = folders(home / "p", ".claude", "sub")
    (project / "sub" / ".claude").symlink_to("nowhere")
    assert found(project / "sub", home) == root_of(project)


def test_a_linked_worktree_with_its_own_sessions_counts_as_its_main_checkout(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "../linked")
    linked = folders(home / "linked", ".claude/session")
    assert found(linked, home) == found(linked, home, CLAUDE_PROJECT_DIR=str(linked)) == root_of(main)


def test_a_file_in_place_of_the_session_folder_is_not_a_root(home: Path) -> None:
    project = folders(home / "p", ".claude", "sub/.git")
    (project / ".claude" / "session").write_text("")
    assert found(project / "sub", home) == root_of(project / "sub")


def test_the_search_stops_before_home(home: Path) -> None:
    folders(home, ".claude/session", ".git", "work")
    folders(home.parent, ".claude/session")
    assert found(home / "work", home) == root_of(home / "work")


def test_a_search_from_home_uses_the_home_folder_itself(home: Path) -> None:
    folders(home, ".git")
    folders(home.parent, ".claude/session")
    assert found(home, home) == root_of(home)


def test_a_search_outside_home_finds_the_project_above(home: Path) -> None:
    beside = folders(home.parent / "beside", ".claude/session", "a/b")
    assert found(beside / "a" / "b", home) == root_of(beside)


def test_the_search_ends_at_the_top_of_the_file_system() -> None:
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


def test_a_linked_worktree_that_the_client_names_counts_as_its_main_checkout(home: Path) -> None:
    main = repository(home / "main")
    git(main, "worktree", "add", "../linked")
    assert found(home, home, CLAUDE_PROJECT_DIR=str(home / "linked")) == root_of(main)


def test_a_linked_worktree_with_its_own_claude_folder_counts_as_its_main_checkout(home: Path) -> None:
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


def test_a_linked_worktree_with_only_relative_paths_counts_as_its_main_checkout(home: Path) -> None:
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
def test_a_project_with_a_forged_git_file_does_not_use_the_root_of_another(
    home: Path, plant: Callable[[Path, Path, Path], None]
) -> None:
    main, linked = repository(home / "main"), home / "linked"
    git(main, "worktree", "add", "../linked")
    project = folders(home / "p", "sub")
    plant(project, linked, main)
    places = [found(project / "sub", home), found(home, home, CLAUDE_PROJECT_DIR=str(project))]
    assert places == [root_of(project)] * 2


def test_a_worktree_of_a_bare_repository_has_its_own_root(home: Path) -> None:
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
        b"nonsense\n",  # not a git file
        b"gitdir: nowhere\n",  # leads to nothing
        b"gitdir: a\0b\n",  # with a NUL
        b"gitdir: p/.git/worktrees/" + b"x" * 300,  # a name that is too long
        b"\xff\xfe",  # not text
        b"gitdir: " + b"x" * 5000,  # a path that is too long
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
        (".claude", "../nothing", "nothing/session"),  # a missing folder beside the project
        (".claude", "..", "session"),  # the folder above the project
        (".claude/session", "../../other", "other"),
        (".claude/session", "../../other/.claude/session", "other/.claude/session"),  # the sessions of another project
        (".claude/session", "../../project-2", "project-2"),  # a folder whose name begins with the name of the project
        (".claude/session", "..", "project"),  # the whole project
        (".claude", "kept", None),  # inside the project
        (".claude/session", "../kept", None),
    ],
)
@pytest.mark.parametrize("through_link", [False, True])
def test_a_link_on_the_path_to_a_root_must_lead_inside_its_project(
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


def test_a_root_outside_a_claude_folder_may_be_a_link_to_any_folder(home: Path) -> None:
    folders(home, "other")
    (home / "session").symlink_to("other")
    check_links(str(home / "session"))


def test_the_search_creates_nothing(home: Path) -> None:
    project = folders(home / "p", ".claude", "sub")
    before = sorted(home.rglob("*"))
    found(project / "sub", home)
    assert sorted(home.rglob("*")) == before


def test_the_sessions_of_a_project_are_in_dot_claude_session() -> None:
    assert SESSIONS_PATH == ".claude/session"
