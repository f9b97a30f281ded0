"""A sub-agent asks a person for the permission to use a tool: real payloads through the hook."""

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
    """The one hook is told ``payload``, and is silent."""
    assert host.run("every_event", payload) == SILENT


def tool(host: Host, name: str = "Read", event: str = "PostToolUse", **changes: object) -> dict[str, Any]:
    """The payload with which the host tells that the agent ``a1`` used a tool."""
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
    del payload["tool_use_id"]  # as the host sends it
    return payload


def phases(record: Any) -> list[str]:
    return ["initializing", *(move["to_phase"] for move in record["history"])]


# Captures


def payloads_of(host: Host, capture: Path) -> Iterator[dict[str, Any]]:
    """Each payload of ``capture``, in a project where the captured one was, after the host's note of its agent."""
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


# Too early, too late


def test_a_request_that_meets_a_held_lock_is_let_go(host: Host) -> None:
    agent_id = host.work()
    before = host.record()

    with host.held(agent_id):
        hear(host, asking(host))

    assert (host.record(), host.deferred()) == (before, [])
    assert host.log("hook")[-1]["decision"] == "busy"


def test_a_request_brings_a_start_that_waits_into_the_record(host: Host) -> None:
    host.begin()
    assert [event["kind"] for event in host.deferred()] == ["start"]

    hear(host, asking(host))

    assert (host.deferred(), host.record()["runs"][0]["waiting"]["for"]) == ([], "Bash")
    assert phases(host.record()) == ["initializing", "investigating"]


def test_requests_of_an_agent_that_nobody_knows_are_let_go(host: Host) -> None:
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


# What is none of it


def news_of_tools(host: Host) -> Iterator[dict[str, Any]]:
    for event in ("PostToolUse", "PostToolUseFailure"):
        for name in ("Read", "Edit", "Bash", "SomethingNew"):
            yield tool(host, name, event)
    yield asking(host)


def test_the_use_of_a_tool_changes_not_a_byte(host: Host) -> None:
    host.edit(host.work(), last_updated=host.ago(minutes=20))
    before = host.tree(host.root)

    for payload in news_of_tools(host):
        if payload["hook_event_name"] != "PermissionRequest":
            hear(host, payload)

    assert host.tree(host.root) == before


def test_tools_of_the_main_agent_change_nothing(host: Host) -> None:
    host.edit(host.work(), last_updated=host.ago(minutes=20))
    before = host.tree(host.root)

    for payload in news_of_tools(host):
        hear(host, {key: value for key, value in payload.items() if key not in {"agent_id", "agent_type"}})

    assert host.tree(host.root) == before


def test_agents_that_are_ignored_are_not_followed(host: Host) -> None:
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
def test_news_that_lacks_what_it_takes_changes_nothing(host: Host, changes: dict[str, Any]) -> None:
    host.work()
    before = host.tree(host.root)

    hear(host, asking(host) | changes)

    assert host.tree(host.root) == before


def test_the_name_of_a_tool_can_be_anybodys_text(host: Host) -> None:
    host.work()

    hear(host, asking(host) | {"tool_name": "\x1b[31mEdit\n\u202e" + "x" * 500})

    assert host.record()["runs"][0]["waiting"]["for"] == "[31mEdit " + "x" * 55
