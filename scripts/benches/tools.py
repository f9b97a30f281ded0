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

_COMMAND = "cd infra && terraform apply -auto-approve plans/2026-01-08-network.tfplan 2>&1 | tail -40"
_INPUTS = {
    "Bash": {"command": _COMMAND, "description": "Apply the plan"},
    "Edit": {"file_path": "/srv/infra/network.tf", "old_string": "a", "new_string": "b"},
}
_PRINTED = "module.network.aws_subnet.private[0]: Refreshing state... [id=subnet-0a1b2c3d4e5f]\n" * 50


def tools(folder: str) -> Iterator[Finding]:
    """Each kind of event of a tool, and the most expensive one: it finds the start of its agent in the inbox."""
    project, _ = samples.project(folder)
    client = Client(project)
    for what, decision, event, name in (
        ("a request for permission", "inferred", "PermissionRequest", "Bash"),
        ("a command", "noted", "PostToolUse", "Bash"),
        ("an edit", "inferred", "PostToolUse", "Edit"),
    ):
        feed = _Feed(client, event, name)
        yield measure(client.start(f"every_event, {what}", decision, feed.joined, "--track-tools"), HOOK_LIMIT)
    feed = _Feed(client, "PostToolUse", "Edit")
    what = "an edit, before its agent's start was joined"
    yield measure(client.start(f"every_event, {what}", "inferred", feed.waiting, "--track-tools"), HOOK_LIMIT)


class _Feed:
    """Events of one kind, each of a new agent."""

    def __init__(self, client: Client, event: str, name: str) -> None:
        self.client = client
        self.event = event
        self.name = name

    def waiting(self) -> bytes:
        """An event whose agent has started, with the start still in the inbox."""
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
        """An event whose agent has started, with the start in the record because of an event before."""
        payload = self.waiting()
        self.client.send(json.dumps({**json.loads(payload), "hook_event_name": "SessionStart"}).encode())
        return payload
