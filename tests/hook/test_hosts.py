"""Payloads of other hosts, sent to the hooks themselves: what is recorded, what is answered, what is passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions import hosts
from gaia_sessions.hosts.marker import NOTE

if TYPE_CHECKING:
    from tests.hook.conftest import Host

PROMPT = "Count the quokkas"
BASE = {"session_id": "s", "transcript_path": "/t", "cwd": "/p"}
STAMPED = {**BASE, "timestamp": "2026-11-21T23:40:48.102Z"}

SPELLINGS = [{"session_id": "sessionId"}, {"hook_event_name": "hookEventName"}]
SPELLINGS.append(SPELLINGS[0] | SPELLINGS[1])


@pytest.mark.parametrize("hook", ["every_event", "pre_delegate"])
def test_vs_code_is_heard_in_every_spelling_by_every_hook(host: Host, hook: str) -> None:
    asked = {"prompt": PROMPT, "description": "Count", "agentName": "x"}
    payload = {**STAMPED, "tool_name": "runSubagent", "tool_input": asked}
    for number, spelled in enumerate(SPELLINGS):
        told_so = {**payload, "hook_event_name": "PreToolUse", "tool_use_id": f"tool-{number}"}
        ran = host.run(hook, {spelled.get(key, key): value for key, value in told_so.items()})
        assert (ran.code, ran.out, ran.err) == (0, b"", b"")

    runs = [record["runs"][0] for record in host.records().values()]
    found = {(run["host"], run["host_session_id"], run["tool_use_id"]) for run in runs}
    assert found == {("copilot", "s", f"tool-{number}") for number in range(3)}


def test_vs_code_is_answered_in_its_own_spelling_of_the_event(host: Host) -> None:
    start = {"sessionId": "s", "hookEventName": "SubagentStart", "agent_id": "a", "agent_type": "x"}

    answer = host.run("every_event", start).answer["hookSpecificOutput"]

    assert (answer["hookEventName"], NOTE in answer["additionalContext"]) == ("SubagentStart", True)


def test_what_of_vs_code_cannot_be_read_is_met_with_silence(host: Host) -> None:
    assert host.run("pre_delegate", b'{"hookEventName": "PreToolUse", ') == (0, b"", b"")


@pytest.mark.parametrize("name", hosts.HOSTS)
def test_a_tool_that_starts_no_agent_is_met_with_silence(host: Host, name: str) -> None:
    payload = {**BASE, "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}
    for event in hosts.module_of(name).EVENTS_BY_HOOK["pre_delegate"]:
        ran = host.run("every_event", {**payload, "hook_event_name": event})
        assert (ran.code, ran.out, ran.err) == (0, b"", b"")
    assert host.records() == {}
