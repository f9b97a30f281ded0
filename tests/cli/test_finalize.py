"""``finalize``: it ends a session for good."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.conftest import fresh_table
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


@fresh_table("outcome", ["completed", "failed", "abandoned"])
def test_finalize_stores_outcome_summary_time_and_duration(gaia: Gaia, put: Gaia, state: Gaia, outcome: str) -> None:
    before = put("a", idle=timedelta(minutes=10))
    assert gaia("finalize", "a", outcome, "--summary", "all is said").answer == [f"a: phase {outcome}, revision 2"]
    after = state("a")
    now = after["finalized_at"]
    assert after == {
        **before,
        "last_updated": now,
        "phase": outcome,
        "resume_ready": False,
        "history": [{"from_phase": "approval", "to_phase": outcome, "timestamp": now}],
        "revision": 2,
        "finalized_at": now,
        "duration_seconds": after["duration_seconds"],
        "summary": "all is said",
    }
    assert after["duration_seconds"] >= 600
    assert gaia("should-resume", "a").code == 1


def test_with_json_finalize_prints_the_stored_record(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    ended = gaia("finalize", "a", "completed", "--json")
    assert (ended.code, ended.out, ended.err) == (0, Path(root, "a", "state.json").read_bytes(), b"")
    assert "summary" not in ended.json


def test_finalize_stores_and_counts_an_error(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    put("a")
    assert gaia("finalize", "a", "failed", "--error", "plan rejected").answer == [
        "a: phase failed, revision 2, 1 error"
    ]
    kept = state("a")
    assert kept["last_error"] == {"message": "plan rejected", "timestamp": kept["finalized_at"]}


SHOW = "Hint: `gaia-sessions show a` shows what is stored\n"


@fresh_table(
    ("words", "expected"),
    [
        ([], "the session had already ended (completed); nothing was changed"),
        (["--summary", "too late"], "the session had already ended (completed); the summary was not stored"),
        (["--error", "too late"], "the session had already ended (completed); the error was not stored"),
        (
            ["--summary", "late", "--error", "late"],
            "the session had already ended (completed); the summary and the error were not stored",
        ),
        (["--summary", "done", "--error", "oops"], "the session had already ended (completed); nothing was changed"),
    ],
)
def test_the_same_outcome_again_writes_nothing_and_says_so(
    gaia: Gaia, put: Gaia, tree: Gaia, words: list[str], expected: str
) -> None:
    put("a")
    gaia("finalize", "a", "completed", "--summary", "done", "--error", "oops")
    before = tree()
    line = "a: phase completed, revision 2, 1 error\n"
    assert gaia("finalize", "a", "completed", *words).all == (0, line, f"Note: {expected}\n{SHOW}")
    as_json = gaia("finalize", "a", "completed", *words, "--json")
    notice = {"code": "unchanged", "message": expected, "hint": "`gaia-sessions show a` shows what is stored"}
    assert (as_json.code, json.loads(as_json.err)) == (0, {"notice": notice})
    assert json.loads(as_json.out)["summary"] == "done"
    assert tree() == before


def test_a_final_phase_without_finalized_at_counts_as_ended(gaia: Gaia, put: Gaia) -> None:
    put("a", phase="completed", resume_ready=False)
    assert gaia("finalize", "a", "completed").all == (
        0,
        "a: phase completed, revision 1\n",
        f"Note: the session had already ended (completed); nothing was changed\n{SHOW}",
    )


def test_another_outcome_is_a_conflict_and_writes_nothing(gaia: Gaia, put: Gaia, tree: Gaia) -> None:
    put("a")
    gaia("finalize", "a", "completed")
    before = tree()
    assert gaia("finalize", "a", "failed").refusal == (
        4,
        "session 'a' has ended (completed) and can no longer be changed",
        "to continue it in a new session, type gaia-sessions create --continues a",
    )
    assert tree() == before


@table("outcome", ["nonsense", "", "approval"])
def test_an_unknown_outcome_is_a_usage_error_and_writes_nothing(
    gaia: Gaia, put: Gaia, tree: Gaia, outcome: str
) -> None:
    put("a")
    before = tree()
    assert gaia("finalize", "a", outcome).refusal == (
        2,
        f"unknown outcome {outcome!r}",
        "the outcomes are completed, failed, abandoned",
    )
    assert tree() == before
