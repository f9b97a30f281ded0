"""A real client whose agents wait for their own commands and agents; only Claude Code 2.1.332 reports this.

See ``test_realclient``, whose harness this uses; the hooks are those that ``hooks install`` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from tests.hook.test_lives import DONE, WITH_HOST
from tests.hook.test_realclient import FIRST, client, delegation, script
from tests.hook.test_realclient_holding import ADD, CLOSE, REPORT, live, outcome, reminders

if TYPE_CHECKING:
    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = [pytest.mark.realclient, pytest.mark.parametrize("client", ["2.1.332"], indirect=True)]


def in_background(name: str) -> dict[str, Any]:
    asked = delegation(name)
    return {**asked, "input": {**asked["input"], "run_in_background": True}}


def shell(command: str) -> dict[str, Any]:
    return {"name": "Bash", "input": {"command": command, "description": "Build", "run_in_background": True}}


BUILDS: list[Any] = [
    {"text": "I start the build.", "tools": [shell("sleep 4; echo built")]},
    {"text": "The build runs; I wait for it."},
    {"text": "Report of alpha: built."},
]


def decided(client: Client) -> list[str]:
    """The decision about each tool call of an agent."""
    lines = client.host.log("hook")
    return [line["decision"] for line in lines if line["event"] == "PreToolUse" and "agent_id" in line]


NEWS = [{"text": "Launched; waiting."}, {"text": "Got the first news."}, {"text": "Got the second news."}]
UNTIL_IT_IS_OVER = [
    {"say": FIRST},
    {"results": 1, "limit": 20},
    {"results": 2, "limit": 30},
    {"results": 3, "limit": 30},
    {"after": 2},
]
WOKEN: dict[str, Any] = {
    "main": [{"tools": [in_background("alpha")]}, *NEWS],
    "subs": {"alpha": BUILDS},
    "live": UNTIL_IT_IS_OVER,
}
BESIDE = {**WOKEN, "main": [{"tools": [shell("sleep 60")]}, *WOKEN["main"]]}
LEFT: Any = {"main": WOKEN["main"], "subs": {"alpha": [{**BUILDS[0], "tools": [shell("sleep 30")]}, *BUILDS[1:]]}}
IN_FOREGROUND: Any = {
    "main": [{"tools": [delegation("alpha")]}, {"text": "Got the report."}],
    "subs": {"alpha": [{**BUILDS[0], "tools": [shell("sleep 30")]}, {"text": "Report of alpha: it builds."}]},
    "live": [{"say": FIRST}, {"results": 1, "limit": 20}, {"after": 2}],
}


@pytest.mark.parametrize(
    ("scenario", "end", "said"),
    [
        pytest.param(WOKEN, DONE, "Report of alpha: built.", id="it is woken"),
        pytest.param(BESIDE, DONE, "Report of alpha: built.", id="it is woken beside a shell of the main agent"),
        pytest.param(LEFT, WITH_HOST, "The build runs; I wait for it.", id="its client leaves first"),
        pytest.param(IN_FOREGROUND, DONE, "Report of alpha: it builds.", id="its command ends with it"),
    ],
)
def test_an_agent_that_waits_for_its_own_command_is_one_run(client: Client, scenario: Any, end: Any, said: str) -> None:
    client.live("own", script(client.host.folder, scenario), installed=True)

    assert client.ends() == [end]
    record = client.host.record()
    [run] = record["runs"]
    assert (run["last_message"], "own_work" in run) == (said, False)
    may_be_resumed = gaia_sessions.should_resume(record["agent_id"], root=str(client.host.root))
    assert may_be_resumed is (end == WITH_HOST)


def test_an_agent_and_its_longer_background_agent_each_complete_in_one_run(client: Client) -> None:
    beta = [{"text": "Look.", "tools": [{"name": "Bash", "input": {"command": "sleep 4", "description": "Look"}}]}]
    scenario = {
        "main": [{"tools": [in_background("alpha")]}, *NEWS],
        "subs": {
            "alpha": [
                {"tools": [in_background("beta")]},
                {"text": "Beta works on."},
            ],
            "beta": [*beta, {"text": "Report of beta."}],
        },
        "live": UNTIL_IT_IS_OVER,
    }
    client.live("own", script(client.host.folder, scenario), installed=True)

    assert client.ends() == [DONE, DONE]
    said = {
        record["purpose"]: [run["last_message"] for run in record["runs"]] for record in client.host.records().values()
    }
    assert said == {"Job alpha": ["Beta works on."], "Job beta": ["Report of beta."]}


def test_an_agent_with_open_todos_is_held_only_at_its_final_stop(client: Client) -> None:
    waits: list[Any] = [{"text": "I start it.", "tools": [shell("sleep 4; echo built")]}, {"text": "I wait for it."}]
    main = [{"tools": [in_background("alpha")]}, *NEWS]
    sub = [ADD, *waits, REPORT, CLOSE, {"text": "Report: built."}]
    record = live(client, *sub, main=main, live=UNTIL_IT_IS_OVER, allowed=["Agent", "Bash"])

    assert outcome(record) == ("completed", "stopped", 1, ["completed"])
    assert "own_work" not in record["runs"][0]
    assert reminders(client) == [0, 0, 0, 0, 1, 1]


def test_an_agent_that_runs_one_command_per_finished_build_is_in_no_loop(client: Client) -> None:
    builds = [shell(f"sleep {3 * number}; echo built{number}") for number in range(1, 7)]
    look = {"text": "A build is ready.", "tools": [{"name": "Bash", "input": {"command": "echo waiting"}}]}
    sub: list[Any] = [{"text": "I start them.", "tools": builds}, {"text": "I wait."}, *[look, REPORT] * 6]
    main = [{"tools": [in_background("alpha")]}, *[{"text": "So."}] * 9]
    until = [{"say": FIRST}, {"results": 1, "limit": 20}, {"after": 26}]
    enforced: dict[str, Any] = {"allowed": ["Agent", "Bash"], "env": {"GAIA_SESSIONS_LIMITS_REPEATS": "cancel"}}
    live(client, *sub, main=main, live=until, **enforced)
    assert decided(client) == ["allowed"] * 12
