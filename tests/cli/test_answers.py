"""``approve`` and ``deny``: they answer a session that waits for approval."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.cli.render.words import local_time
from gaia_sessions.session.ids import resume_line
from gaia_sessions.session.phases import PHASES
from gaia_sessions.session.trace import trace_of
from gaia_sessions.system.processes import describe
from tests.cli.conftest import fresh_table
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia

AFTER_LUNCH = timedelta(hours=2)
BY_HAND = {"approve": ("approval", "approved"), "deny": ("denial", "denied")}
both = fresh_table("command", BY_HAND)


SAYS = {
    "approval": ("approved", "to resume it", "resume it: its question was approved"),
    "denial": ("denied", "to let it find another way", "resume it, and choose another way: its question was denied"),
}


@fresh_table(
    ("line", "key", "message"),
    [
        ("approve a --note yes", "approval", "yes"),
        ("approve a", "approval", ""),
        ("deny a --reason no", "denial", "no"),
        ("deny a --note no", "denial", "no"),
        ("deny a", "denial", ""),
    ],
)
def test_an_answer_is_recorded_without_a_phase_change_and_says_how_to_resume(
    gaia: Gaia, put: Gaia, state: Gaia, line: str, key: str, message: str
) -> None:
    word, how, advice = SAYS[key]
    with_message = f": {message}" if message else ""
    record = put("a", idle=timedelta(minutes=20))
    assert gaia(*line.split()).answer == [
        f"a: {word}, resumable for 30 minutes",
        f"{how}, give this to your agent:",
        resume_line("a"),
    ]
    after = state("a")
    now = after["last_updated"]
    given = {"answer": word, "by": "command", "timestamp": now, "after_run": 0}
    given |= {"message": message} if message else {}
    answered = {key: {"message": message, "timestamp": now}, "answers": [given]}
    assert after == {**record, "last_updated": now, "revision": 2, **answered}
    assert f"\n{word:<11}just now, by a command{with_message}\n" in gaia("show", "a").out.decode()
    answer = gaia("should-resume", "a", "--json").json
    assert (answer["should_resume"], answer["advice"], answer[key]) == (True, advice + with_message, after[key])
    [entry] = gaia("events", "a", "--json").json
    evidence = {"message": message, "by": "command"}
    assert {**entry, "at": now} == {
        "at": now,
        "kind": key,
        "phase": "approval",
        "revision": 2,
        "evidence": evidence,
        "seq": 1,
        **trace_of("a"),
    }
    told = f"{local_time(entry['at'])} {key}, phase approval, message={message}, by=command (event 1)"
    assert gaia("events", "a").out.decode().rstrip() == told


def test_no_line_of_a_note_looks_like_an_answer(gaia: Gaia, put: Gaia) -> None:
    put("a")
    assert gaia("approve", "a", "--note", "ok\ndenied 2 minutes ago, by a command: never").code == 0

    lines = gaia("report", "a").err.decode().splitlines()

    assert [line for line in lines if line.lstrip().startswith(("approved ", "denied "))] == [
        "approved just now, by a command: ok",
        "  denied 2 minutes ago, by a command: never",
    ]


@both
def test_with_json_approve_and_deny_print_the_record(gaia: Gaia, put: Gaia, state: Gaia, command: str) -> None:
    put("a")
    assert gaia(command, "a", "--json").json == state("a")


@both
def test_an_answer_to_an_expired_question_makes_the_session_resumable_again(
    gaia: Gaia, put: Gaia, command: str
) -> None:
    put("a", idle=AFTER_LUNCH)
    assert gaia("should-resume", "a").code == 1
    assert gaia("cleanup", "--hours", "1", "--json").json["kept"] == [{"agent_id": "a", "reason": "keep_days"}]

    assert gaia(command, "a").code == 0

    decided = gaia("should-resume", "a", "--json").json
    assert (decided["should_resume"], decided["reason"], decided["idle_seconds"] < 60) == (
        True,
        "session_resumable",
        True,
    )
    assert gaia("cleanup", "--hours", "0", "--json").json["kept"] == [{"agent_id": "a", "reason": "resumable"}]


def test_should_resume_advises_to_answer_an_expired_question(gaia: Gaia, put: Gaia) -> None:
    put("a", idle=AFTER_LUNCH)
    answered = gaia("should-resume", "a")
    advice = "to make it resumable, type this (or deny instead of approve): gaia-sessions approve a"
    assert (answered.code, answered.lines[-1]) == (1, f"  {advice}")


def test_the_last_answer_takes_the_place_of_an_earlier_one(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    put("a")
    for words, kept in (
        (("approve", "a", "--note", "yes"), {"approval": "yes"}),
        (("deny", "a", "--reason", "no"), {"denial": "no"}),
        (("deny", "a"), {"denial": ""}),
        (("approve", "a"), {"approval": ""}),
    ):
        assert gaia(*words).code == 0
        found = {key: state("a")[key]["message"] for key in ("approval", "denial") if key in state("a")}
        assert found == kept
    assert [entry["kind"] for entry in gaia("events", "a", "--json").json] == [
        "approval",
        "denial",
        "denial",
        "approval",
    ]


@both
def test_a_phase_change_removes_the_answer_but_a_heartbeat_does_not(
    gaia: Gaia, put: Gaia, state: Gaia, command: str
) -> None:
    key, _ = BY_HAND[command]
    put("a")
    gaia(command, "a")
    gaia("update", "a")
    assert key in state("a")
    gaia("update", "a", "--phase", "planning")
    assert key not in state("a")


@both
def test_an_answer_says_why_the_session_still_cannot_be_resumed(gaia: Gaia, put: Gaia, command: str) -> None:
    _, word = BY_HAND[command]
    put("a", error_count=3)
    assert gaia(command, "a").answer == [
        f"a: {word}, but it cannot be resumed now: too many errors",
        (
            "  this session keeps failing (see its last error); to end it, so that you can continue it in a new "
            "session, type: gaia-sessions finalize a failed"
        ),
    ]


FINAL = {"finalized_at": "2026-01-08T18:05:30Z", "duration_seconds": 1.0}
HERE = describe(os.getpid())
REFUSED: list[tuple[dict[str, Any], str]] = [
    *(
        ({"phase": phase}, f"session 'a' does not wait for approval: its phase is {phase}")
        for phase in PHASES[:6]
        if phase != "approval"
    ),
    *(
        ({"phase": phase, **FINAL}, f"session 'a' has ended ({phase}) and can no longer be changed")
        for phase in PHASES[6:]
    ),
    (
        {"runs": [{"run": 1, "started_at": ago(minutes=1), "host_process": HERE}]},
        "session 'a' does not wait for approval: its agent is at work",
    ),
    (
        {
            "runs": [
                {"run": 1, "started_at": ago(minutes=5), "ended_at": ago(minutes=4), "end": "stopped"},
                {"run": 2, "claimed_at": ago(minutes=1)},
            ]
        },
        "session 'a' does not wait for approval: somebody is about to resume it",
    ),
    ({"schema": 99}, "session 'a' was written by a newer version (schema 99, not 1) and can only be shown"),
]


@table(("changed", "problem"), REFUSED)
@both
def test_a_session_that_does_not_wait_for_approval_cannot_be_answered(
    gaia: Gaia, put: Gaia, state: Gaia, command: str, changed: dict[str, Any], problem: str
) -> None:
    put("a", **changed)
    then = state("a")
    refused = gaia(command, "a")
    assert (refused.code, refused.out, refused.err.decode().splitlines()[0]) == (4, b"", f"Error: {problem}")
    assert (state("a"), gaia("events", "a", "--json").json) == (then, [])


@both
def test_a_session_with_a_dead_host_or_a_lapsed_claim_can_be_answered(gaia: Gaia, put: Gaia, command: str) -> None:
    gone = {**(HERE or {}), "started": "0"}
    put("a", runs=[{"run": 1, "started_at": ago(minutes=9), "host_process": gone}])
    put("b", runs=[{"run": 1, "claimed_at": ago(minutes=11)}])
    assert [gaia(command, agent_id).code for agent_id in "ab"] == [0, 0]


@both
def test_an_answer_to_a_cancelled_session_is_refused_and_changes_nothing(
    gaia: Gaia, put: Gaia, state: Gaia, command: str
) -> None:
    put("a", runs=[{"run": 1, "started_at": ago(minutes=1), "host_process": HERE}])
    assert gaia("cancel", "a", "--reason", "not needed").code == 0
    then = state("a")
    refused = gaia(command, "a")
    assert (refused.code, refused.out, refused.err.startswith(b"Error: session 'a' was cancelled at")) == (
        10,
        b"",
        True,
    )
    assert state("a") == then
    put("b")
    gaia("cancel", "b")
    gaia("update", "b")  # no agent is at work, so the session is abandoned
    assert (state("b")["phase"], gaia(command, "b").code) == ("abandoned", 10)


def test_an_update_after_a_cancellation_approves_nothing(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    put("a")
    gaia("cancel", "a")
    gaia("update", "a", "--phase", "executing")
    assert (state("a")["phase"], "answers" in state("a")) == ("abandoned", False)
    assert "approved" not in "\n".join(gaia("show", "a").lines + gaia("events", "a").lines)


@both
def test_a_corrupt_or_missing_session_cannot_be_answered(gaia: Gaia, put: Gaia, root: str, command: str) -> None:
    put("a")
    with open(f"{root}/a/state.json", "w") as file:
        file.write("{")
    assert (gaia(command, "a").code, gaia(command, "b").code) == (6, 3)


@both
def test_if_revision_refuses_an_answer_to_another_revision(gaia: Gaia, put: Gaia, state: Gaia, command: str) -> None:
    put("a", revision=7)
    assert gaia(command, "a", "--if-revision", "6").code == 4
    assert state("a")["revision"] == 7
    assert gaia(command, "a", "--if-revision", "7").code == 0
    assert state("a")["revision"] == 8
