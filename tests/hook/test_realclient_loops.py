"""Loops of sub-agents of a real client: warned, refused and cancelled; other repetitions are allowed.

The requests to the API show what an agent was told. See ``test_realclient_limits``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.session import repeats
from tests import commands
from tests.hook.test_realclient import FIRST, client, delegation, script
from tests.hook.test_realclient_installed import trusting
from tests.hook.test_realclient_limits import REPORT, limited, results
from tests.hook.test_realclient_own_work import decided, in_background

if TYPE_CHECKING:
    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = [
    pytest.mark.realclient,
    pytest.mark.parametrize("client", ["2.1.197", "2.1.330", "2.1.332"], indirect=True),
]

MAIN: list[dict[str, Any]] = [{"tools": [delegation("a")]}, {"text": "Done."}]


def bash(command: str, said: str = "Look") -> dict[str, Any]:
    return {"text": "A step.", "tools": [{"name": "Bash", "input": {"command": command, "description": said}}]}


def told(client: Client) -> list[str]:
    """For each request of the agent: ``told`` (a warning), ``refused``, or the last result."""
    warning, refused = "had this same input, and all had the same result. If", "This is a loop: "
    requests = client.requests("sub:a")
    latest = ["".join(found) for found in results(client, "sub:a")]
    news = [request.count(warning) for request in requests]
    return [
        "refused" if refused in text else "told" if number and news[number] > news[number - 1] else text.strip('"')
        for number, text in enumerate(latest)
    ]


def test_a_loop_is_warned_then_refused_and_the_agent_completes_its_work(client: Client) -> None:
    sub = [*(bash("echo same", f"Look {number}") for number in range(6)), bash("echo other"), bash("echo same"), REPORT]
    limited(client, '[limits]\nrepeats = "deny"\n', MAIN, a=sub)

    assert told(client) == ["", "same", "same", "same", "told", "refused", "refused", "other", "same"]
    [record] = client.host.records().values()
    assert (record["phase"], record["runs"][0]["last_message"]) == ("completed", REPORT["text"])
    assert [*client.host.root.glob("*/cancelled.json")] == []


def test_a_loop_with_cancel_also_ends_the_work_of_the_parent_agent(client: Client) -> None:
    inner = [*(bash("exit 3") for _ in range(6)), REPORT]
    outer = [{"tools": [delegation("a")]}, bash("echo after"), REPORT]
    limited(
        client,
        '[limits]\nrepeats = "cancel"\n',
        [{"tools": [delegation("outer")]}, {"text": "Done."}],
        outer=outer,
        a=inner,
    )

    assert told(client)[4:6] == ["told", "refused"]
    assert "the work was cancelled at" in "".join(results(client, "sub:a")[6])
    assert "the work was cancelled at" in "".join(results(client, "sub:outer")[2])
    records = {record["purpose"]: record for record in client.host.records().values()}
    assert {name: record["phase"] for name, record in records.items()} == dict.fromkeys(records, "abandoned")
    reason = repeats.reason_to_cancel(records["Job a"]["agent_id"], "Bash")
    for record in records.values():
        shown = commands.gaia("show", record["agent_id"], "--root", str(client.host.root))
        assert reason in " ".join(shown.out.decode().split())


def test_a_long_run_of_reads_edits_and_listings_is_not_a_loop(client: Client) -> None:
    file = str(client.host.project / "notes.txt")
    edits = [
        {
            "name": "Edit",
            "input": {"file_path": file, "old_string": f"line {number}", "new_string": f"line {number + 1}"},
        }
        for number in range(20)
    ]
    read = {"name": "Read", "input": {"file_path": file}}
    listed = {"name": "Bash", "input": {"command": "ls; wc -c notes.txt", "description": "Look"}}
    steps: list[Any] = [{"text": "A step.", "tools": [one]} for edit in edits for one in (read, edit, listed, listed)]
    parallel: list[Any] = [
        {"text": "Both.", "tools": [read, listed]},
        {"text": "Twice.", "tools": [listed, listed]},
    ] * 4
    begin = {"name": "Write", "input": {"file_path": file, "content": "line 0\n"}}
    life = [{"text": "Begin.", "tools": [begin]}, *steps, *parallel, REPORT]
    limited(client, '[limits]\nrepeats = "cancel"\n', MAIN, a=life)

    assert {"told", "refused"}.isdisjoint(told(client))
    [record] = client.host.records().values()
    assert (record["phase"], record["runs"][0]["last_message"]) == ("completed", REPORT["text"])


def test_polls_and_many_different_calls_are_not_loops(client: Client) -> None:
    waits = [bash("sleep 5.2; echo waiting")] * 6
    counts = [bash("n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) | tee n")] * 6
    differ = [bash(f"echo {number % 3}") for number in range(9)]
    limited(client, '[limits]\nrepeats = "cancel"\n', MAIN, a=[*waits, *counts, *differ, REPORT])

    assert told(client)[1:] == ["waiting"] * 6 + list("123456") + list("012") * 3
    [record] = client.host.records().values()
    assert record["phase"] == "completed"


LOOK = bash("echo 'deploy: waiting'")
SENDS = {"tools": [{"name": "SendMessage", "input": {"to": "{{agent_id:0}}", "summary": "x", "message": "And now?"}}]}


def test_an_agent_that_runs_one_command_per_message_is_in_no_loop(client: Client) -> None:
    client.install("--enforce", "--allow-report")
    settings = client.host.project / ".claude" / "gaia-sessions.toml"
    settings.write_text('[limits]\nrepeats = "cancel"\n', encoding="utf-8")
    scenario = {
        "main": [{"tools": [in_background("a")]}, {"text": "Launched."}, *[SENDS, {"text": "So."}] * 6],
        "subs": {"a": [LOOK, {"text": "It waits."}] * 8},
        "allowed": ["Agent", "Bash", "SendMessage"],
        "live": [{"say": FIRST}, {"results": 1, "limit": 20}, {"after": 20}],
        "env": trusting(client.host.project),
    }
    client.live("own", script(client.host.folder, scenario), wired=False)
    found = decided(client)
    assert len(found) > repeats.REFUSED_AFTER
    assert set(found) == {"allowed"}
