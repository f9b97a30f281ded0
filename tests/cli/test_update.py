"""``update``: it changes a session in one write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.conftest import fresh_table
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


def test_a_phase_change_is_recorded_in_the_history(gaia: Gaia, state: Gaia, session: str) -> None:
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


def test_update_json_is_the_stored_record(gaia: Gaia, root: str, session: str) -> None:
    ended = gaia("update", session, "--phase", "planning", "-m", "k=v", "--json")
    assert (ended.code, ended.out, ended.err) == (0, Path(root, session, "state.json").read_bytes(), b"")


def test_update_without_options_records_only_the_activity(gaia: Gaia, state: Gaia, session: str) -> None:
    before = state(session)
    assert gaia("update", session).answer == ["agent-123: phase initializing, revision 2, not resumable"]
    after = state(session)
    assert after == {**before, "last_updated": after["last_updated"], "revision": 2}
    assert after["last_updated"] > before["last_updated"]


def test_several_options_of_one_update_are_one_revision(gaia: Gaia, state: Gaia, session: str) -> None:
    words = ("--phase", "planning", "-m", "a=1", "--error", "no such host", "--no-resume-ready", "--if-revision", "1")
    assert gaia("update", session, *words).answer == ["agent-123: phase planning, revision 2, 1 error, resuming is off"]
    kept = state(session)
    assert kept["last_error"] == {"message": "no such host", "timestamp": kept["last_updated"]}
    assert (kept["metadata"], kept["error_count"], kept["resume_ready"]) == ({"a": "1"}, 1, False)


def test_a_dash_reads_metadata_from_stdin(gaia: Gaia, state: Gaia, session: str) -> None:
    assert gaia("update", session, "--metadata", "-", stdin='{"от": "stdin"}'.encode()).code == 0
    assert state(session)["metadata"] == {"от": "stdin"}


def test_resume_ready_can_be_switched_off_and_on(gaia: Gaia, state: Gaia, session: str) -> None:
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
        (["--resume-ready"], 4, "resume_not_allowed", "session 's' cannot be resumed: its phase is executing"),
        (["--if-revision", "1"], 4, "revision_changed", "session 's' is at revision 2, not 1"),
        (["--phase", "initializing"], 4, "illegal_move", "a session cannot go from executing to initializing"),
        (["--metadata", "[]"], 7, "invalid_input", "--metadata: expected a JSON object, not an array"),
        (["--if-revision", "x"], 2, "usage", "Invalid value for '--if-revision': 'x' is not a valid integer."),
        (["-m", "x"], 2, "usage", "-m takes KEY=VALUE, not 'x'"),
    ],
)
def test_a_refused_update_changes_nothing(
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
        "session 'agent-123' has ended (completed) and can no longer be changed",
        "to continue it in a new session, type gaia-sessions create --continues agent-123",
    )
    assert path.read_bytes() == before


def test_repeating_the_final_phase_succeeds_and_writes_nothing(gaia: Gaia, root: str, session: str) -> None:
    gaia("finalize", session, "completed")
    path = Path(root, session, "state.json")
    before = path.read_bytes()
    assert gaia("update", session, "--phase", "completed").answer == ["agent-123: phase completed, revision 2"]
    assert path.read_bytes() == before


def test_update_refuses_a_record_of_a_newer_schema_and_get_still_shows_it(gaia: Gaia, put: Gaia, root: str) -> None:
    put("new", schema=2, theirs="kept")
    path = Path(root, "new", "state.json")
    before = path.read_bytes()
    assert gaia("update", "new", "--phase", "planning").refusal == (
        4,
        "session 'new' was written by a newer version (schema 2, not 1) and can only be shown",
        "install a newer version of gaia-sessions",
    )
    assert (path.read_bytes(), gaia("get", "new").json["theirs"]) == (before, "kept")


def test_update_keeps_unknown_keys_of_a_record(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    put("a", theirs={"deep": [1, None]})
    gaia("update", "a", "--phase", "executing")
    assert state("a")["theirs"] == {"deep": [1, None]}


def test_update_of_a_missing_session_exits_with_3_and_creates_nothing(gaia: Gaia, tree: Gaia, session: str) -> None:
    assert session == "agent-123"
    before = tree()
    assert gaia("update", "nobody", "--phase", "planning").code == 3
    assert tree() == before


def test_update_takes_either_an_id_or_a_host_agent(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    put("a", runs=[{"run": 1, "host_session_id": "s", "host_agent_id": "x:1", "started_at": "2026-01-08T18:05:30Z"}])
    gaia("cleanup")  # cleanup indexes the host IDs of a record that was written by hand

    assert gaia("update", "--host-agent", "s", "x:1", "--phase", "planning").code == 0
    assert state("a")["phase"] == "planning"
    both = "Error: ID and --host-agent cannot be combined\nHint: leave out one of them: both select a session\n"
    assert gaia("update", "a", "--host-agent", "s", "x:1").all == (2, "", both)
    none = "Error: Missing argument 'ID'.\nHint: type an ID from gaia-sessions list, or gaia-sessions update latest\n"
    assert gaia("update").all == (2, "", none)


@table("pair", [("s", "x:2"), ("t", "x:1"), ("", "")])
def test_an_unknown_host_agent_is_refused_with_its_ids_and_a_hint(
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
            "message": f"no session of agent '{pair[1]}' in conversation '{pair[0]}' in {root}",
            "hint": "give the ID of the session instead: `gaia-sessions list` shows the existing sessions",
        },
    )
    assert tree() == before


ELSEWHERE = ("a question must come with the phase approval", "add --phase approval")
QUESTIONS = [
    (("--question", "May I?"), *ELSEWHERE),
    (("--phase", "planning", "--question", "May I?"), *ELSEWHERE),
    (("--phase", "completed", "--question", "May I?"), *ELSEWHERE),
    (
        ("--phase", "approval", "--question", " "),
        "the question is blank",
        "say what you ask, or leave the question out",
    ),
    (
        ("--phase", "approval", "--question", "x" * 4001),
        "the question has 4,001 characters; the limit is 4,000",
        "shorten the question; to store more text, type gaia-sessions transcript ID --append assistant TEXT",
    ),
]


@table(("words", "said", "hint"), QUESTIONS)
def test_a_question_needs_the_phase_approval_and_a_valid_text(
    gaia: Gaia, session: str, state: Gaia, words: tuple[str, ...], said: str, hint: str
) -> None:
    before = state(session)
    assert gaia("update", session, *words).refusal == (7, said, hint)
    assert state(session) == before


def test_a_new_question_is_not_answered_by_an_earlier_approval(gaia: Gaia, session: str, state: Gaia) -> None:
    gaia("update", session, "--phase", "approval", "--question", "May I look?")
    gaia("approve", session)
    assert (state(session)["question"], "approval" in state(session)) == ("May I look?", True)

    assert gaia("update", session, "--phase", "approval", "--question", "May I drop it?").code == 0

    asked = state(session)
    assert (asked["question"], "approval" in asked, len(asked["answers"])) == ("May I drop it?", False, 1)
    assert gaia("pending", "--json").json[0]["question"] == "May I drop it?"
    gaia("update", session, "--phase", "planning")
    assert "question" not in state(session)
