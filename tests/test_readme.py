"""What the README shows is true: its commands run as they stand, its generated parts are current."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.cli.group import COMMANDS
from gaia_sessions.config.options import OPTIONS

if TYPE_CHECKING:
    from gaia_sessions.config.options import Option

CHECKOUT = Path(__file__).resolve().parent.parent
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
HOOKS_README = (CHECKOUT / "hooks" / "README.md").read_text(encoding="utf-8")


def block(language: str, which: int = 0) -> str:
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    return blocks[which]


def test_the_commands_for_the_shell_run_as_they_stand(tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}

    done = subprocess.run(
        ["sh", "-eu", "-c", block("sh")], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert "resume it" in lines
    assert sum("  completed  " in line for line in lines) == 1
    assert lines[-1] == "removed 0 sessions untouched for 24 hours"


def test_the_python_example_runs_as_it_stands(tmp_path: Path) -> None:
    program = block("python") + "print(get_session(agent_id)['phase'], context)\n"

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )

    assert done.stdout == "completed {'task_id': 'T001'}\n"


def test_the_generated_parts_are_current() -> None:
    subprocess.run([sys.executable, CHECKOUT / "scripts" / "render_phases", "--check"], check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_table(name: str) -> None:
    assert f"| `{name}" in README


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_every_setting_is_in_the_table_with_its_default(option: Option) -> None:
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| (.+?) \|", README, flags=re.MULTILINE))
    default = option.default
    shown = {True: "true", False: "false", (): "`[]`"}.get(default) or (
        f'`"{default}"`' if isinstance(default, str) else f"{default:g}"
    )

    assert rows[option.key] == shown


@pytest.mark.parametrize(
    "link", re.findall(r"\]\((?!https?:)([^)]+)\)", README + HOOKS_README.replace("](", "](hooks/"))
)
def test_every_link_leads_somewhere(link: str) -> None:
    assert (CHECKOUT / link).exists()


@pytest.mark.parametrize("arguments", [[], ["list"]], ids=["the main job", "a command"])
def test_the_script_for_a_first_look_shows_what_it_promises(tmp_path: Path, arguments: list[str]) -> None:
    """``scripts/demo`` is what ``sh scripts/run`` ends in; the set-up before it is for a fresh machine to try."""
    demo = [sys.executable, str(CHECKOUT / "scripts" / "demo")]
    command = [sys.executable, "-m", "gaia_sessions", *arguments] if arguments else demo

    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)

    assert (done.returncode, done.stderr) == (0, "")
    wanted = ["No sessions found"] if arguments else ["yes: agent-", "approval → executing", "  completed  "]
    assert [text for text in wanted if text not in done.stdout] == []
