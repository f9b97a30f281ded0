"""A sub-agent asks for the permission to use a tool: real payloads through the hook."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.hook.conftest import SILENT, own_host
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hook.conftest import Host

HOSTS = Path(__file__).parents[1] / "data" / "hosts"
OLD, NEW = "claude-code-2.1.197", "claude-code-2.1.330"

_calls = count(1)


def hear(host: Host, payload: object) -> None:
    """Sends ``payload`` to the hook, which prints nothing."""
    assert host.run("every_event", payload) == SILENT


def tool(host: Host, name: str = "Read", event: str = "PostToolUse", **changes: object) -> dict[str, Any]:
    """The payload that reports a tool use of the agent ``a1``."""
    keys: dict[str, Any] = {
        "agent_id": "a1",
        "agent_type": "Explore",
        "tool_name": name,
        "tool_input": {"command": "make"} if name == "Bash" else {"file_path": "/x"},
        "tool_use_id": f"toolu_t{next(_calls)}",
    }
    return host.event_payload(event, **{**keys, **changes})


def asking(host: Host) -> dict[str, Any]:
    payload = tool(host, "Bash", "PermissionRequest", permission_suggestions=[])
    del payload["tool_use_id"]  # the host does not send it
    return payload


def phases(record: Any) -> list[str]:
    return ["initializing", *(move["to_phase"] for move in record["history"])]


# Captures


def payloads_of(host: Host, capture: Path) -> Iterator[dict[str, Any]]:
    """Each payload of ``capture``, moved to this project; the note of its agent is written first."""
    text = re.sub(r"/project\b|/run-dir", str(host.project), capture.read_text(encoding="utf-8"))
    for line in text.replace("/home/user", str(Path.home())).splitlines():
        told = json.loads(line)
        payload = told.get("stdin")
        if not isinstance(payload, dict):
            continue
        meta = told["files_at_hook_time"].get("agent_meta")
        if isinstance(meta, dict):
            agents = Path(payload["transcript_path"].removesuffix(".jsonl"), "subagents")
            agents.mkdir(parents=True, exist_ok=True)
            (agents / f"agent-{payload['agent_id']}.meta.json").write_text(json.dumps(meta), encoding="utf-8")
        yield payload


# Requests and the state of the session


def test_a_request_that_finds_the_lock_held_is_dropped(host: Host) -> None:
    agent_id = host.work()
    before = host.record()

    with host.held(agent_id):
        hear(host, asking(host))

    assert (host.record(), host.deferred()) == (before, [])
    assert host.log("hook")[-1]["decision"] == "busy"


def test_a_request_applies_the_start_that_waits_in_the_inbox(host: Host) -> None:
    host.begin()
    assert [event["kind"] for event in host.deferred()] == ["start"]

    hear(host, asking(host))

    assert (host.deferred(), host.record()["runs"][0]["waiting"]["for"]) == ([], "Bash")
    assert phases(host.record()) == ["initializing", "investigating"]


def test_a_request_of_an_unknown_agent_changes_nothing(host: Host) -> None:
    host.work()
    before = host.tree(host.root)

    hear(host, asking(host) | {"agent_id": "a9"})

    assert host.tree(host.root) == before


def test_a_request_of_an_agent_that_stopped_changes_nothing(host: Host) -> None:
    host.work()
    hear(host, host.ending())
    before = host.tree(host.root)

    hear(host, asking(host))

    assert host.tree(host.root) == before


# Events that change nothing


def news_of_tools(host: Host) -> Iterator[dict[str, Any]]:
    for event in ("PostToolUse", "PostToolUseFailure"):
        for name in ("Read", "Edit", "Bash", "SomethingNew"):
            yield tool(host, name, event)
    yield asking(host)


def test_tool_uses_of_a_sub_agent_change_nothing(host: Host) -> None:
    host.edit(host.work(), last_updated=host.ago(minutes=20))
    before = host.tree(host.root)

    for payload in news_of_tools(host):
        if payload["hook_event_name"] != "PermissionRequest":
            hear(host, payload)

    assert host.tree(host.root) == before


def test_tool_uses_and_requests_of_the_main_agent_change_nothing(host: Host) -> None:
    host.edit(host.work(), last_updated=host.ago(minutes=20))
    before = host.tree(host.root)

    for payload in news_of_tools(host):
        hear(host, {key: value for key, value in payload.items() if key not in {"agent_id", "agent_type"}})

    assert host.tree(host.root) == before


def test_a_request_of_an_ignored_agent_changes_nothing(host: Host) -> None:
    host.edit(host.work(), last_updated=host.ago(minutes=20))
    (host.project / ".claude" / "gaia-sessions.toml").write_text('[hooks]\nignore_agents = ["Explore"]\n')
    before = host.tree(host.root)

    hear(host, asking(host))

    assert host.tree(host.root) == before


@table(
    "changes",
    [
        {"tool_name": None},
        {"tool_name": ""},
        {"tool_name": ["Edit"]},
        {"tool_name": "\x1b\x07"},
        {"agent_id": 7},
        {"session_id": ["x"]},
        {"hook_event_name": "PermissionRequestLater"},
    ],
)
@own_host
def test_a_malformed_request_changes_nothing(host: Host, changes: dict[str, Any]) -> None:
    host.work()
    before = host.tree(host.root)

    hear(host, asking(host) | changes)

    assert host.tree(host.root) == before


def test_the_tool_name_is_stored_shortened_and_without_control_characters(host: Host) -> None:
    host.work()

    hear(host, asking(host) | {"tool_name": "\x1b[31mEdit\n\u202e" + "x" * 500})

    assert host.record()["runs"][0]["waiting"]["for"] == "[31mEdit " + "x" * 55
