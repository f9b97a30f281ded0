"""What it costs to track the tools of a sub-agent, the most frequent events of all.

Owns which of those calls are measured. Each is made in a session of its own, so that it is the first of that session.
"""

from __future__ import annotations

import json

from . import samples
from .client import Client
from .starts import HOOK_LIMIT, measure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .findings import Finding

_READING = "cd infra && git status --short && grep -rn 'cidr = ' modules 2>/dev/null | head -50"
_WRITING = f"{_READING}; terraform apply -auto-approve plans/2026-01-08-network.tfplan 2>&1 | tail -40"
_PRINTED = "module.network.aws_subnet.private[0]: Refreshing state... [id=subnet-0a1b2c3d4e5f]\n" * 50


def tools(folder: str) -> Iterator[Finding]:
    """Each kind of event of a tool, and the most expensive one: it finds the start of its agent in the inbox."""
    project, _ = samples.project(folder)
    client = Client(project)
    for what, decision, event, command in (
        ("a tool about to be used", "known", "PreToolUse", _WRITING),
        ("a request for permission", "inferred", "PermissionRequest", _WRITING),
        ("a command that only reads", "noted", "PostToolUse", _READING),
        ("a command that writes", "inferred", "PostToolUse", _WRITING),
    ):
        feed = _Feed(client, event, command)
        yield measure(client.start(f"every_event, {what}", decision, feed.joined, "--track-tools"), HOOK_LIMIT)
    feed = _Feed(client, "PostToolUse", _WRITING)
    what = "a command that writes, before its agent's start was joined"
    yield measure(client.start(f"every_event, {what}", "inferred", feed.waiting, "--track-tools"), HOOK_LIMIT)


class _Feed:
    """Events of one kind, each of a new agent."""

    def __init__(self, client: Client, event: str, command: str) -> None:
        self.client = client
        self.event = event
        self.command = command

    def waiting(self) -> bytes:
        """An event whose agent has started, with the start still in the inbox."""
        return self.client.payload(
            "PreToolUse",
            hook_event_name=self.event,
            agent_id=self.client.started_agent(),
            agent_type=samples.AGENT,
            tool_name="Bash",
            tool_input={"command": self.command, "description": "Look, then apply"},
            tool_use_id=self.client.new_key(),
            tool_response={"stdout": _PRINTED, "stderr": "", "interrupted": False, "isImage": False},
        )

    def joined(self) -> bytes:
        """An event whose agent has started, with the start in the record because of an event before."""
        payload = self.waiting()
        self.client.send(json.dumps({**json.loads(payload), "hook_event_name": "SessionStart"}).encode())
        return payload
