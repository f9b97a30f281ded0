"""What it costs to follow the tools of a sub-agent: no other event comes so often.

Owns which of its calls are measured. Every one is made in a session of its own, so that each is the first.
"""

from __future__ import annotations

import json

from . import samples
from .starts import HOOK_LIMIT, Host, measure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .findings import Finding

_READING = "cd infra && git status --short && grep -rn 'cidr = ' modules 2>/dev/null | head -50"
_WRITING = f"{_READING}; terraform apply -auto-approve plans/2026-01-08-network.tfplan 2>&1 | tail -40"
_PRINTED = "module.network.aws_subnet.private[0]: Refreshing state... [id=subnet-0a1b2c3d4e5f]\n" * 50


def tools(folder: str) -> Iterator[Finding]:
    """Each kind of news of a tool, and the dearest of all: the one that finds the agent's start still waiting."""
    project, _ = samples.project(folder)
    host = Host(project)
    for what, decision, event, command in (
        ("a tool about to be used", "known", "PreToolUse", _WRITING),
        ("a request for permission", "inferred", "PermissionRequest", _WRITING),
        ("a command that only reads", "noted", "PostToolUse", _READING),
        ("a command that writes", "inferred", "PostToolUse", _WRITING),
    ):
        feed = _Feed(host, event, command)
        yield measure(host.start(f"every_event, {what}", decision, feed.joined, "--track-tools"), HOOK_LIMIT)
    feed = _Feed(host, "PostToolUse", _WRITING)
    what = "a command that writes, before its agent's start was joined"
    yield measure(host.start(f"every_event, {what}", "inferred", feed.waiting, "--track-tools"), HOOK_LIMIT)


class _Feed:
    """News of one kind, ever of another agent."""

    def __init__(self, host: Host, event: str, command: str) -> None:
        self.host = host
        self.event = event
        self.command = command

    def waiting(self) -> bytes:
        """Its agent's start still waits."""
        return self.host.payload(
            "PreToolUse",
            hook_event_name=self.event,
            agent_id=self.host.started_agent(),
            agent_type=samples.AGENT,
            tool_name="Bash",
            tool_input={"command": self.command, "description": "Look, then apply"},
            tool_use_id=self.host.new_key(),
            tool_response={"stdout": _PRINTED, "stderr": "", "interrupted": False, "isImage": False},
        )

    def joined(self) -> bytes:
        """Another event has brought its agent's start into the record."""
        payload = self.waiting()
        self.host.tell(json.dumps({**json.loads(payload), "hook_event_name": "SessionStart"}).encode())
        return payload
