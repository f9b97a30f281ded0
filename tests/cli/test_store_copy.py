"""``store copy``: what a person and a program see of a copy between a folder and a server."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from tests.api.test_importing import create_at_work
from tests.servers import empty_url
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


@pytest.fixture
def url() -> str:
    return empty_url()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project with an ended session, an open one and one at work."""
    monkeypatch.chdir(tmp_path)
    root = str(tmp_path / "a b" / ".claude" / "session")
    for agent_id in ("ended", "open"):
        Sessions(root).create("worker", "some work", agent_id=agent_id)
    Sessions(root).finalize("ended", "completed")
    create_at_work(root, "busy")
    return root


def test_a_copy_says_what_moved_what_stayed_and_what_to_type_next(
    gaia: Gaia, project: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gaia("store", "copy", project, url).answer == [
        f"from {project} to {url}:",
        "moved 1 open session, copied 1 ended session",
        "not moved: 1 open session",
        "  busy: run 1 has not ended",
        "When that has changed, type the same command again.",
        f"To use it from now on, type: export GAIA_SESSIONS_ROOT={shlex.quote(url)}",
    ]
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", url)
    assert gaia("store", "copy", url, project).answer == [
        f"from {url} to {project}:",
        "moved 1 open session, copied 0 ended sessions",
        "1 ended session had been copied before",
        f"To use it from now on, type: export GAIA_SESSIONS_ROOT={shlex.quote(project)}",
    ]


@table("folder", ["a b", "{project}"])
def test_the_folder_may_be_a_project(gaia: Gaia, project: str, url: str, folder: str) -> None:
    report: Any = gaia("store", "copy", folder.format(project=project), url, "--json").json
    assert (report["source"], len(report["copied"] + report["already_there"])) == (project, 1)
    assert not Path("a b", "ended").exists()


def test_report_and_wait_of_a_session_that_is_being_moved_advise_no_change(gaia: Gaia, project: str, url: str) -> None:
    with Sessions(project).store as store, store.open("open") as session:
        session.set_moving({"source": project, "target": url, "token": "t"})
    shown = [gaia("--root", project, *words) for words in (["report", "open"], ["wait", "open", "--timeout", "0.1"])]
    assert [one for one in shown if b"finalize" in one.out + one.err] == []
    assert "to end the move, type again the `store copy` that was interrupted" in shown[0].err.decode()


def test_a_half_that_is_taken_back_goes_on_and_no_other_session_can_be(gaia: Gaia, project: str, url: str) -> None:
    with Sessions(project).store as store, store.open("open") as session:
        session.set_moving({"source": project, "target": url, "token": "t"})
    assert gaia("--root", project, "repair", "--take-back", "open").answer == ["open goes on in this root"]
    assert gaia("--root", project, "update", "open", "--phase", "planning").code == 0
    refused = gaia("--root", project, "repair", "--take-back", "open")
    assert (refused.code, "session 'open' is not being moved" in refused.err.decode()) == (4, True)


def test_what_cannot_be_copied_is_named_with_what_to_type(gaia: Gaia, project: str, url: str) -> None:
    Sessions(url).create("worker", "other work", agent_id="open")
    ended = gaia("store", "copy", project, url)
    says = f"Error: session 'open' differs: revision 1 in {project}, revision 1 in {url}; remove the one that you do "
    says += f"not want, then copy again: gaia-sessions --root {shlex.quote(project)} rm --force open, or gaia-sessions "
    says += f"--root {shlex.quote(url)} rm --force open"
    assert (ended.code, ended.err.decode().splitlines()[0]) == (4, says)
    assert "copied 1 ended session" in ended.out.decode()


def test_at_a_terminal_of_80_columns_the_report_keeps_both_roots_whole(terminal: Gaia, project: str, url: str) -> None:
    shown = terminal("store", "copy", project, url).out.decode()
    assert "moved 1 open session, copied 1 ended session\n" in shown
    command = f"export GAIA_SESSIONS_ROOT={shlex.quote(url)}"
    assert [text for text in (project, f"{url}:\n", f"{command}\n") if text not in shown] == []


def test_at_a_terminal_a_bar_shows_how_far_the_copy_is_and_goes_away(
    terminal: Gaia, project: str, url: str, tmp_path: Path
) -> None:
    with tmp_path.joinpath("answer").open("wb") as answer:
        shown = terminal("store", "copy", project, url, stdout=answer.fileno()).out.decode()
    bars = ["╌" * 30 + " 0 of 3 sessions", "━" * 10 + "╌" * 20 + " 1 of 3 sessions"]
    last = "━" * 30 + " 3 of 3 sessions"
    assert shown.split("\r") == ["", *bars, last, " " * len(last), ""]


@table(
    ("words", "said"),
    [
        (["--root", "x", "a", "b"], "store copy takes no --root"),
        (["a", "b"], "both roots are folders"),
        (["~/a", "{url}"], "FROM: '~/a' was not expanded by the shell"),
        (["a", "postgresql://a:s3cret@db/agents"], "TO: has a password"),
        (["{url}", "{url}"], "both roots are servers"),
    ],
)
def test_what_is_no_copy_between_a_folder_and_a_server_is_refused(
    gaia: Gaia, project: str, url: str, words: list[str], said: str
) -> None:
    ended = gaia("store", "copy", *(word.format(url=url) for word in words))
    assert (ended.code, said in ended.err.decode()) == (2, True)
    assert {path.name for path in Path(project).iterdir() if path.name[0] != "."} == {"ended", "open", "busy"}
