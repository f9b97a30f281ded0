"""Which tasks of a stop a Claude Code agent waits for: those that it started, as its transcript shows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.config import Config
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.claude_code import own_work
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.session.host_events import LONGEST_TASK, MOST_RUNNING, MOST_TASKS
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = datetime(2026, 11, 27, 22, 20, tzinfo=UTC)
AGENT = "a0c9321cf6f5a6c8c"
HERSELF: Any = {"id": AGENT, "type": "subagent", "status": "running"}
SHELL: Any = {"id": "b5ewt7h2y", "type": "shell", "status": "running", "command": "make"}
OTHERS: Any = {**SHELL, "id": "b0therone"}
CHILD: Any = {**HERSELF, "id": "a1child"}
MONITOR: Any = {"id": "m0nitor", "type": "monitor", "status": "running"}
WAITS = {"since": "2026-11-27T22:20:00.000000Z", "kind": "command", "tasks": ["b5ewt7h2y"]}

RUNS = "Command running in background with ID: b5ewt7h2y. Output is being written to: /tasks/b5ewt7h2y.output."
ENDS = f"{RUNS} It is terminated when you give your final response and no notification can follow that."


def entry(kind: str, content: object, **more: object) -> Any:
    return {"parentUuid": "u", "agentId": AGENT, "type": kind, "message": {"role": kind, "content": content}, **more}


def answer(content: object, **more: object) -> Any:
    return entry("user", [{"type": "tool_result", "tool_use_id": "t", "content": content}], **more)


FIRST: Any = {**entry("user", "Do the job."), "parentUuid": None}
AFTER_CLEAR: Any = entry("user", "[SYSTEM NOTIFICATION - NOT USER INPUT]")


@pytest.fixture
def waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Asks what the agent waits for, given the tasks of its stop and its transcript (None: no transcript)."""
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".claude" / "projects" / "p" / f"agent-{AGENT}.jsonl"
    path.parent.mkdir(parents=True)

    def ask(tasks: object, lines: list[Any] | None) -> Any:
        path.unlink(missing_ok=True)
        if lines is not None:
            path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        raw: Any = {"agent_transcript_path": str(path), "background_tasks": tasks}
        return own_work.of_stop(HookPayload(CLAUDE_CODE, raw, Config({}), NOW, {}), AGENT)

    return ask


@table(
    "said",
    [
        answer(RUNS),
        answer([{"type": "text", "text": f"some output\n{RUNS}"}]),
        answer("", toolUseResult={"backgroundTaskId": "b5ewt7h2y"}),
        answer("Command was manually backgrounded by user with ID: b5ewt7h2y. Output is being written to: /x."),
        answer("Command was moved to the background (ID: b5ewt7h2y) after running for 9s. Output is ..."),
        answer("Command did not complete within its 9s timeout and was moved to the background (ID: b5ewt7h2y). ..."),
    ],
)
def test_an_agent_waits_for_a_task_that_it_started(said: Any, waits: Any) -> None:
    assert waits([HERSELF, OTHERS, SHELL], [FIRST, said]) == WAITS
    assert waits([HERSELF, OTHERS, SHELL], [AFTER_CLEAR, said]) == WAITS
    assert waits([HERSELF, OTHERS], [FIRST, said]) is None
    assert waits([SHELL], [FIRST, said]) is None, "it is in the foreground"
    assert waits([HERSELF, {**SHELL, "status": "completed"}], [FIRST, said]) is None
    assert waits([HERSELF, {**SHELL, "status": "pending"}], [FIRST, said]) == WAITS


@table(
    "said",
    [
        answer(ENDS),
        answer(RUNS.replace("b5ewt7h2y", "b0ther"), toolUseResult={}),
        answer(RUNS, toolUseResult={"backgroundTaskId": "b5ewt7h2y", "backgroundEndsWithFinalResponse": True}),
        answer(f'{{"content": "{RUNS}"}}'),
        answer("agentId: b5ewt7h2y (for resuming to continue this agent's work)"),
        answer("", toolUseResult={"agentId": "b5ewt7h2y", "status": "completed"}),
        entry("user", RUNS),
        entry("user", [{"type": "text", "text": RUNS}]),
        entry("assistant", [{"type": "text", "text": RUNS}]),
        entry("assistant", [{"type": "tool_result", "content": RUNS}]),
    ],
)
def test_an_agent_does_not_wait_if_its_transcript_does_not_show_the_start(said: Any, waits: Any) -> None:
    assert waits([HERSELF, SHELL], [FIRST, said]) is None


@table(
    ("task", "kind", "said"),
    [
        (CHILD, "agent", answer("Async agent launched successfully.\nagentId: a1child (internal ID)\n...")),
        (CHILD, "agent", answer("", toolUseResult={"isAsync": True, "status": "async_launched", "agentId": "a1child"})),
        (MONITOR, "monitor", answer("Monitor started (task m0nitor, timeout 300000ms). You will be notified.")),
    ],
)
def test_an_agent_waits_for_agents_and_monitors_that_it_started(task: Any, kind: str, said: Any, waits: Any) -> None:
    known: Any = {} if kind == "monitor" else {"assumed": True}
    assert waits([HERSELF, task], [FIRST, said]) == {**WAITS, "kind": kind, "tasks": [task["id"]], **known}
    assert waits([HERSELF, task], [FIRST]) is None
    assert waits([HERSELF, task, SHELL], [FIRST, said, answer(RUNS)])["kind"] in {"command", "monitor"}


@table("lines", [None, [], [AFTER_CLEAR], [{**FIRST, "agentId": "another"}], ["no object"]])
def test_without_a_usable_transcript_commands_are_assumed_to_be_the_agents_own(lines: Any, waits: Any) -> None:
    assert waits([HERSELF, SHELL, CHILD], lines) == {**WAITS, "assumed": True}
    assert waits([HERSELF, MONITOR], lines) == {**WAITS, "kind": "monitor", "tasks": ["m0nitor"], "assumed": True}
    assert waits([HERSELF, CHILD], lines) is None


@table("limit", ["_MOST_BYTES", "_MOST_ANSWERS", "_SECONDS_TO_READ"])
def test_a_transcript_that_is_too_long_counts_as_unusable(
    limit: str, waits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(own_work, limit, -1 if limit == "_SECONDS_TO_READ" else 0)
        assert waits([HERSELF, SHELL], [FIRST, answer("done")]) == {**WAITS, "assumed": True}


def test_the_number_and_the_length_of_tasks_are_limited(waits: Any) -> None:
    many = [{**SHELL, "id": f"b{number}"} for number in range(MOST_TASKS + 5)]
    assert len(waits([HERSELF, *many], None)["tasks"]) == MOST_TASKS
    assert waits([*[OTHERS] * MOST_RUNNING, HERSELF, SHELL], None) is None
    assert waits([HERSELF, {**SHELL, "id": "b" * (LONGEST_TASK + 1)}], None) is None


@table("tasks", [None, "text", {}, [None, 1, "text"], [HERSELF, {"id": 7, "type": "shell", "status": "running"}]])
def test_malformed_tasks_are_ignored(tasks: object, waits: Any) -> None:
    assert waits(tasks, [FIRST, answer(RUNS)]) is None


def test_a_transcript_line_that_is_no_object_is_ignored(waits: Any) -> None:
    assert waits([HERSELF, SHELL], [FIRST, f'"tool_result" {RUNS}', [RUNS, "tool_result"]]) is None


def test_an_agent_far_down_in_a_long_task_list_waits_too(waits: Any) -> None:
    before = [{**SHELL, "id": f"b{number}"} for number in range(300)]
    assert waits([*before, HERSELF, SHELL], [FIRST, answer("Command running in background with ID: b7.")]) == {
        **WAITS,
        "tasks": ["b7"],
    }
    assert waits([SHELL, *before, HERSELF], [FIRST, answer(RUNS)]) == WAITS
    assert waits([*before, HERSELF, SHELL], [FIRST, answer(RUNS)])["assumed"], "not every task is looked for"
    assert waits([*before[:150], HERSELF, OTHERS], [FIRST, answer(RUNS)]) is None


def test_a_task_that_another_agent_started_is_not_the_agents_own(waits: Any) -> None:
    others = {**answer(RUNS), "agentId": "another"}
    assert waits([HERSELF, SHELL], [FIRST, others]) is None
    assert waits([HERSELF, SHELL], [{**FIRST, "agentId": "another"}, others]) == {**WAITS, "assumed": True}
    assert waits([HERSELF, SHELL], [FIRST, others, answer(RUNS)]) == WAITS
