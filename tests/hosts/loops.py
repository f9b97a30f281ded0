"""Lines of transcripts of Claude Code agents that repeat a call."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Line = dict[str, Any]

AGENT = "a1"
BASH = {"command": "make test", "description": "Run the tests"}
REJECTED: dict[str, Any] = {"permissionDecision": {"decision": "reject", "source": "hook", "reasonType": "hook"}}
"""What Claude Code 2.1.330 and later add to the result of a call that a hook refused."""


def at(second: float) -> str:
    return f"{datetime(2026, 1, 8, 18, tzinfo=UTC) + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def told(text: str = "Do the job.", **more: Any) -> Line:
    return {
        "agentId": AGENT,
        "type": "user",
        "message": {"role": "user", "content": text},
        "uuid": "u",
        "timestamp": at(0),
        **more,
    }


def asks(key: str, tool_input: Any = None, tool: str = "Bash", *, message: str = "", second: float = 1) -> Line:
    """The call ``key`` of a tool, in its own message unless ``message`` is given."""
    given = BASH if tool_input is None else tool_input
    block = {"type": "tool_use", "id": key, "name": tool, "input": given}
    body = {"id": message or f"msg_{key}", "type": "message", "role": "assistant", "content": [block]}
    return {"agentId": AGENT, "message": body, "type": "assistant", "uuid": "u", "timestamp": at(second)}


def gives(key: str, content: Any = "ok", *, failed: bool | None = False, second: float = 2, **more: Any) -> Line:
    block = {"tool_use_id": key, "type": "tool_result", "content": content, "is_error": failed}
    message = {"role": "user", "content": [block]}
    return {"agentId": AGENT, "type": "user", "message": message, "uuid": "u", "timestamp": at(second), **more}


def rounds(
    number: int, content: Any = "ok", tool_input: Any = None, tool: str = "Bash", first: str = "c", **more: Any
) -> list[Line]:
    """The same call ``number`` times, each in its own message, with the same result."""
    keys = [f"{first}{place}" for place in range(number)]
    return [line for key in keys for line in (asks(key, tool_input, tool), gives(key, content, **more))]


def written(file: Path, *lines: Line) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    return file
