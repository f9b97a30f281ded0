"""``scripts/test-interpreters``: it expects the interpreters of the project and reports missing ones."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from shutil import which

CHECKOUT = Path(__file__).parents[1]
SCRIPT = CHECKOUT / "scripts" / "test-interpreters"
TOOLS = ("sh", "dirname", "grep", "sort", "awk", "cat", "cksum", "getconf")


def expected() -> list[str]:
    [line] = re.findall(r"^expected='(.*)'$", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    return str(line).split()


def test_the_script_expects_the_interpreters_that_the_project_names() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: Python :: 3." in line]
    assert named == expected()
    assert project["requires-python"] == f">={named[0]}"


def test_an_interpreter_that_is_missing_or_does_not_start_is_reported_as_not_found(tmp_path: Path) -> None:
    for tool in TOOLS:
        found = which(tool)
        assert found
        (tmp_path / tool).symlink_to(found)
    shim = tmp_path / "python3.12"  # like the shim of a version manager for an inactive version
    shim.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)

    done = subprocess.run(
        ["sh", SCRIPT],
        env={"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    said = [re.fullmatch(r"Python (3\.\d+): none found, not tested", line) for line in done.stderr.splitlines()]
    assert {match[1] for match in said if match} >= set(expected()[1:]) - _own()
    assert all(said)
    assert done.stdout == ""


def _own() -> set[str]:
    """The version in ``.venv``, on which all tests run, if there is one."""
    python = CHECKOUT / ".venv" / "bin" / "python"
    if not python.exists():
        return set()
    told = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout
    return {told.split()[1].rpartition(".")[0]}
