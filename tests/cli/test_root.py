"""Whose sessions a command is about: the root it is told or finds, and what it says of that."""

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
        ["hooks", "install"],
        ["hooks", "status"],
    ],
)
def test_a_url_makes_no_folder_and_its_password_is_said_nowhere(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, away_from_home: Path, words: list[str], *, by_option: bool
) -> None:
    before = everything_in(away_from_home)

    with monkeypatch.context() as patch:
        if not by_option:
            patch.setenv("GAIA_SESSIONS_ROOT", URL)
        ended = gaia(*words, *(["--root", URL] if by_option else []))

    origin = "--root" if by_option else "GAIA_SESSIONS_ROOT"
    assert ended.code == (1 if words[0] == "doctor" and not by_option else 2)  # doctor finds it, as it finds all else
    assert f"{origin}: is a URL".encode() in ended.out + ended.err
    assert b"s3cret" not in ended.out + ended.err
    assert everything_in(away_from_home) == before


@table("wired", [[], ["--root", URL]])
def test_a_hook_that_is_given_a_url_does_nothing(away_from_home: Path, wired: list[str]) -> None:
    event = b'{"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}'
    before = everything_in(away_from_home)

    ended = forked("hook", *wired, stdin=event, **({} if wired else {"GAIA_SESSIONS_ROOT": URL}))

    assert ended.all == (0, "", "")
    assert everything_in(away_from_home) == before


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch, away_from_home: Path) -> Path:
    """A repository below a folder with sessions of its own, from which the root is searched."""
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    repository = away_from_home / "work" / "repository"
    repository.joinpath(".git").mkdir(parents=True)
    monkeypatch.chdir(repository)
    return repository


@table("words", [["get"], ["update"], ["finalize", "completed"], ["show"], ["events"]])
def test_an_id_in_a_store_further_up_is_answered_with_the_root_to_use(
    gaia: Gaia, searched: Path, words: list[str]
) -> None:
    above = str(searched.parent / ".claude" / "session")
    shutil.rmtree(above, ignore_errors=True)
    gaia("create", "--id", "a", "--root", above)

    missing = gaia(words[0], "a", *words[1:])
    found = gaia(words[0], "a", *words[1:], "--root", above)

    hint = f"it is in another store; add --root {above}"
    here = searched / ".claude" / "session"
    assert missing.refusal == (3, f"no session 'a' in {here}", hint)
    assert gaia(words[0], "a", *words[1:], "--json").error["hint"] == hint
    assert found.code == 0
    nowhere = gaia(words[0], "b", *words[1:]).err
    assert nowhere.endswith(b"Hint: there are no sessions in that folder; use --root DIR for another folder\n")


@table("words", [["get"], ["update"], ["finalize", "completed"], ["show"], ["events"], ["should-resume"]])
def test_the_whole_id_of_a_session_further_up_is_not_taken_for_a_part_of_one_here(
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
    assert f"it is in another store; add --root {above}\n".encode() in ended.out + ended.err
    assert everything_in(searched) == before


def test_whether_to_resume_what_is_in_a_store_further_up_is_answered_with_the_root_to_use(
    gaia: Gaia, searched: Path
) -> None:
    above = str(searched.parent / ".claude" / "session")
    gaia("create", "--id", "a", "--root", above)

    ended = gaia("should-resume", "a", "--json")

    assert (ended.code, ended.err) == (3, b"")
    decision = json.loads(ended.out)
    here = searched / ".claude" / "session"
    advice = f"searched in {here}; it is in another store; add --root {above}"
    assert (decision["reason"], decision["advice"]) == ("not_found", advice)
    assert gaia("should-resume", "b").out.endswith(b"; or start new work\n")


def test_an_impossible_id_is_looked_for_nowhere(gaia: Gaia, searched: Path) -> None:
    searched.parent.joinpath(".claude", "session").mkdir(parents=True)
    assert gaia("get", "../../x").code == 7


def test_an_id_is_looked_for_nowhere_else_where_the_working_directory_is_gone(gaia: Gaia, searched: Path) -> None:
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
def test_each_line_to_type_has_the_root_that_was_typed(
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
