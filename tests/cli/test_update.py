"""``update``: news of the work, in one write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.conftest import fresh_table
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


def test_a_move_is_kept_with_its_history(gaia: Gaia, state: Gaia, session: str) -> None:
    before = state(session)
    assert gaia("update", session, "--phase", "approval").answer == [
        "agent-123: phase approval, revision 2, resumable for 30 minutes"
    ]
    after = state(session)
    moved = {"from_phase": "initializing", "to_phase": "approval", "timestamp": after["last_updated"]}
    assert after == {
        **before,
        "last_updated": after["last_updated"],
        "phase": "approval",
        "resume_ready": True,
        "history": [moved],
        "revision": 2,
    }
    assert after["last_updated"] > before["last_updated"]


def test_as_json_it_is_the_record_as_kept(gaia: Gaia, root: str, session: str) -> None:
    ended = gaia("update", session, "--phase", "planning", "-m", "k=v", "--json")
    assert (ended.code, ended.out, ended.err) == (0, Path(root, session, "state.json").read_bytes(), b"")


def test_without_options_it_is_a_heartbeat(gaia: Gaia, state: Gaia, session: str) -> None:
    before = state(session)
    assert gaia("update", session).answer == ["agent-123: phase initializing, revision 2, not resumable"]
    after = state(session)
    assert after == {**before, "last_updated": after["last_updated"], "revision": 2}
    assert after["last_updated"] > before["last_updated"]


def test_everything_at_once_is_one_revision(gaia: Gaia, state: Gaia, session: str) -> None:
    words = ("--phase", "planning", "-m", "a=1", "--error", "no such host", "--no-resume-ready", "--if-revision", "1")
    assert gaia("update", session, *words).answer == ["agent-123: phase planning, revision 2, 1 error, resuming is off"]
    kept = state(session)
    assert kept["last_error"] == {"message": "no such host", "timestamp": kept["last_updated"]}
    assert (kept["metadata"], kept["error_count"], kept["resume_ready"]) == ({"a": "1"}, 1, False)


def test_a_dash_reads_metadata_from_stdin(gaia: Gaia, state: Gaia, session: str) -> None:
    assert gaia("update", session, "--metadata", "-", stdin='{"от": "stdin"}'.encode()).code == 0
    assert state(session)["metadata"] == {"от": "stdin"}


def test_readiness_is_switched_off_and_on_by_hand(gaia: Gaia, state: Gaia, session: str) -> None:
    gaia("update", session, "--phase", "approval")
    assert gaia("update", session, "--no-resume-ready").answer == [
        "agent-123: phase approval, revision 3, resuming is off"
    ]
    assert gaia("update", session, "--phase", "approval").code == 0
    assert state(session)["resume_ready"] is False
    assert gaia("update", session, "--resume-ready").code == 0
    assert state(session)["resume_ready"] is True


def test_a_final_phase_ends_the_session(gaia: Gaia, state: Gaia, session: str) -> None:
    assert gaia("update", session, "--phase", "failed", "--error", "boom").answer == [
        "agent-123: phase failed, revision 2, 1 error"
    ]
    kept = state(session)
    assert kept["finalized_at"] == kept["last_updated"] == kept["history"][-1]["timestamp"]
    assert kept["duration_seconds"] >= 0


@fresh_table(
    ("words", "code", "name", "message"),
    [
        (["--phase", "dreaming"], 2, "unknown_phase", "unknown phase 'dreaming'"),
        (["--phase", "Approval"], 2, "unknown_phase", "unknown phase 'Approval'"),
        (["--phase", ""], 2, "unknown_phase", "unknown phase ''"),
        (["--phase", "--json"], 2, "unknown_phase", "unknown phase '--json'"),
        (["--resume-ready"], 4, "resume_not_allowed", "session 's' cannot be made ready to resume while executing"),
        (["--if-revision", "1"], 4, "revision_changed", "session 's' is at revision 2, not 1"),
        (["--phase", "initializing"], 4, "illegal_move", "a session cannot go from executing to initializing"),
        (["--metadata", "[]"], 7, "invalid_input", "--metadata: expected a JSON object, not an array"),
        (["--if-revision", "x"], 2, "usage", "Invalid value for '--if-revision': 'x' is not a valid integer."),
        (["-m", "x"], 2, "usage", "-m takes KEY=VALUE, not 'x'"),
    ],
)
def test_what_cannot_be_done_changes_nothing(  # a row of a table
    gaia: Gaia, tree: Gaia, words: list[str], code: int, name: str, message: str
) -> None:
    gaia("create", "--id", "s")
    gaia("update", "s", "--phase", "executing")
    before = tree()
    ended = gaia("update", "s", "--json", "-m", "other=news", *words)
    assert (ended.code, ended.error["code"], ended.error["message"]) == (code, name, message)
    assert tree() == before


@table(
    "words",
    [["--phase", "planning"], ["-m", "a=b"], ["--error", "late"], [], ["--phase", "failed"], ["--resume-ready"]],
)
def test_a_final_session_takes_no_update(gaia: Gaia, root: str, session: str, words: list[str]) -> None:
    gaia("finalize", session, "completed")
    path = Path(root, session, "state.json")
    before = path.read_bytes()
    assert gaia("update", session, *words).refusal == (
        4,
        "session 'agent-123' is completed and can no longer be changed",
        "create a new session for further work",
    )
    assert path.read_bytes() == before


def test_to_ask_again_for_the_end_that_holds_is_success_and_writes_nothing(gaia: Gaia, root: str, session: str) -> None:
    gaia("finalize", session, "completed")
    path = Path(root, session, "state.json")
    before = path.read_bytes()
    assert gaia("update", session, "--phase", "completed").answer == ["agent-123: phase completed, revision 2"]
    assert path.read_bytes() == before


def test_a_newer_schema_is_kept_and_shown_but_not_rewritten(gaia: Gaia, put: Gaia, root: str) -> None:
    put("new", schema=2, theirs="kept")
    path = Path(root, "new", "state.json")
    before = path.read_bytes()
    assert gaia("update", "new", "--phase", "planning").refusal == (
        4,
        "session 'new' has schema 2; this version writes 1 and can only show newer ones",
        "update gaia-sessions",
    )
    assert (path.read_bytes(), gaia("get", "new").json["theirs"]) == (before, "kept")


def test_keys_of_others_survive(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    put("a", theirs={"deep": [1, None]})
    gaia("update", "a", "--phase", "executing")
    assert state("a")["theirs"] == {"deep": [1, None]}


def test_a_missing_session_is_exit_code_3_and_is_not_made(gaia: Gaia, tree: Gaia, session: str) -> None:
    assert session == "agent-123"
    before = tree()
    assert gaia("update", "nobody", "--phase", "planning").code == 3
    assert tree() == before


def test_a_session_is_named_by_its_id_or_by_its_hosts_agent(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    put("a", runs=[{"run": 1, "host_session_id": "s", "host_agent_id": "x:1", "started_at": "2026-01-08T18:05:30Z"}])
    gaia("cleanup")  # it finds the aliases of what was put there by hand

    assert gaia("update", "--host-agent", "s", "x:1", "--phase", "planning").code == 0
    assert state("a")["phase"] == "planning"
    both = "Error: ID and --host-agent cannot be combined\nHint: omit one of them: both select a session\n"
    assert gaia("update", "a", "--host-agent", "s", "x:1").all == (2, "", both)
    none = "Error: Missing argument 'ID'.\nHint: type an ID from gaia-sessions list, or gaia-sessions update latest\n"
    assert gaia("update").all == (2, "", none)


@table("pair", [("s", "x:2"), ("t", "x:1"), ("", "")])
def test_an_agent_of_a_host_that_no_session_knows_is_named_in_a_sentence(
    gaia: Gaia, put: Gaia, tree: Gaia, root: str, pair: tuple[str, str]
) -> None:
    put("a", runs=[{"run": 1, "host_session_id": "s", "host_agent_id": "x:1", "started_at": "2026-01-08T18:05:30Z"}])
    gaia("cleanup")
    before = tree()

    ended = gaia("update", "--host-agent", *pair, "--phase", "planning", "--json")

    assert (ended.code, ended.error) == (
        3,
        {
            "code": "not_found",
            "message": f"no session of agent '{pair[1]}' in the host's session '{pair[0]}' in {root}",
            "hint": "use the ID of the session: `gaia-sessions list` shows the existing sessions",
        },
    )
    assert tree() == before


ELSEWHERE = ("a question is asked with the phase approval", "add --phase approval")
QUESTIONS = [
    (("--question", "May I?"), *ELSEWHERE),
    (("--phase", "planning", "--question", "May I?"), *ELSEWHERE),
    (("--phase", "completed", "--question", "May I?"), *ELSEWHERE),
    (("--phase", "approval", "--question", " "), "the question is blank", "say what is asked, or leave it out"),
    (
        ("--phase", "approval", "--question", "x" * 4001),
        "the question has 4,001 characters, and at most 4,000 are kept",
        "ask in fewer words; what you found may go into the transcript",
    ),
]


@table(("words", "said", "hint"), QUESTIONS)
def test_a_question_goes_with_the_phase_approval_and_says_something(
    gaia: Gaia, session: str, state: Gaia, words: tuple[str, ...], said: str, hint: str
) -> None:
    before = state(session)
    assert gaia("update", session, *words).refusal == (7, said, hint)
    assert state(session) == before


def test_what_is_asked_next_is_not_answered_by_what_was_approved_before(gaia: Gaia, session: str, state: Gaia) -> None:
    gaia("update", session, "--phase", "approval", "--question", "May I look?")
    gaia("approve", session)
    assert (state(session)["question"], "approval" in state(session)) == ("May I look?", True)

    assert gaia("update", session, "--phase", "approval", "--question", "May I drop it?").code == 0

    asked = state(session)
    assert (asked["question"], "approval" in asked, len(asked["answers"])) == ("May I drop it?", False, 1)
    assert gaia("pending", "--json").json[0]["question"] == "May I drop it?"
    gaia("update", session, "--phase", "planning")
    assert "question" not in state(session)
