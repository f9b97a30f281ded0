"""What is read of the files of a workflow, which anybody may have written, while its agent waits to start."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.config import Config
from gaia_sessions.hosts.claude_code.workflows import agent_keys
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB = 1 << 20


def stretch(folder: Path, name: str, *entries: Any, minute: int = 0, size: int = 0) -> None:
    """A journal with ``entries``, filled up to ``size``, in a folder that was changed in this minute."""
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


def test_the_newest_stretch_that_names_the_agent_is_its_own(tmp_path: Path) -> None:
    stretch(tmp_path, "wf_1", started("a1"), started("a2"), minute=1)
    stretch(tmp_path, "wf_2", started("a1", "v2:2"), minute=2)
    stretch(tmp_path, "wf_3", {"type": "result", "key": "v2:3", "agentId": "a1"}, started("A1"), minute=3)

    assert keys_of(tmp_path, "a1") == {"run_id": "wf_2", "key": "v2:2"}
    assert keys_of(tmp_path, "a2") == {"run_id": "wf_1", "key": "v2:1"}
    assert keys_of(tmp_path, "a3") is None


@pytest.mark.parametrize(("size", "workflow"), [(63 * MIB, {"run_id": "wf_1", "key": "v2:1"}), (64 * MIB, None)])
def test_no_more_is_read_of_all_journals_than_one_may_have(size: int, workflow: object, tmp_path: Path) -> None:
    stretch(tmp_path, "wf_1", started("a1"), minute=1)
    stretch(tmp_path, "wf_2", minute=2, size=size)

    assert keys_of(tmp_path, "a1") == workflow


def test_what_is_no_journal_is_passed_over(tmp_path: Path) -> None:
    stretch(tmp_path, "wf_1", started("a1"), minute=1)
    stretch(tmp_path, "wf_\x1b[31m\n", started("a1", "v2:2"), minute=2)
    os.mkdir(os.fsencode(tmp_path) + b"/wf_\xff")
    stretch(tmp_path, "wf_key", started("a1", 7), minute=3)
    (tmp_path / "wf_none").mkdir()
    (tmp_path / "wf_file").touch()
    no_journals: dict[str, Callable[[Path], object]] = {
        "wf_pipe": os.mkfifo,
        "wf_folder": os.mkdir,
        "wf_link": lambda path: os.symlink(tmp_path / "wf_1" / "journal.jsonl", path),
        "wf_bytes": lambda path: path.write_bytes(b'\xff\0{"agentId": "a1"\n' + b"[" * 99_999 + b'"a1"'),
    }
    for name, make in no_journals.items():
        (tmp_path / name).mkdir()
        make(tmp_path / name / "journal.jsonl")

    assert keys_of(tmp_path, "a1") == {"run_id": "wf_1", "key": "v2:1"}
