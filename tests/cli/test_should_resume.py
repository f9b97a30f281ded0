"""``should-resume``: yes or no, why, and an exit code that says the same."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Gaia = Callable[..., Any]

FUTURE = timedelta(hours=-1)


def json_of(ended: Any) -> Any:
    """The answer, whatever the exit code."""
    return json.loads(ended.out)


CASES = [
    pytest.param({}, 0, "session_resumable", id="approval"),
    pytest.param({"phase": "planning"}, 0, "session_resumable", id="planning"),
    pytest.param({"phase": "investigating"}, 0, "session_resumable", id="investigating"),
    pytest.param({"phase": "executing"}, 1, "phase_not_resumable", id="executing"),
    pytest.param({"phase": "completed"}, 1, "phase_not_resumable", id="completed"),
    pytest.param({"runs": [{"run": 1, "started_at": "2026-01-08T18:05:30Z"}]}, 1, "running", id="running"),
    pytest.param({"resume_ready": False}, 1, "not_ready", id="not ready"),
    pytest.param({"idle": FUTURE}, 1, "clock_skew", id="in the future"),
    pytest.param({"idle": timedelta(minutes=31)}, 1, "expired", id="expired"),
    pytest.param({"error_count": 3}, 1, "too_many_errors", id="too many errors"),
]


@pytest.mark.parametrize(("changed", "code", "reason"), CASES)
def test_exit_code_text_and_json_agree(gaia: Gaia, put: Gaia, changed: dict[str, Any], code: int, reason: str) -> None:
    put("agent-123", **changed)
    text = gaia("should-resume", "agent-123")
    told = gaia("should-resume", "agent-123", "--json")
    answer = "no" if code else "yes"
    assert (text.code, told.code, text.err, told.err) == (code, code, b"", b"")
    assert text.out.startswith(f"{answer}: {reason}".encode())

    decision = json_of(told)
    assert (decision["should_resume"], decision["reason"]) == (not code, reason)
    failed = [check["name"] for check in decision["checks"] if not check["ok"]]
    assert bool(failed) == bool(code)


def test_the_whole_decision_in_json(gaia: Gaia, put: Gaia) -> None:
    put("agent-123", resume_ready=False, error_count=4)
    decision = json_of(gaia("should-resume", "agent-123", "--json"))
    idle = decision["idle_seconds"]
    assert 60 <= idle < 1800
    assert decision == {
        "should_resume": False,
        "reason": "not_ready",
        "agent_id": "agent-123",
        "phase": "approval",
        "idle_seconds": idle,
        "until": None,
        "checks": [
            {"name": "exists", "ok": True, "actual": True, "limit": True},
            {"name": "readable", "ok": True, "actual": None, "limit": None},
            {"name": "phase", "ok": True, "actual": "approval", "limit": ["investigating", "planning", "approval"]},
            {"name": "no_live_run", "ok": True, "actual": [], "limit": []},
            {"name": "not_claimed", "ok": True, "actual": [], "limit": []},
            {"name": "resume_ready", "ok": False, "actual": False, "limit": True},
            {"name": "clock", "ok": True, "actual": 0.0, "limit": 300.0},
            {"name": "idle_seconds", "ok": True, "actual": idle, "limit": 1800.0},
            {"name": "error_count", "ok": False, "actual": 4, "limit": 3},
        ],
        "advice": "switch it back on with update --resume-ready, or start new work",
    }


def test_a_no_for_people_names_what_failed_with_its_limit_and_what_to_do(gaia: Gaia, put: Gaia) -> None:
    put("agent-123", error_count=4, idle=timedelta(minutes=45))
    ended = gaia("should-resume", "agent-123")
    first, *lines = ended.out.decode().splitlines()
    assert (ended.code, first, ended.err) == (1, "no: expired, approval, idle 45 minutes", b"")
    assert any("idle_seconds: 27" in line and "limit 1800" in line for line in lines)
    assert any("error_count: 4, limit 3" in line for line in lines)
    assert lines[-1] == "  start new work: this one has rested too long"


def test_a_missing_session_is_no_with_exit_code_3(gaia: Gaia, tree: Gaia) -> None:
    before = tree()
    text, told = gaia("should-resume", "nobody"), gaia("should-resume", "nobody", "--json")
    assert (text.code, text.out.splitlines()[0], text.err) == (3, b"no: not_found", b"")
    assert (told.code, json_of(told)["should_resume"], json_of(told)["reason"]) == (3, False, "not_found")
    assert tree() == before


def test_a_corrupt_one_is_no_with_exit_code_6(gaia: Gaia, spoil: Gaia) -> None:
    path = spoil("torn", b"[1]")
    text, told = gaia("should-resume", "torn"), gaia("should-resume", "torn", "--json")
    assert (text.code, text.out.splitlines()[0], text.err) == (6, b"no: corrupt", b"")
    decision = json_of(told)
    assert (told.code, decision["reason"]) == (6, "corrupt")
    assert decision["checks"][1] == {
        "name": "readable",
        "ok": False,
        "actual": f"{path}: a JSON object is wanted, not an array",
        "limit": None,
    }


@pytest.mark.parametrize("agent_id", ["../x", "", "x" * 300, "a/b"])
def test_an_impossible_id_is_no_with_exit_code_7(gaia: Gaia, agent_id: str) -> None:
    text, told = gaia("should-resume", agent_id), gaia("should-resume", agent_id, "--json")
    assert (text.code, text.out) == (7, b"no: invalid_id\n")
    assert b"is no session id" in text.err
    assert told.code == 7
    assert json_of(told) == {
        "should_resume": False,
        "reason": "invalid_id",
        "agent_id": agent_id,
        "phase": None,
        "idle_seconds": None,
        "until": None,
        "checks": [],
        "advice": "an id looks like agent-123: letters, digits, . _ -",
    }


def test_the_limits_are_those_of_the_settings(gaia: Gaia, put: Gaia, monkeypatch: pytest.MonkeyPatch) -> None:
    put("agent-123", error_count=4, idle=timedelta(minutes=45))
    monkeypatch.setenv("GAIA_SESSIONS_IDLE_MINUTES", "60")
    assert gaia("should-resume", "agent-123").out.startswith(b"no: too_many_errors")
    monkeypatch.setenv("GAIA_SESSIONS_MAX_ERRORS", "5")
    assert gaia("should-resume", "agent-123").code == 0
