"""``import``: it takes over whole sessions with their IDs, also those of the tool in the users' documents."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions import models
from gaia_sessions.store.file_store import FileStore
from tests.cli.conftest import everything_in, fresh_table
from tests.cli.forks import Fork
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.host_events import Event
    from tests.cli.conftest import Gaia


OPEN: dict[str, Any] = {
    "agent_id": "agent-20260108-180530-abc12345",
    "agent_name": "terraform-architect",
    "purpose": "approval_workflow",
    "created_at": "2026-01-08T18:05:30.123456+00:00",
    "last_updated": "2026-01-08T18:10:15+00:00",
    "phase": "approval",
    "metadata": {"task_id": "T001", "at": "2026-01-08T18:10:15+00:00"},
    "resume_ready": True,
    "history": [{"from_phase": "initializing", "to_phase": "approval", "timestamp": "2026-01-08T18:10:15+00:00"}],
    "error_count": 1,
    "last_error": {"message": "boom", "timestamp": "2026-01-08T19:07:00+01:00"},
}
"""A record in the format of the earlier tool: times with offsets, no schema, no revision."""


def taken(document: dict[str, Any], source: Path) -> dict[str, Any]:
    """The record of ``document`` after its import."""
    return {**document, "schema": 1, "revision": 1, "imported_from": str(source)}


FINAL: dict[str, Any] = {
    **OPEN,
    "agent_id": "sub-final",
    "phase": "failed",
    "resume_ready": False,
    "finalized_at": "2026-01-08T18:10:15+00:00",
    "duration_seconds": 284.876544,
    "theirs": {"kept": [1, 2.5, None]},
}
"""The tool stored ``failed`` for an invalid outcome, and added no move to the history."""

REOPENED: dict[str, Any] = {**FINAL, "agent_id": "reopened", "phase": "planning", "resume_ready": True}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "old project" / ".claude" / "session"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def leave(source: Path) -> Callable[..., Path]:
    """Writes a session as the earlier tool did; returns its file."""

    def write(document: Any, name: str | None = None) -> Path:
        path = source / (name or document["agent_id"]) / "state.json"
        path.parent.mkdir()
        text = document if isinstance(document, str) else json.dumps(document, indent=2)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def report(source: Path, root: str, **changed: Any) -> dict[str, Any]:
    return {
        "dry_run": False,
        "root": root,
        "directories": [str(source)],
        "imported": [],
        "already_there": [],
        "failed": [],
        "waiting": {},
        **changed,
    }


def test_import_keeps_ids_and_all_data_of_sessions_of_the_earlier_tool(
    gaia: Gaia, leave: Gaia, state: Gaia, source: Path, root: str
) -> None:
    for document in (OPEN, FINAL, REOPENED):
        leave(document)
    before = everything_in(source)
    ids = sorted(document["agent_id"] for document in (OPEN, FINAL, REOPENED))
    assert gaia("import", str(source), "--json").json == report(source, root, imported=ids)
    assert everything_in(source) == before
    for document in (OPEN, FINAL, REOPENED):
        assert state(document["agent_id"]) == taken(document, source)
        models.validate(state(document["agent_id"]))


def test_a_session_reopened_by_the_earlier_tool_can_be_finalized_after_its_import(
    gaia: Gaia, leave: Gaia, source: Path
) -> None:
    leave(REOPENED)
    assert gaia("import", str(source)).code == 0
    assert gaia("list", "--json").json[0]["status"] == "active"
    assert gaia("report", "reopened").code == 124  # the session has not ended
    assert gaia("finalize", "reopened", "completed").code == 0
    record = gaia("get", "reopened").json
    assert (record["phase"], record["finalized_at"] > FINAL["finalized_at"]) == ("completed", True)


def test_an_imported_session_can_be_updated_and_finalized(gaia: Gaia, leave: Gaia, root: str, source: Path) -> None:
    leave(OPEN)
    gaia("import", str(source))
    agent_id = OPEN["agent_id"]
    assert [line["agent_id"] for line in gaia("list", "--active-only", "--json").json] == [agent_id]
    assert gaia("update", agent_id, "--phase", "executing", "--json").json["revision"] == 2
    assert gaia("finalize", agent_id, "completed").code == 0
    assert [path.stat().st_mode & 0o777 for path in sorted(Path(root, agent_id).iterdir())] == [0o600] * 2


def test_import_refuses_a_session_whose_mark_cannot_be_read(gaia: Gaia, tmp_path: Path) -> None:
    there = tmp_path / "there"
    for agent_id in ("a", "b"):
        gaia("create", "--id", agent_id, "--root", str(there))
    (there / "a" / "cancelled.json").mkdir()

    ended = gaia("import", str(there), "--json")
    report = json.loads(ended.out)

    assert (ended.code, report["imported"], [one["agent_id"] for one in report["failed"]]) == (8, ["b"], ["a"])


def test_import_prints_the_sessions_the_source_and_the_root(gaia: Gaia, leave: Gaia, source: Path, root: str) -> None:
    leave(OPEN)
    leave("{", "torn")
    problem = "line 1 column 1: not JSON: this brace is not closed"
    hint = "Hint: fix the reported problem and try again"
    said = f"Error: torn: not imported: {source}/torn/state.json: {problem}\n{hint}\n"
    counted = f"1 session from {source} into {root}\n  {OPEN['agent_id']}\n"
    assert gaia("import", str(source), "--dry-run").all == (6, f"would import {counted}", said)
    assert gaia("import", str(source)).all == (6, f"imported {counted}", said)
    second_answer = f"imported 0 sessions from {source} into {root}\nalready exists: {OPEN['agent_id']}\n"
    assert gaia("import", str(source)).all == (6, second_answer, said)


def test_a_dry_run_says_what_the_real_run_does_and_changes_nothing(
    gaia: Gaia, leave: Gaia, source: Path, tree: Gaia
) -> None:
    leave(OPEN)
    leave({**FINAL, "metadata": {"x": "y" * (1 << 20)}})
    leave({**OPEN, "agent_id": "newer", "schema": 2})
    before = tree()
    dry = json.loads(gaia("import", str(source), "-n", "--json").out)
    assert (dry["imported"], [one["reason"] for one in dry["failed"]]) == (
        [OPEN["agent_id"]],
        ["newer_schema", "corrupt"],
    )
    assert tree() == before
    assert json.loads(gaia("import", str(source), "--json").out) == {**dry, "dry_run": False}


def test_importing_again_changes_nothing(gaia: Gaia, leave: Gaia, source: Path, root: str) -> None:
    for document in (OPEN, FINAL, REOPENED):
        leave(document)
    gaia("import", str(source))
    before = everything_in(Path(root))
    ids = sorted(path.name for path in source.iterdir())
    assert gaia("import", str(source), "--json").json == report(source, root, already_there=ids)
    assert everything_in(Path(root)) == before


def unreadable_sessions(source: Path, leave: Gaia) -> None:
    leave("{", "torn")
    leave(OPEN, "other-name")
    leave({**OPEN, "agent_id": "bad id"})
    leave({**OPEN, "agent_id": "string-count", "error_count": "2"})
    leave('{"a":' * 65 + "1" + "}" * 65, "too-deep")
    leave({**OPEN, "agent_id": "too-large", "metadata": {"x": "y" * (1 << 20)}})
    Path(source, "a-pipe").mkdir()
    os.mkfifo(Path(source, "a-pipe", "state.json"))
    Path(source, "linked-file").mkdir()
    Path(source, "linked-file", "state.json").symlink_to(source / "torn" / "state.json")
    Path(source, "linked").symlink_to(source / "torn")


def problem_in(detail: str) -> str:
    """``detail`` without the name of the file and without levels of nesting."""
    return re.sub(r"^(.*/state\.json: )?(a\.)*(: )?", "", detail)


def test_each_session_that_cannot_be_imported_is_reported_and_stops_no_other(
    gaia: Gaia, leave: Gaia, source: Path
) -> None:
    unreadable_sessions(source, leave)
    leave({**OPEN, "agent_id": "newer", "schema": 2})
    leave({**OPEN, "agent_id": "no-room", "metadata": {"x": "y" * ((1 << 20) - 1400)}})
    leave(FINAL)
    ended = gaia("import", str(source), "--json")
    report = json.loads(ended.out)
    assert (ended.code, report["imported"]) == (6, ["sub-final"])
    assert {one["directory"] for one in report["failed"]} == {str(source)}
    shortened = [(one["agent_id"], one["reason"], problem_in(one["detail"])) for one in report["failed"]]
    assert shortened == [
        ("a-pipe", "corrupt", "state.json is not a regular file"),
        ("bad id", "invalid_id", "'bad id' is not a session ID: has a character other than letters, digits, . _ -"),
        ("linked", "corrupt", f"{source}/linked: not a folder, but a link or a file"),
        ("linked-file", "corrupt", "a link, not a file"),
        (
            "newer",
            "newer_schema",
            "session 'newer' was written by a newer version (schema 2, not 1) and can only be shown",
        ),
        ("no-room", "too_large", "the document is over the limit of 1046528 bytes"),
        ("other-name", "corrupt", f"agent_id: is the ID of another session: '{OPEN['agent_id']}'"),
        ("string-count", "corrupt", "error_count: must be a whole number from 0"),
        ("too-deep", "corrupt", "nested deeper than 64"),
        ("too-large", "corrupt", "state.json is larger than 1048576 bytes"),
        ("torn", "corrupt", "line 1 column 1: not JSON: this brace is not closed"),
    ]


def test_an_import_without_any_valid_session_creates_no_root(gaia: Gaia, leave: Gaia, source: Path, root: str) -> None:
    unreadable_sessions(source, leave)
    ended = gaia("import", str(source), "--json")
    error = json.loads(ended.err)["error"]
    assert (ended.code, error["code"], len(json.loads(ended.out)["failed"])) == (6, "corrupt", 9)
    assert error["message"].startswith(f"a-pipe: not imported: {source}/a-pipe/state.json: ")
    assert not Path(root).exists()


@table("what", ["missing", "a file", "no name"])
def test_an_import_from_a_path_that_is_not_a_folder_is_a_usage_error(
    gaia: Gaia, source: Path, tree: Gaia, what: str
) -> None:
    Path(source, "file").write_text("x", encoding="utf-8")
    path = {"missing": str(source / "nowhere"), "a file": str(source / "file"), "no name": ""}[what]
    before = tree()
    error = gaia("import", path, "--json").error
    assert (error["code"], error["message"]) == ("no_such_folder", f"no folder at {path!r}")
    assert gaia("import", path).code == 2
    assert tree() == before


def test_an_empty_folder_has_nothing_to_import(gaia: Gaia, source: Path, tree: Gaia) -> None:
    Path(source, "no-record").mkdir()
    Path(source, ".hidden").mkdir()
    before = tree()
    said = f"nothing to import: no folder in {source} contains a state.json\n"
    assert gaia("import", str(source)).all == (0, said, "")
    assert tree() == before


@pytest.mark.parametrize("named", [".", ".claude", ".claude/session", ".claude/session/sub-final"])
def test_import_accepts_a_project_its_root_or_the_folder_of_one_session(
    gaia: Gaia, leave: Gaia, source: Path, root: str, named: str
) -> None:
    leave(FINAL)
    leave({**OPEN, "agent_id": "another"})
    project = source.parent.parent
    wanted = ["sub-final"] if named.endswith("final") else ["another", "sub-final"]
    assert gaia("import", str(project / named), "--json").json == report(source, root, imported=wanted)


@fresh_table("spelling", ["{root}", "{root}/../session/", "{link}", "session", "{root}/a"])
def test_an_import_from_the_root_itself_finds_every_session_already_there(
    gaia: Gaia, put: Gaia, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    put("a")
    link = tmp_path / "link"
    link.symlink_to(root)
    monkeypatch.chdir(tmp_path)
    before = everything_in(Path(root))
    named = spelling.format(root=root, link=link)
    assert gaia("import", named, "--json").json == report(Path(root), root, already_there=["a"])
    assert everything_in(Path(root)) == before


def test_unprintable_folder_names_are_reported_and_do_not_reach_the_terminal(
    gaia: Gaia, leave: Gaia, source: Path
) -> None:
    leave(FINAL)
    leave(OPEN, "\x1b[2Jmine")
    os.mkdir(os.fsencode(source) + b"/\xff")
    Path(os.fsdecode(os.fsencode(source) + b"/\xff"), "state.json").write_text("{}", encoding="utf-8")
    report = json.loads(gaia("import", str(source), "--json").out)
    assert [one["reason"] for one in report["failed"]] == ["invalid_id"] * 2
    ended = gaia("import", str(source))
    assert (ended.code, [byte for byte in ended.out + ended.err if byte < 0x20 and byte != 0x0A]) == (6, [])


def test_a_session_that_cannot_be_stored_is_reported_and_stops_no_other(
    gaia: Gaia, leave: Gaia, source: Path, root: str
) -> None:
    leave(OPEN)
    leave(FINAL)
    gaia("create", "--id", "first")
    Path(root, ".locks", "sub-final.lock").mkdir()
    lock, hint = f"{root}/.locks/sub-final.lock", "fix the reported problem and try again"
    reason = f"{lock}: cannot lock: Is a directory"
    out = f"imported 1 session from {source} into {root}\n  {OPEN['agent_id']}\n"
    assert gaia("import", str(source)).all == (8, out, f"Error: sub-final: not imported: {reason}\nHint: {hint}\n")
    ended = gaia("import", str(source), "--json")
    failed = [{"agent_id": "sub-final", "directory": str(source), "reason": "io_error", "detail": reason}]
    assert (ended.code, json.loads(ended.out)) == (
        8,
        report(source, root, already_there=[OPEN["agent_id"]], failed=failed),
    )
    message = f"sub-final: not imported: {reason}"
    assert json.loads(ended.err) == {"error": {"code": "io_error", "message": message, "hint": hint}}


def test_the_api_imports_from_a_path_and_returns_the_same_report(leave: Gaia, source: Path, root: str) -> None:
    leave(OPEN)
    wanted: Any = report(source, root, imported=[OPEN["agent_id"]])
    assert gaia_sessions.Sessions().import_from(source, dry_run=True) == {**wanted, "dry_run": True}
    assert gaia_sessions.Sessions().import_from(source) == wanted
    assert gaia_sessions.get_session(OPEN["agent_id"]) == taken(OPEN, source)


def test_concurrent_imports_import_each_session_exactly_once(leave: Gaia, source: Path) -> None:
    ids = [f"agent-{number:02}" for number in range(40)]
    for agent_id in ids:
        leave({**OPEN, "agent_id": agent_id})
    with ExitStack() as stack:
        forks = [stack.enter_context(Fork("import", str(source), "--json")) for _ in range(4)]
        reports = [fork.ended().json for fork in forks]
    assert sorted(agent_id for one in reports for agent_id in one["imported"]) == ids
    assert [sorted([*one["imported"], *one["already_there"]]) for one in reports] == [ids] * 4


def test_a_killed_import_leaves_only_whole_sessions_and_can_be_repeated(
    gaia: Gaia, leave: Gaia, source: Path, root: str
) -> None:
    number = 60
    for one in range(number):
        leave({**OPEN, "agent_id": f"agent-{one:03}"})
    came: list[int] = []
    for wanted in (1, 20, 40):
        with Fork("import", str(source)) as fork:
            while fork.poll() is None and len(list(Path(root).glob("[!.]*"))) < wanted:
                time.sleep(0.001)
        lines = list(gaia_sessions.list_sessions())
        assert [line for line in lines if "problem" in line] == []
        came.append(len(lines))
    assert came == sorted(came)
    assert came[0] < number, "it was never killed in the middle"
    report = gaia("import", str(source), "--json").json
    assert (len(report["already_there"]), len(report["imported"])) == (came[-1], number - came[-1])
    assert {line["agent_id"] for line in gaia_sessions.list_sessions(active_only=True)} == {
        path.name for path in source.iterdir()
    }


def test_an_unexpanded_tilde_gives_the_same_error_in_dir_and_in_root(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    expected = "'~/old' was not expanded by the shell\nHint: use /home/me/old\n"
    assert gaia("import", "~/old").all == (2, "", f"Error: DIR: {expected}")
    assert gaia("--root", "~/old", "list").all == (2, "", f"Error: --root: {expected}")
    assert not os.path.exists(root)


def test_events_that_wait_in_the_source_are_reported_with_the_reconcile_command(
    gaia: Gaia, leave: Gaia, typed: Gaia, source: Path
) -> None:
    leave(OPEN)
    ending: Event = {
        "kind": "finalize",
        "at": "2026-01-08T18:10:16Z",
        "agent_id": OPEN["agent_id"],
        "outcome": "failed",
    }
    FileStore(str(source)).defer(ending, datetime.now(UTC))

    imported = gaia("import", source)

    assert imported.code == 8
    assert b"an event waits there that could change the session" in imported.err
    *_, said, advice, command = imported.out.decode().splitlines()
    assert said == f"not imported: 1 event waiting in {source}."
    assert (
        advice
        == "Events that fit no session are dropped after a day. To apply the others, type this; then import again:"
    )
    assert command == f"  gaia-sessions reconcile --root '{source}'"
    typed(command.strip())
    assert gaia("import", source).out.splitlines()[1] == f"  {OPEN['agent_id']}".encode()
