"""Which program the settings of a host start: how it is found and tried, and what happens if it is gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipapp
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

import gaia_sessions
from gaia_sessions.install import executable, hook_command
from gaia_sessions.install.places import HOSTS
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHECKOUT = Path(gaia_sessions.__file__).parents[1]
ASK = "import json; from gaia_sessions.install import executable; print(json.dumps(executable.hook_program()))"
PROMPT = b'{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Go on."}'


@pytest.fixture(autouse=True)
def unremembered() -> Iterator[None]:
    """Clears the cache of programs that were tried."""
    executable._starts_hook.cache_clear()
    yield
    executable._starts_hook.cache_clear()


class Environment:
    """A virtual environment with the installed hook program; the package is the checkout."""

    def __init__(self, folder: Path, *, with_package: bool = True) -> None:
        venv.create(folder)
        self.python = folder / "bin" / "python"
        self.program = folder / "bin" / "gaia-sessions-hook"
        self.package = next(folder.glob("lib/*/site-packages"))
        if with_package:
            (self.package / "checkout.pth").write_text(f"{CHECKOUT}\n", encoding="utf-8")
        body = (CHECKOUT / "hooks" / "every_event.py").read_bytes().partition(b"\n")[2]
        self.program.write_bytes(b"#!" + os.fsencode(self.python) + b"\n" + body)  # as pip writes it
        self.program.chmod(0o755)

    def finds(self) -> list[str]:
        """The hook program that the interpreter of this environment finds."""
        ask = [str(self.python), "-c", ASK]
        completed = subprocess.run(ask, capture_output=True, text=True, check=True, cwd=self.package)
        return [str(word) for word in json.loads(completed.stdout)]


class Project:
    """The folder in which a host starts; the hooks write only in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()

    def start(self, words: Sequence[str], payload: bytes = PROMPT, *, shell: bool = False) -> tuple[int, bytes, bytes]:
        command = " ".join(words) if shell else words
        environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(self.folder)}
        completed = subprocess.run(
            command, shell=shell, input=payload, capture_output=True, check=False, cwd=self.folder, env=environment
        )
        return completed.returncode, completed.stdout, completed.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_the_hook_program_of_this_environment_is_found_and_starts(project: Project) -> None:
    words = executable.hook_program()
    assert words == [str(Path(sys.executable).with_name("gaia-sessions-hook"))], (
        "was the package installed again after pyproject.toml changed?"
    )
    assert project.start(words) == (0, b"", b"")


def test_an_installed_program_is_the_whole_command(tmp_path: Path, project: Project) -> None:
    environment = Environment(tmp_path / "env")
    assert environment.finds() == [str(environment.program)]
    assert project.start(environment.finds()) == (0, b"", b"")


def test_if_the_path_has_a_space_the_interpreter_runs_the_package(tmp_path: Path, project: Project) -> None:
    environment = Environment(tmp_path / "my environment", with_package=False)
    for package in (gaia_sessions, click):
        folder = Path(str(package.__file__)).parent
        shutil.copytree(folder, environment.package / folder.name)
    words = environment.finds()
    assert words == [str(environment.python), "-P", "-m", "gaia_sessions", "hook"]
    assert hook_command.is_own_hook({"command": words[0], "args": [*words[1:]]})
    assert project.start(words) == (0, b"", b"")


def test_the_program_of_another_installation_is_not_used(tmp_path: Path, project: Project) -> None:
    environment = Environment(tmp_path / "env")
    environment.program.unlink()
    other = tmp_path / "home" / ".local" / "bin" / "gaia-sessions-hook"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\necho JSON\n", encoding="utf-8")
    other.chmod(0o755)
    ask = [str(environment.python), "-c", ASK]
    found = subprocess.run(
        ask, capture_output=True, check=True, cwd=project.folder, env={"HOME": str(tmp_path / "home")}
    ).stdout
    assert json.loads(found) == [str(CHECKOUT / "hooks" / "every_event.py")]


def test_a_checkout_without_an_installation_uses_its_own_script(tmp_path: Path, project: Project) -> None:
    environment = Environment(tmp_path / "env")
    environment.program.unlink()
    words = environment.finds()
    assert words == [str(CHECKOUT / "hooks" / "every_event.py")]
    assert project.start(words) == (0, b"", b"")


@table("broken", ["no package", "no interpreter", "not executable"])
def test_a_program_that_does_not_start_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    environment = Environment(tmp_path / broken, with_package=broken != "no package")
    if broken == "no interpreter":
        environment.program.write_bytes(b"#!/gone/python\n")
    if broken == "not executable":
        environment.program.chmod(0o644)
    monkeypatch.setattr(sys, "executable", str(environment.python))
    assert str(environment.program) not in executable.hook_program()


@table("form", ["a folder that PYTHONPATH names", "an archive"])
def test_install_refuses_hooks_that_no_client_can_start_and_names_the_installers(tmp_path: Path, form: str) -> None:
    place, project = tmp_path / form, tmp_path / f"project of {form}"
    for package in (gaia_sessions, click):
        folder = Path(str(package.__file__)).parent
        shutil.copytree(folder, place / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    start = ["-m", "gaia_sessions"]
    if form == "an archive":
        zipapp.create_archive(place, tmp_path / "gaia.pyz", main="gaia_sessions.cli.start:main")
        shutil.rmtree(place)
        start = [str(tmp_path / "gaia.pyz")]
    venv.create(tmp_path / "env")
    (project / ".git").mkdir(parents=True)
    command = [str(tmp_path / "env" / "bin" / "python"), *start, "hooks", "install"]
    environment = {**os.environ, "PYTHONPATH": str(place)}

    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project, env=environment)

    assert (done.returncode, done.stdout) == (8, ""), done.stderr
    assert "a client cannot start a hook from this installation" in done.stderr
    assert "with pip in a virtual environment, with pipx or with uv tool" in done.stderr
    assert not (project / ".claude").exists()
    told = subprocess.run(
        [*command[:-2], "doctor"], capture_output=True, text=True, check=False, cwd=project, env=environment
    )
    assert "hooks install" not in told.stdout
    assert "with uv tool" in told.stdout


def test_the_hook_imports_no_foreign_module_beside_its_program_or_in_the_project(
    tmp_path: Path, project: Project
) -> None:
    environment = Environment(tmp_path / "env")
    for folder in (environment.program.parent, project.folder):
        (folder / "json.py").write_text("raise SystemExit(2)", encoding="utf-8")
    delegation = b'{"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}'
    assert project.start([str(environment.program)], delegation) == (0, b"", b"")


@table("gone", ["program", "interpreter", "package"])
def test_a_hook_without_its_program_interpreter_or_package_refuses_no_call(
    tmp_path: Path, project: Project, gone: str
) -> None:
    environment = Environment(tmp_path / gone, with_package=gone != "package")
    if gone == "program":
        environment.program.unlink()
    if gone == "interpreter":
        environment.python.unlink()
    for host in HOSTS.values():
        words = [str(environment.program), "--host", host.name]
        if host.exec_form and gone != "package":
            with pytest.raises(FileNotFoundError):
                project.start(words)
        else:
            code, out, _ = project.start(words, shell=not host.exec_form)
            assert (code, out) == (0 if gone == "package" else 127, b"")


def test_the_interpreter_of_a_script_is_found_in_its_first_line(tmp_path: Path) -> None:
    file = tmp_path / "script"
    for first, interpreter in [
        (b"#!/usr/bin/python3 -P\n", "/usr/bin/python3"),
        (b"#! /usr/bin/env python3\n", "/usr/bin/env"),
        (b"\x7fELF", None),
        (b"#!\n", None),
        (b"", None),
    ]:
        file.write_bytes(first)
        assert (first, executable.interpreter_of(str(file))) == (first, interpreter)
    assert executable.interpreter_of(str(tmp_path / "gone")) is None
