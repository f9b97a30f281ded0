"""The latest calls in the transcript of a Claude Code agent, and how long a row of identical calls they form."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.hosts.claude_code import recent_calls as recent_calls_module
from gaia_sessions.hosts.claude_code.recent_calls import recent_calls
from gaia_sessions.session import repeats
from gaia_sessions.session.repeats import row_before
from tests.hosts.loops import AGENT, BASH, REJECTED, asks, at, gives, rounds, told, written
from tests.table import table

if TYPE_CHECKING:
    from tests.hosts.loops import Line

OWN = asks("own")
OTHER = [asks("o", {"command": "ls"}), gives("o")]
REFUSAL = repeats.refusal("Bash", cancels=False)
OF_CLIENT = f"PreToolUse:Bash hook error: {REFUSAL}"
SUMMARY = told("This session is being continued from a previous conversation.", isCompactSummary=True)
BOUNDARY = {"agentId": AGENT, "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
IMAGE = [{"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo=", "media_type": "image/png"}}]
NEWS = "[SYSTEM NOTIFICATION - NOT USER INPUT]\nThis is an automated background-task event"
SKILL = [{"type": "text", "text": "Base directory for this skill: /project"}]
TASK = {"file_path": "/run-dir/claude-0/-project/s/tasks/b1.output"}


def saved(name: str, size: str = "97.7KB") -> str:
    head = f"<persisted-output>\nOutput too large ({size}). Full output saved to: /p/tool-results/{name}.txt\n"
    return f"{head}\nPreview (first 2KB):\nxxx\n...\n</persisted-output>"


def without_id(line: Line) -> dict[str, Any]:
    return {key: value for key, value in line["message"].items() if key != "id"}


def beside(kind: str, **more: Any) -> Line:
    """An attachment that the client adds to the conversation."""
    return {"agentId": AGENT, "type": "attachment", "attachment": {"type": kind, **more}, "timestamp": at(2)}


def turns(*contents: Any) -> list[Line]:
    """One call after another, with these results."""
    return [line for place, one in enumerate(contents) for line in (asks(f"t{place}"), gives(f"t{place}", one))]


def slow(seconds: float) -> list[Line]:
    return rounds(4, second=1 + seconds)


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


ROWS: list[tuple[str, list[Line], int]] = [
    ("none", [OWN], 0),
    ("two", [*rounds(2), OWN], 2),
    ("three", [*rounds(3), OWN], 3),
    ("four", [*rounds(4), OWN], 4),
    ("ten count as four", [*rounds(10), OWN], 4),
    ("another tool", [*rounds(4, tool="Run"), OWN], 0),
    ("another input", [*rounds(4, tool_input={"command": "make  test"}), OWN], 0),
    ("the description of a command does not count", [*rounds(4, tool_input={**BASH, "description": "x"}), OWN], 4),
    (
        "the description of another tool counts",
        [*rounds(4, tool="Run"), asks("own", {"command": "make test"}, "Run")],
        0,
    ),
    ("the order of keys does not count", [*rounds(4, tool_input=dict(reversed(BASH.items()))), OWN], 4),
    ("a value of another type", [*rounds(4, tool_input={"n": 1}), asks("own", {"n": True})], 0),
    ("another call between", [*rounds(2), *OTHER, *rounds(2, first="d"), OWN], 2),
    ("two that alternate", [*rounds(1), *OTHER, *rounds(1, first="d"), *OTHER, *rounds(1, first="e"), *OTHER, OWN], 0),
    ("the last result differs", [*turns("a", "a", "a", "b"), OWN], 1),
    ("the first result differs", [*turns("b", "a", "a", "a"), OWN], 3),
    ("all failed alike", [*rounds(4, "Exit code 1", failed=True), OWN], 4),
    ("two failed with the same text", [*rounds(2, failed=True), *rounds(2, first="d"), OWN], 2),
    ("images", [*rounds(4, IMAGE), OWN], 4),
    ("nested results", [*rounds(4, [{"type": "text", "text": "a", "x": {"y": [1]}}]), OWN], 4),
    ("nothing in a result", [*rounds(4, None), OWN], 4),
    (
        "what the client adds beside a result",
        [*rounds(2, toolUseResult={"ms": 1}), *rounds(2, first="d", ms=7), OWN],
        4,
    ),
    ("each long result is in a file", [*turns(*map(saved, "abcd")), OWN], 4),
    ("the last file has another size", [*turns(*map(saved, "abc"), saved("d", "97.8KB")), OWN], 1),
    ("a text that only resembles a saved file", [*turns(*(f"saved to: {one}" for one in "abcd")), OWN], 1),
    (
        "calls of one message count once",
        [*(asks(f"p{n}", message="m") for n in "12"), gives("p1"), gives("p2"), OWN],
        1,
    ),
    ("a call in the same message has no result", [*rounds(4), asks("p", message="m"), asks("own", message="m")], 4),
    ("a call after the own call does not count", [*rounds(4), asks("own", message="m"), asks("p", {}, message="m")], 4),
    (
        "another call before it in the same message",
        [*rounds(4), asks("p", {}, message="m"), asks("own", message="m")],
        0,
    ),
    ("a call that was interrupted", [*rounds(2), asks("x"), *rounds(2, first="d"), OWN], 2),
    ("a call of 4.9 seconds", [*slow(4.9), OWN], 4),
    ("a call of 5 seconds", [*slow(5), OWN], 0),
    ("invalid times", [*rounds(4, timestamp="soon"), OWN], 0),
    ("a clock that was set back", [*rounds(4, second=-9), OWN], 4),
    ("the output of a task", [*rounds(4, tool="TaskOutput"), asks("own", None, "TaskOutput")], 0),
    ("the output of a task in a file", [*rounds(4, tool="Read", tool_input=TASK), asks("own", TASK, "Read")], 0),
    (
        "another file",
        [*rounds(4, tool="Read", tool_input={"file_path": "/a"}), asks("own", {"file_path": "/a"}, "Read")],
        4,
    ),
    ("refusals do not count", [*rounds(4), *rounds(2, OF_CLIENT, first="r", failed=True, **REJECTED), OWN], 4),
    ("refusals of an older client do not count", [*rounds(4), *rounds(2, REFUSAL, first="r", failed=True), OWN], 4),
    (
        "a refusal of another call does not count",
        [*rounds(4), asks("o", {}), gives("o", "no", failed=True, **REJECTED), OWN],
        4,
    ),
    ("an output with the text of a refusal", [*rounds(3), asks("o", {}), gives("o", REFUSAL), OWN], 0),
    (
        "a failure with the text of a refusal, after permission",
        [*rounds(3), asks("o", {}), gives("o", REFUSAL, failed=True, permissionDecision={"decision": "accept"}), OWN],
        0,
    ),
    ("a denial by the user is a result", [*rounds(4, "denied", failed=True, toolDenialKind="user-rejected"), OWN], 4),
    ("a new message", [*rounds(4), told("Go on."), OWN], 0),
    ("a new message in parts", [*rounds(4), told([{"type": "text", "text": "Go on."}]), OWN], 0),  # type: ignore[arg-type]
    (
        "a new message of its coordinator",
        [*rounds(4), told("And now?", isMeta=True, origin={"kind": "coordinator"}), OWN],
        0,
    ),
    ("a queued message", [*rounds(4), beside("queued_command", prompt="And now?"), OWN], 0),
    ("its background work ended", [*rounds(4), told(NEWS, isMeta=True, origin={"kind": "task-notification"}), OWN], 0),
    ("a hook holds its stop", [*rounds(4), told("Stop hook feedback:\nYou have open todos", isMeta=True), OWN], 0),
    ("the client reports the size of an image", [*rounds(4), told("[Image: original 3x3]", isMeta=True), OWN], 4),
    ("the text of a skill", [*rounds(4), told(SKILL, isMeta=True, sourceToolUseID="c3"), OWN], 4),  # type: ignore[arg-type]
    (
        "the text of a hook beside a call",
        [*rounds(4), beside("hook_additional_context", content=['"type":"user"']), OWN],
        4,
    ),
    ("a compaction", [*rounds(4), BOUNDARY, SUMMARY, OWN], 0),
    ("a file that has just begun", [told(), *rounds(1), OWN], 1),
    ("another agent", [{**line, "agentId": "a2"} for line in rounds(4)] + [OWN], 0),
    ("lines of another agent between", [*rounds(2), {**told("x"), "agentId": "a2"}, *rounds(2, first="d"), OWN], 4),
    ("texts and thoughts between", [*rounds(2), {**OWN, "message": {"content": []}}, *rounds(2, first="d"), OWN], 4),
    ("a line with copies of messages", [*rounds(4), {**OWN, "type": "api-request-blob"}, OWN], 4),
    ("deep input", [*rounds(4, tool_input=deep(50)), asks("own", deep(50))], 4),
    ("too deep input", [*rounds(4, tool_input=deep(90)), asks("own", deep(90))], 0),
    ("input of 100 KB", [*rounds(4, tool_input={"x": "y" * 100_000}), asks("own", {"x": "y" * 100_000})], 4),
    ("input of 1 MiB", [*rounds(4, tool_input={"x": "y" * (1 << 20)}), asks("own", {"x": "y" * (1 << 20)})], 4),
    ("results of nearly 2 MiB", [*rounds(4, "y" * (1 << 20), toolUseResult="y" * (1000 << 10)), OWN], 4),
    ("results of more than 2 MiB", [*rounds(4, "y" * (1 << 20), toolUseResult="y" * (1 << 20)), OWN], 0),
    ("input of 4 MiB", [*rounds(4), asks("own", {"x": "y" * (4 << 20)})], 0),
    ("a call of 3 MiB between", [*rounds(4), asks("o", {"x": "y" * (3 << 20)}), gives("o"), OWN], 0),
    ("malformed messages", [*rounds(4), {**OWN, "message": 3}, {**OWN, "message": {"content": [3]}}, OWN], 4),
    ("messages without an ID", [{**line, "message": without_id(line)} for line in [*rounds(4), OWN]], 4),
    ("a call without a name", [*rounds(4, tool=3), asks("own", None, 3)], 4),  # type: ignore[arg-type]
]


@table(("name", "lines", "due"), ROWS)
def test_identical_calls_with_identical_results_are_counted_as_a_row(
    talks: Path, name: str, lines: list[Line], due: int
) -> None:
    file = written(talks / "agent-a1.jsonl", told(), *lines)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recent_calls_module, "_SECONDS_TO_READ", 60)
        count = row_before("own", recent_calls(str(file), AGENT))
    assert (name, count) == (name, due)


LATE: list[tuple[str, list[Line], bool]] = [
    ("nothing is written", [], True),
    ("one other call", rounds(1), True),
    ("two calls with different results", turns("a", "b"), True),
    ("two identical calls: the third and the call itself may be missing", rounds(2), False),
    ("four identical calls", rounds(4), False),
    ("another call was the last", [*rounds(4), *OTHER], True),
    ("the last result is missing, it would make two", [*rounds(1), asks("x"), OWN], True),
    ("the last result is missing, it would make three", [*rounds(2), asks("x"), OWN], False),
    ("the last result is missing, it would make four", [*rounds(3), asks("x"), OWN], False),
    ("the call without a result differs", [*rounds(4), asks("x", {}), OWN], True),
    ("a call beside it has no result", [*rounds(3), asks("x", message="msg_own"), OWN], True),
]


@table(("name", "lines", "is_known"), LATE)
def test_a_missing_line_is_waited_for_only_if_it_could_complete_a_row(
    talks: Path, name: str, lines: list[Line], is_known: object
) -> None:
    file = written(talks / "agent-a1.jsonl", told(), *lines)
    count = row_before("own", recent_calls(str(file), AGENT))
    assert (name, count) == (name, (3 if "beside" in name else 0) if is_known else None)


SECONDS = 9
KINDS = ["ok", "other", "slow", "refused", "new turn"]


def a_life(chance: random.Random, length: int) -> list[tuple[str, str]]:
    """Random calls: kind and command of each, with few choices so that rows occur."""
    return [(chance.choices(KINDS, (90, 10, 4, 8, 2))[0], chance.choice("aaaab")) for _ in range(length)]


def as_lines(life: list[tuple[str, str]]) -> list[Line]:
    lines = [told()]
    for number, (kind, command) in enumerate(life):
        key = f"c{number}"
        lines += [told("Go on.")] if kind == "new turn" else []
        more = {"failed": True, **REJECTED} if kind == "refused" else {}
        second = SECONDS if kind == "slow" else 2
        shown = "other" if kind == "other" else "ok"
        lines += [asks(key, {"command": command}), gives(key, shown, second=second, **more)]
    return lines


def row_of(life: list[tuple[str, str]], command: str) -> int:
    """The rule in simple form: counts back from the last call while the calls are identical."""
    row = list[str]()
    for kind, other in reversed(life):
        if kind != "refused":
            if other != command or kind == "slow" or (row and row[0] != kind.replace("new turn", "ok")):
                break
            row.append(kind.replace("new turn", "ok"))
        if kind == "new turn":
            break
    return min(len(row), 4)


@table("seed", range(8))
def test_the_row_of_random_calls_matches_the_rule(talks: Path, seed: int) -> None:
    chance = random.Random(seed)
    life = a_life(chance, 60)
    found: list[int | None] = []
    due: list[int] = []
    for length in range(len(life)):
        own = {"command": life[length][1]}
        lines = as_lines(life[:length])[-60:]
        file = written(talks / "agent-a1.jsonl", told(), *lines, asks("own", own))
        found.append(row_before("own", recent_calls(str(file), AGENT)))
        due.append(row_of(life[:length], life[length][1]))
    assert found == due
    assert max(due) >= repeats.TOLD_AFTER


CAPTURES = sorted((Path(__file__).parents[1] / "data" / "hosts").glob("claude-code-*/*.jsonl"))


def test_no_captured_agent_repeats_a_call_often_enough_to_be_warned(talks: Path) -> None:
    counts: Counter[int] = Counter()
    for capture in CAPTURES:
        agents: dict[str, list[Line]] = {}
        for line in map(json.loads, capture.read_text(encoding="utf-8").splitlines()):
            payload = line.get("stdin")
            if not isinstance(payload, dict) or "tool_use_id" not in payload:
                continue
            lines, key = agents.setdefault(payload.get("agent_id", ""), [told()]), payload["tool_use_id"]
            if payload["hook_event_name"] == "PreToolUse":
                lines.append(asks(key, payload["tool_input"], payload["tool_name"]))
                file = written(talks / "agent-a1.jsonl", *lines)
                counts[row_before(key, recent_calls(str(file), AGENT)) or 0] += 1
            elif payload["hook_event_name"].startswith("PostToolUse"):
                lines.append(gives(key, payload.get("tool_response", payload.get("error"))))
    assert counts.total() > 300
    assert max(counts) < repeats.TOLD_AFTER, counts


def test_only_the_end_of_a_long_transcript_is_read(talks: Path) -> None:
    sizes = []
    for megabytes in (1, 60):
        file = written(talks / "agent-a1.jsonl", told("x" * (megabytes << 20)), *rounds(4), OWN)
        with file.open("rb") as opened:
            before = _bytes_read()
            assert row_before("own", recent_calls(str(file), AGENT)) == 4
            sizes.append(_bytes_read() - before)
            assert opened.seek(0, 2) > megabytes << 20
    assert sizes[1] <= sizes[0] + (4 << 10)


def _bytes_read() -> int:
    with open("/proc/self/io", encoding="ascii") as file:
        return int(file.readline().split()[1])


def test_reading_that_takes_too_long_raises_a_timeout(talks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(talks / "agent-a1.jsonl", told(), *rounds(4), OWN)
    monkeypatch.setattr(recent_calls_module, "_SECONDS_TO_READ", -1)
    with pytest.raises(TimeoutError):
        row_before("own", recent_calls(str(file), AGENT))
