"""``should-resume``: yes or no, the reason, and a matching exit code."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    import pytest

    from tests.cli.conftest import Gaia


FUTURE = timedelta(hours=-1)


def json_of(ended: Any) -> Any:
    """The answer, with any exit code."""
    return json.loads(ended.out)


def without_seconds(ended: Any) -> tuple[int, str, str]:
    """The exit code and the output, with times cut to minutes."""
    code, out, err = ended.all
    return code, re.sub(r"(minutes?) \d+ seconds?", r"\1", out), err


CASES = [
    ({}, 0, "session_resumable"),
    ({"phase": "planning"}, 0, "session_resumable"),
    ({"phase": "investigating"}, 0, "session_resumable"),
    ({"phase": "initializing"}, 1, "phase_not_resumable"),
    ({"phase": "executing"}, 1, "phase_not_resumable"),
    ({"phase": "completed"}, 1, "phase_not_resumable"),
    ({"runs": [{"run": 1, "started_at": "2026-01-08T18:05:30Z"}]}, 1, "running"),
    ({"resume_ready": False}, 1, "not_ready"),
    ({"idle": FUTURE}, 1, "clock_skew"),
    ({"paused_until": "2199-01-08T18:05:30Z"}, 1, "waiting_for_limit"),
    ({"idle": timedelta(minutes=31)}, 1, "expired"),
    ({"error_count": 3}, 1, "too_many_errors"),
]


@table(("changed", "code", "reason"), CASES)
def test_exit_code_text_and_json_agree(gaia: Gaia, put: Gaia, changed: dict[str, Any], code: int, reason: str) -> None:
    put("agent-123", **changed)
    text = gaia("should-resume", "agent-123")
    as_document = gaia("should-resume", "agent-123", "--json")
    answer = "no" if code else "yes"
    assert (text.code, as_document.code, text.err, as_document.err) == (code, code, b"", b"")
    first = text.lines[0]
    assert (first.startswith(f"{answer}: "), first.endswith(f" ({reason})")) == (True, bool(code))

    decision = json_of(as_document)
    assert (decision["should_resume"], decision["reason"]) == (not code, reason)
    failed = [check["name"] for check in decision["checks"] if not check["ok"]]
    assert bool(failed) == bool(code)


def test_should_resume_json_has_the_decision_and_all_checks(gaia: Gaia, put: Gaia) -> None:
    since = put("agent-123", resume_ready=False, error_count=4)["created_at"]
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
            {"name": "not_cancelled", "ok": True, "actual": None, "limit": None},
            {"name": "phase", "ok": True, "actual": "approval", "limit": ["investigating", "planning", "approval"]},
            {"name": "no_live_run", "ok": True, "actual": [], "limit": []},
            {"name": "not_claimed", "ok": True, "actual": [], "limit": []},
            {"name": "answered", "ok": True, "actual": None, "limit": None},
            {"name": "resume_ready", "ok": False, "actual": False, "limit": True},
            {"name": "clock", "ok": True, "actual": 0.0, "limit": 300.0},
            {"name": "limit_reset", "ok": True, "actual": None, "limit": None},
            {"name": "idle_seconds", "ok": True, "actual": idle, "limit": 1800.0},
            {"name": "error_count", "ok": False, "actual": 4, "limit": 3},
        ],
        "advice": "start new work, or allow resuming again: gaia-sessions update agent-123 --resume-ready",
        "state": "waiting",
        "state_since": since,
    }


def test_a_yes_is_a_sentence_and_says_how_to_resume(gaia: Gaia, put: Gaia) -> None:
    put("agent-123", idle=timedelta(minutes=3))
    assert without_seconds(gaia("should-resume", "agent-123")) == (
        0,
        (
            "yes: agent-123 is in approval and has been idle for 3 minutes; the limit is 30 minutes\n"
            "  to resume it, put this line in the prompt of a sub-agent (needs the hooks):\n"
            "    [gaia-sessions: resume agent-123]\n"
        ),
        "",
    )


def test_a_session_that_has_not_started_is_not_resumable_and_says_so(gaia: Gaia, put: Gaia) -> None:
    put("agent-123", phase="initializing", resume_ready=False)
    assert gaia("should-resume", "agent-123").all == (
        1,
        ("no: agent-123 has not started yet (phase_not_resumable)\n  start the work: there is nothing to resume yet\n"),
        "",
    )


def test_a_delegated_session_says_that_its_agent_is_starting_and_not_that_it_has_not_started(
    gaia: Gaia, put: Gaia
) -> None:
    runs = [{"run": 1, "host": "codex", "claimed_at": ago(minutes=1)}]
    put("agent-123", phase="initializing", resume_ready=False, runs=runs)
    assert gaia("should-resume", "agent-123").all == (
        1,
        "no: agent-123 is just starting run 1 (claimed)\n  wait: an agent is about to start working on it\n",
        "",
    )


def test_a_new_session_with_three_errors_has_not_started_yet(gaia: Gaia, put: Gaia) -> None:
    put("agent-123", phase="initializing", resume_ready=False, error_count=3)
    assert gaia("should-resume", "agent-123").lines[:2] == [
        "no: agent-123 has not started yet (phase_not_resumable)",
        "  it has had 3 errors; the limit is 3 (too_many_errors)",
    ]


def test_a_no_has_a_sentence_for_each_failed_check_and_says_what_to_do(gaia: Gaia, put: Gaia) -> None:
    put("agent-123", error_count=4, idle=timedelta(minutes=45))
    assert without_seconds(gaia("should-resume", "agent-123")) == (
        1,
        (
            "no: agent-123 has been idle for 45 minutes; the limit is 30 minutes (expired)\n"
            "  it has had 4 errors; the limit is 3 (too_many_errors)\n"
            "  this session keeps failing (see its last error); to end it, so that you can continue it in a new "
            "session, type: gaia-sessions finalize agent-123 failed\n"
        ),
        "",
    )


def test_with_verbose_every_check_is_shown_with_its_limit(gaia: Gaia, put: Gaia) -> None:
    put("agent-123", error_count=4, idle=timedelta(minutes=45))
    code, out, err = without_seconds(gaia("should-resume", "agent-123", "--verbose"))
    assert (code, re.sub("27[0-9][0-9]", "2700", out), err) == (
        1,
        (
            "no: agent-123 has been idle for 45 minutes; the limit is 30 minutes (expired)\n"
            "  ok  exists\n"
            "  ok  readable\n"
            "  ok  not_cancelled\n"
            "  ok  phase: approval, limit investigating, planning, approval\n"
            "  ok  no_live_run\n"
            "  ok  not_claimed\n"
            "  ok  answered\n"
            "  ok  resume_ready\n"
            "  ok  clock: 0, limit 300\n"
            "  ok  limit_reset\n"
            "  NO  idle_seconds: 2700, limit 1800\n"
            "  NO  error_count: 4, limit 3\n"
            "  this session keeps failing (see its last error); to end it, so that you can continue it in a new "
            "session, type: gaia-sessions finalize agent-123 failed\n"
        ),
        "",
    )


def test_should_resume_says_no_with_exit_code_3_for_a_missing_session(gaia: Gaia, tree: Gaia) -> None:
    before = tree()
    text, answer = gaia("should-resume", "nobody"), gaia("should-resume", "nobody", "--json")
    assert (text.code, text.out.splitlines()[0], text.err) == (3, b"no: there is no session nobody (not_found)", b"")
    assert (answer.code, json_of(answer)["should_resume"], json_of(answer)["reason"]) == (3, False, "not_found")
    assert tree() == before


def test_should_resume_says_no_with_exit_code_6_for_a_corrupt_session(gaia: Gaia, spoil: Gaia) -> None:
    path = spoil("torn", b"[1]")
    text, answer = gaia("should-resume", "torn"), gaia("should-resume", "torn", "--json")
    problem = f"{path}: expected a JSON object, not an array"
    assert text.all == (
        6,
        f"no: torn cannot be read: {problem} (corrupt)\n  start new work, and fix or remove the file\n",
        "",
    )
    decision = json_of(answer)
    assert (answer.code, decision["reason"]) == (6, "corrupt")
    assert decision["checks"][1] == {"name": "readable", "ok": False, "actual": problem, "limit": None}


@table("agent_id", ["../x", "", "x" * 300, "a/b"])
def test_should_resume_says_no_with_exit_code_7_for_an_invalid_id(gaia: Gaia, agent_id: str) -> None:
    text, answer = gaia("should-resume", agent_id), gaia("should-resume", agent_id, "--json")
    assert (text.code, text.out) == (7, b"no: this cannot be the ID of a session (invalid_id)\n")
    assert b"is not a session ID" in text.err
    assert answer.code == 7
    assert json_of(answer) == {
        "should_resume": False,
        "reason": "invalid_id",
        "agent_id": agent_id,
        "phase": None,
        "idle_seconds": None,
        "until": None,
        "checks": [],
        "advice": "use letters, digits, . _ and - only, for example agent-123",
    }


def test_should_resume_uses_the_limits_from_the_settings(
    gaia: Gaia, put: Gaia, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("agent-123", error_count=4, idle=timedelta(minutes=45))
    monkeypatch.setenv("GAIA_SESSIONS_IDLE_MINUTES", "60")
    assert gaia("should-resume", "agent-123").out.splitlines()[0].endswith(b"(too_many_errors)")
    monkeypatch.setenv("GAIA_SESSIONS_MAX_ERRORS", "5")
    assert gaia("should-resume", "agent-123").code == 0


def test_a_session_of_a_later_version_cannot_be_resumed(gaia: Gaia, put: Gaia) -> None:
    put("new", schema=2, idle=timedelta(minutes=1))
    answer = json_of(gaia("should-resume", "new", "--json"))
    problem = "session 'new' was written by a newer version (schema 2, not 1) and can only be shown"
    assert (answer["should_resume"], answer["reason"], answer["checks"][1]["actual"]) == (False, "corrupt", problem)
    assert gaia("list", "--json").json[0]["resume"] == {"should_resume": False, "reason": "corrupt", "until": None}
    assert f"resumable  no: it cannot be read: {problem} (corrupt)\n" in gaia("show", "new").out.decode()
