"""Which stop of a Claude Code agent a hook may hold, identified by the agent's transcript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.config import Config
from gaia_sessions.hosts import HOSTS, host_named
from gaia_sessions.hosts.claude_code import stops
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.session.ids import quick_digest
from tests.hosts.late import without_pauses
from tests.records import START
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Collection


def said(text: str, uuid: str = "u1", **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "uuid": uuid, "message": {"content": [{"type": "text", "text": text}]}, **more}


def told(text: str, uuid: str = "t1") -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}


USES: dict[str, Any] = {"type": "assistant", "uuid": "c1", "message": {"content": [{"type": "tool_use", "id": "x"}]}}
THINKS: dict[str, Any] = {"type": "assistant", "uuid": "h1", "message": {"content": [{"type": "thinking"}]}}
BESIDE = {"type": "attachment", "uuid": "b1"}
DONE = said("Done.")
KEY = quick_digest("u1")


def stop(tmp: Path, lines: list[Any], known: Collection[str] = (), message: str = "Done.", **more: Any) -> Any:
    folder = Path.home() / ".claude" / "projects" / f"-{tmp.name}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "agent-a1.jsonl"
    file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    raw = {"hook_event_name": "SubagentStop", "agent_transcript_path": str(file), "last_assistant_message": message}
    return stops.stop_to_hold(HookPayload("claude-code", {**raw, **more}, Config({}), START, {}), known)


@table(
    ("lines", "known", "key"),
    [
        ([told("Go."), DONE], [], KEY),
        ([told("Go."), DONE, BESIDE], [], KEY),
        ([told("Go."), DONE, THINKS], [], KEY),
        ([told("Go."), said("And"), said("Done.", "u2")], [], quick_digest("u2")),
        ([told("Go."), DONE, told("Go on."), said("Done.", "u2")], [KEY], quick_digest("u2")),
        ([told("Go."), DONE], [KEY], KEY),
        ([told("Go."), DONE, told("Go on.")], [KEY], quick_digest(f"{KEY} 1")),
        ([told("Go."), DONE, told("Go on.")], [], None),
        ([told("Go."), DONE, told("Go on."), USES], [KEY], None),
        ([told("Go."), DONE, told("Go on."), said("Other.", "u2")], [KEY], None),
        ([told("Go."), said("Other.")], [], None),
        ([told("Go."), USES], [], None),
        ([told("Done.")], [], None),
        ([], [], None),
        ([told("Go."), {**DONE, "uuid": 5}], [], None),
        ([told("Go."), {"type": "assistant", "uuid": "u1", "message": {"content": "Done."}}], [], None),
        ([told("Go."), {"type": "assistant", "uuid": "u1", "message": []}], [], None),
        ([told("Go."), ["assistant"]], [], None),
        ([DONE, *[told("x" * 100_000)] * 12], [KEY], None),
    ],
)
def test_a_stop_is_identified_by_the_message_that_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[Any], known: list[str], key: str | None
) -> None:
    without_pauses(monkeypatch)
    found = stop(tmp_path, lines, known)
    if key is None:
        assert found is None
        return
    reply = found.pop("reply")
    assert found == {"key": key, "most": 8, "shell": "Bash"}
    assert reply("it is not done") == {"decision": "block", "reason": "it is not done"}


def test_a_stop_of_the_main_agent_is_not_held(tmp_path: Path) -> None:
    assert stop(tmp_path, [told("Go."), DONE], hook_event_name="Stop") is None


@table("path", ["/etc/passwd", 5, "", "/no/such/file"])
def test_a_transcript_outside_the_hosts_folder_raises_an_error(tmp_path: Path, path: Any) -> None:
    with pytest.raises(OSError, match=r"not below|no files"):
        stop(tmp_path, [told("Go."), DONE], agent_transcript_path=path)


@table("name", [name for name in HOSTS if name != "claude-code"])
def test_only_claude_code_can_hold_a_stop(name: str) -> None:
    host = host_named(name)
    assert host.stop_to_hold is None
