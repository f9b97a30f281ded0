"""Real clients with one late hook, each hook in turn: the sessions are the same as without delay.

See ``test_realclient``, whose harness this uses.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.hook.test_lives import DONE, FAILED
from tests.hook.test_realclient import ONE_DELEGATION, client, delegation, script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hook.test_realclient import Client

__all__ = ["client"]  # the fixture is found by its name

pytestmark = pytest.mark.realclient


def two(folder: Path) -> Path:
    """A foreground agent whose command is refused, and then a background agent."""
    command = {"command": "python3 -c 'print(6*7)'", "description": "Run it"}
    background = delegation("beta")
    background["input"]["run_in_background"] = True
    scenario = {
        "main": [
            {"tools": [delegation("alpha")]},
            {"tools": [background]},
            {"text": "Launched; waiting."},
            {"text": "Got the news."},
        ],
        "subs": {
            "alpha": [{"text": "So.", "tools": [{"name": "Bash", "input": command}]}, {"text": "Report of alpha."}],
            "beta": [{"text": "Report of beta.", "delay": 2}],
        },
        "allowed": ["Agent"],
    }
    return script(folder, scenario)


def delay(client: Client, event: str, seconds: float) -> None:
    """Installs the hooks; the hooks of ``event`` start late."""
    client.install()
    late = client.host.folder / "late"
    late.write_text(f'#!/bin/sh\nsleep {seconds}\nexec "$@"\n', encoding="utf-8")
    late.chmod(0o755)
    file = client.host.project / ".claude" / "settings.json"
    settings = json.loads(file.read_bytes())
    for group in settings["hooks"][event]:
        for handler in group["hooks"]:
            handler["args"] = [handler["command"], *handler["args"]]
            handler["command"] = str(late)
    file.write_text(json.dumps(settings), encoding="utf-8")


@pytest.mark.parametrize("seconds", [0.1, 0.4])
@pytest.mark.parametrize("event", [*ONE_DELEGATION, "PermissionRequest"])
def test_with_any_late_hook_each_agent_is_one_session_with_its_true_end(
    client: Client, event: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "configure", lambda: delay(client, event, seconds))

    client.live("own", two(client.host.folder))

    records = list(client.host.records().values())
    assert [phases(record) for record in records] == [["investigating", "completed"]] * 2
    assert client.ends() == [DONE, DONE]
    assert [run["started_at"] < run["ended_at"] for record in records for run in record["runs"]] == [True, True]
    assert [run for record in records for run in record["runs"] if "waiting" in run] == []
    assert client.host.waiting() == []
    assert [line for line in client.host.log("hook") if line["decision"] == "error"] == []


@pytest.mark.parametrize("seconds", [0.1, 0.4])
@pytest.mark.parametrize("event", ["StopFailure", "PostToolUseFailure"])
def test_with_a_late_failure_hook_the_agent_is_one_failed_session(
    client: Client, event: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "configure", lambda: delay(client, event, seconds))

    client.live("sub-error-400")

    assert (client.ends(), client.host.waiting()) == ([FAILED], [])


def phases(record: Any) -> list[str]:
    return [move["to_phase"] for move in record["history"]]
