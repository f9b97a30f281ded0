"""``reconcile``: it closes runs that are proved to be lost, and lists the others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.cli.render.words import local_time
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.locks import acquire, sleep_and_retry
from gaia_sessions.system.processes import describe

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


NOBODY = 2**22 + 1  # larger than any pid
BEGAN = "2026-01-08T18:05:30.000000Z"
UNSURE = f"the process of its client is unknown; it started at {BEGAN}, and it has no readable transcript"


def run_of(pid: int | None = None) -> dict[str, Any]:
    run: dict[str, Any] = {"run": 1, "started_at": BEGAN}
    return run if pid is None else {**run, "host_process": {**(describe(os.getpid()) or {}), "pid": pid}}


@pytest.fixture
def three(put: Gaia) -> None:
    """Three sessions: the host is gone, the host runs, the host is unknown."""
    put("gone", phase="executing", resume_ready=False, runs=[run_of(NOBODY)])
    put("there", phase="executing", resume_ready=False, runs=[run_of(os.getpid())])
    put("unknown", phase="executing", resume_ready=False, runs=[run_of()])


@pytest.mark.usefixtures("three")
def test_reconcile_prints_all_verdicts_and_closes_a_lost_run_once(gaia: Gaia, state: Gaia) -> None:
    left = f"running: there, run 1: its client runs: process {os.getpid()} exists\nunsure: unknown, run 1: {UNSURE}\n"
    lost = (
        f"lost: gone, run 1: its client crashed or was closed: there is no process {NOBODY}; the session is abandoned\n"
    )
    assert gaia("reconcile", "--dry-run").all == (0, f"would close 1 run\n{lost}{left}", "")
    assert gaia("reconcile").all == (0, f"closed 1 run\n{lost}{left}", "")
    assert gaia("reconcile").all == (0, f"closed 0 runs\n{left}", "")
    assert (state("gone")["phase"], state("gone")["runs"][0]["end"]) == ("abandoned", "lost")


@pytest.mark.usefixtures("three")
def test_a_dry_run_changes_nothing_and_reports_the_same_in_json(gaia: Gaia, tree: Gaia) -> None:
    before = tree()
    dry = gaia("reconcile", "-n", "--json").json
    assert tree() == before
    real = gaia("reconcile", "--json").json
    assert list(real) == ["dry_run", "verdicts", "abandoned", "busy", "kept", "corrupt", "failed", "counted"]
    by_id = {verdict["agent_id"]: verdict for verdict in real["verdicts"]}
    assert by_id["unknown"] == {
        "agent_id": "unknown",
        "run": 1,
        "verdict": "unsure",
        "evidence": UNSURE,
        "phase": "executing",
        "closed": False,
    }
    assert (by_id["gone"]["verdict"], by_id["gone"]["closed"], by_id["gone"]["phase"]) == ("lost", True, "abandoned")
    assert {verdict["agent_id"]: verdict for verdict in real["verdicts"]} == {
        verdict["agent_id"]: verdict for verdict in dry["verdicts"]
    }


def test_a_dry_run_without_a_root_creates_no_root(gaia: Gaia, tree: Gaia) -> None:
    before = tree()
    assert gaia("reconcile", "--dry-run").answer == ["would close 0 runs"]
    assert tree() == before


def test_the_events_of_the_session_say_who_closed_it_and_why(gaia: Gaia, put: Gaia) -> None:
    put("gone", phase="approval", runs=[run_of(NOBODY)])
    gaia("reconcile")
    [event] = gaia("events", "gone", "--json").json
    assert (event["kind"], event["end"], event["phase"]) == ("reconcile", "lost", "approval")
    evidence = f"its client crashed or was closed: there is no process {NOBODY}"
    expected = f"reconcile, run 1, phase approval, lost, {evidence}, host_gone=True (event 1)"
    assert gaia("events", "gone").answer == [f"{local_time(event['at'])} {expected}"]
    assert gaia("should-resume", "gone").code == 0


def test_a_locked_session_is_skipped_and_stays_unchanged(gaia: Gaia, put: Gaia, root: str, state: Gaia) -> None:
    before = put("gone", phase="executing", resume_ready=False, runs=[run_of(NOBODY)])
    Path(root, ".locks").mkdir()
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "gone.lock", 0, sleep_and_retry):
        assert gaia("reconcile").answer == ["closed 0 runs", "skipped 1 session locked by another process", "  gone"]
        assert gaia("cleanup", "--hours", "999", "--json").json["busy"] == ["gone"]
    assert state("gone") == before


def test_a_failed_write_is_reported_and_ends_with_exit_code_8(
    gaia: Gaia, put: Gaia, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("gone", phase="executing", resume_ready=False, runs=[run_of(NOBODY)])

    rename = os.rename

    def refuse(source: str, target: str, **folders: int) -> None:
        if target == "state.json":
            raise OSError(28, "No space left on device")
        rename(source, target, **folders)

    monkeypatch.setattr(os, "rename", refuse)
    reason = f"{root}/gone/state.json: cannot write: No space left on device"
    hint = "fix the reported problem and try again"
    expected = f"Error: {reason}\nHint: {hint}\n"
    refused = "failed: the system refused access to 1 session\n"
    answers = {
        ("reconcile",): f"closed 0 runs\n{refused}  gone: {reason}\n",
        ("cleanup",): f"removed 0 sessions not updated for 1 day\nkept 1 session updated since then\n{refused}",
        ("cleanup", "--quiet"): "",
    }
    for words, out in answers.items():
        assert gaia(*words).all == (8, out, expected)
    for command in ("reconcile", "cleanup"):
        ended = gaia(command, "--json")
        error = {"code": "io_error", "message": reason, "hint": hint}
        assert (ended.code, json.loads(ended.err)) == (8, {"error": error})
        assert json.loads(ended.out)["failed"] == [{"agent_id": "gone", "reason": reason}]


def test_control_characters_in_a_record_do_not_reach_the_terminal(gaia: Gaia, put: Gaia, tmp_path: Path) -> None:
    process = {**(describe(os.getpid()) or {}), "boot_id": "\x1b[2J", "machine": "\x1b]0;mine\x07"}
    run = {"run": 1, "started_at": BEGAN, "host_process": process, "transcript_path": f"{tmp_path}/\x1b[2J"}
    put("a", phase="executing", resume_ready=False, runs=[run])
    ended = gaia("reconcile")
    assert (ended.code, [byte for byte in ended.out if byte < 0x20 and byte != 0x0A]) == (0, [])


def test_cleanup_reports_the_lost_runs_that_it_closes(gaia: Gaia, put: Gaia) -> None:
    put("gone", phase="executing", resume_ready=False, runs=[run_of(NOBODY)])
    lost = (
        f"lost: gone, run 1: its client crashed or was closed: there is no process {NOBODY}; the session is abandoned\n"
    )
    nothing, runs = "0 sessions not updated for 1 day\n", f"1 run that ended without a report\n  {lost}"
    would = f"would remove {nothing}would close {runs}would keep 1 session updated since then\n"
    assert gaia("cleanup", "-nv").all == (0, would, "")
    kept = "kept 1 session updated since then\n"
    assert gaia("cleanup", "--verbose").all == (0, f"removed {nothing}closed {runs}{kept}", "")
    assert gaia("cleanup").all == (0, f"removed {nothing}{kept}", "")
