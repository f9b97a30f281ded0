"""What hooks before each use of a tool by a sub-agent cost, with and without limits: the most frequent events.

Each call has its own session, and is the first call for that session.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gaia_sessions import Sessions
from gaia_sessions.api import at, records

from . import samples
from .client import Client
from .starts import HOOK_LIMIT, measure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .findings import Finding

_COMMAND = "cd infra && terraform apply -auto-approve plans/2026-01-08-network.tfplan 2>&1 | tail -40"
_INPUTS = {
    "Bash": {"command": _COMMAND, "description": "Apply the plan"},
}
_ENFORCED_LIMIT = 2.3
_LOOPS, _LOOP_LIMIT = "GAIA_SESSIONS_LIMITS_REPEATS", 2.7
_WORK = 1 << 20
"""Bytes of the transcript of an agent whose limits are checked."""

_PRINTED = "module.network.aws_subnet.private[0]: Refreshing state... [id=subnet-0a1b2c3d4e5f]\n" * 50


def tools(folder: str) -> Iterator[Finding]:
    """Measures a request for permission, and the most expensive calls before a use of a tool."""
    project, _ = samples.project(folder)
    client = Client(project)
    feed = _Feed(client, "PermissionRequest", "Bash")
    yield measure(client.start("every_event, a request for permission", "noted", feed.joined), HOOK_LIMIT)
    what = "a request for permission, before its agent's start was joined"
    yield measure(client.start(f"every_event, {what}", "noted", feed.waiting), HOOK_LIMIT)
    what = "before a use, with a budget and a transcript of 1 MiB"
    start = client.start(f"every_event, {what}", "allowed", _Feed(client, "PreToolUse", "Bash").with_work, "--enforce")
    yield measure(start, _ENFORCED_LIMIT)
    what = "before a use that goes on with a loop"
    start = client.start(f"every_event, {what}", "denied", _Feed(client, "PreToolUse", "Bash").with_work, "--enforce")
    os.environ[_LOOPS] = "deny"
    try:
        yield measure(start, _LOOP_LIMIT)
    finally:
        del os.environ[_LOOPS]


class _Feed:
    """Events of one kind, each of a new agent."""

    def __init__(self, client: Client, event: str, name: str) -> None:
        self.client = client
        self.event = event
        self.name = name

    def waiting(self) -> bytes:
        """Returns an event of an agent whose start is still in the inbox."""
        return self.client.payload(
            "PreToolUse",
            hook_event_name=self.event,
            agent_id=self.client.started_agent(),
            agent_type=samples.AGENT,
            tool_name=self.name,
            tool_input=_INPUTS[self.name],
            tool_use_id=self.client.new_key(),
            tool_response={"stdout": _PRINTED, "stderr": "", "interrupted": False, "isImage": False},
        )

    def joined(self) -> bytes:
        """Returns an event of an agent whose start is in the record because of an earlier event."""
        payload = self.waiting()
        self.client.send(json.dumps({**json.loads(payload), "hook_event_name": "SessionStart"}).encode())
        return payload

    def with_work(self) -> bytes:
        """Returns an event of an agent that has worked for a while."""
        payload = self.joined()
        told = json.loads(payload)
        sessions = Sessions(str(self.client.project / ".claude" / "session"))
        agent_id = at.write(sessions, records.id_of_host_agent, told["session_id"], told["agent_id"])
        sessions.update(agent_id, max_tokens=10**9)
        usage = {
            "input_tokens": 900,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 90,
        }
        around = {"uuid": "u", "timestamp": "2126-01-08T18:05:30.123Z", "agentId": told["agent_id"]}

        def asks(key: str) -> str:
            call = {"type": "tool_use", "id": key, "name": "Bash", "input": _INPUTS["Bash"]}
            message = {"id": f"msg_{key}", "role": "assistant", "content": [call], "usage": usage}
            return json.dumps({"message": message, "type": "assistant", **around}, separators=(",", ":"))

        lines: list[str] = []
        size = 0
        while size < _WORK:
            result = {"type": "tool_result", "tool_use_id": f"toolu_{len(lines)}", "content": _PRINTED}
            lines.append(asks(f"toolu_{len(lines)}"))
            answer = {"type": "user", "message": {"content": [result]}, **around}
            lines.append(json.dumps(answer, separators=(",", ":")))
            size += len(lines[-1]) + len(lines[-2])
        lines.append(asks(told["tool_use_id"]))
        file = Path(told["transcript_path"].removesuffix(".jsonl"), "subagents", f"agent-{told['agent_id']}.jsonl")
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return payload
