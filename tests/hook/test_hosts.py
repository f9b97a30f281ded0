"""Payloads of unsupported hosts, and tools that start no agent: the hooks record nothing and stay silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions import hosts
from tests.hook.conftest import own_host
from tests.table import table

if TYPE_CHECKING:
    from tests.hook.conftest import Host

BASE = {"session_id": "s", "transcript_path": "/t", "cwd": "/p"}

# The documented payloads of hosts that were never tested, for hooks in the settings of Claude Code.
UNSUPPORTED: dict[str, dict[str, object]] = {
    "Cursor": {**BASE, "cursor_version": "2", "hook_event_name": "PreToolUse"},
    "VS Code": {"sessionId": "s", "hookEventName": "PreToolUse"},
    "VS Code in another spelling": {"session_id": "s", "hookEventName": "PreToolUse"},
}


@table("hook", ["every_event", "pre_delegate"])
@table("payload", UNSUPPORTED.values())
@own_host
def test_a_payload_of_an_unsupported_host_gets_silence_and_no_record(
    host: Host, hook: str, payload: dict[str, object]
) -> None:
    asked = {"prompt": "Count the quokkas", "description": "Count", "subagent_type": "x"}

    ran = host.run(hook, {**payload, "tool_name": "Agent", "tool_input": asked, "tool_use_id": "t"})

    assert (ran, host.records()) == ((0, b"", b""), {})
    [line] = host.log("hook" if hook == "every_event" else hook)
    assert (line["decision"], "host" in line) == ("not_ours", False)


def test_an_unreadable_payload_of_an_unsupported_host_gets_silence(host: Host) -> None:
    assert host.run("pre_delegate", b'{"hookEventName": "PreToolUse", ') == (0, b"", b"")


@table("name", hosts.HOSTS)
@own_host
def test_a_tool_that_starts_no_agent_gets_silence_and_no_record(host: Host, name: str) -> None:
    payload = {**BASE, "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}
    for event in hosts.host_named(name).events_by_hook["pre_delegate"]:
        ran = host.run("every_event", {**payload, "hook_event_name": event})
        assert (ran.code, ran.out, ran.err) == (0, b"", b"")
    assert host.records() == {}
