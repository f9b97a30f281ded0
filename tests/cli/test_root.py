"""Which root a command uses, and what it says about that root."""

from __future__ import annotations

import json
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import everything_in, fresh_table
from tests.cli.forks import forked
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


URL = "postgresql://user:s3cret@db/agents"


@table("by_option", [True, False])
@table(
    "words",
    [
        ["create"],
        ["list"],
        ["update", "a"],
        ["cleanup"],
        ["doctor", "--fix"],
        ["store", "init"],
    ],
)
def test_a_url_with_a_password_is_refused_without_creating_a_folder_or_printing_the_password(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, away_from_home: Path, words: list[str], *, by_option: bool
) -> None:
    before = everything_in(away_from_home)

    with monkeypatch.context() as patch:
        if not by_option:
            patch.setenv("GAIA_SESSIONS_ROOT", URL)
        ended = gaia(*words, *(["--root", URL] if by_option else []))

    origin = "--root" if by_option else "GAIA_SESSIONS_ROOT"
    assert ended.code == (1 if words[0] == "doctor" and not by_option else 2)  # doctor reports it as a finding
    assert f"{origin}: has a password".encode() in ended.out + ended.err
    assert b"s3cret" not in ended.out + ended.err
    assert everything_in(away_from_home) == before


@table("words", [["list", "--nope"], ["lst"], ["hooks", "status"], ["hooks", "nope"], ["get"], ["store", "nope"]])
@table("before", [True, False])
def test_a_mistake_beside_a_url_does_not_print_its_password(gaia: Gaia, words: list[str], *, before: bool) -> None:
    option = ["--root", URL]
    ended = gaia(*option, *words) if before else gaia(*words, *option)
    assert (ended.code, ended.out, b"s3cret" in ended.err) == (2, b"", False)


@table("wired", [[], ["--root", URL]])
def test_a_hook_with_a_url_as_root_does_nothing(away_from_home: Path, wired: list[str]) -> None:
    event = b'{"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}'
    before = everything_in(away_from_home)

    ended = forked("hook", *wired, stdin=event, **({} if wired else {"GAIA_SESSIONS_ROOT": URL}))

    assert ended.all == (0, "", "")
    assert everything_in(away_from_home) == before


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch, away_from_home: Path) -> Path:
    """A repository in which commands search for the root; a parent folder may have another root."""
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    repository = away_from_home / "work" / "repository"
    repository.joinpath(".git").mkdir(parents=True)
    monkeypatch.chdir(repository)
    return repository


@table("words", [["get"], ["update"], ["finalize", "completed"], ["show"], ["events"]])
def test_an_id_from_the_root_of_a_parent_folder_gets_that_root_as_a_hint(
    gaia: Gaia, searched: Path, words: list[str]
) -> None:
    above = str(searched.parent / ".claude" / "session")
    shutil.rmtree(above, ignore_errors=True)
    gaia("create", "--id", "a", "--root", above)

    missing = gaia(words[0], "a", *words[1:])
    found = gaia(words[0], "a", *words[1:], "--root", above)

    hint = f"the session is in another root; add --root {above}"
    here = searched / ".claude" / "session"
    assert missing.refusal == (3, f"no session 'a' in {here}", hint)
    assert gaia(words[0], "a", *words[1:], "--json").error["hint"] == hint
    assert found.code == 0
    nowhere = gaia(words[0], "b", *words[1:]).err
    assert nowhere.endswith(b"Hint: this root has no sessions; for another root, add --root DIR\n")


@table("words", [["get"], ["update"], ["finalize", "completed"], ["show"], ["events"], ["should-resume"]])
def test_a_whole_id_from_a_parent_folder_is_not_matched_to_a_longer_local_id(
    gaia: Gaia, searched: Path, words: list[str]
) -> None:
    above = str(searched.parent / ".claude" / "session")
    for folder in (above, str(searched / ".claude")):
        shutil.rmtree(folder, ignore_errors=True)
    gaia("create", "--id", "ac0ffee5", "--root", above)
    gaia("create", "--id", "agent-20260108-180530-ac0ffee5")
    before = everything_in(searched)

    ended = gaia(words[0], "ac0ffee5", *words[1:])

    assert ended.code == 3
    assert f"the session is in another root; add --root {above}\n".encode() in ended.out + ended.err
    assert everything_in(searched) == before


def test_should_resume_of_an_id_from_a_parent_folders_root_names_that_root(gaia: Gaia, searched: Path) -> None:
    above = str(searched.parent / ".claude" / "session")
    gaia("create", "--id", "a", "--root", above)

    ended = gaia("should-resume", "a", "--json")

    assert (ended.code, ended.err) == (3, b"")
    decision = json.loads(ended.out)
    here = searched / ".claude" / "session"
    advice = f"searched in {here}; the session is in another root; add --root {above}"
    assert (decision["reason"], decision["advice"]) == ("not_found", advice)
    assert gaia("should-resume", "b").out.endswith(b"; or start new work\n")


def test_an_invalid_id_is_not_searched_in_other_roots(gaia: Gaia, searched: Path) -> None:
    searched.parent.joinpath(".claude", "session").mkdir(parents=True)
    assert gaia("get", "../../x").code == 7


def test_an_id_is_not_searched_elsewhere_if_the_current_folder_is_deleted(gaia: Gaia, searched: Path) -> None:
    gaia("create", "--id", "a", "--root", f"{searched.parent}/sessions")
    searched.joinpath(".git").rmdir()
    searched.rmdir()
    assert gaia("get", "b", "--root", f"{searched.parent}/sessions").code == 3


STOPPED = {
    "run": 1,
    "host": "claude-code",
    "host_session_id": "s",
    "end": "stopped",
    "started_at": "2026-01-08T18:05:30Z",
    "ended_at": "2026-01-08T18:06:30Z",
}

TO_TYPE = [
    ["approve"],
    ["rm"],
    ["wait"],
    ["wait", "--timeout", "5"],
    ["get", "nobody"],
    ["wait", "open", "--timeout", "0"],
    ["finalize", "done", "completed", "--summary", "again"],
    ["rm", "above"],
    ["resume"],
    ["pending"],
    ["update", "open", "--phase", "plannin"],
]


@table("as_json", [False, True])
@fresh_table("words", TO_TYPE)
def test_each_suggested_command_has_the_typed_root_option(
    gaia: Gaia, put: Gaia, root: str, words: list[str], *, as_json: bool
) -> None:
    ended = {"phase": "completed", "resume_ready": False}
    put("open")
    put("done", **ended)
    put("above", **ended)
    put("below", parent_id="above")
    put("asks", runs=[{**STOPPED, "last_message": "[gaia-sessions: approval] may I?"}])
    put("expired", phase="planning", idle=timedelta(hours=5), runs=[{**STOPPED, "end": "killed"}])
    there = f"{Path(root).parent}/my sessions"
    Path(root).rename(there)
    shown = gaia("--root", there, *words, *["--json"] * as_json)
    text = (b"" if as_json else shown.out).decode() + shown.err.decode()
    commands = re.findall(r"\bgaia-sessions (--root '[^']+' )?([a-z-]+)", text)
    assert {where for where, _ in commands} <= {f"--root '{there}' "}
    assert commands or as_json
