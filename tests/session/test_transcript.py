"""Messages and their lines: which are accepted or refused, and how messages are numbered."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gaia_sessions.errors import BadArgument, InvalidInput, SessionFinal, TooLarge
from gaia_sessions.session import transcript
from gaia_sessions.session.transcript import (
    LINE_LIMIT,
    committed_bytes,
    current_turn,
    decode_message,
    last_seq,
    new_message,
    number_messages,
    with_message,
)
from tests.records import record_with, unchanged
from tests.table import table

NOW = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)
AT = "2026-01-08T18:05:30.123456Z"


def line(**changed: object) -> bytes:
    return json.dumps({"seq": 1, "turn": 1, "role": "user", "content": "", "timestamp": AT, **changed}).encode()


def test_a_message_has_the_keys_that_are_known_and_no_other() -> None:
    assert new_message("user", "hello", NOW) == {"role": "user", "content": "hello", "timestamp": AT}
    called = new_message("tool", "", NOW, tool_name="Bash", tool_call_id="toolu_1", tokens=0)
    assert called == {
        "role": "tool",
        "content": "",
        "timestamp": AT,
        "tool_name": "Bash",
        "tool_call_id": "toolu_1",
        "tokens": 0,
    }


@table("role", ["system", "user", "assistant", "tool"])
def test_each_of_the_four_roles_is_accepted(role: str) -> None:
    assert new_message(role, "", NOW)["role"] == role


@table("role", ["", "User", "human", None, 1])
def test_any_other_role_is_refused_and_the_error_lists_the_four(role: Any) -> None:
    with pytest.raises(BadArgument, match="role") as refused:
        new_message(role, "", NOW)
    assert refused.value.hint == "must be one of system, user, assistant, tool"


@table(
    ("words", "where"),
    [
        ({"content": None}, "content"),
        ({"content": "", "tool_name": 1}, "tool_name"),
        ({"content": "", "tool_call_id": []}, "tool_call_id"),
        ({"content": "", "tokens": -1}, "tokens"),
        ({"content": "", "tokens": True}, "tokens"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_and_its_key_is_named(words: Any, where: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        new_message("user", words.pop("content"), NOW, **words)
    assert refused.value.where == where


def test_messages_are_numbered_and_each_is_a_line_that_reads_back() -> None:
    messages = [new_message("user", "one\ntwo\u2028", NOW), new_message("tool", "\x9b31m", NOW, tool_name="Bash")]

    stored, lines = number_messages(messages, 7, 2)

    assert [(message["seq"], message["turn"]) for message in stored] == [(7, 2), (8, 2)]
    assert [decode_message(each) for each in lines.splitlines()] == stored
    assert list(json.loads(lines.split(b"\n")[1])) == ["seq", "turn", "role", "content", "timestamp", "tool_name"]
    assert b"\x9b" not in lines.decode().encode("latin-1", "ignore")


@table("content", ["half \ud800", "NUL \0"])
def test_a_text_that_could_not_be_read_back_is_refused(content: str) -> None:
    with pytest.raises(InvalidInput):
        number_messages([new_message("user", content, NOW)], 1, 1)


def test_a_line_at_the_limit_is_accepted_and_one_byte_more_is_refused() -> None:
    [empty] = number_messages([new_message("user", "", NOW)], 1, 1)[1].splitlines(keepends=True)
    room = LINE_LIMIT - len(empty)

    _, largest = number_messages([new_message("user", "x" * room, NOW)], 1, 1)
    with pytest.raises(TooLarge) as refused:
        number_messages([new_message("user", "x" * (room + 1), NOW)], 1, 1)

    assert len(largest) == LINE_LIMIT
    assert decode_message(largest)["content"] == "x" * room
    assert (refused.value.size, refused.value.limit) == (LINE_LIMIT + 1, LINE_LIMIT)
    assert "file" in refused.value.hint


def test_a_commit_over_the_limit_is_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "COMMIT_LIMIT", 1000)
    messages = [new_message("user", "x" * 100, NOW)] * 10

    with pytest.raises(TooLarge, match="one addition to the transcript") as refused:
        number_messages(messages, 1, 1)

    assert refused.value.hint == "add the messages in several parts"


@table(
    ("data", "where"),
    [
        (line(seq=0), "seq"),
        (line(turn="1"), "turn"),
        (line(role="human"), "role"),
        (line(content=None), "content"),
        (line(timestamp="today"), "timestamp"),
        (b"[]", ""),
        (b"{", "line 1 column 1"),
        (b"\0\0", "line 1 column 1"),
    ],
)
def test_a_line_that_is_not_a_message_is_refused_with_the_place_of_the_fault(data: bytes, where: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode_message(data)
    assert refused.value.where == where


def test_keys_of_a_later_version_are_read() -> None:
    assert decode_message(line(reasoning="hm"))["reasoning"] == "hm"  # type: ignore[typeddict-item]  # of a later version


def test_a_record_without_a_transcript_has_no_bytes_no_messages_and_is_in_turn_1() -> None:
    assert (committed_bytes(record_with()), last_seq(record_with()), current_turn(record_with())) == (0, 0, 1)
    called = record_with(transcript_bytes=12, last_seq=7, turns=3)
    assert (committed_bytes(called), last_seq(called), current_turn(called)) == (12, 7, 4)


def test_a_message_changes_only_the_time_of_the_last_activity() -> None:
    before = record_with()
    later = NOW + timedelta(hours=1)
    after = {**before, "last_updated": "2026-01-08T19:05:30.123456Z"}
    assert unchanged(lambda record: with_message(record, later), before) == after


def test_a_final_session_refuses_a_message() -> None:
    with pytest.raises(SessionFinal):
        with_message(record_with(phase="completed"), NOW)
