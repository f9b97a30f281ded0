"""Turns: each is one commit and may be repeated; a reset archives the transcript."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gaia_sessions import EphemeralSession, Sessions
from gaia_sessions.errors import InvalidInput, NotTheNextTurn, SessionFinal, TooLarge
from gaia_sessions.session.transcript import LINE_LIMIT
from tests.table import table

ASKED = {"role": "user", "content": "How many?"}
ANSWERED = {"role": "assistant", "content": "42", "tokens": 1}
CALL = {"role": "assistant", "content": "{}", "tool_name": "Bash", "tool_call_id": "call_1"}
RESULT = {"role": "tool", "content": "42", "tool_call_id": "call_1"}


@pytest.fixture
def sessions(root: str) -> Sessions:
    sessions = Sessions(root)
    sessions.create(agent_id="a", system_prompt="Be brief.")
    return sessions


def told(sessions: Sessions) -> list[tuple[int, str]]:
    return [(one["turn"], one["content"]) for one in sessions.messages("a") if isinstance(one, dict)]


def test_add_turn_stores_all_messages_of_a_turn_in_one_write(sessions: Sessions) -> None:
    before = sessions.store.read("a")

    turn = sessions.add_turn("a", [ASKED, CALL, RESULT, ANSWERED])

    record = sessions.store.read("a")
    assert (record["revision"], record["turns"]) == (before["revision"] + 1, 1)
    stored = [one for one in sessions.messages("a") if isinstance(one, dict)][1:]
    assert turn == {"agent_id": "a", "turn": 1, "turn_id": "0.1", "added": True, "messages": stored}
    given = [{key: value for key, value in one.items() if key not in ("seq", "turn", "timestamp")} for one in stored]
    assert given == [ASKED, CALL, RESULT, ANSWERED]
    assert {(one["turn"], one["timestamp"]) for one in stored} == {(1, record["last_updated"])}
    assert sessions.report("a")["iterations"] == 1


def test_a_turn_changes_only_the_phase_of_a_new_session(sessions: Sessions) -> None:
    sessions.add_turn("a", [ASKED, ANSWERED])
    assert (sessions.store.read("a")["phase"], sessions.should_resume("a")) == ("investigating", True)
    sessions.update("a", phase="executing")
    sessions.add_turn("a", [ASKED, ANSWERED])
    phases = [move["to_phase"] for move in sessions.store.read("a")["history"]]
    assert phases == ["investigating", "executing"]


def test_messages_added_outside_a_turn_belong_to_the_next_turn(sessions: Sessions) -> None:
    sessions.add_message("a", "user", "first")
    assert "turns" not in sessions.store.read("a")
    sessions.add_turn("a", [ANSWERED])
    sessions.add_message("a", "user", "second")

    assert told(sessions) == [(0, "Be brief."), (1, "first"), (1, "42"), (2, "second")]


def test_a_repeated_turn_is_stored_once(sessions: Sessions) -> None:
    sessions.add_message("a", "user", "by another way")
    first = sessions.add_turn("a", [ASKED, ANSWERED], number=1)
    sessions.add_turn("a", [ASKED, ANSWERED], number=2)
    before = sessions.store.read("a")

    again = sessions.add_turn("a", [ASKED, ANSWERED], number=1)

    assert again == {**first, "added": False}
    assert sessions.store.read("a") == before
    sessions.finalize("a", "completed")
    assert not sessions.add_turn("a", [ASKED, {**ANSWERED}], number=1)["added"]
    with pytest.raises(SessionFinal):
        sessions.add_turn("a", [ASKED, ANSWERED], number=3)
    with pytest.raises(SessionFinal):
        sessions.add_turn("a", [ASKED, ANSWERED])


OTHERS: list[list[dict[str, Any]]] = [
    [ASKED],
    [ANSWERED, ASKED],
    [ASKED, ASKED, ANSWERED],
    [ASKED, {**ANSWERED, "content": "43"}],
    [ASKED, {**ANSWERED, "tokens": 2}],
    [ASKED, {**ANSWERED, "tool_call_id": "call_1"}],
    [{**ASKED, "role": "system"}, ANSWERED],
]


@table("others", OTHERS)
def test_a_turn_that_exists_with_other_messages_is_a_conflict(sessions: Sessions, others: list[dict[str, Any]]) -> None:
    sessions.add_turn("a", [ASKED, ANSWERED], number=1)
    before = sessions.store.read("a"), told(sessions)

    with pytest.raises(NotTheNextTurn) as raised:
        sessions.add_turn("a", others, number=1)

    assert (raised.value.number, raised.value.following) == (1, 2)
    assert (sessions.store.read("a"), told(sessions)) == before


@table("number", [2, 100])
def test_a_turn_that_is_not_the_next_is_a_conflict(sessions: Sessions, number: int) -> None:
    with pytest.raises(NotTheNextTurn):
        sessions.add_turn("a", [ASKED], number=number)
    assert told(sessions) == [(0, "Be brief.")]


BAD: list[tuple[list[object], str]] = [
    ([], "the turn has no messages"),
    ([ASKED, 5], "message 2: must be an object, not a number"),
    ([{"role": "user"}], "message 1: 'content' is missing"),
    ([{**ASKED, "name": "x"}], "message 1: 'name' is not a key of a message"),
    ([ASKED, {**ASKED, "role": "human"}], "message 2"),
    ([{**ASKED, "content": 5}], "message 1"),
    ([{**ASKED, "content": "half \ud800"}], ""),
    ([{**ASKED, "seq": 7}], "message 1: 'seq' is not a key of a message"),
]


@table(("messages", "said"), BAD)
def test_a_turn_with_an_invalid_message_is_refused_as_a_whole(
    sessions: Sessions, messages: list[object], said: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        sessions.add_turn("a", messages)
    assert said in str(raised.value)
    assert told(sessions) == [(0, "Be brief.")]


def test_a_message_that_is_too_long_is_refused_with_its_turn(sessions: Sessions) -> None:
    with pytest.raises(TooLarge):
        sessions.add_turn("a", [ASKED, {**ANSWERED, "content": "x" * LINE_LIMIT}])
    assert told(sessions) == [(0, "Be brief.")]


def test_a_reset_keeps_only_the_system_prompt_the_tokens_and_the_todos(
    sessions: Sessions,
) -> None:
    sessions.add_turn("a", [ASKED, ANSWERED])
    sessions.charge("a", 100)
    sessions.add_todo("a", "read")
    for _ in range(5):
        sessions.add_message("a", "user", "more " * 10)
    assert sessions.compact("a")

    record = sessions.reset("a")

    assert (record["turns"], record["transcripts_archived"], "compaction" in record) == (0, 1, False)
    assert (sessions.usage("a")["tokens"], [todo["description"] for todo in sessions.todos("a")]) != (0, [])
    assert told(sessions) == [(0, "Be brief.")] == [(0, one["content"]) for one in sessions.remembered("a")]
    assert sessions.add_turn("a", [ASKED], number=1)["turn_id"] == "1.1"
    assert sessions.reset("a")["transcripts_archived"] == 2
    assert sessions.reset("a")["transcripts_archived"] == 2
    sessions.finalize("a", "completed")
    with pytest.raises(SessionFinal):
        sessions.reset("a")


def test_clear_keeps_only_the_system_prompt(root: str, sessions: Sessions) -> None:
    sessions.add_turn("a", [ASKED, ANSWERED])
    memory = EphemeralSession.open("a", root=root).memory
    memory.add_message("user", "more")
    memory.add_todo("read")

    memory.clear()

    assert [one["content"] for one in memory.get_messages()] == ["Be brief."]
    assert (memory.token_count, memory.todos) == (0, [])
    assert sessions.store.read("a")["turns"] == 0


def test_a_compacted_memory_begins_with_its_system_prompt_and_a_summary(root: str, sessions: Sessions) -> None:
    memory = EphemeralSession.open("a", root=root).memory
    for number in range(10):
        memory.add_message("user", f"say {number}")
    assert memory.compact()

    prompt, summary, *kept = memory.get_messages()

    assert (prompt["content"], [one["content"] for one in kept]) == ("Be brief.", ["say 8", "say 9"])
    assert "Be brief." not in summary["content"]
    assert [one["content"] for one in memory.get_messages(last=3)] == [summary["content"], "say 8", "say 9"]
    assert [one["content"] for one in memory.get_messages(last=0)] == []
    assert len(list(sessions.messages("a"))) == 11


def test_the_last_messages_have_no_result_without_its_call(root: str, sessions: Sessions) -> None:
    sessions.add_turn("a", [ASKED, CALL, RESULT, ANSWERED])
    memory = EphemeralSession.open("a", root=root).memory

    assert [one["content"] for one in memory.get_messages(last=2)] == ["42"]
    assert [one["role"] for one in memory.get_messages(last=3)] == ["assistant", "tool", "assistant"]


def test_an_imported_session_keeps_its_turns_and_takes_the_next_one(root: str, sessions: Sessions) -> None:
    sessions.add_turn("a", [ASKED], number=1)
    sessions.reset("a")
    sessions.add_turn("a", [ASKED, ANSWERED], number=1)
    there = Sessions(f"{root}-there")

    assert there.import_from(root)["imported"] == ["a"]

    assert list(there.messages("a")) == list(sessions.messages("a"))
    assert not there.add_turn("a", [ASKED, ANSWERED], number=1)["added"]
    assert there.add_turn("a", [ASKED, ANSWERED], number=2)["turn_id"] == "1.2"
    assert told(there) == [(0, "Be brief."), *[(1, "How many?"), (1, "42")], *[(2, "How many?"), (2, "42")]]


def test_the_system_prompt_is_not_in_the_record_and_has_a_size_limit(root: str, sessions: Sessions) -> None:
    assert b"Be brief" not in Path(root, "a", "state.json").read_bytes()
    for prompt, error in ((" ", InvalidInput), ("x" * (16 * 1024 + 1), TooLarge)):
        with pytest.raises(error):
            sessions.create(agent_id="b", system_prompt=prompt)
    assert not sessions.store.has("b")
    sessions.create(agent_id="b", system_prompt="é" * (8 * 1024))
