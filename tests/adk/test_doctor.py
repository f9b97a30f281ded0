"""What ``doctor`` says of the session service in a ``services.yaml``: ADK itself only warns."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import pytest

from tests.commands import gaia
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Sequence

GOOD = "gaia_sessions.adk.GaiaSessionService"


def finding() -> Any:
    [found] = [one for one in json.loads(gaia("doctor", "--json").out)["checks"] if one["name"] == "adk"]
    return found


@pytest.fixture
def python_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What doctor asks of another Python is asked of this one, which has loaded google-adk already."""

    def run(words: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
        option, program, file = words[-3:]
        out, errors = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), catch_warnings():
            simplefilter("ignore", ResourceWarning)  # a process that ends need not close its files
            patch.setattr(sys, "argv", [option, file])
            try:
                exec(program, {})  # noqa: S102  # ours
            except Exception:  # noqa: BLE001  # whatever it is, another Python prints it
                traceback.print_exc(file=errors)
        return subprocess.CompletedProcess(words, int(bool(errors.getvalue())), out.getvalue(), errors.getvalue())

    here = SimpleNamespace(run=run, SubprocessError=subprocess.SubprocessError)
    monkeypatch.setattr("gaia_sessions.doctor.adk.subprocess", here)


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


@pytest.mark.usefixtures("python_here")
def test_so_is_one_in_a_folder_below() -> None:
    write("agents", "services.yml", f'"{GOOD}"')
    found = finding()
    assert (found["state"], found["fix"]) == ("ok", None)


@pytest.mark.usefixtures("python_here")
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
    assert (found["state"], found["fix"]) == ("problem", f"{sys.executable} -m pip install 'google-adk>=2.13,<3'")
