"""``approve`` and ``deny``: the answer to what waits for an approval."""

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
    "approval": ("approved", "it goes on", "resume it: what it waits for was approved"),
    "denial": ("denied", "it looks for another way", "go on another way: what it waited for was denied"),
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
def test_an_answer_is_kept_moves_no_phase_and_says_how_the_work_goes_on(
    gaia: Gaia, put: Gaia, state: Gaia, line: str, key: str, message: str
) -> None:
    word, how, advice = SAYS[key]
    with_message = f": {message}" if message else ""
    record = put("a", idle=timedelta(minutes=20))
    assert gaia(*line.split()).answer == [
        f"a: {word}; {how} once it is resumed (resumable for 30 minutes)",
        "to resume it, give this to your agent:",
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
def test_the_answer_in_json_is_the_record(gaia: Gaia, put: Gaia, state: Gaia, command: str) -> None:
    put("a")
    assert gaia(command, "a", "--json").json == state("a")


@both
def test_an_answer_that_is_given_after_lunch_still_counts(gaia: Gaia, put: Gaia, command: str) -> None:
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


def test_a_question_that_expired_is_to_be_answered_and_not_begun_anew(gaia: Gaia, put: Gaia) -> None:
    put("a", idle=AFTER_LUNCH)
    answered = gaia("should-resume", "a")
    advice = "approve it, or deny it in the same way, and it may be resumed: gaia-sessions approve a"
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
def test_an_answer_is_gone_when_the_phase_changes_and_stays_with_a_heartbeat(
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
def test_an_answer_to_what_may_not_be_resumed_all_the_same_says_why(gaia: Gaia, put: Gaia, command: str) -> None:
    _, word = BY_HAND[command]
    put("a", error_count=3)
    assert gaia(command, "a").answer == [
        f"a: {word}, but it may not be resumed: too many errors",
        "  look at last_error and start new work: this one keeps failing",
    ]


FINAL = {"finalized_at": "2026-01-08T18:05:30Z", "duration_seconds": 1.0}
HERE = describe(os.getpid())
REFUSED: list[tuple[dict[str, Any], str]] = [
    *(
        ({"phase": phase}, f"session 'a' is not waiting for an approval: it is {phase}")
        for phase in PHASES[:6]
        if phase != "approval"
    ),
    *(({"phase": phase, **FINAL}, f"session 'a' is {phase} and can no longer be changed") for phase in PHASES[6:]),
    (
        {"runs": [{"run": 1, "started_at": ago(minutes=1), "host_process": HERE}]},
        "session 'a' is not waiting for an approval: its agent is at work",
    ),
    (
        {
            "runs": [
                {"run": 1, "started_at": ago(minutes=5), "ended_at": ago(minutes=4), "end": "stopped"},
                {"run": 2, "claimed_at": ago(minutes=1)},
            ]
        },
        "session 'a' is not waiting for an approval: somebody is about to resume it",
    ),
    ({"schema": 99}, "session 'a' has schema 99; this version writes 1 and can only show newer ones"),
]


@table(("changed", "problem"), REFUSED)
@both
def test_what_does_not_wait_for_an_approval_is_not_answered(
    gaia: Gaia, put: Gaia, state: Gaia, command: str, changed: dict[str, Any], problem: str
) -> None:
    put("a", **changed)
    then = state("a")
    refused = gaia(command, "a")
    assert (refused.code, refused.out, refused.err.decode().splitlines()[0]) == (4, b"", f"Error: {problem}")
    assert (state("a"), gaia("events", "a", "--json").json) == (then, [])


@both
def test_work_whose_host_is_gone_and_a_claim_that_lapsed_may_be_answered(gaia: Gaia, put: Gaia, command: str) -> None:
    gone = {**(HERE or {}), "started": "0"}
    put("a", runs=[{"run": 1, "started_at": ago(minutes=9), "host_process": gone}])
    put("b", runs=[{"run": 1, "claimed_at": ago(minutes=11)}])
    assert [gaia(command, agent_id).code for agent_id in "ab"] == [0, 0]


@both
def test_a_cancelled_session_is_not_answered_nor_changed(gaia: Gaia, put: Gaia, state: Gaia, command: str) -> None:
    put("a", runs=[{"run": 1, "started_at": ago(minutes=1), "host_process": HERE}])
    assert gaia("cancel", "a", "--reason", "not needed").code == 0
    then = state("a")
    refused = gaia(command, "a")
    assert (refused.code, refused.out, refused.err.startswith(b"Error: session 'a' is cancelled since")) == (
        10,
        b"",
        True,
    )
    assert state("a") == then
    put("b")
    gaia("cancel", "b")
    gaia("update", "b")  # nobody is at work: it is abandoned
    assert (state("b")["phase"], gaia(command, "b").code) == ("abandoned", 10)


@both
def test_what_cannot_be_read_or_is_not_there_is_not_answered(gaia: Gaia, put: Gaia, root: str, command: str) -> None:
    put("a")
    with open(f"{root}/a/state.json", "w") as file:
        file.write("{")
    assert (gaia(command, "a").code, gaia(command, "b").code) == (6, 3)


@both
def test_an_answer_may_be_for_one_revision_only(gaia: Gaia, put: Gaia, state: Gaia, command: str) -> None:
    put("a", revision=7)
    assert gaia(command, "a", "--if-revision", "6").code == 4
    assert state("a")["revision"] == 7
    assert gaia(command, "a", "--if-revision", "7").code == 0
    assert state("a")["revision"] == 8
