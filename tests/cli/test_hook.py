"""``hook``: it takes any event of a host on stdin, and always exits with 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.conftest import fresh_table, only_record
from tests.cli.forks import forked
from tests.table import table

if TYPE_CHECKING:
    import pytest

    from tests.cli.conftest import Gaia

DELEGATION = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "tool_name": "Agent",
    "tool_input": {"description": "Count", "prompt": "Count.", "subagent_type": "Explore"},
    "tool_use_id": "toolu_1",
}
START = {"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a1", "agent_type": "Explore"}


def test_a_delegation_creates_a_session_and_prints_nothing(program: Gaia, root: str) -> None:
    assert program("hook", stdin=json.dumps(DELEGATION).encode()).all == (0, "", "")

    record = only_record(root)
    assert (record["agent_name"], record["runs"][0]["tool_use_id"]) == ("Explore", "toolu_1")


def test_the_reply_of_the_hook_is_one_json_object() -> None:
    code, out, err = forked("hook", stdin=json.dumps(START).encode()).all

    assert (code, err, out.count("\n")) == (0, "", 1)
    assert json.loads(out)["hookSpecificOutput"]["hookEventName"] == "SubagentStart"


@table("data", [b"", b"{torn", b"[]", b'{"agent_id": "a"}', b"\xff"])
def test_an_invalid_payload_exits_0_and_prints_nothing(data: bytes) -> None:
    assert forked("hook", stdin=data).all == (0, "", "")


def test_hook_help_prints_its_usage() -> None:
    code, out, err = forked("hook", "--help").all

    assert (code, err) == (0, "")
    assert out.startswith("Usage: gaia-sessions hook [OPTIONS]\n")


SPAWN = {**DELEGATION, "tool_name": "spawn_agent", "tool_input": {"message": "Count."}}
ELSEWHERE = [
    ["--root", "{}", "hook", "--host", "codex"],
    ["--root={}", "hook", "--host=codex"],
    ["hook", "--host", "codex", "--root", "{}"],
    ["hook", "--root", "{}", "--host", "codex", "--enforce"],
    ["hook", "--root={}", "--enforce", "--host=codex"],
    ["--lock-timeout", "3", "--root", "{}", "hook", "--host", "codex", "--bogus"],
]


@fresh_table("words", ELSEWHERE)
def test_root_and_host_options_count_in_every_position(root: str, tmp_path: Path, words: list[str]) -> None:
    elsewhere = tmp_path / "elsewhere"
    given = [word.format(elsewhere) for word in words]

    assert forked(*given, stdin=json.dumps(SPAWN).encode()).all == (0, "", "")

    assert only_record(str(elsewhere))["runs"][0]["host"] == "codex"
    assert not Path(root).exists()


@table("words", [["PreToolUse"], ["--bogus"], ["--json"], ["--host"], ["--host", "wat"], ["--root="]])
def test_invalid_words_after_hook_exit_0_and_print_nothing(words: list[str]) -> None:
    for given in (["hook", *words], ["--bogus", "hook", *words]):
        assert forked(*given, stdin=json.dumps(DELEGATION).encode()).all == (0, "", "")


def test_the_self_test_of_the_hook_passes() -> None:
    code, out, err = forked("hook", "--test").all

    assert (code, err) == (0, "")
    assert out.endswith("passed, 0 failed\n")


def test_the_self_test_imports_no_module_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gaia_sessions").mkdir()
    for module in ("json.py", "gaia_sessions/__init__.py", "gaia_sessions/__main__.py"):
        (tmp_path / module).write_text("open('planted', 'w')", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert forked("hook", "--test").code == 0
    assert not Path("planted").exists()
