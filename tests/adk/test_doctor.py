"""What ``doctor`` says of the session service in a ``services.yaml``: ADK itself only warns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GOOD = "gaia_sessions.adk.GaiaSessionService"


def findings() -> list[dict[str, Any]]:
    words = [sys.executable, "-m", "gaia_sessions", "doctor", "--json"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return [one for one in json.loads(ended.stdout)["checks"] if one["name"] == "adk"]


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
    [found] = findings()
    assert (found["state"], found["found"]) == ("ok", "no services.yaml here names it")


@pytest.mark.parametrize(("folder", "name"), [(".", "services.yaml"), ("agents", "services.yml")])
def test_an_entry_that_can_be_loaded_is_fine(folder: str, name: str) -> None:
    write(folder, name, f'"{GOOD}"')
    [found] = findings()
    assert (found["state"], found["fix"]) == ("ok", None)


@pytest.mark.parametrize(
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
    [found] = findings()
    assert found["state"] == "problem"
    assert [part in found["found"] for part in (path, why, f"class: {GOOD}")] == [True] * 3
    assert path in found["fix"]


def test_a_module_of_the_folder_is_never_run() -> None:
    write(".")
    for name in ("gaia_sessions", "yaml", "json", "google"):
        Path(f"{name}.py").write_text("raise SystemExit('run by doctor')\n", encoding="utf-8")
    words = [sys.executable, "-P", "-m", "gaia_sessions", "doctor", "--json"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    [found] = [one for one in json.loads(ended.stdout)["checks"] if one["name"] == "adk"]
    assert found["state"] == "ok"


def test_a_python_without_google_adk_is_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("agents")
    hiding = tmp_path / "google"
    hiding.mkdir()
    (hiding / "__init__.py").touch()  # a package of that name without adk
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    [found] = findings()
    assert (found["state"], found["fix"]) == ("problem", f"{sys.executable} -m pip install 'google-adk>=2.13,<3'")
