"""Tool calls and their results in transcripts of Claude Code: captured and made-up ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gaia_sessions.hosts import calls_seen
from gaia_sessions.hosts.claude_code.tool_uses import digest_of_use
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.permission_requests import request_at, unanswered
from tests.table import table

AT = "2026-11-22T13:43:16.506Z"


def run(talks: Path, text: str) -> Any:
    path = talks / "agent.jsonl"
    path.write_text(text, encoding="utf-8")
    return {"run": 1, "host": "claude-code", "transcript_path": str(path)}


def seen(talks: Path, *lines: Any) -> Any:
    return calls_seen(run(talks, "".join(json.dumps(line) + "\n" for line in lines)))


def line(kind: str, *parts: Any, message: str | None = None, at: str = AT) -> dict[str, Any]:
    return {"type": kind, "timestamp": at, "message": {"id": message, "role": kind, "content": [*parts]}}


def call(key: str, name: str = "Bash", **given: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": given}


def result(key: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": "x", "is_error": True}


def told(found: Any) -> Any:
    calls = {key: (one.tool, one.round, one.answered_at is not None) for key, one in found.calls.items()}
    return calls, len(found.rounds), [*found.other_results]


def test_calls_of_one_message_are_one_round_even_over_many_lines(talks: Path) -> None:
    lines = [
        line("user", "Do it"),
        line("assistant", {"type": "text", "text": "Try."}, message="m1"),
        line("assistant", call("a"), message="m1"),
        line("user", result("a")),
        line("assistant", call("b"), call("c", "Read"), message="m1"),
        line("user", result("c"), result("earlier")),
    ]
    rounds = ({"a": ("Bash", 1, True), "b": ("Bash", 1, False), "c": ("Read", 1, True)}, 1, ["earlier"])
    assert told(seen(talks, *lines)) == rounds
    assert told(seen(talks, *lines, line("assistant", call("d"), message="m2"))) == (
        {**rounds[0], "d": ("Bash", 2, False)},
        2,
        ["earlier"],
    )


def test_without_message_ids_a_result_ends_a_round(talks: Path) -> None:
    lines = [line("assistant", call("a")), line("assistant", call("b")), line("user", result("a"))]
    assert told(seen(talks, *lines))[1] == 1
    assert told(seen(talks, *lines, line("assistant", call("c"))))[1] == 2


def test_the_order_of_input_keys_does_not_change_the_digest_of_a_call(talks: Path) -> None:
    found = seen(
        talks, line("assistant", call("a", x=1, y=2), call("b", y=2, x=1), call("c", x=1), call("d", "Read", x=1, y=2))
    )
    a, b, c, d = (found.calls[key].asked for key in "abcd")
    assert a == b
    assert len({a, c, d}) == 3


def test_a_result_has_its_time_or_without_one_the_latest_possible_time(talks: Path) -> None:
    lines = [line("assistant", call("a"), call("b")), line("user", result("a")), line("user", result("b"), at="never")]
    found = seen(talks, *lines)
    assert format_time(found.calls["a"].answered_at) == format_time(parse_time(AT))
    assert found.calls["b"].answered_at.year == 9999


HOSTS = Path(__file__).parents[1] / "data" / "hosts"
CAPTURES = sorted(HOSTS.glob("claude-code-*/tui-permission-*.jsonl"))


@table("capture", CAPTURES)
def test_in_every_capture_the_request_waits_for_the_result_of_its_own_call(capture: Path, talks: Path) -> None:
    told = [json.loads(line) for line in capture.read_text(encoding="utf-8").splitlines()]
    [files] = [line["files"] for line in told if line["event"] == "__files__"]
    [request] = [line for line in told if line["event"] == "PermissionRequest"]
    asked = datetime.fromtimestamp(request["t"], UTC)
    tool, agent = request["stdin"]["tool_name"], request["stdin"]["agent_id"]
    digest = digest_of_use(tool, request["stdin"]["tool_input"])
    [written] = [lines for name, lines in files.items() if name.endswith(f"agent-{agent}.jsonl")]
    lines = [json.loads(one) for one in written.splitlines()]
    before = [one for one in lines if parse_time(one.get("timestamp", AT)) < asked]
    request_of_agent = request_at(asked, tool, digest, None)

    assert unanswered([request_of_agent], seen(talks, *before)) == [request_of_agent]
    found = seen(talks, *lines)
    assert unanswered([request_of_agent], found) == []
    assert [call.asked for call in found.calls.values()] == [digest]


STRANGE: list[Any] = [None, 7, "", "x", [], ["a"], {}, {"a": 1}, [{"type": "tool_use"}], [{"type": "tool_result"}]]


def test_no_malformed_line_raises_an_error(talks: Path) -> None:
    for value in STRANGE:
        for kind in ("assistant", "user"):
            whole = line(kind, call("a"), result("b"))
            part = {"type": "tool_use", "id": value, "name": value, "input": value, "tool_use_id": value}
            for changed in (
                {**whole, "message": value},
                {**whole, "message": {"content": value, "id": value}},
                {**whole, "message": {"content": [part, {**part, "type": "tool_result"}, value]}},
                {**whole, "timestamp": value},
                {**whole, "type": value},
            ):
                calls_seen(run(talks, f"{json.dumps(changed)}\n"))


@table("text", ["", "{}\n", "[]\n", "no JSON\n", '{"type":"assistant"', '{"type": "progress"}\n'])
def test_a_transcript_without_calls_gives_no_result(talks: Path, text: str) -> None:
    assert calls_seen(run(talks, text)) is None


def test_a_path_that_is_not_a_file_of_the_client_gives_no_result(talks: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "agent.jsonl"
    elsewhere.write_text(json.dumps(line("assistant", call("a"))) + "\n", encoding="utf-8")
    for path in (str(elsewhere), f"{talks}/gone.jsonl", ""):
        assert calls_seen({"run": 1, "host": "claude-code", "transcript_path": path}) is None
    of_other: Any = {**run(talks, elsewhere.read_text()), "host": "codex"}
    assert calls_seen(of_other) is None


def test_only_the_end_of_a_long_transcript_is_read(talks: Path) -> None:
    lines = [line("assistant", call(f"toolu_{number}", command="x" * 1000), message="m1") for number in range(2000)]
    found = seen(talks, *lines)
    assert 500 < len(found.calls) < 1100
    assert "toolu_1999" in found.calls
