"""``pre_delegate`` from a host: each delegation is one session, even if it is reported often or concurrently."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.hook.conftest import SILENT, own_host, whole
from tests.table import table

if TYPE_CHECKING:
    from typing import Any

    from tests.hook.conftest import Host


def begun(**run: object) -> dict[str, object]:
    """The record of a session whose work was just delegated, with its run."""
    known = {"host": "claude-code", "host_session_id": "0e23a513-af54", "tool_use_id": "toolu_1", **run}
    return whole(runs=[{**known, "run": 1, "claimed_at": "TIME"}])


@table("tool", ["Agent", "Task"])
@own_host
def test_a_delegation_creates_one_session_with_its_run(host: Host, tool: str) -> None:
    assert host.run("pre_delegate", host.delegation(tool_name=tool)) == (0, b"", b"")

    assert host.timeless(host.record()) == begun()


def test_the_parent_agent_and_the_background_are_recorded_in_the_run(host: Host) -> None:
    asked = {"description": "Count quokkas", "prompt": "x", "subagent_type": "Explore", "run_in_background": True}

    host.run("pre_delegate", host.delegation(tool_input=asked, agent_id="a0", agent_type="general-purpose"))

    assert host.timeless(host.record()) == begun(parent_host_agent_id="a0", background=True)


def test_a_delegation_without_an_agent_type_is_general_purpose(host: Host) -> None:
    host.run("pre_delegate", host.delegation(tool_input={"prompt": "x"}))

    assert (host.record()["agent_name"], host.record()["purpose"]) == ("general-purpose", "general")


def test_a_repeated_delegation_creates_no_second_session(host: Host) -> None:
    host.run("pre_delegate", host.delegation())
    before = host.tree(host.root)

    host.run("pre_delegate", host.delegation())

    assert {path: entry for path, entry in host.tree(host.root).items() if ".locks" not in path} == {
        path: entry for path, entry in before.items() if ".locks" not in path
    }
    assert [line["decision"] for line in host.log("pre_delegate")] == ["created", "known"]


def test_the_same_tool_use_id_in_another_conversation_is_another_delegation(host: Host) -> None:
    host.run("pre_delegate", host.delegation())
    host.run("pre_delegate", host.delegation(session_id="another"))
    host.run("pre_delegate", host.delegation("toolu_2"))

    keys = [
        (run["host_session_id"], run["tool_use_id"]) for record in host.records().values() for run in record["runs"]
    ]
    assert sorted(keys) == [("0e23a513-af54", "toolu_1"), ("0e23a513-af54", "toolu_2"), ("another", "toolu_1")]


@pytest.mark.parametrize("times", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_two_concurrent_reports_of_a_delegation_create_one_session(host: Host, times: int) -> None:
    for number in range(times):
        with ThreadPoolExecutor(2) as pool:
            ran = list(pool.map(partial(host.start, "pre_delegate"), [host.delegation(f"toolu_{number}")] * 2))
        assert ran == [SILENT] * 2

    keys = sorted(record["runs"][0]["tool_use_id"] for record in host.records().values())
    assert keys == [f"toolu_{number}" for number in range(times)]
    decisions = [line["decision"] for line in host.log("pre_delegate")]
    assert sorted(decisions) == ["created"] * times + ["known"] * times


NOT_OURS: dict[str, dict[str, Any]] = {
    "another tool": {"tool_name": "Bash"},
    "a tool with a similar name": {"tool_name": "agent"},
    "no tool": {"tool_name": None},
    "another event": {"hook_event_name": "PostToolUse"},
    "no event": {"hook_event_name": None},
    "an event that is not a string": {"hook_event_name": ["PreToolUse"]},
    "no session of the host": {"session_id": ""},
    "a session ID that is not a string": {"session_id": 7},
    "no ID of the delegation": {"tool_use_id": None},
    "a too long ID": {"tool_use_id": "t" * 513},
    "an input that is not an object": {"tool_input": "prompt"},
    "no input": {"tool_input": None},
    "a stop": {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "Explore"},
}


@table("changes", NOT_OURS.values())
@own_host
def test_an_event_that_is_not_a_delegation_creates_nothing(host: Host, changes: dict[str, Any]) -> None:
    assert host.run("pre_delegate", host.delegation(**changes)) == (0, b"", b"")

    assert not host.root.exists()
    assert [line["decision"] for line in host.log("pre_delegate")] == ["not_ours"]


@table(
    ("description", "purpose"),
    [
        ("Count\n\t quokkas   twice", "Count quokkas twice"),
        ("\x1b[31mred\x07\x9b", "[31mred"),
        ("ü" * 300, "ü" * 200),
        ("", "general"),
        (" \n", "general"),
        (["a", "list"], "general"),
        (None, "general"),
    ],
)
@own_host
def test_the_description_becomes_the_purpose_shortened_and_without_control_characters(
    host: Host, description: object, purpose: str
) -> None:
    host.run("pre_delegate", host.delegation(tool_input={"description": description, "prompt": "x"}))

    assert host.record()["purpose"] == purpose


def test_descriptions_are_not_stored_if_that_is_switched_off(host: Host) -> None:
    settings = {"GAIA_SESSIONS_STORE_DESCRIPTION": "false"}

    host.run("pre_delegate", host.delegation(), settings)

    assert host.timeless(host.record()) == begun() | {"purpose": "general"}
    assert not [path for path, entry in host.tree(host.project).items() if "Count quokkas" in str(entry)]


def test_the_prompt_is_stored_nowhere(host: Host) -> None:
    background = {"description": "d", "prompt": host.PROMPT, "run_in_background": True}
    host.run("pre_delegate", host.delegation("toolu_1"))
    host.run("pre_delegate", host.delegation("toolu_2", tool_input=background))
    host.run("pre_delegate", host.delegation("toolu_3", tool_name="Bash"))
    host.run("pre_delegate", host.delegation("toolu_4", tool_input=[host.PROMPT]))
    host.run("pre_delegate", host.delegation("toolu_5"), {"GAIA_SESSIONS_PROMPT": "1"})
    host.knows("a1", "toolu_1")
    host.run("subagent_stop", host.ending(prompt=host.PROMPT))
    host.run("subagent_stop", host.ending("a9", prompt=host.PROMPT))
    with host.held(host.delegate("toolu_6", "a6")):
        host.run("subagent_stop", host.ending("a6", prompt=host.PROMPT))
    host.run("pre_delegate", json.dumps(host.delegation("toolu_7")).encode()[:-9])

    assert [event["host_agent_id"] for event in host.deferred()] == ["a9", "a6"]
    assert not [path for path, entry in host.tree(host.project).items() if host.PROMPT in str(entry)]


def test_a_delegation_whose_session_was_removed_creates_a_new_session(host: Host) -> None:
    first = host.delegate()
    shutil.rmtree(host.root / first)

    host.run("pre_delegate", host.delegation())

    assert host.timeless(host.record()) == begun()
    assert host.record()["agent_id"] != first


def test_every_delegation_leaves_one_line_in_the_log(host: Host) -> None:
    host.run("pre_delegate", host.delegation(agent_id="a" * 512, agent_type="Plan"))

    [line] = host.log("pre_delegate")
    assert line.pop("ms") >= 0
    assert host.timeless(line) == {
        "at": "TIME",
        "event": "PreToolUse",
        "session_id": "0e23a513-af54",
        "agent_id": "a" * 128,
        "tool_use_id": "toolu_1",
        "tool_name": "Agent",
        "agent_type": "Plan",
        "host": "claude-code",
        "host_session_id": "0e23a513-af54",
        "kinds": ["delegate"],
        "decision": "created",
        "session": "ID",
    }


@table("event", ["x" * 100_000, {"prompt": "Count the quokkas " * 5_000}])
@own_host
def test_a_huge_event_name_does_not_make_the_log_line_long(host: Host, event: object) -> None:
    host.run("pre_delegate", host.delegation(hook_event_name=event))

    assert (host.logs / "pre_delegate.log").stat().st_size < 2_000
