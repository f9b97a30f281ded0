"""``rm``: what somebody names is removed, all of it or nothing, and what must stay is said with its way out."""

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
    """A final session above a final one above an open one; and a final and an open one that stand alone.

    They are there, and a call makes all as it was, for the next row of a table.
    """

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
def test_what_has_ended_is_removed_with_all_its_files_and_said_in_a_line_each(gaia: Gaia, put: Gaia, root: str) -> None:
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
        (["middle"], "session 'middle' has an open one below it", ["leaf", "middle"]),
        (["top"], "session 'top' has an open one below it", ["leaf", "top"]),
        (["top", "--force"], "session 'top' has an open one below it", ["leaf", "top"]),
        (["open", "top"], "session 'open' is open; session 'top' has an open one below it", ["leaf", "open", "top"]),
        (["top", "leaf"], "session 'leaf' is open", ["leaf", "top"]),
    ],
)
def test_one_that_must_stay_keeps_all_and_the_line_that_is_suggested_removes_them(
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


def test_where_many_are_open_below_it_is_said_where_they_are_seen(gaia: Gaia, put: Gaia, root: str) -> None:
    put("top", **FINAL)
    for number in range(6):
        put(f"leaf-{number}", parent_id="top")
    error = gaia("rm", "top", "--json").error
    assert (error["code"], error["hint"]) == (
        "not_removable",
        "nothing was removed; to see what is below it, type gaia-sessions tree top",
    )
    assert len(ids_in(root)) == 7


def test_a_session_stays_on_which_an_agent_may_still_be_at_work(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a", runs=[{"run": 1, "started_at": format_time(utc_now())}], **FINAL)
    said = "Error: session 'a' has ended, but an agent may still be at work on it\n"
    hint = "Hint: nothing was removed; add --force to remove it all the same\n"
    assert gaia("rm", "a").all == (4, "", said + hint)
    assert gaia("rm", "a", "--force").code == 0
    assert ids_in(root) == []


def test_a_cancelled_session_has_ended_unless_an_agent_may_still_be_at_work_on_it(gaia: Gaia, put: Gaia) -> None:
    put("agent-1", runs=[])
    put(
        "agent-2",
        runs=[{"run": 1, "host": "claude-code", "host_session_id": "s", "started_at": format_time(utc_now())}],
    )
    for agent_id in ("agent-1", "agent-2"):
        gaia("cancel", agent_id)
    assert (gaia("rm", "agent-1").code, gaia("rm", "agent-2").code, gaia("list", "-q").out) == (0, 4, b"agent-2\n")


def test_what_cannot_be_read_is_removed_only_by_force_and_without_the_files_of_others(
    gaia: Gaia, spoil: Gaia, root: str
) -> None:
    path = spoil("torn")
    Path(root, "torn", "mine.txt").write_bytes(b"")
    code, out, err = gaia("rm", "torn").all
    assert (code, out, err.splitlines()[1]) == (
        6,
        "",
        "Hint: nothing was removed; add --force to remove it all the same",
    )
    assert str(path) in err
    assert gaia("rm", "torn", "-f").answer == ["removed torn  unreadable"]
    assert os.listdir(f"{root}/torn") == ["mine.txt"]


def test_what_cannot_be_read_stays_above_an_open_one(gaia: Gaia, put: Gaia, spoil: Gaia, root: str) -> None:
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
def test_an_id_that_names_none_or_several_removes_nothing(
    gaia: Gaia, put: Gaia, root: str, named: list[str], code: int
) -> None:
    for agent_id in ("a", "agent-1", "agent-2"):
        put(agent_id, **FINAL)
    refused = gaia("rm", "--force", *named)
    assert (refused.code, refused.out) == (code, b"")
    assert (b"Hint: nothing was removed; " in refused.err) == (code == 3)
    assert ids_in(root) == ["a", "agent-1", "agent-2"]


def test_a_session_may_be_named_in_short_and_which_one_it_is_is_said(gaia: Gaia, put: Gaia, root: str) -> None:
    put("agent-20260108-180530-abc12345", **FINAL)
    put("b", **FINAL)
    code, out, err = gaia("rm", "530-abc12345", "--json").all
    assert (code, [one["agent_id"] for one in json.loads(out)["removed"]]) == (0, ["agent-20260108-180530-abc12345"])
    assert "agent-20260108-180530-abc12345" in json.loads(err)["notice"]["message"]
    code, out, err = gaia("rm", "latest").all
    assert (code, out, "using session b for latest" in err) == (0, "removed b  tester: test\n", True)
    assert ids_in(root) == []


@fresh_table("outcome", [None, "completed"])
def test_a_child_that_was_copied_back_by_hand_counts_as_any_other(
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
        assert (ended.code, b"session 'top' has an open one below it" in ended.err) == (4, True)
        assert ids_in(root) == ["child", "top"]
    else:
        assert (ended.code, ids_in(root)) == (0, ["child"])
    assert json.loads(gaia("cancelled", "child", "--json").out) == before


@table("words", [(), ("--json",)])
def test_what_was_removed_is_said_also_where_the_disk_did_not_say_that_it_stays_so(
    gaia: Gaia, family: Gaia, root: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def refused(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    family()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refused)
        code, out, err = gaia("rm", "done", *words).all
    error = f"{root}: written, but the sync to disk failed: Input/output error"
    lost = f"it is not sure that the figures of removed sessions were kept: {error}"
    doctor = "'gaia-sessions doctor' says what is wrong; with the setting keep_figures = false none are kept"
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


def test_one_that_stays_locked_stays_and_the_others_go_and_both_are_said(gaia: Gaia, put: Gaia, root: str) -> None:
    for agent_id in ("a", "b", "c"):
        put(agent_id, **FINAL)
    gaia("update", "a")  # makes the folder of locks
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "b.lock", 0, sleep_and_retry):
        code, out, err = gaia("rm", "a", "b", "c", "--lock-timeout", "0").all
        alone = gaia("rm", "b", "--lock-timeout", "0", "--json")
    assert (code, out) == (5, "removed a  tester: test\nremoved c  tester: test\n")
    assert err.startswith(f"Error: not removed: {root}/.locks/b.lock: locked by ")
    assert (alone.code, json.loads(alone.err)["error"]["code"]) == (5, "lock_timeout")
    assert ids_in(root) == ["b"]


@fresh_table("above_leaf", ["top", "middle"])
def test_a_parent_stays_while_one_below_it_that_was_named_is_locked(
    gaia: Gaia, put: Gaia, root: str, above_leaf: str
) -> None:
    put("top", **FINAL)
    put("middle", parent_id="top", **FINAL)
    put("leaf", parent_id=above_leaf)
    gaia("update", "leaf")
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "leaf.lock", 0, sleep_and_retry):
        code, out, err = gaia("rm", "top", "leaf", "--force", "--lock-timeout", "0").all
    assert (code, out, err.splitlines()[1]) == (5, "", "Error: not removed: session 'top' has an open one below it")
    assert ids_in(root) == ["leaf", "middle", "top"]


def test_a_parent_stays_if_one_begins_deep_below_it_while_its_lock_is_waited_for(
    gaia: Gaia, put: Gaia, root: str
) -> None:
    put("top", **FINAL)
    put("middle", parent_id="top", **FINAL)
    gaia("create", "--id", "other")  # makes the folder of locks
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "top.lock", 0, sleep_and_retry):
        words = [sys.executable, "-X", "importtime", "-m", "gaia_sessions", "rm", "top"]
        removal = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert removal.stderr is not None
        assert any(line.endswith("| filelock\n") for line in removal.stderr)  # it loads that only in order to wait
        gaia("create", "--id", "leaf", "--parent", "middle")
    out, err = removal.communicate()
    assert (removal.returncode, out) == (4, "")
    assert "Error: not removed: session 'top' has an open one below it\n" in err
    assert ids_in(root) == ["leaf", "middle", "other", "top"]


@pytest.mark.usefixtures("family")
def test_what_it_tells_to_type_is_about_the_same_sessions(gaia: Gaia, root: str, monkeypatch: Any) -> None:
    monkeypatch.delenv("GAIA_SESSIONS_ROOT", raising=False)
    refused = gaia("rm", "top", "--root", root)
    line = f"gaia-sessions --root {root} rm --force top leaf"
    assert refused.err.decode().endswith(f"Hint: nothing was removed; to remove them all, type {line}\n")
    assert gaia(*line.split()[1:]).code == 0
    assert ids_in(root) == ["done", "middle", "open"]


def test_it_is_applied_first_what_waits_in_the_inbox(gaia: Gaia, root: str) -> None:
    from gaia_sessions.store.file_store import FileStore

    gaia("create", "--id", "a")
    event: Any = {"kind": "finalize", "at": format_time(utc_now()), "agent_id": "a", "outcome": "completed"}
    FileStore(root).defer(event, utc_now())
    assert gaia("rm", "a").code == 0
    assert (ids_in(root), list(Path(root, ".inbox").glob("*.json"))) == ([], [])
