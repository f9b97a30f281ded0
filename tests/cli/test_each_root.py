"""``cleanup`` and ``reconcile`` with a server in the variable: both also work on the own root of the project."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system.processes import describe
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions import Sessions
    from tests.cli.conftest import Gaia

    Pair = tuple[Sessions, Sessions]

NOBODY = 2**22 + 1  # larger than any pid
NOWHERE = "postgresql:///nowhere?host=/nonexistent"


@pytest.fixture
def old(pair: Pair) -> Pair:
    """Each root has an ended session of its own, and one that both have."""
    for number, root in enumerate(pair):
        for agent_id in (f"only-{number}", "both"):
            root.create("a", agent_id=agent_id)
            root.finalize(agent_id, "completed")
    return pair


def ids(root: Sessions) -> list[str]:
    return [line["agent_id"] for line in root.list()]


def test_cleanup_cleans_up_both_roots_and_names_each(gaia: Gaia, old: Pair) -> None:
    server, own = old
    named = f"in {server.root}:\n{{0}} 2 sessions not updated for 0 seconds\n{{1}}"
    named += f"in {own.root}:\n{{0}} 2 sessions not updated for 0 seconds\n{{1}}"
    hint = "to see which, add --verbose\n"
    assert gaia("cleanup", "--hours", "0", "--dry-run").all == (0, named.format("would remove", hint), "")
    assert [*map(len, map(ids, old))] == [2, 2]
    assert gaia("cleanup", "--hours", "0").all == (0, named.format("removed", ""), "")
    assert [*map(ids, old)] == [[], []]


def test_json_has_one_report_with_the_sessions_of_both_roots(gaia: Gaia, old: Pair) -> None:
    for root in old:
        root.create("a", app="app", user="u")
        root.create("a")
    words = ["cleanup", "--dry-run", "--json"]
    for hours in ("0", "24"):
        far, near = (gaia(*words, "--hours", hours, "--root", root.root).json for root in old)
        both = gaia(*words, "--hours", hours).json
        lists = {key: [*far[key], *near[key]] for key in far if isinstance(far[key], list)}
        assert both == {**far, **lists, "recent": far["recent"] * 2, "left_out": {"app": 2}}
    assert (len(lists["removed"]), both["recent"]) == (0, 6)


def test_cleanup_for_cron_prints_nothing(gaia: Gaia, old: Pair) -> None:
    assert gaia("cleanup", "--hours", "0", "--quiet").all == (0, "", "")
    assert [*map(ids, old)] == [[], []]


def test_reconcile_closes_lost_runs_in_both_roots(gaia: Gaia, pair: Pair) -> None:
    server, own = pair
    process = {**(describe(os.getpid()) or {}), "pid": NOBODY}
    run: Any = {"run": 1, "started_at": ago(minutes=9), "host_process": process}
    own.create("a", agent_id="lost")
    FileStore(own.root).change("lost", lambda record: {**record, "phase": "executing", "runs": [run]})

    would = gaia("reconcile", "--dry-run", "--json").json
    code, out, _ = gaia("reconcile").all

    assert [verdict["agent_id"] for verdict in would["verdicts"]] == ["lost"]
    verdict = f"its client crashed or was closed: there is no process {NOBODY}; the session is abandoned"
    closed = f"in {own.root}:\nclosed 1 run\nlost: lost, run 1: {verdict}\n"
    assert (code, out) == (0, f"in {server.root}:\nclosed 0 runs\n{closed}")


@table("words", [["cleanup", "--hours", "0"], ["cleanup", "--hours", "0", "--quiet"], ["reconcile"]])
def test_if_the_server_is_away_the_own_root_is_done_and_the_error_is_told(
    gaia: Gaia, pair: Pair, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", NOWHERE)
    root = pair[1]
    root.create("a", agent_id="old")
    root.finalize("old", "completed")
    ended = gaia(*words)
    assert (ended.code, ended.err.decode().count(f"Error: {NOWHERE}: cannot connect: ")) == (8, 1)
    assert (ended.out == b"") == ("--quiet" in words)
    assert ids(root) == ([] if words[0] == "cleanup" else ["old"])


def test_one_typed_root_is_the_only_one_that_is_cleaned_up(gaia: Gaia, old: Pair) -> None:
    assert gaia("cleanup", "--hours", "0", "--root", old[0].root).out.startswith(b"removed 2 sessions")
    assert [*map(len, map(ids, old))] == [0, 2]
