"""What the record stores of a client: its tokens, its conversation, and when that conversation is resumed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from gaia_sessions.session.client_conversation import Told, conversation_to_go_on, standing_of
from gaia_sessions.session.own_runs import CAUSES, EXITED, RunEnd, with_run_begun, with_run_ended
from gaia_sessions.session.record import decode, encode
from gaia_sessions.session.usage import with_consumed
from tests.records import record_with
from tests.table import table

NOW = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
WHERE: Any = {"preset": "claude", "id": "c-1", "cwd": "/project"}
STANDS = {**WHERE, "generation": 0, "seq": 1}
USED: Any = {"consumed": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}, "model": "opus"}


def begun(**keys: Any) -> Any:
    return with_run_begun(record_with(phase="planning", **keys), {"wrapper": {"pid": 1}}, NOW)


def ended(record: Any, cause: str = EXITED, message: str = "All done.", told: Told | None = None) -> Any:
    end = RunEnd(cause, 0, message, told=told or Told(USED, WHERE, standing_of(record)))
    return with_run_ended(record, record["runs"][-1], end, None, LATER)[0]


@table("cause", CAUSES)
@table("noted", [None, {"input_tokens": 100, "total_tokens": 100}])
def test_tokens_of_a_client_count_once_and_its_conversation_points_at_its_last_message(cause: str, noted: Any) -> None:
    record = begun(turns=0)
    if noted:
        record = with_consumed(record, 1, {"consumed": noted})

    after: Any = {**ended(record, cause), "last_seq": 1}  # as the store sets it

    run = after["runs"][-1]
    assert (run["consumed"], run["model"], after["usage"]) == (USED["consumed"], "opus", USED["consumed"])
    assert (run["conversation"], after["turns"]) == (STANDS, 1)
    assert decode(encode(after), after["agent_id"]) == after
    assert conversation_to_go_on(after, "claude", after["runs"]) == STANDS
    assert ended(after, cause) == after


def test_a_run_without_a_message_keeps_the_position_and_an_unknown_conversation_is_not_recorded() -> None:
    assert ended(begun(), message="")["runs"][-1]["conversation"] == {**STANDS, "seq": 0}
    assert "conversation" not in ended(begun(), told=Told(USED, None, (0, 0)))["runs"][-1]


@table("change", [{"last_seq": 1}, {"transcripts_archived": 1}])
def test_a_conversation_is_not_recorded_if_the_transcript_changes_during_the_run(change: Any) -> None:
    record = begun()
    told = Told(USED, WHERE, standing_of(record))
    assert "conversation" not in ended({**record, **change}, told=told)["runs"][-1]


@table(
    "change",
    [
        {"last_seq": 2},
        {"transcripts_archived": 1},
        {"runs": [{"run": 1, "conversation": STANDS}, {"run": 2, "turn": 2, "end": "failed"}]},
        {"runs": [{"run": 1}]},
        {"runs": []},
    ],
)
def test_a_conversation_is_resumed_only_by_its_client_and_at_the_position_of_the_session(change: Any) -> None:
    before: Any = {**ended(begun()), "last_seq": 1}
    record: Any = {**before, **change}

    assert conversation_to_go_on(before, "codex", before["runs"]) is None
    assert conversation_to_go_on(record, "claude", record["runs"]) is None


def test_the_tokens_of_a_failed_send_count_but_its_conversation_is_not_recorded() -> None:
    run: Any = {**begun()["runs"][-1], "turn": 1}
    record: Any = {**begun(), "runs": [run]}

    after = with_run_ended(
        record, run, RunEnd(EXITED, 1, "half", told=Told(USED, WHERE, standing_of(record))), None, LATER
    )[0]

    assert (after["usage"], "conversation" in after["runs"][-1]) == (USED["consumed"], False)
