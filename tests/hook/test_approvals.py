"""Who approved what waits: how each answer was given is told for ever, and by the setting only a person's counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.hosts import SHELL_VARIABLES
from tests import commands
from tests.hook.conftest import paused

if TYPE_CHECKING:
    from tests.commands import Ended
    from tests.hook.conftest import Host


def typed(host: Host, *words: str, **environment: str) -> Ended:
    """What a command says to whoever types it in the project."""
    settings = {**host.environment(), **environment}
    return commands.gaia(*words, environment=settings, folder=host.project)


def started(host: Host, number: int) -> None:
    """The agent of the delegation with this ``number`` starts, and its host has noted which delegation it works on."""
    host.knows(f"a{number}", f"toolu_{number}")
    host.hear(host.starting(f"a{number}"))


def by_command(host: Host, agent_id: str) -> None:
    assert typed(host, "approve", agent_id, "--note", "only 22").code == 0
    by_line(host, agent_id)


def by_agent(host: Host, agent_id: str) -> None:
    assert typed(host, "approve", agent_id, CLAUDECODE="1").code == 0
    by_line(host, agent_id)


def by_python(host: Host, agent_id: str) -> None:
    gaia_sessions.Sessions(str(host.root)).approve(agent_id, "only 22")
    by_line(host, agent_id)


def by_line(host: Host, agent_id: str) -> None:
    host.hear(host.resuming(agent_id))
    started(host, 2)


def by_message(host: Host, agent_id: str) -> None:  # noqa: ARG001  # as the others
    host.hear(host.starting("a1"))


def by_run(host: Host, agent_id: str) -> None:
    assert typed(host, "run", agent_id, "--", "true").code == 0


WAYS: dict[Any, tuple[dict[str, str], str]] = {
    by_command: ({"by": "command", "message": "only 22"}, "just now, by a command: only 22"),
    by_agent: ({"by": "command", "shell": "claude-code"}, "just now, by a command in a shell of Claude Code's agent"),
    by_python: ({"by": "python", "message": "only 22"}, "just now, by a program in Python: only 22"),
    by_line: ({"by": "resume_line"}, "just now, by a resume line"),
    by_message: ({"by": "message"}, "just now, by a message to its agent"),
    by_run: ({"by": "run"}, "just now, by `gaia-sessions run`"),
}


@pytest.mark.parametrize("way", WAYS)
def test_how_the_answer_was_given_is_told_after_the_work_went_on(host: Host, way: Any) -> None:
    agent_id = paused(host)
    given, text = WAYS[way]

    way(host, agent_id)

    record = host.record()
    assert (record["phase"] in ("executing", "completed"), "approval" in record) == (True, False)
    [answer] = record["answers"]
    assert {key: value for key, value in answer.items() if key != "timestamp"} == {"answer": "approved", **given}
    assert json.loads(typed(host, "report", agent_id, "--json").out)["answers"] == [answer]
    assert f"approved {text}" in " ".join(typed(host, "show", agent_id).out.decode().split())
    assert f"approved {text}" in " ".join(typed(host, "report", agent_id).err.decode().split())
    events = typed(host, "events", agent_id, "--json").json
    assert [one["evidence"] for one in events if one["kind"] == "approval"] == [{"message": "", **given}]


def test_the_variables_of_every_client_are_known() -> None:
    assert list(SHELL_VARIABLES.values()) == ["CLAUDECODE", "CODEX_THREAD_ID", "QWEN_CODE", "GEMINI_CLI"]
