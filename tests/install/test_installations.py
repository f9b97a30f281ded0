"""The wheel and the sdist, and installations with pip, uv tool and the lowest dependencies."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.models import json_schema, validate

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

CHECKOUT = Path(gaia_sessions.__file__).parents[1]
CAPTURE = CHECKOUT / "tests" / "data" / "hosts" / "claude-code-2.1.330" / "single.jsonl"


def run(*command: Any, cwd: Path | None = None, told: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
    """Runs ``command`` without the variables of this package, of Claude Code and of Python."""
    ours = ("GAIA_", "CLAUDE", "PYTHON")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [*map(str, command)], cwd=cwd, input=told, capture_output=True, check=False, env=environment | more
    )


def done(*command: Any, cwd: Path | None = None, **more: str) -> str:
    ran = run(*command, cwd=cwd, told=b"", **more)
    assert ran.returncode == 0, (command, ran.stderr.decode()[-2000:])
    return ran.stdout.decode()


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory, own_home: str) -> dict[str, Path]:
    """The files to publish; the wheel is built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    done(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=CHECKOUT, HOME=own_home)
    [sdist] = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [source] = [path for path in folder.iterdir() if path.is_dir()]
    done(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source, HOME=own_home)
    [wheel] = folder.glob("*.whl")
    return {"sdist": sdist, "source": source, "wheel": wheel}


@pytest.fixture(scope="module")
def uv(own_home: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs uv, which is faster than pip."""
    folder = tmp_path_factory.mktemp("uv")
    done(sys.executable, "-m", "pip", "install", "-q", "--target", folder, "uv", HOME=own_home)
    return partial(done, folder / "bin" / "uv", HOME=own_home, UV_PYTHON=sys.executable, UV_LINK_MODE="copy")


@pytest.fixture(scope="module")
def install(uv: Any) -> Any:
    """Installs in a new environment and returns its ``bin`` folder."""

    def installed(folder: Path, *what: str | Path) -> Path:
        uv("venv", "-q", folder)
        uv("pip", "install", "-q", "--python", folder / "bin" / "python", *what)
        return folder / "bin"

    return installed


@pytest.fixture(scope="module")
def programs(dist: dict[str, Path], install: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("installed") / "env", dist["wheel"])  # type: ignore[no-any-return]


def test_the_sdist_has_every_file_that_git_tracks(dist: dict[str, Path]) -> None:
    kept = done("git", "ls-files", cwd=CHECKOUT).split()
    assert [name for name in kept if not (dist["source"] / name).exists()] == []


def test_no_page_in_the_wheel_has_a_broken_link(dist: dict[str, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(dist["wheel"]) as archive:
        archive.extractall(tmp_path)  # noqa: S202  # built by this test
    [data] = tmp_path.glob("*.data/data/share/gaia-sessions")
    pages = list(data.rglob("*.md"))
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))]
    assert len(links) > 50
    assert [(page.name, to) for page, to in links if "://" not in to and not (page.parent / to).exists()] == []
    assert list(data.rglob("hooks.json")) == []


def projects(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return project


def life(project: Path, name: str = "") -> list[bytes]:
    """The captured payloads of one sub-agent; a ``name`` makes them those of another client and agent."""
    captured = CAPTURE.read_text("utf-8")
    for known in ("0e23a513-af54", "a8bb9f68c7e3da253", "toolu_fake00100"):
        captured = captured.replace(known, f"{known}{name}")
    payloads = [line["stdin"] for line in map(json.loads, captured.splitlines()) if "stdin" in line]
    return [json.dumps({**payload, "cwd": str(project)}).encode() for payload in payloads]


def records(project: Path) -> list[Any]:
    sessions = Sessions(str(project / ".claude" / "session"))
    return [sessions.get(line["agent_id"]) for line in sessions.list()]


def fed(project: Path, words: Sequence[str]) -> list[str]:
    """The phases of the sessions after the command received the payloads of one sub-agent."""
    for told in life(project):
        ran = run(*words, cwd=project, told=told, CLAUDE_PROJECT_DIR=str(project))
        assert (ran.returncode, ran.stderr) == (0, b"")
    return [record["phase"] for record in records(project)]


def installed_command(programs: Path, project: Path) -> list[str]:
    done(programs / "gaia-sessions", "hooks", "install", cwd=project)
    settings = json.loads((project / ".claude" / "settings.local.json").read_bytes())
    [handler] = settings["hooks"]["SubagentStop"][0]["hooks"]
    return [handler["command"], *handler.get("args", [])] if "args" in handler else shlex.split(handler["command"])


def test_pip_installs_commands_and_hooks_that_work(programs: Path, tmp_path: Path) -> None:
    project = projects(tmp_path)
    words = installed_command(programs, project)

    assert words == [str(programs / "gaia-sessions-hook")]
    assert fed(project, words) == ["completed"]
    assert "problem" not in done(programs / "gaia-sessions", "doctor", cwd=project)


def test_uv_tool_installs_hooks_that_work(uv: Any, dist: dict[str, Path], tmp_path: Path) -> None:
    places = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    uv("tool", "install", "-q", dist["wheel"], **places)
    project = projects(tmp_path)

    assert fed(project, installed_command(tmp_path / "bin", project)) == ["completed"]


def test_hooks_install_refuses_a_package_that_only_pythonpath_names(
    uv: Any, dist: dict[str, Path], tmp_path: Path
) -> None:
    uv("venv", "-q", tmp_path / "env")
    uv("pip", "install", "-q", "--target", tmp_path / "target", dist["wheel"])
    project = projects(tmp_path)
    command = [tmp_path / "env" / "bin" / "python", "-m", "gaia_sessions", "hooks", "install"]

    ran = run(*command, cwd=project, PYTHONPATH=str(tmp_path / "target"))

    assert (ran.returncode, ran.stdout) == (8, b"")
    assert b"a client cannot start a hook from this installation" in ran.stderr


def test_the_lowest_dependencies_work_and_give_the_same_schema(
    install: Any, dist: dict[str, Path], tmp_path: Path
) -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    lowest = [re.sub(r">=([\d.]+).*", r"==\1", one) for one in project["dependencies"]]
    programs = install(tmp_path / "env", dist["wheel"], *lowest)

    assert json.loads(done(programs / "gaia-sessions", "schema")) == json_schema()
    folder = projects(tmp_path)
    assert fed(folder, installed_command(programs, folder)) == ["completed"]


REINSTALLS, CALLS = 10, 200
OF_NOTHING = (
    "No module named gaia_sessions",
    "No module named 'gaia_sessions'",
    "cannot be directly executed",
    "can't open file",
)
"""Errors of Python before it runs the package; the last one if the program disappears while Python starts."""


@pytest.mark.parametrize("form", ["program", "module"])
def test_no_hook_call_fails_while_pip_reinstalls_the_package(dist: dict[str, Path], tmp_path: Path, form: str) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    programs, project = tmp_path / "env" / "bin", projects(tmp_path)
    words = [str(programs / "gaia-sessions-hook")]
    if form == "module":
        words = [str(programs / "python"), "-P", "-m", "gaia_sessions", "hook"]
    again = [programs / "pip", "install", "-q", "--no-deps", "--no-index", "--force-reinstall", dist["wheel"]]
    done(*again)
    script = f'for i in $(seq {REINSTALLS}); do "$@" || true; done'
    replacing = subprocess.Popen(["sh", "-c", script, "sh", *map(str, again)], stdout=-3, stderr=subprocess.PIPE)
    noticed, calls, lives = [], 0, 0
    while replacing.poll() is None or calls < CALLS:
        lives += 1
        for told in life(project, f"-{lives}"):
            try:
                ran = run(*words, cwd=project, told=told, CLAUDE_PROJECT_DIR=str(project))
            except OSError:  # the program is missing or being written
                continue
            calls += 1
            said = ran.stderr.decode()
            if (ran.returncode or said) and not any(words in said for words in OF_NOTHING):
                noticed.append((ran.returncode, said))

    replacing.communicate()  # pip may fail on files that the calls compile; the next time it succeeds
    assert noticed == []
    done(*again)
    assert "completed" in fed(project, words)
    kept = records(project)
    texts = [json.dumps({**record, "agent_id": None}) for record in kept]  # a random ID can end in af54
    named = [{*re.findall(r"(?:af54|fake00100)(-\d+|)\b", text)} for text in texts]
    assert [text for text, names in zip(texts, named, strict=True) if len(names) != 1] == []
    assert len(set.union(*named)) == len(named)  # each sub-agent is in one session
    assert [validate(record).agent_id for record in kept] == [record["agent_id"] for record in kept]
