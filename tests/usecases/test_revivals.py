"""What real clients reported of agents that were stopped, once and twice, and who may go on afterwards."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api.sessions import Sessions
from tests.hook.test_lives import CAPTURES, IDS, lives

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["lives"]  # a fixture

STOPPED_FROM_OUTSIDE = {
    "tui-esc": ["interrupted"],
    "tui-esc-in-tool": ["interrupted"],
    "interrupt-live": ["interrupted"],
    "overloaded-529": ["overloaded"],
    "connection-lost": ["connection_lost"],
    "tui-stop-all": ["stopped_by_user"],
    "tui-panel-stop": ["stopped_by_user"],
    "single": [],
    "background-stopped": [],
    "sub-error-400": [],
}


@pytest.mark.parametrize(
    "capture",
    [
        pytest.param(capture, id=name)
        for capture, name in zip(CAPTURES, IDS, strict=True)
        if capture.stem in STOPPED_FROM_OUTSIDE and "claude-code" in str(capture)
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_a_stop_in_a_real_client_leads_to_the_agent_that_it_stopped(capture: Path, times: int, lives: Any) -> None:
    life = lives()
    lines = [line for line in life.lines(capture) for _ in range(times)]
    life.live(lines)
    for record in life.records():
        agent = record["runs"][-1].get("host_agent_id")
        conversation = life.folder / "home" / ".claude" / "projects" / "-project" / lines[0].session
        (conversation / "subagents").mkdir(parents=True, exist_ok=True)
        (conversation / "subagents" / f"agent-{agent}.jsonl").touch()
        conversation.with_suffix(".jsonl").touch()

    found = Sessions(str(life.root)).revivals()

    assert [one["why"] for one in found] == STOPPED_FROM_OUTSIDE[capture.stem]
    agents = {record["agent_id"]: record["runs"][-1].get("host_agent_id") for record in life.records()}
    for one in found:
        words = shlex.split(str(one["command"]))
        assert (one["means"], words[:2]) == ("message", ["claude", "--resume"])
        assert agents[one["agent_id"]] in words[-1]
        assert words[2] == lines[0].session
