"""How a run of Codex ended, as its rollout file shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gaia_sessions.hosts import end_in_files
from tests.table import table

AT = "2026-11-27T10:00:00.000Z"
ABORTED = ("event_msg", {"type": "turn_aborted", "reason": "interrupted"})
BEGUN = ("event_msg", {"type": "task_started", "turn_id": "t"})
TURN = ("turn_context", {"cwd": "/p"})
SAID = ("response_item", {"type": "message", "role": "user", "content": [{"text": "<turn_aborted> turn_context"}]})
COUNTED = ("event_msg", {"type": "token_count", "info": None})
DONE = ("event_msg", {"type": "task_complete", "last_agent_message": "turn_aborted"})
LONG = ("response_item", {"type": "function_call_output", "output": "x" * 300_000})
INTERRUPTED = ("killed", {"detail": "interrupted", "interruption": "interrupted"})


def ended(entries: list[Any], *, torn: str = "", **run: Any) -> Any:
    folder = Path.home() / ".codex" / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rollout.jsonl"
    lines = [json.dumps({"timestamp": AT, "type": kind, "payload": payload}) for kind, payload in entries]
    path.write_text("".join(f"{line}\n" for line in lines) + torn, encoding="utf-8")
    return end_in_files({"run": 1, "host": "codex", "transcript_path": str(path), **run})  # type: ignore[typeddict-item]


@table(
    ("entries", "end"),
    [
        ([BEGUN, TURN, SAID, ABORTED], INTERRUPTED),
        ([BEGUN, TURN, ABORTED, SAID, COUNTED], INTERRUPTED),
        ([BEGUN, TURN], None),
        ([BEGUN, TURN, SAID], None),
        ([BEGUN, TURN, ABORTED, BEGUN], None),
        ([BEGUN, TURN, ABORTED, TURN], None),
        ([BEGUN, TURN, ABORTED, DONE], None),
        ([BEGUN, TURN, DONE], None),
        ([BEGUN, TURN, ABORTED, LONG], None),
        ([LONG, ABORTED], INTERRUPTED),
        ([("event_msg", "turn_aborted")], None),
        ([("turn_aborted", {"type": "turn_aborted"})], None),
        ([], None),
    ],
)
def test_an_agent_of_codex_was_interrupted_if_its_last_turn_was_aborted(entries: list[Any], end: object) -> None:
    assert ended(entries) == end


def test_a_turn_that_was_aborted_before_the_run_does_not_end_it() -> None:
    assert ended([ABORTED], started_at="2026-11-27T10:00:01Z") is None
    assert ended([ABORTED], started_at="2026-11-27T09:59:59Z") == INTERRUPTED


def test_an_incomplete_last_line_does_not_count() -> None:
    assert ended([ABORTED], torn=json.dumps({"type": TURN[0]})) == INTERRUPTED
    assert ended([TURN], torn=json.dumps({"type": "event_msg", "payload": ABORTED[1]})) is None


def test_a_run_without_a_codex_file_has_no_known_end(tmp_path: Path) -> None:
    elsewhere = tmp_path / "rollout.jsonl"
    elsewhere.write_text(json.dumps({"type": "event_msg", "payload": ABORTED[1]}) + "\n", encoding="utf-8")
    for run in ({}, {"transcript_path": str(elsewhere)}, {"transcript_path": ""}):
        assert end_in_files({"run": 1, "host": "codex", **run}) is None  # type: ignore[typeddict-item]
