"""The limits of sub-agents of a real client, with the hooks that ``hooks install --enforce`` writes.

The requests to the API show what an agent was told and where it stopped.
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.hook.test_realclient import client, delegation, script

if TYPE_CHECKING:
    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = pytest.mark.realclient

REPORT = {"text": "Report: half of it."}


def bash(word: str) -> dict[str, Any]:
    return {"name": "Bash", "input": {"command": f"echo {word}", "description": "Say it"}}


def step(*words: str, tokens: int = 20) -> dict[str, Any]:
    return {"text": "A step.", "tools": [bash(word) for word in words], "usage": {"output_tokens": tokens}}


def limited(client: Client, settings: str, main: list[dict[str, Any]], **subs: list[dict[str, Any]]) -> None:
    """Runs the client with these settings; its main agent and sub-agents answer by these scripts."""
    client.install("--enforce")
    (client.host.project / ".claude" / "gaia-sessions.toml").write_text(settings, encoding="utf-8")
    client.live("own", script(client.host.folder, {"main": main, "subs": subs}), wired=False)


def results(client: Client, role: str) -> list[list[str]]:
    """The tool results of the latest round in each request of ``role``."""
    found = []
    for request in client.requests(role):
        content = json.loads(request)["body"]["messages"]
        last: list[Any] = next((one["content"] for one in reversed(content) if one["role"] == "user"), [])
        blocks = [block for block in last if isinstance(block, dict) and block.get("type") == "tool_result"]
        found.append([json.dumps(block["content"]) for block in blocks])
    return found


def one(client: Client) -> Any:
    [record] = client.host.records().values()
    return record


def test_a_blocked_tool_is_denied_to_sub_agents_only(client: Client) -> None:
    settings = '[limits]\nblocked_tools = ["Bash"]\n'
    limited(client, settings, [step("main"), {"tools": [delegation("a")]}, {"text": "Done."}], a=[step("sub"), REPORT])

    assert "main" in results(client, "main")[1][0]
    [[], [denied]] = results(client, "sub:a")
    assert "Bash is blocked for sub-agents. Work without it." in denied
    assert (one(client)["phase"], one(client)["runs"][0]["last_message"]) == ("completed", REPORT["text"])


def test_an_agent_beyond_its_budget_makes_one_more_request_and_reports(client: Client) -> None:
    sub = [step("one", tokens=20_000), step("two", tokens=20_000), step("three", tokens=30_000), REPORT]
    limited(
        client,
        "limits.tokens = 60000\n",
        [{"tools": [delegation("a"), delegation("b")]}, {"text": "Done."}],
        a=sub,
        b=[step("beside"), REPORT],
    )

    told = results(client, "sub:a")
    assert [len(found) for found in told] == [0, 1, 1, 1]
    assert ["token limit reached" in "".join(found) for found in told] == [False, False, False, True]
    assert "beside" in results(client, "sub:b")[1][0]
    records = {record["purpose"]: record for record in client.host.records().values()}
    assert [one["phase"] for one in records.values()] == ["completed", "completed"]
    assert records["Job a"]["runs"][0]["last_message"] == REPORT["text"]


def test_an_agent_is_warned_once_near_the_end_of_its_budget(client: Client) -> None:
    sub = [step("one", tokens=1110), step("two"), step("three"), REPORT]
    limited(client, "limits.tokens = 1500\n", [{"tools": [delegation("a")]}, {"text": "Done."}], a=sub)

    said = [request.count("of your 1,500 tokens. When all are used") for request in client.requests("sub:a")]
    assert (said[0], max(said), said[-1]) == (0, 1, 1)
    assert "warned_at" in one(client)["runs"][0]


def test_only_the_allowed_searches_are_made_and_refused_searches_do_not_count(client: Client) -> None:
    settings = '[limits]\nsearches = 2\nsearch_tools = ["Bash"]\n'
    sub = [step("one"), step("two", "three"), step("four"), REPORT]
    limited(client, settings, [step("m1"), step("m2"), step("m3"), {"tools": [delegation("a")]}, REPORT], a=sub)

    [[], [first], second, [fourth]] = results(client, "sub:a")
    assert "one" in first
    assert sorted("Search budget exceeded (3/2)" in found for found in second) == [False, True]
    assert "Search budget exceeded (3/2)" in fourth
    assert len(one(client)["runs"][0]["searches"]) == 2
    assert "m3" in results(client, "main")[3][0]


def test_tools_are_refused_once_the_round_limit_is_reached(client: Client) -> None:
    sub = [step("one"), step("two"), step("three"), step("four"), REPORT]
    limited(client, "limits.rounds = 3\n", [{"tools": [delegation("a")]}, {"text": "Done."}], a=sub)

    told = ["iteration limit reached (3)" in "".join(found) for found in results(client, "sub:a")]
    assert told == [False, False, False, True, True]


def test_limits_also_hold_for_background_agents_and_nested_agents(client: Client) -> None:
    behind = delegation("behind")
    behind["input"]["run_in_background"] = True
    limited(
        client,
        '[limits]\nblocked_tools = ["Bash"]\n',
        [{"tools": [behind, delegation("outer")]}, {"text": "Waiting."}, {"text": "Done."}],
        behind=[step("x"), REPORT],
        outer=[{"tools": [delegation("inner")]}, REPORT],
        inner=[step("y"), REPORT],
    )

    for role in ("sub:behind", "sub:inner"):
        assert "Bash is blocked for sub-agents" in results(client, role)[1][0]
    ends = {record["purpose"]: record["phase"] for record in client.host.records().values()}
    assert ends == dict.fromkeys(("Job behind", "Job outer", "Job inner"), "completed")


def test_without_settings_only_a_cancelled_agent_is_denied_its_tools(client: Client) -> None:
    cancel = f"gaia_sessions.Sessions({str(client.host.root)!r})"
    code = f"import gaia_sessions; s = {cancel}; [s.cancel(one['agent_id'], 'not needed') for one in s.list()]"
    program = {
        "name": "Bash",
        "input": {"command": f"echo done; {sys.executable} -c {shlex.quote(code)}", "description": "x"},
    }
    sub = [step("one"), {"tools": [program]}, step("three"), REPORT]
    limited(client, "", [{"tools": [delegation("a")]}, step("after"), {"text": "Done."}], a=sub)

    [[], [first], [second], [third]] = results(client, "sub:a")
    assert ("one" in first, "done" in second) == (True, True)
    assert "the work was cancelled at" in third
    assert "not needed. Use no more tools." in third
    assert "after" in results(client, "main")[-1][0]
    assert one(client)["phase"] == "abandoned"
