"""What a hook reads from the files of a workflow. Their content is not trusted, and the agent waits meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.config import Config
from gaia_sessions.hosts.claude_code.workflows import agent_keys, notification_events
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.system import utc_now
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB = 1 << 20


def workflow_run(folder: Path, name: str, *entries: Any, minute: int = 0, size: int = 0) -> None:
    """Writes a journal with ``entries``, extended to ``size``, in a folder with this modification time."""
    journal = folder / name / "journal.jsonl"
    journal.parent.mkdir()
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    if size:
        os.truncate(journal, size)
    os.utime(journal.parent, (minute * 60, minute * 60))


def started(agent: str, key: object = "v2:1", **more: object) -> dict[str, object]:
    return {"type": "started", "key": key, "agentId": agent, **more}


def keys_of(folder: Path, agent: str) -> Any:
    payload = HookPayload("claude-code", {"session_id": "h"}, Config({}), utc_now(), {})
    return agent_keys(payload, str(folder), agent).get("workflow")


def test_an_agent_belongs_to_the_newest_workflow_run_that_names_it(talks: Path) -> None:
    workflow_run(talks, "wf_1", started("a1"), started("a2"), minute=1)
    workflow_run(talks, "wf_2", started("a1", "v2:2"), minute=2)
    workflow_run(talks, "wf_3", {"type": "result", "key": "v2:3", "agentId": "a1"}, started("A1"), minute=3)

    assert keys_of(talks, "a1") == {"run_id": "wf_2", "key": "v2:2"}
    assert keys_of(talks, "a2") == {"run_id": "wf_1", "key": "v2:1"}
    assert keys_of(talks, "a3") is None


@table(("size", "workflow"), [(63 * MIB, {"run_id": "wf_1", "key": "v2:1"}), (64 * MIB, None)])
def test_all_journals_together_are_read_up_to_the_limit_of_one_journal(
    size: int, workflow: object, talks: Path
) -> None:
    talks /= str(size)
    talks.mkdir()
    workflow_run(talks, "wf_1", started("a1"), minute=1)
    workflow_run(talks, "wf_2", minute=2, size=size)

    assert keys_of(talks, "a1") == workflow


def test_an_invalid_workflow_journal_is_skipped(talks: Path) -> None:
    workflow_run(talks, "wf_1", started("a1"), minute=1)
    workflow_run(talks, "wf_\x1b[31m\n", started("a1", "v2:2"), minute=2)
    os.mkdir(os.fsencode(talks) + b"/wf_\xff")
    workflow_run(talks, "wf_key", started("a1", 7), minute=3)
    (talks / "wf_none").mkdir()
    (talks / "wf_file").touch()
    no_journals: dict[str, Callable[[Path], object]] = {
        "wf_pipe": os.mkfifo,
        "wf_folder": os.mkdir,
        "wf_link": lambda path: os.symlink(talks / "wf_1" / "journal.jsonl", path),
        "wf_bytes": lambda path: path.write_bytes(b'\xff\0{"agentId": "a1"\n' + b"[" * 99_999 + b'"a1"'),
    }
    for name, make in no_journals.items():
        (talks / name).mkdir()
        make(talks / name / "journal.jsonl")

    assert keys_of(talks, "a1") == {"run_id": "wf_1", "key": "v2:1"}


# A hook has three seconds for everything. The memory is enough for the program and two copies of a journal.
LIMITED = """
import resource, sys
from gaia_sessions.config import Config
from gaia_sessions.hosts.claude_code.workflows import agent_keys
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.system import utc_now
resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
payload = HookPayload("claude-code", {"session_id": "h"}, Config({}), utc_now(), {})
print(agent_keys(payload, sys.argv[1], "a1").get("workflow"))
"""

FOUND = str({"run_id": "wf_1", "key": "v2:1"})
LINE = json.dumps(started("a1")).encode() + b"\n"
HOSTILE: list[tuple[Callable[[], bytes], str]] = [
    (lambda: b'["a1", "' + b"x" * (60 * MIB) + b'"]\n' + LINE, FOUND),
    (lambda: (b'["a1"' + b",[]" * (MIB // 2) + b"]\n") * 40 + LINE, "None"),
    (lambda: b"\n" * (64 * MIB - len(LINE)) + LINE, FOUND),
    (lambda: b"{}\n" * (21 * MIB) + LINE, FOUND),
    (lambda: b'"a1"\n' * (12 * MIB) + LINE, "None"),
]
"""The content of a journal, and what is found for the agent."""


@pytest.mark.parametrize("rows", [HOSTILE[:2], pytest.param(HOSTILE[2:], marks=pytest.mark.slow)], ids=len)
def test_a_huge_journal_is_read_within_the_time_and_memory_of_a_hook(
    rows: list[tuple[Callable[[], bytes], str]], talks: Path
) -> None:
    (talks / "wf_1").mkdir()
    for content, expected in rows:
        (talks / "wf_1" / "journal.jsonl").write_bytes(content())

        done = subprocess.run(
            [sys.executable, "-c", LIMITED, str(talks)], capture_output=True, text=True, timeout=60, check=False
        )

        assert (done.returncode, done.stdout.strip()) == (0, expected), done.stderr[-500:]


def test_a_journal_line_may_have_2_mib(talks: Path) -> None:
    for name, size in (("wf_1", 2 * MIB), ("wf_2", 2 * MIB + 1)):
        entry = started("a1", note="")
        entry["note"] = "x" * (size - len(json.dumps(entry)))
        workflow_run(talks, name, entry, minute=1 if name == "wf_1" else 2)
    workflow_run(talks, "wf_3", {"type": "result", "agentId": "a2", "result": "a1"}, minute=3)

    assert keys_of(talks, "a1") == {"run_id": "wf_1", "key": "v2:1"}


@table(("size", "ends"), [(8 * MIB, ["a1", "w1"]), (8 * MIB + 1, ["w1"])])
def test_a_workflow_file_may_have_8_mib(size: int, ends: list[str], talks: Path) -> None:
    payload = HookPayload("claude-code", {"session_id": "h"}, Config({}), utc_now(), {})
    progress = [{"type": "workflow_agent", "agentId": "a1", "state": "done"}]
    document = {"taskId": "w1", "workflowProgress": progress, "script": ""}
    document["script"] = "x" * (size - len(json.dumps(document)))
    (talks / "wf_1.json").write_text(json.dumps(document), encoding="utf-8")
    notification = payload.event("notification", host_agent_id="w1", outcome="completed")

    events = notification_events(payload, notification, str(talks), "")

    assert [event["host_agent_id"] for event in events] == ends
