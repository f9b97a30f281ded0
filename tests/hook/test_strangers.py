"""Payloads and waiting events with foreign paths: the hook opens no file outside the folder of the client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.strangers import PLACES, SECRET, opened, place

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hook.conftest import Host

KEY = "toolu_secret"
"""The delegation id in the note outside the folder of the client."""


def all_payloads(host: Host, path: str) -> list[dict[str, Any]]:
    """The payloads about an agent, with ``path`` in place of every path."""
    conversation = path.partition("/subagents/")[0] + ".jsonl"
    told = [
        host.delegation(),
        host.starting(),
        host.ending(),
        host.ending(agent_type="workflow-subagent"),
        host.dying(),
        host.returning(),
        host.launching(),
        host.failing(error="You've hit your limit · resets 3pm (UTC)"),
        host.failing(is_interrupt=True),
        host.notifying("failed"),
        host.messaging(),
        host.killing(),
        host.event_payload("UserPromptSubmit", prompt="Go on."),
        host.event_payload("PermissionRequest", agent_id="a1", agent_type="Explore", tool_name="Bash", tool_input={}),
        host.event_payload("PreToolUse", agent_id="a1", agent_type="Explore", tool_name="Bash", tool_use_id="u"),
        host.pausing("a1"),
        host.event_payload("SessionStart", source="resume"),
        host.event_payload("SessionEnd", reason="exit"),
    ]
    launch = {"tool_name": "Workflow", "tool_input": {"script": ""}}
    answer = {"status": "async_launched", "taskId": "w1", "runId": "wf_1", "transcriptDir": path}
    told.append({**host.returning(**answer), **launch})
    return [{**one, "transcript_path": conversation, "agent_transcript_path": path} for one in told]


@pytest.mark.parametrize("where", PLACES)
def test_a_hook_opens_no_path_of_a_payload_outside_the_clients_folder(
    host: Host, talks: Path, tmp_path: Path, where: str
) -> None:
    outside = tmp_path / "outside"
    path = place(where, talks, outside)
    host.words = ["--enforce"]
    settings = {"GAIA_SESSIONS_LIMITS_ROUNDS": "60", "GAIA_SESSIONS_LIMITS_SEARCHES": "5"}
    for _ in range(2):
        for payload in all_payloads(host, path):
            with opened() as found:
                ran = host.run("every_event", payload, settings)
            assert (ran.code, ran.err) == (0, b"")
            assert SECRET.encode() not in ran.out
            assert not [one for one in found if one.startswith(str(outside))], payload["hook_event_name"]
    kept = json.dumps([*host.records().values(), *host.deferred()])
    assert (KEY in kept, SECRET in kept, "7000007" in kept) == (False, False, False)


@pytest.mark.parametrize("where", PLACES)
def test_a_hook_opens_no_path_of_a_codex_payload_outside_codex_folders(
    host: Host, talks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """``CODEX_HOME`` is set to the folder of Claude Code."""
    outside = tmp_path / "outside"
    path = place(where, talks, outside)
    monkeypatch.setenv("CODEX_HOME", str(talks.parents[1]))
    for name in ("SubagentStart", "UserPromptSubmit", "SubagentStop", "Stop", "SessionEnd"):
        keys = {"turn_id": "t", "model": "m", "agent_id": "x", "agent_type": "y", "agent_transcript_path": path}
        with opened() as found:
            ran = host.run("every_event", {**host.event_payload(name, **keys), "transcript_path": path})
        assert (ran.code, ran.err) == (0, b"")
        assert not [one for one in found if one.startswith((str(outside), str(talks)))], name


@pytest.mark.parametrize("where", PLACES)
def test_a_hook_opens_no_path_of_a_waiting_event_outside_the_clients_folder(
    host: Host, talks: Path, tmp_path: Path, where: str
) -> None:
    outside = tmp_path / "outside"
    path = place(where, talks, outside)
    host.hear(host.delegation())
    host.hear(host.starting())
    [waiting] = host.waiting()
    event = json.loads(waiting.read_bytes())
    assert event["key_file"].endswith("/agent-a1.meta.json")
    meta = path.removesuffix(".jsonl") + ".meta.json"
    lock = {"pid": 1, "lock": path, "lock_folder": "1:1"}
    event |= {"key_file": meta, "transcript_path": path, "host_process": lock}
    waiting.write_text(json.dumps(event), encoding="utf-8")
    for payload in (host.event_payload("Stop"), host.starting("a2"), host.event_payload("SessionEnd", reason="exit")):
        with opened() as found:
            assert host.run("every_event", payload).code == 0
        assert not [one for one in found if one.startswith(str(outside))]
    assert KEY not in json.dumps([*host.records().values(), *host.deferred()])
