"""What ``doctor`` says of the session service in a ``services.yaml``: ADK itself only warns."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gaia_sessions.doctor import adk_service
from tests.commands import gaia
from tests.table import table

GOOD = "gaia_sessions.adk.GaiaSessionService"


def finding() -> Any:
    [found] = [one for one in json.loads(gaia("doctor", "--json").out)["checks"] if one["name"] == "adk"]
    return found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python that doctor starts reads a file without loading the service, which takes it a second."""
    program = "\n".join(line for line in adk_service._READ.splitlines() if "GaiaSessionService" not in line)
    monkeypatch.setattr(adk_service, "_READ", program)


def write(
    folder: str,
    name: str = "services.yaml",
    entry: str = GOOD,
    scheme: str = "gaia",
    kind: str = "session",
    top: str = "services",
) -> str:
    path = Path.cwd() / folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{top}:\n  - scheme: {scheme}\n    type: {kind}\n    class: {entry}\n", encoding="utf-8")
    return str(path)


def test_without_such_a_file_there_is_nothing_to_say() -> None:
    write("other", entry="my.own.SessionService", scheme="own")
    found = finding()
    assert (found["state"], found["found"]) == ("ok", "no services.yaml here names it")


def test_an_entry_that_can_be_loaded_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with modules of the names that are loaded, which are never run."""
    monkeypatch.chdir(tmp_path)
    write(".", entry=f'"{GOOD}"')
    for name in ("gaia_sessions", "yaml", "json", "google"):
        Path(f"{name}.py").write_text("raise SystemExit('run by doctor')\n", encoding="utf-8")
    found = finding()
    assert (found["state"], found["fix"]) == ("ok", None)


@pytest.mark.usefixtures("quick")
def test_so_is_one_in_a_folder_below() -> None:
    write("agents", "services.yml", f'"{GOOD}"')
    found = finding()
    assert (found["state"], found["fix"]) == ("ok", None)


@pytest.mark.usefixtures("quick")
@table(
    ("changed", "why"),
    [
        ({"entry": "gaia_sessions.adk.Gaia"}, "class is 'gaia_sessions.adk.Gaia'"),
        ({"entry": "gaia_session.adk.GaiaSessionService"}, "class is 'gaia_session.adk.GaiaSessionService'"),
        ({"kind": "artifact"}, "type is 'artifact'"),
        ({"scheme": "gaia://"}, "none of its services has the scheme gaia"),
        ({"top": "service"}, "none of its services has the scheme gaia"),
        ({"kind": "[session"}, "yaml.parser.ParserError"),
    ],
)
def test_an_entry_that_adk_would_not_load_is_named_with_the_one_that_is_right(
    changed: dict[str, str], why: str
) -> None:
    path = write("agents", **changed)
    found = finding()
    assert found["state"] == "problem"
    assert [part in found["found"] for part in (path, why, f"class: {GOOD}")] == [True] * 3
    assert path in found["fix"]


def test_a_python_without_google_adk_is_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("agents")
    hiding = tmp_path / "google"
    hiding.mkdir()
    (hiding / "__init__.py").touch()  # a package of that name without adk
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = finding()
    assert (found["state"], found["fix"]) == ("problem", f"{sys.executable} -P -m pip install 'google-adk>=2.13,<3'")


def test_without_google_adk_what_needs_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['google'] = None; from gaia_sessions.adk import GaiaSessionService"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ImportError: GaiaSessionService cannot be loaded (")
    assert said.endswith("): pip install 'gaia-sessions[adk]' brings the google-adk that it needs")


BOMB = "\n".join(["a0: &a0 [gaia, gaia]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))])


MERGED = "gaia: &a {" + ",".join(f"k{number}" for number in range(2000)) + "}\nx: [" + "{<<: *a}," * 3000 + "]\n"
"""A few KB that stand for six million pairs."""


@pytest.mark.usefixtures("quick")
def test_a_file_that_takes_too_long_is_at_fault_and_hides_none_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adk_service, "_SECONDS_FOR_FILES", 1)
    first = write("a", kind="artifact")
    for folder in ("b", "c"):
        Path(write(folder)).write_text(MERGED, encoding="utf-8")
    found = [one for one in json.loads(gaia("doctor", "--json").out)["checks"] if one["name"] == "adk"]
    told = [one["found"].partition(";")[0] for one in found]
    slow = str(Path.cwd() / "b" / "services.yaml")
    assert told == [f"{first}: type is 'artifact'", f"{slow}: it takes more than 1 seconds to read"]
    assert [path in one["fix"] for path, one in zip((first, slow), found, strict=True)] == [True, True]


@pytest.mark.usefixtures("quick")
def test_what_yaml_itself_refuses_is_the_fault_of_the_file() -> None:
    path = Path(write("agents"))
    path.write_text(f"gaia: {'9' * 5000}\n", encoding="utf-8")
    found = finding()
    assert (found["state"], "ValueError: " in found["found"], str(path) in found["fix"]) == ("problem", True, True)


@table("put", ["a pipe", "2 GiB", "a folder", "a link to a device", "a bomb", "a bomb in the entry"])
@pytest.mark.usefixtures("quick")
def test_a_file_of_a_repository_neither_holds_it_up_nor_fills_the_memory(put: str) -> None:
    folder = Path(put.replace(" ", "-").lower())
    folder.mkdir()
    path = folder / "services.yaml"
    match put:
        case "a pipe":
            os.mkfifo(path)
        case "2 GiB":
            path.touch()
            os.truncate(path, 2 << 30)
        case "a folder":
            path.mkdir()
        case "a link to a device":
            path.symlink_to("/dev/zero")
        case "a bomb":
            path.write_text(BOMB, encoding="utf-8")
        case _:
            path.write_text(f"{BOMB}\nservices:\n  - scheme: gaia\n    type: *a11\n    class: *a11\n", encoding="utf-8")

    found = finding()

    assert found["state"] == ("problem" if "bomb" in put else "ok"), found
    assert ("type is no text, class is no text" in found["found"]) == (put == "a bomb in the entry")
    shutil.rmtree(folder)
