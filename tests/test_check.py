"""The script ``check`` and its siblings: their help is complete, and they start what was asked for."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest

from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[..., list[str]]

CHECKOUT = Path(__file__).parents[1]
SCRIPTS = CHECKOUT / "scripts"
TOOLS = ("sh", "dirname", "cat", "getconf")
STARTED = ("ruff", "mypy", "python")
PROCESSORS = os.sysconf("SC_NPROCESSORS_ONLN")
PYTEST = f"python -m pytest -q -rs -n {PROCESSORS + 1} --dist worksteal"
WITH_CLIENTS = f"python -m pytest -q -rs -n {PROCESSORS + 2} --dist worksteal"
REST = "(slow or realclient) and not thorough"
THOROUGH = "--hypothesis-profile=thorough"


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Runs a script with stubs that only print how they were started. Returns the lines on stdout."""
    for tool in TOOLS:
        found = which(tool)
        assert found
        (tmp_path / tool).symlink_to(found)
    for name in STARTED:
        stub = tmp_path / name
        stub.write_text(f'#!/bin/sh\nprintf "%s" {name}; for word; do printf " %s" "${{word:-(empty)}}"; done; echo\n')
        stub.chmod(0o755)

    def start(script: str, *words: str) -> list[str]:
        done = subprocess.run(
            ["sh", SCRIPTS / script, *words],
            env={"PATH": str(tmp_path), "HOME": os.environ["HOME"]},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    return start


@table(
    ("words", "started"),
    [
        ([], [PYTEST]),
        (["tests/hook", "-k", "a b"], [f"{PYTEST} tests/hook -k a b"]),
        (["--coverage"], [f"{PYTEST} --cov --cov-report=term"]),
        (["--all"], [f"{WITH_CLIENTS} -m not thorough"]),
        (["-x", "--all", "-m", "slow"], [f"{WITH_CLIENTS} -m not thorough -x -m slow"]),
        (["--all", "--coverage"], [f"{PYTEST} --cov --cov-report=term", f"{WITH_CLIENTS} -m {REST}"]),
        (["--thorough"], [f"{WITH_CLIENTS} -m (empty) {THOROUGH}"]),
        (
            ["--thorough", "--coverage"],
            [f"{PYTEST} --cov --cov-report=term", f"{WITH_CLIENTS} -m slow or thorough or realclient {THOROUGH}"],
        ),
    ],
)
def test_check_starts_lint_type_checks_and_the_requested_tests(
    check: Check, words: list[str], started: list[str]
) -> None:
    lines = [line for line in check("check", *words) if not line.startswith("== ")]

    assert lines == ["ruff check .", "ruff format --check .", "mypy", "python scripts/render_docs --check", *started]


@table("script", ["check", "test"])
@table("words", [["--help"], ["-h"], ["--all", "--help"]])
def test_help_starts_nothing_and_names_every_option_and_every_marker(
    check: Check, script: str, words: list[str]
) -> None:
    text = (SCRIPTS / "check").read_text(encoding="utf-8")
    options = set(re.findall(r"(--\w+)\) ", text.partition("for argument")[2]))
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    markers = {line.partition(":")[0] for line in settings["markers"]}

    lines = check(script, *words)

    described = {word.rstrip(",") for line in lines if line.startswith("  ") for word in line.split("   ")[0].split()}
    assert described >= options | markers
    assert options == {"--all", "--thorough", "--coverage", "--help"}
    assert not {line.split()[0] for line in lines if line} & set(STARTED)


def test_help_of_test_interpreters_shows_its_usage_and_starts_nothing(check: Check) -> None:
    lines = check("test-interpreters", "--help")

    assert lines[0] == "Usage: sh scripts/test-interpreters [PYTEST ARGUMENT]..."
    assert not {line.split()[0] for line in lines if line} & set(STARTED)


def test_ci_runs_all_tests_with_coverage_and_then_other_interpreters() -> None:
    lines = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines[-2:] == ["sh scripts/test --all --coverage --durations-by-folder", "sh scripts/test-interpreters"]
