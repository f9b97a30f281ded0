"""The messages of an agent, read from the transcript of its host."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaia_sessions.errors import InvalidInput, SessionsError, StoreFailure
from gaia_sessions.hosts import messages, messages_newest_first, sent_newest_first
from gaia_sessions.session.clock import format_time, parse_time
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.schema import Run

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "hosts").glob("claude-code-*/interrupt-live.jsonl"))
WHEN = "2026-11-22T12:22:25.636Z"
STORED = "2026-11-22T12:22:25.636000Z"


def of_role(role: str, content: str, **keys: str) -> dict[str, object]:
    return {"role": role, "content": content, **keys}


def line(role: str, content: object, **keys: object) -> str:
    message = {"role": role, "content": content}
    return as_written({"type": role, "agentId": "a1", "timestamp": WHEN, "message": message, **keys})


def as_written(entry: object) -> str:
    """A line of JSON without spaces, as the client writes it; some captures have spaces."""
    return json.dumps(entry, separators=(",", ":")) + "\n"


def run_with(path: Path, text: str) -> Run:
    path.write_text(text, encoding="utf-8")
    return {"run": 1, "host": "claude-code", "host_agent_id": "a1", "transcript_path": str(path)}


def problems(run: Run) -> list[str]:
    """What is reported for a transcript without messages."""
    found = [*messages(run)]
    assert all(isinstance(one, SessionsError) for one in found)
    return [str(one).removeprefix(run["transcript_path"]).lstrip(": ") for one in found]


@table("capture", CAPTURES)
def test_texts_calls_and_results_are_messages_in_order(capture: Path, talks: Path) -> None:
    files = json.loads(capture.read_text(encoding="utf-8").splitlines()[-1])["files"]
    [(name, transcript)] = [one for one in files.items() if "/subagents/agent-" in one[0] and one[0][-1] == "l"]
    agent = Path(name).stem.removeprefix("agent-")

    found: Any = [*messages({**run_with(talks / "t.jsonl", transcript + "\n"), "host_agent_id": agent})]

    call = found[2]["tool_call_id"]
    times = [message.pop("timestamp") for message in found]
    assert found == [
        of_role("user", "[[sub:alpha]] Do the job called alpha and report."),
        of_role("assistant", "A step."),
        of_role(
            "assistant",
            '{"command": "echo step", "description": "Run a command"}',
            tool_name="Bash",
            tool_call_id=call,
        ),
        of_role("tool", "step", tool_call_id=call),
        of_role("user", "[Request interrupted by user]"),
    ]
    assert times == sorted(times)


def transcripts() -> Iterator[tuple[str, str, str]]:
    """The agents' transcripts at the end of each capture: the capture, the agent, the text."""
    for path in sorted((Path(__file__).parents[1] / "data" / "hosts").glob("claude-code-*/*.jsonl")):
        for name, text in json.loads(path.read_text(encoding="utf-8").splitlines()[-1]).get("files", {}).items():
            agent = Path(name).name.removeprefix("agent-").removesuffix(".jsonl")
            if Path(name).name == f"agent-{agent}.jsonl":
                yield f"{path.parent.name}/{path.stem}", agent, text


def test_every_captured_transcript_is_read_completely(talks: Path) -> None:
    read = []
    for where, agent, text in transcripts():
        found = [*messages({**run_with(talks / "t.jsonl", f"{text}\n"), "host_agent_id": agent})]
        assert [one for one in found if isinstance(one, SessionsError)] == [], where
        spoken = [json.loads(line) for line in text.splitlines() if line]
        assert {one["timestamp"] for one in found if isinstance(one, dict)} == {
            format_time(parse_time(entry["timestamp"])) for entry in spoken if says_something(entry)
        }, where
        read.append(where)
    assert len(read) > 30


def test_every_captured_transcript_is_read_from_its_end_as_one_turn(talks: Path) -> None:
    without_beginning = []
    for where, agent, text in transcripts():
        written = "".join(as_written(json.loads(entry)) for entry in text.splitlines() if entry)
        run: Run = {**run_with(talks / "t.jsonl", written), "host_agent_id": agent}
        in_order = [*messages(run)]
        found = [*messages_newest_first(run, 1 << 20)]
        assert [message for _, message in reversed(found)] == in_order, where
        begins = [place for place, (begins, _) in enumerate(reversed(found)) if begins]
        sent = [(True, message) for message in in_order[:1]]
        assert (begins, [*sent_newest_first(run, never)]) in [([0], sent), ([], [])], where
        if not begins:
            without_beginning.append(where)
    assert sorted(set(without_beginning)) == [
        "claude-code-2.1.330/tui-clear-then-prompt",
        "claude-code-2.1.330/tui-resume-switch",
        "claude-code-2.1.332/background-waits-for-command-tui-clear",
    ]


def never() -> bool:
    return False


def said(text: str) -> str:
    return line("user", [{"type": "text", "text": text}])


RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "done"}]}


@table("between", [0, 1, 65_530, 65_536, 2 << 20, 9 << 20])
def test_the_first_message_of_each_turn_is_found_even_far_back(talks: Path, between: int) -> None:
    rounds = line("assistant", "x" * 1000) + line("user", [RESULT])
    work = (rounds * (1 + between // len(rounds)))[-between:] if between else ""
    work = work.partition("\n")[2]
    told = [line("user", text) for text in ("One.", "Two.", "Three.")]
    run = run_with(talks / "t.jsonl", "".join(one + work for one in told) + '{"type": "user", "agentId": "a1", ')
    found = [(one["content"], is_first) for is_first, one in sent_newest_first(run, never)]
    assert found == [("Three.", False), ("Two.", False), ("One.", True)]
    looks = iter([False, True])
    assert len([*sent_newest_first(run, lambda: next(looks, True))]) <= 3


@table("length", [(2 << 20) - 200, 2 << 20, 3 << 20, 20 << 20])
@table("end", ["", line("assistant", "x" * 70_000), line("assistant", "x" * 1000) * 3000])
def test_an_older_message_does_not_replace_one_that_is_too_long(talks: Path, length: int, end: str) -> None:
    run = run_with(talks / "t.jsonl", line("user", "One.") + line("user", "x" * length) + end)
    found = [len(one["content"]) for _, one in sent_newest_first(run, never)]
    assert found == ([length, 4] if length < 2 << 20 else [])


def test_an_incomplete_last_line_is_ignored(talks: Path) -> None:
    run = run_with(talks / "t.jsonl", line("user", "One.") + line("user", "Two.").rstrip("\n")[:-3])
    assert [(is_first, one["content"]) for is_first, one in sent_newest_first(run, never)] == [(True, "One.")]


@table("content", ["[Request interrupted by user]", "Stop hook feedback:\nMore.", [RESULT], 7, [7], None])
def test_lines_that_begin_no_turn_are_ignored(talks: Path, content: Any) -> None:
    run = run_with(talks / "t.jsonl", line("user", content) + said("x").replace('"a1"', '"a2"'))
    assert [*sent_newest_first(run, never)] == []
    assert [*sent_newest_first({**run, "transcript_path": "/nowhere"}, never)] == []


@table("damage", [b"\n" * (64 << 20), b'x"user"\n' * (8 << 20), b'{"user":' * (8 << 20)])
def test_the_search_in_a_long_file_stops_when_the_time_is_over(talks: Path, damage: bytes) -> None:
    run = run_with(talks / "t.jsonl", line("user", "Far away."))
    with (talks / "t.jsonl").open("ab") as file:
        file.write(damage)
    looks = count()
    assert [*sent_newest_first(run, lambda: next(looks) > 20)] == []
    assert next(looks) <= 30


def test_reading_from_the_end_stops_if_the_file_is_truncated_meanwhile(talks: Path) -> None:
    path = talks / "t.jsonl"
    run = run_with(path, "".join(line("assistant", f"Step {number}. " + "x" * 1000) for number in range(900)))
    found = messages_newest_first(run, 1 << 20)

    newest = next(found)[1]["content"]
    path.write_text("")

    assert newest.startswith("Step 899.")
    rest = [message["content"].partition(".")[0] for _, message in found]
    assert rest == [f"Step {number}" for number in range(898, 898 - len(rest), -1)]
    assert len(rest) < 100


def says_something(entry: Any) -> bool:
    content = entry.get("message", {}).get("content")
    return isinstance(content, str) or any(block["type"] != "thinking" for block in content or ())


def test_a_text_keeps_its_line_breaks_and_a_time_gets_the_format_of_records(talks: Path) -> None:
    text = "# Title\n\n\tcode\n| a | b |\n"
    assert [*messages(run_with(talks / "t.jsonl", line("assistant", text)))] == [
        {"role": "assistant", "content": text, "timestamp": STORED}
    ]


def test_reading_from_the_end_returns_only_complete_lines(talks: Path) -> None:
    lines = [line("assistant", f"Step {number}. " + "x" * 1000) for number in range(2000)]
    run = run_with(talks / "t.jsonl", "".join(lines) + '{"type": "assis')

    last: Any = [*messages_newest_first(run, 5000)]

    steps = [message["content"][:10] for _, message in last]
    assert steps == ["Step 1999.", "Step 1998.", "Step 1997.", "Step 1996."]
    assert [message["content"].split(".")[0] for message in messages(run) if isinstance(message, dict)] == [
        f"Step {number}" for number in range(2000)
    ]


NO_MESSAGES = {
    "another kind of line": '{"type": "system", "agentId": "a1", "message": {"content": "x"}}\n',
    "content of another kind": line("assistant", 7),
    "blocks of another kind": line("assistant", [7, {}, {"type": "text", "text": 7}, {"type": "thinking"}, None]),
    "only an incomplete line": line("user", "x").rstrip(),
}


@table("text", NO_MESSAGES.values())
def test_lines_that_are_no_messages_are_skipped(text: str, talks: Path) -> None:
    assert [*messages(run_with(talks / "t.jsonl", text))] == []


UNREADABLE = {
    "not JSON": ("hello\n", "line 1: not JSON"),
    "no time": (line("user", "x", timestamp=None), "line 1: not a time"),
    "a line that is too long": (line("user", "x" * (3 << 20)), "line 1: longer than 2 MiB"),
    "another agent's": (line("user", "x", agentId="a2"), "this is the transcript of another agent"),
    "a conversation's": ('{"type": "user", "message": {"content": "x"}}\n', "this is the transcript of another agent"),
}


@table(("text", "problem"), UNREADABLE.values())
def test_an_unreadable_transcript_is_reported_with_the_reason(text: str, problem: str, talks: Path) -> None:
    [said] = problems(run_with(talks / "t.jsonl", text))
    assert said.startswith(problem)


def test_lines_of_another_agent_are_left_out(talks: Path) -> None:
    text = line("user", "mine") + line("user", "not mine", agentId="a2")
    run = run_with(talks / "t.jsonl", text)
    assert [isinstance(found, dict) and found["content"] for found in messages(run)] == ["mine"]
    del run["host_agent_id"]
    assert [type(found) for found in messages(run)] == [InvalidInput]


def test_a_transcript_that_cannot_be_opened_is_reported(talks: Path) -> None:
    run = run_with(talks / "t.jsonl", line("user", "Hello."))
    outside = f"it is not below {talks.parent}"
    for name, why in (("gone", "No such file or directory"), ("", outside)):
        [found] = messages({**run, "transcript_path": f"{talks}/{name}"})
        assert isinstance(found, StoreFailure)
        assert str(found) == f"{talks}/{name}: cannot read: {why}"
    for path in ("t.jsonl", "/etc/passwd", f"{talks}/../-project/t.jsonl"):
        assert problems({**run, "transcript_path": path}) == [f"cannot read: {outside}"]


def test_a_transcript_of_an_unsupported_kind_is_reported(talks: Path) -> None:
    run = run_with(talks / "t.jsonl", line("user", "Hello."))

    [journal] = problems({**run, "workflow": {"run_id": "wf_1"}})
    assert journal == "this is the journal of a workflow; its agents have their own sessions"
    assert problems({**run, "host": "codex"}) == ["transcripts of codex cannot be read"]
    assert problems({"run": 1, "transcript_path": "/t"}) == ["transcripts of an unknown client cannot be read"]
    assert [*messages({"run": 1, "host": "claude-code"})] == []
