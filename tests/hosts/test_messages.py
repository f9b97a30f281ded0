"""The latest messages of an agent, from the end of the transcript that its host keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.hosts import recent_messages

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Run

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "hosts").glob("claude-code-*/interrupt-live.jsonl"))


def of_role(role: str, content: str, tool: str | None = None, call: str | None = None) -> dict[str, object]:
    return {"role": role, "content": content, "tool_name": tool, "tool_call_id": call}


def line(role: str, content: object, **keys: object) -> str:
    return json.dumps({"type": role, "message": {"role": role, "content": content}, **keys}) + "\n"


def run_with(path: Path, text: str) -> Run:
    path.write_text(text, encoding="utf-8")
    return {"run": 1, "host": "claude-code", "transcript_path": str(path)}


@pytest.mark.parametrize("capture", CAPTURES, ids=[path.parent.name for path in CAPTURES])
def test_text_calls_and_results_are_messages_in_their_order(capture: Path, tmp_path: Path) -> None:
    files = json.loads(capture.read_text(encoding="utf-8").splitlines()[-1])["files"]
    [transcript] = [text for name, text in files.items() if "/subagents/agent-" in name and name.endswith(".jsonl")]

    found = recent_messages(run_with(tmp_path / "t.jsonl", transcript + "\n"), 6)

    call = found[2]["tool_call_id"]
    assert found == [
        of_role("user", "[[sub:alpha]] Do the job called alpha and report."),
        of_role("assistant", "A step."),
        of_role("assistant", '{"command": "echo step", "description": "Run a command"}', "Bash", call),
        of_role("tool", "step", None, call),
        of_role("user", "[Request interrupted by user]"),
    ]


def test_only_the_latest_are_read_and_a_line_that_is_being_written_is_none(tmp_path: Path) -> None:
    lines = [line("assistant", f"Step {number}. " + "x" * 1000) for number in range(2000)]

    found = recent_messages(run_with(tmp_path / "t.jsonl", "".join(lines) + '{"type": "assis'), 2)

    assert [message["content"][:10] for message in found] == ["Step 1998.", "Step 1999."]


UNREADABLE = {
    "not JSON": "hello\n",
    "another kind of line": '{"type": "system", "message": {"content": "x"}}\n',
    "no message": '{"type": "user"}\n',
    "content of another kind": line("assistant", 7),
    "blocks of another kind": line("assistant", [7, {}, {"type": "text", "text": 7}, {"type": "thinking"}, None]),
    "one line of a megabyte": line("assistant", "x" * (1 << 20)),
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_has_no_messages(text: str, tmp_path: Path) -> None:
    assert recent_messages(run_with(tmp_path / "t.jsonl", text), 6) == []


def test_a_run_without_a_transcript_of_messages_has_none(tmp_path: Path) -> None:
    run = run_with(tmp_path / "t.jsonl", line("user", "Hello."))

    assert recent_messages({**run, "workflow": {"run_id": "wf_1"}}, 6) == []
    assert recent_messages({"run": 1, "host": "claude-code", "transcript_path": "/gone"}, 6) == []
    assert recent_messages({"run": 1, "host": "claude-code"}, 6) == []
    assert recent_messages({"run": 1, "host": "codex"}, 6) == []
    assert recent_messages({"run": 1}, 6) == []
