"""What an agent of Claude Code has done, as its transcript shows: ended rounds, tokens, failed calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.hosts.claude_code import work_so_far as work_so_far_module
from gaia_sessions.hosts.claude_code.work_so_far import work_so_far
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path


def at(second: int) -> str:
    return f"2026-01-08T18:05:{second:02}.000Z"


def asks(message: str, second: int, *calls: str, tokens: int = 100, **more: Any) -> list[dict[str, Any]]:
    """The lines of one message; each has the usage of the whole message, as the client writes it."""
    usage = {
        "input_tokens": tokens,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 5000,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "input_tokens": 77},
        "output_tokens": 1,
        "iterations": [{"input_tokens": tokens, "output_tokens": 1}],
    }
    blocks: list[dict[str, Any]] = [{"type": "text", "text": '"id":"msg_fake","usage":{"input_tokens":9}'}]
    blocks += [{"type": "tool_use", "id": call, "name": "Bash", "input": more} for call in calls]
    body = {"id": f"msg_{message}", "type": "message", "role": "assistant", "model": "m"}
    return [
        {
            "message": {**body, "content": [block], "usage": usage},
            "type": "assistant",
            "uuid": "u",
            "timestamp": at(second),
        }
        for block in blocks
    ]


def result(call: str, second: int, *, failed: bool = False) -> list[dict[str, Any]]:
    block = {"type": "tool_result", "content": '"is_error":true "tool_use_id":"x"', "is_error": failed}
    message = {"role": "user", "content": [{**block, "tool_use_id": call}]}
    return [{"type": "user", "message": message, "uuid": "u", "timestamp": at(second), "toolUseResult": "x"}]


def done(
    folder: Path, *lines: list[dict[str, Any]], call: str = "own", since: str | None = None
) -> tuple[int, int, Any]:
    file = folder / "agent.jsonl"
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for group in lines for line in group)
    file.write_text(text, encoding="utf-8")
    found = work_so_far([str(file)], since, call)
    return found.rounds, found.tokens, list(found.failed)


def test_a_message_counts_once_and_without_cached_tokens(talks: Path) -> None:
    assert done(talks, asks("a", 1, "one", "two"), result("one", 2), result("two", 3)) == (1, 111, [])


def test_has_call_says_whether_the_transcript_has_the_call(talks: Path) -> None:
    for call, is_there in (("own", True), ("other", False)):
        done(talks, asks("a", 1, "one"), result("one", 2), asks("b", 3, "own"))
        assert work_so_far([str(talks / "agent.jsonl")], None, call).has_call is is_there


@table("written", [0, 1, 2, 3])
def test_the_round_of_the_current_call_does_not_count_as_ended(talks: Path, written: int) -> None:
    own = asks("b", 3, "beside", "own")[:written]
    assert done(talks, asks("a", 1, "one"), result("one", 2), own)[0] == 1


def test_the_current_round_does_not_count_even_if_another_call_has_a_result(talks: Path) -> None:
    assert done(talks, asks("b", 3, "beside", "own"), result("beside", 4))[0] == 0


def test_failed_calls_are_named_and_keys_inside_texts_are_ignored(talks: Path) -> None:
    tricky = asks("a", 1, "one", usage={"input_tokens": 9, "output_tokens": 9})
    assert done(talks, tricky, result("one", 2, failed=True), result("two", 3)) == (1, 111, ["one"])


def test_the_input_of_a_tool_does_not_change_the_counts(talks: Path) -> None:
    keys = {"type": "user", "timestamp": "2001-01-01T00:00:00.000Z", "id": "x", "is_error": True}
    tricky = asks("a", 1, "one", filter=keys, usage={"input_tokens": 9}, inner={"message": {"id": "y"}})
    assert done(talks, tricky, result("one", 2), since=at(1)) == (1, 111, [])


def test_the_tool_use_result_beside_a_message_does_not_change_the_counts(talks: Path) -> None:
    [answer] = result("one", 2)
    answer["toolUseResult"] = {"a": "b", "timestamp": "2001-01-01T00:00:00.000Z", "is_error": True, "usage": {"x": 1}}
    assert done(talks, asks("a", 1, "one"), [answer], since=at(1)) == (1, 111, [])


def test_each_failed_result_in_a_line_is_named(talks: Path) -> None:
    [first], [second], [third] = (result(call, 2, failed=call != "two") for call in ("one", "two", "three"))
    first["message"]["content"] += [*second["message"]["content"], *third["message"]["content"]]
    assert done(talks, asks("a", 1, "one", "two", "three"), [first]) == (1, 111, ["one", "three"])


def test_a_message_of_another_provider_counts_and_an_error_of_the_api_does_not(talks: Path) -> None:
    other = asks("a", 1, "one")
    for line in other:
        line["message"]["id"] = "chatcmpl-1"
    [error] = asks("b", 2)
    error = {"type": "assistant", "uuid": "u", "timestamp": at(2), "message": error["message"]}
    assert done(talks, other, [error | {"isApiErrorMessage": True}], result("one", 3)) == (1, 111, [])


def test_only_lines_since_the_start_of_the_run_count(talks: Path) -> None:
    lines = [asks("a", 1, "one"), result("one", 2), asks("b", 10, "two"), result("two", 11)]
    assert done(talks, *lines, since="2026-01-08T18:05:10.000000Z") == (1, 111, [])
    assert done(talks, *lines)[:2] == (2, 222)


@table("line", [b"", b"{", b'"type":"assistant" "id":"msg_x"', b'"type":"assistant","id":"msg_y","usage":{'])
def test_a_malformed_line_counts_nothing(talks: Path, line: bytes) -> None:
    file = talks / "agent.jsonl"
    file.write_bytes(line + b"\n")
    found = work_so_far([str(file)], None, "own")
    assert (found.rounds, found.tokens) == (0, 0)


def test_a_missing_file_raises_an_error(talks: Path) -> None:
    with pytest.raises(OSError, match="nothing"):
        work_so_far([str(talks / "nothing")], None, "own")


def test_malformed_usage_and_call_ids_are_ignored(talks: Path) -> None:
    deep = asks("a", 1, "one")
    for line in deep:
        line["message"]["usage"] = {"a": json.loads("[" * 900 + "]" * 900)}
    odd = result("one", 2, failed=True)
    keys: list[Any] = [5, None, {}, "two"]
    odd[0]["message"]["content"] = [{"type": "tool_result", "is_error": True, "tool_use_id": key} for key in keys]
    assert done(talks, deep, odd) == (1, 0, ["two"])


def test_a_transcript_that_takes_too_long_raises_a_timeout(talks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 0.1, 5.0])
    monkeypatch.setattr(work_so_far_module, "monotonic", lambda: next(moments))
    with pytest.raises(TimeoutError, match="it is too long to read while the client waits"):
        done(talks, asks("a", 1, "one"), result("one", 2))
