"""A sub-agent is told the report command only with ``--allow-report``, and never in part."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.hook import texts
from gaia_sessions.hook.texts import LONGEST_NOTE
from gaia_sessions.hosts.marker import NOTE
from gaia_sessions.install import permission
from tests.hook.conftest import SCRIPTS, paused

if TYPE_CHECKING:
    from typing import Any

    from tests.hook.conftest import Host

pytestmark = pytest.mark.skipif(texts.find_program() is None, reason="needs the console script beside the interpreter")


@pytest.fixture
def allowed(host: Host) -> Host:
    """A host that starts the hook with ``--allow-report``."""
    host.words = ["--allow-report"]
    return host


def resume(host: Host, agent_id: str, settings: dict[str, str] | None = None) -> str:
    told: Any = host.hear(host.resuming(agent_id), settings)
    return str(told["updatedInput"]["prompt"])


def sentence(host: Host, agent_id: str) -> str:
    path = Path(sys.executable).parent / "gaia-sessions"
    command = f"{shlex.quote(str(path))} update {agent_id} --root {shlex.quote(str(host.root))} --phase planning"
    report = f"While you work, report your phase with: {command} (or investigating, executing, validating)."
    return (
        f"{report} For a todo, type todo add instead of update, and its text instead of --phase planning; "
        "later todo done or todo cancel with its number, or todo list."
    )


def test_a_resuming_agent_is_told_the_report_command_and_it_works_as_written(allowed: Host) -> None:
    host, agent_id = allowed, paused(allowed)

    prompt = resume(host, agent_id)

    assert prompt.endswith("\n\n" + sentence(host, agent_id))
    command = prompt.partition("report your phase with: ")[2].partition(" (or ")[0]
    todo = command.replace(" update ", " todo add ").replace("--phase planning", "'read it'")
    done = command.replace(" update ", " todo done ").replace("--phase planning", "1")
    for typed, rule in zip((command, todo, done), (0, 1, 1), strict=True):
        assert typed.startswith(permission.permission_rules()[rule].removeprefix("Bash(").removesuffix("*)"))
        subprocess.run(["sh", "-c", typed], check=True, capture_output=True, cwd="/")
    record = json.loads((host.root / agent_id / "state.json").read_bytes())
    todos = [{"description": "read it", "status": "completed"}]
    assert (record["phase"], record["todos"]) == ("planning", todos)


def test_without_allow_report_no_agent_is_told_the_report_command(host: Host) -> None:
    assert "report your phase" not in resume(host, paused(host))


def test_with_notes_off_no_agent_is_told_the_report_command(allowed: Host) -> None:
    assert "report your phase" not in resume(allowed, paused(allowed), {"GAIA_SESSIONS_NOTE": "off"})


def test_an_agent_with_a_known_session_is_told_the_note_and_the_command(allowed: Host) -> None:
    host, agent_id = allowed, allowed.work()
    assert host.hear(host.starting()) == {"additionalContext": f"{NOTE}\n{sentence(host, agent_id)}"}


def test_an_agent_without_a_known_session_is_told_to_report_by_its_id(allowed: Host) -> None:
    host = allowed
    host.hear(host.delegation())
    told = host.hear(host.starting())["additionalContext"]

    assert told == f"{NOTE}\n{sentence(host, f'--host-agent {host.SESSION} a1')}"
    host.knows("a1", "toolu_1")
    command = told.partition("report your phase with: ")[2].partition(" (or ")[0]
    todo = command.replace(" update ", " todo add ").replace("--phase planning", "'read it'")
    for typed in (command, todo):
        subprocess.run(["sh", "-c", typed], check=True, capture_output=True, cwd="/")
    assert host.record()["todos"] == [{"description": "read it", "status": "pending"}]
    assert (host.record()["phase"], host.record()["runs"][0]["reported"]) == ("planning", "planning")


def test_a_hook_with_a_root_option_names_that_root_in_the_command(host: Host, tmp_path: Path) -> None:
    root = tmp_path / "elsewhere"
    done = subprocess.run(
        [sys.executable, SCRIPTS / "every_event.py", "--root", root, "--allow-report"],
        input=json.dumps(host.starting()).encode(),
        capture_output=True,
        check=True,
        cwd=host.project,
        env=host.environment(),
    )
    told = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert f" --root {shlex.quote(str(root))} --phase" in told


def test_instructions_that_are_too_long_are_left_out_whole() -> None:
    [told] = texts.report_instructions("/short", "agent-123")
    assert len(NOTE) + 1 + len(told) <= LONGEST_NOTE
    room = LONGEST_NOTE - len(NOTE) - 1 - len(told)
    assert len(texts.report_instructions("/short" + "x" * room, "agent-123")[0]) == LONGEST_NOTE - len(NOTE) - 1
    [shorter] = texts.report_instructions("/short" + "x" * (room + 1), "agent-123")
    assert shorter.endswith(" (or investigating, executing, validating).")
    room = LONGEST_NOTE - len(NOTE) - 1 - len(shorter) + room + 1
    assert len(texts.report_instructions("/short" + "x" * room, "agent-123")[0]) == LONGEST_NOTE - len(NOTE) - 1
    assert texts.report_instructions("/short" + "x" * (room + 1), "agent-123") == []


def test_without_the_console_script_there_are_no_report_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert texts.report_instructions("/short", "agent-123") == []
