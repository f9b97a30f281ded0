"""``get``: it prints the record of a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


def test_get_prints_the_bytes_of_the_record(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "agent-123", "-m", "task=déjà vu")
    for words in ([], ["--json"]):
        ended = gaia("get", "agent-123", *words)
        assert (ended.code, ended.out, ended.err) == (0, Path(root, "agent-123", "state.json").read_bytes(), b"")


def test_get_adds_defaults_for_a_missing_schema_and_revision(gaia: Gaia, put: Gaia) -> None:
    document = put("old", without=("schema", "revision"))
    assert gaia("get", "old").json == {**document, "schema": 1, "revision": 0}


def test_get_list_and_show_read_a_record_of_another_program_without_changing_it(
    gaia: Gaia, put: Gaia, tree: Gaia
) -> None:
    theirs = {"finalized_at": "2026-01-08T18:05:30.123456+00:00", "duration_seconds": -4.25, "summary": None}
    document = put("done", **theirs, phase="completed", resume_ready=False, without=("schema", "revision"))
    before = tree()

    got, listed, shown = gaia("get", "done").json, gaia("list", "--json").json, gaia("show", "done").all

    normalized = {key: value for key, value in document.items() if key != "summary"}
    assert got == {**normalized, "duration_seconds": 0.0, "schema": 1, "revision": 0}
    assert [(line["agent_id"], line["status"]) for line in listed] == [("done", "final")]
    assert (shown[0], shown[2]) == (0, "")
    assert ("lasted " in shown[1], "summary" in shown[1], "-4" in shown[1]) == (True, False, False)
    assert tree() == before


def test_an_update_brings_a_record_of_another_program_into_the_canonical_form(
    gaia: Gaia, put: Gaia, state: Gaia
) -> None:
    document = put("reopened", finalized_at="2026-01-08T18:05:30+00:00", duration_seconds=-4.25, summary=None)

    gaia("update", "reopened", "-m", "note=one")

    normalized = {key: value for key, value in document.items() if key != "summary"}
    moved = {"duration_seconds": 0.0, "metadata": {"note": "one"}, "revision": 2}
    written = state("reopened")
    assert written == {**normalized, **moved, "last_updated": written["last_updated"]}


def test_get_shows_unknown_keys(gaia: Gaia, put: Gaia) -> None:
    document = put("a", theirs={"deep": [1, None]})
    assert gaia("get", "a").json == document


def test_get_shows_a_record_of_a_newer_schema_as_it_is(gaia: Gaia, put: Gaia) -> None:
    document = put("new", schema=2, phase="dreaming", history="elsewhere")
    assert gaia("get", "new").json == document


def test_a_corrupt_record_exits_6_and_stays_as_it_is(gaia: Gaia, spoil: Gaia) -> None:
    path = spoil("torn")
    assert gaia("get", "torn", "--json").error == {
        "code": "corrupt",
        "message": f"{path}: line 1 column 1: not JSON: this brace is not closed",
        "hint": "`gaia-sessions doctor` says how to repair or remove this session",
    }
    assert path.read_bytes() == b'{"agent_id": '


def test_the_record_of_another_session_is_corrupt(gaia: Gaia, put: Gaia, root: str) -> None:
    put("one")
    os.rename(os.path.join(root, "one"), os.path.join(root, "other"))
    ended = gaia("get", "other", "--json")
    assert (ended.code, ended.error["message"]) == (
        6,
        f"{root}/other/state.json: agent_id: is the ID of another session: 'one'",
    )


def test_get_without_an_id_is_a_usage_error(gaia: Gaia) -> None:
    expected = "Error: Missing argument 'ID'.\nHint: type an ID from gaia-sessions list, or gaia-sessions get latest\n"
    assert gaia("get").all == (2, "", expected)
