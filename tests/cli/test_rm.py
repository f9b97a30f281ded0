"""``rm``: it removes all named sessions or none, and says what to type if a session must stay."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.session.clock import format_time
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.locks import acquire, sleep_and_retry
from gaia_sessions.system import utc_now
from tests.cli.conftest import fresh_table, ids_in
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Gaia


FINAL: dict[str, Any] = {"phase": "completed", "resume_ready": False}


@pytest.fixture
def family(put: Gaia, anew: Gaia) -> Callable[[], None]:
    """An ended session above an ended one above an open one; an ended and an open single one. A call restores all."""

    def begin() -> None:
        anew()
        put("top", **FINAL)
        put("middle", parent_id="top", **FINAL)
        put("leaf", parent_id="middle")
        put("done", agent_name="Explore", purpose="read the code", **FINAL)
        put("open")

    begin()
    return begin


@pytest.mark.usefixtures("family")
def test_rm_removes_ended_sessions_with_all_files_and_prints_a_line_for_each(gaia: Gaia, put: Gaia, root: str) -> None:
    put("other", purpose="general", **FINAL)
    Path(root, "done", "transcript.jsonl").write_bytes(b"")

    assert gaia("rm", "done", "other", "done").answer == [
        "removed done  Explore: read the code",
        "removed other  tester",
    ]

    assert ids_in(root) == ["leaf", "middle", "open", "top"]
    assert os.listdir(f"{root}/.trash") == []
    assert gaia("rm", "done").code == 3
    put("again", **FINAL)
    removed = [{"agent_id": "again", "agent_name": "tester", "purpose": "test"}]
    assert gaia("rm", "again", "--json").json == {"removed": removed}


@table(
    ("named", "said", "then_gone"),
    [
        (["open"], "session 'open' is open", ["open"]),
        (["done", "open"], "session 'open' is open", ["done", "open"]),
        (["middle"], "session 'middle' has an open session below it", ["leaf", "middle"]),
        (["top"], "session 'top' has an open session below it", ["leaf", "top"]),
        (["top", "--force"], "session 'top' has an open session below it", ["leaf", "top"]),
        (
            ["open", "top"],
            "session 'open' is open; session 'top' has an open session below it",
            ["leaf", "open", "top"],
        ),
        (["top", "leaf"], "session 'leaf' is open", ["leaf", "top"]),
    ],
)
def test_rm_removes_nothing_if_one_session_is_open_and_suggests_a_working_command(
    gaia: Gaia, tree: Gaia, family: Gaia, root: str, named: list[str], said: str, then_gone: list[str]
) -> None:
    family()
    before, there = tree(), ids_in(root)
    code, out, err = gaia("rm", *named).all
    message, hint = err.splitlines()
    after = tree()

    assert (code, out, message) == (4, "", f"Error: {said}")
    assert {path: after[path] for path in before} == before
    assert hint.startswith("Hint: nothing was removed; ")
    words = hint.partition("type gaia-sessions ")[2].split() or ["rm", *named, "--force"]
    assert gaia(*words).code == 0
    assert ids_in(root) == [name for name in there if name not in then_gone]


def test_rm_of_a_session_above_many_open_ones_suggests_the_tree_command(gaia: Gaia, put: Gaia, root: str) -> None:
    put("top", **FINAL)
    for number in range(6):
        put(f"leaf-{number}", parent_id="top")
    error = gaia("rm", "top", "--json").error
    assert (error["code"], error["hint"]) == (
        "not_removable",
        "nothing was removed; to see the sessions below it, type gaia-sessions tree top",
    )
    assert len(ids_in(root)) == 7


def test_rm_keeps_an_ended_session_whose_agent_may_still_work(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a", runs=[{"run": 1, "started_at": format_time(utc_now())}], **FINAL)
    said = "Error: session 'a' has ended, but an agent may still be at work on it\n"
    hint = "Hint: nothing was removed; add --force to remove it anyway\n"
    assert gaia("rm", "a").all == (4, "", said + hint)
    assert gaia("rm", "a", "--force").code == 0
    assert ids_in(root) == []


def test_rm_removes_a_cancelled_session_unless_its_agent_may_still_work(gaia: Gaia, put: Gaia) -> None:
    put("agent-1", runs=[])
    put(
        "agent-2",
        runs=[{"run": 1, "host": "claude-code", "host_session_id": "s", "started_at": format_time(utc_now())}],
    )
    for agent_id in ("agent-1", "agent-2"):
        gaia("cancel", agent_id)
    assert (gaia("rm", "agent-1").code, gaia("rm", "agent-2").code, gaia("list", "-q").out) == (0, 4, b"agent-2\n")


def test_rm_removes_a_corrupt_session_only_with_force_and_keeps_foreign_files(
    gaia: Gaia, spoil: Gaia, root: str
) -> None:
    path = spoil("torn")
    Path(root, "torn", "mine.txt").write_bytes(b"")
    code, out, err = gaia("rm", "torn").all
    assert (code, out, err.splitlines()[1]) == (
        6,
        "",
        "Hint: nothing was removed; add --force to remove it anyway",
    )
    assert str(path) in err
    assert gaia("rm", "torn", "-f").answer == ["removed torn  unreadable"]
    assert os.listdir(f"{root}/torn") == ["mine.txt"]


def test_a_corrupt_session_above_an_open_one_is_not_removed(gaia: Gaia, put: Gaia, spoil: Gaia, root: str) -> None:
    spoil("torn")
    put("leaf", parent_id="torn")
    assert gaia("rm", "torn", "--force").code == 4
    assert gaia("cleanup", "--corrupt", "--dry-run", "--json").json["removed"] == []
    assert gaia("cleanup", "--corrupt", "--json").json["removed"] == []
    assert ids_in(root) == ["leaf", "torn"]
    assert gaia("rm", "torn", "leaf", "--force").code == 0
    assert ids_in(root) == []


def test_the_record_of_a_later_version_is_never_removed(gaia: Gaia, put: Gaia, root: str) -> None:
    put("newer", schema=2, **FINAL)
    put("a", **FINAL)
    assert gaia("rm", "a", "newer", "--force", "--json").error["code"] == "newer_schema"
    assert ids_in(root) == ["a", "newer"]


@table(("named", "code"), [(["nobody"], 3), (["a", "nobody"], 3), (["a", "../b"], 7), (["a", "agent"], 2), ([], 2)])
def test_rm_removes_nothing_if_an_id_is_missing_unknown_invalid_or_ambiguous(
    gaia: Gaia, put: Gaia, root: str, named: list[str], code: int
) -> None:
    for agent_id in ("a", "agent-1", "agent-2"):
        put(agent_id, **FINAL)
    refused = gaia("rm", "--force", *named)
    assert (refused.code, refused.out) == (code, b"")
    assert (b"Hint: nothing was removed; " in refused.err) == (code == 3)
    assert ids_in(root) == ["a", "agent-1", "agent-2"]


def test_rm_accepts_part_of_an_id_or_latest_and_names_the_session(gaia: Gaia, put: Gaia, root: str) -> None:
    put("agent-20260108-180530-abc12345", **FINAL)
    put("b", **FINAL)
    code, out, err = gaia("rm", "530-abc12345", "--json").all
    assert (code, [one["agent_id"] for one in json.loads(out)["removed"]]) == (0, ["agent-20260108-180530-abc12345"])
    assert "agent-20260108-180530-abc12345" in json.loads(err)["notice"]["message"]
    code, out, err = gaia("rm", "latest").all
    assert (code, out, "using session b for latest" in err) == (0, "removed b  tester: test\n", True)
    assert ids_in(root) == []


@fresh_table("outcome", [None, "completed"])
def test_a_child_folder_that_was_moved_back_counts_like_any_other_child(
    gaia: Gaia, root: str, tmp_path: Path, outcome: str | None
) -> None:
    for agent_id, *parent in (("top",), ("child", "--parent", "top")):
        gaia("create", "--id", agent_id, *parent)
        gaia("finalize", agent_id, "completed")
    if outcome is None:
        state = Path(root, "child", "state.json")
        open_one = {**json.loads(state.read_bytes()), "phase": "executing"}
        state.write_text(json.dumps(open_one), encoding="utf-8")
    gaia("cancel", "top", "--reason", "enough")
    before = json.loads(gaia("cancelled", "child", "--json").out)
    shutil.move(f"{root}/child", tmp_path / "child")
    assert gaia("doctor", "--fix", "--json").json["fixed"] != []
    shutil.move(tmp_path / "child", f"{root}/child")
    assert Path(root, ".index", "complete").exists()
    assert list(Path(root, ".index").rglob("child")) == []

    ended = gaia("rm", "top")

    if outcome is None:
        assert (ended.code, b"session 'top' has an open session below it" in ended.err) == (4, True)
        assert ids_in(root) == ["child", "top"]
    else:
        assert (ended.code, ids_in(root)) == (0, ["child"])
    assert json.loads(gaia("cancelled", "child", "--json").out) == before


@table("words", [(), ("--json",)])
def test_rm_reports_removed_sessions_even_if_the_sync_to_disk_fails(
    gaia: Gaia, family: Gaia, root: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def refused(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    family()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refused)
        code, out, err = gaia("rm", "done", *words).all
    error = f"{root}: written, but the sync to disk failed: Input/output error"
    lost = f"the figures of removed sessions may be lost after a power failure: {error}"
    doctor = "`gaia-sessions doctor` says what is wrong; to store no figures, set keep_figures = false"
    hint = "fix the reported problem and try again"
    if words:
        assert [one["agent_id"] for one in json.loads(out)["removed"]] == ["done"]
        notice, failure = map(json.loads, err.replace("}\n{", "}\0{").split("\0"))
        assert notice == {"notice": {"code": "figures_lost", "message": lost, "hint": doctor}}
        assert failure == {"error": {"code": "durability_unknown", "message": error, "hint": hint}}
    else:
        told = f"Note: {lost}\nHint: {doctor}\nError: {error}\nHint: {hint}\n"
        assert (out, err) == ("removed done  Explore: read the code\n", told)
    assert (code, "done" in ids_in(root)) == (9, False)


def test_rm_removes_the_unlocked_sessions_and_reports_the_locked_one(gaia: Gaia, put: Gaia, root: str) -> None:
    for agent_id in ("a", "b", "c"):
        put(agent_id, **FINAL)
    gaia("update", "a")  # creates the folder of locks
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "b.lock", 0, sleep_and_retry):
        code, out, err = gaia("rm", "a", "b", "c", "--lock-timeout", "0").all
        alone = gaia("rm", "b", "--lock-timeout", "0", "--json")
    assert (code, out) == (5, "removed a  tester: test\nremoved c  tester: test\n")
    assert err.startswith(f"Error: not removed: {root}/.locks/b.lock: locked by ")
    assert (alone.code, json.loads(alone.err)["error"]["code"]) == (5, "lock_timeout")
    assert ids_in(root) == ["b"]


@fresh_table("above_leaf", ["top", "middle"])
def test_rm_keeps_a_parent_while_a_named_session_below_it_is_locked(
    gaia: Gaia, put: Gaia, root: str, above_leaf: str
) -> None:
    put("top", **FINAL)
    put("middle", parent_id="top", **FINAL)
    put("leaf", parent_id=above_leaf)
    gaia("update", "leaf")
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "leaf.lock", 0, sleep_and_retry):
        code, out, err = gaia("rm", "top", "leaf", "--force", "--lock-timeout", "0").all
    assert (code, out, err.splitlines()[1]) == (5, "", "Error: not removed: session 'top' has an open session below it")
    assert ids_in(root) == ["leaf", "middle", "top"]


def test_rm_keeps_a_parent_if_a_session_below_begins_while_rm_waits(gaia: Gaia, put: Gaia, root: str) -> None:
    put("top", **FINAL)
    put("middle", parent_id="top", **FINAL)
    gaia("create", "--id", "other")  # creates the folder of locks
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "top.lock", 0, sleep_and_retry):
        words = [sys.executable, "-X", "importtime", "-m", "gaia_sessions", "rm", "top"]
        removal = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert removal.stderr is not None
        assert any(line.endswith("| filelock\n") for line in removal.stderr)  # it imports filelock only to wait
        gaia("create", "--id", "leaf", "--parent", "middle")
    out, err = removal.communicate()
    assert (removal.returncode, out) == (4, "")
    assert "Error: not removed: session 'top' has an open session below it\n" in err
    assert ids_in(root) == ["leaf", "middle", "other", "top"]


@pytest.mark.usefixtures("family")
def test_the_command_that_rm_suggests_names_the_same_root_and_sessions(gaia: Gaia, root: str, monkeypatch: Any) -> None:
    monkeypatch.delenv("GAIA_SESSIONS_ROOT", raising=False)
    refused = gaia("rm", "top", "--root", root)
    line = f"gaia-sessions --root {root} rm --force top leaf"
    assert refused.err.decode().endswith(f"Hint: nothing was removed; to remove all of them, type {line}\n")
    assert gaia(*line.split()[1:]).code == 0
    assert ids_in(root) == ["done", "middle", "open"]


def test_rm_applies_waiting_inbox_events_first(gaia: Gaia, root: str) -> None:
    from gaia_sessions.store.file_store import FileStore

    gaia("create", "--id", "a")
    event: Any = {"kind": "finalize", "at": format_time(utc_now()), "agent_id": "a", "outcome": "completed"}
    FileStore(root).defer(event, utc_now())
    assert gaia("rm", "a").code == 0
    assert (ids_in(root), list(Path(root, ".inbox").glob("*.json"))) == ([], [])
