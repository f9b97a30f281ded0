"""Work of real clients that is interrupted and resumed: by a usage limit, by the user, and by a killed client.

See ``test_realclient``, whose harness this uses; the hooks are those that ``hooks install`` writes.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.session.clock import format_time
from tests.hook.test_lives import DONE, INTERRUPTED
from tests.hook.test_realclient import FIRST, client, delegation, script

if TYPE_CHECKING:
    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = pytest.mark.realclient

LIMITED = ("alpha", "beta", "gamma")
STEP = {"text": "A step.", "tools": [{"name": "Bash", "input": {"command": "echo step", "description": "Run it"}}]}


def limited(client: Client, hours: int) -> tuple[datetime, dict[str, Any]]:
    """The reset time of a usage limit, and a scenario: one agent completes, then three agents reach the limit."""
    reset = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=hours)
    known = json.loads((client.harness / "scenarios.json").read_text(encoding="utf-8"))["limit-429"]
    refusal = json.loads(json.dumps(known["subs"]["alpha"][-1]).replace("{{epoch+7200}}", str(int(reset.timestamp()))))
    return reset, {
        "main": [
            {"tools": [delegation("done")]},
            {"tools": [delegation(name) for name in LIMITED]},
            {"text": "They wait."},
        ],
        "subs": {"done": [{"text": "Report of done."}], **{name: [STEP, refusal] for name in LIMITED}},
        "env": known["env"],
    }


GOES_ON = {
    "main": [
        {"tools": [delegation(f"again-{name}", f"\n{{{{resume:{n}}}}}") for n, name in enumerate(LIMITED)]},
        {"text": "All done."},
    ],
    "subs": {f"again-{name}": [{"text": f"Report of {name}."}] for name in LIMITED},
}


def reasons(client: Client, records: list[Any]) -> list[str]:
    root = str(client.host.root)
    return [gaia_sessions.explain_resume(record["agent_id"], root=root)["reason"] for record in records]


def test_three_agents_at_a_usage_limit_wait_for_its_reset_and_are_resumed(client: Client) -> None:
    reset, scenario = limited(client, hours=2)

    client.live("own", script(client.host.folder, scenario), installed=True)

    assert client.ends() == sorted([DONE, *[INTERRUPTED] * 3])
    waiting = [record for record in client.host.records().values() if record["phase"] != "completed"]
    assert [(run["interruption"], len(record["runs"])) for record in waiting for run in record["runs"]] == [
        ("usage_limit", 1)
    ] * 3
    assert reasons(client, waiting) == ["waiting_for_limit"] * 3
    told = [datetime.fromisoformat(record["paused_until"]) for record in waiting]
    assert [reset - timedelta(minutes=1) < moment <= reset for moment in told] == [True] * 3

    past = format_time(datetime.now(UTC) - timedelta(minutes=1))
    for record in waiting:
        client.host.edit(record["agent_id"], paused_until=past)
    assert reasons(client, waiting) == ["session_resumable"] * 3
    client.live("own", script(client.host.folder, GOES_ON), wired=False)

    assert client.ends() == [DONE] * 4
    records = client.host.records()
    resumed = [records[record["agent_id"]] for record in waiting]
    assert [[run["end"] for run in record["runs"]] for record in resumed] == [["killed", "stopped"]] * 3
    assert ["paused_until" in record for record in resumed] == [False] * 3
    assert client.requests("main")[0].count("[gaia-sessions: resume agent-") == 3, (
        "the work that is done is not offered"
    )


WRITTEN = 1
"""Seconds after an interruption until the next prompt. The client writes the line in the transcript within 0.1 s
(2.1.197) or 0.02 s (newest), measured."""

INTERRUPTED_WORK = {
    "main": [
        {"tools": [delegation("alpha")]},
        {"text": "Something else, then."},
        {"tools": [delegation("beta", "\n{{resume:0}}")]},
        {"text": "All done."},
    ],
    "subs": {"alpha": [STEP, {"text": "Never seen.", "delay": 40}], "beta": [{"text": "Report of beta."}]},
    "live": [
        {"say": FIRST},
        {"wait_for": "sub:alpha", "after": 2, "interrupt": True},
        {"results": 1, "after": WRITTEN},
        {"say": "Leave that."},
        {"results": 2},
        {"say": "Now go on with alpha."},
        {"results": 3},
    ],
}


def test_work_that_the_user_interrupted_is_resumed_in_the_same_client(client: Client) -> None:
    client.live("own", script(client.host.folder, INTERRUPTED_WORK), installed=True)

    record = client.host.record()
    assert [(run["end"], run.get("interruption")) for run in record["runs"]] == [
        ("killed", "interrupted"),
        ("stopped", None),
    ]
    assert [run.get("last_message") for run in record["runs"]] == [None, "Report of beta."]
    assert (record["phase"], record["error_count"]) == ("completed", 0)
    assert [move["to_phase"] for move in record["history"]] == ["investigating", "completed"]
    line = f"[gaia-sessions: resume {record['agent_id']}]"
    assert [line in request for request in client.requests("main")] == [False, True, True, True]
    assert f"[gaia-sessions: briefing {record['agent_id']}]" in client.requests("sub:beta")[0]
    assert client.host.waiting() == []


CUT_OFF = {
    "main": [{"tools": [delegation("alpha")]}],
    "subs": {
        "alpha": [{"text": "Never asked."}],
        "second": [{"tools": [delegation("beta", "\n{{resume:0}}")]}, {"text": "All done."}],
        "beta": [{"text": "Report of beta."}],
    },
    "hooks": {"PreToolUse": [{"match": "sub:alpha", "sleep": 20}]},
    "sigint_when": {"role": "main", "after": 4, "signal": "KILL", "step": 0},
    "steps": [{"prompt": FIRST}, {"prompt": "[[sub:second]] Go on with what was cut off."}],
}


def test_work_of_a_client_killed_before_its_agent_started_resumes_in_its_own_session(client: Client) -> None:
    client.live("own", script(client.host.folder, CUT_OFF), installed=True)

    record = client.host.record()
    assert [(run["end"], "started_at" in run) for run in record["runs"]] == [("lost", False), ("stopped", True)]
    assert (record["phase"], record["runs"][1]["last_message"]) == ("completed", "Report of beta.")
    assert "its client ended before an agent started" in client.requests("sub:beta")[0]
