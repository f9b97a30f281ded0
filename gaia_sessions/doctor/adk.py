"""Whether Google ADK can load the session service that a ``services.yaml`` names: where it cannot, ADK only warns."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from itertools import islice

from gaia_sessions.errors import SessionsError
from gaia_sessions.store import external_file
from gaia_sessions.system.project_root import working_directory

from .findings import edit_command, ok, problem, shell_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .findings import Finding
    from .inspection import Inspection

_NAMES = ("services.yaml", "services.yml")
_ENTRY = {"scheme": "gaia", "type": "session", "class": "gaia_sessions.adk.GaiaSessionService"}
_READ = """
import json, sys, yaml
from gaia_sessions.adk import GaiaSessionService
document = yaml.safe_load(sys.stdin.buffer.read())
services = document.get("services") if isinstance(document, dict) else None
entries = [one for one in services if isinstance(one, dict)] if isinstance(services, list) else []
print(json.dumps([
    {key: one[key] if isinstance(one[key], str) else None for key in sys.argv[1:] if key in one} for one in entries
]))
"""
"""Loads the service, and reads the file with what ADK reads it with, which is installed with it.

Of the file only the texts of an entry are passed on: a few lines of YAML may stand for gigabytes of anything else.
"""
_SECONDS = 60
_LONGEST_SHOWN = 80
_MOST_BYTES = 1 << 16
_MOST_FILES = 10
"""Each costs a second."""


def services(_inspection: Inspection) -> list[Finding]:
    """The files, here or in a folder right below, that name us, and why ADK would not load the service by them."""
    named = [*islice(_naming_us(working_directory()), _MOST_FILES)]
    found = [_problem(file, *why) for file, content in named if (why := _why_not_loaded(content))]
    fine = (
        "services.yaml names the session service, and it can be loaded" if named else "no services.yaml here names it"
    )
    return found or [ok("adk", fine)]


def _problem(file: str, why: str, is_of_file: bool) -> Finding:  # noqa: FBT001  # what was found, not a mode
    if is_of_file:
        entry = "{" + ", ".join(f"{key}: {value}" for key, value in _ENTRY.items()) + "}"
        return problem("adk", f"{file}: {why}; it needs services: [{entry}]", edit_command(file))
    advice = "install google-adk 2.13 or later, for the Python that starts ADK:"
    install = shell_command(sys.executable, "-P", "-m", "pip", "install", "google-adk>=2.13,<3")
    return problem("adk", f"{file}: ADK cannot load the session service: {why}; {advice}", install)


def _naming_us(folder: str) -> Iterator[tuple[str, bytes]]:
    try:
        below = [entry.path for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        below = []
    for path in (os.path.join(place, name) for place in [folder, *sorted(below)] for name in _NAMES):
        with suppress(SessionsError):  # it is none that ADK reads
            content = external_file.read(path, _MOST_BYTES) or b""
            if re.search(rb"^[^#\n]*gaia", content, re.MULTILINE):
                yield path, content


def _why_not_loaded(content: bytes) -> tuple[str, bool] | None:
    """Why ADK would not load the service by such a file, and whether that is the file's fault; None if it would."""
    try:
        ended = subprocess.run(  # noqa: S603  # this interpreter; -P: with no module of the folder that is looked at
            [sys.executable, "-P", "-c", _READ, *_ENTRY],
            input=content,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error), False
    if ended.returncode:
        said = (ended.stderr.decode(errors="replace").strip() or "it failed").splitlines()
        of_yaml = [line for line in said if line.startswith(("yaml.", "UnicodeDecodeError"))]
        return " ".join([*of_yaml, said[-1].strip()][: 1 + bool(of_yaml)]), bool(of_yaml)
    ours = [entry for entry in json.loads(ended.stdout) if entry.get("scheme") == "gaia"]
    wrong = [f"{key} is {_shown(entry, key)}" for entry in ours for key in _ENTRY if entry.get(key) != _ENTRY[key]]
    if not ours:
        return "none of its services has the scheme gaia", True
    return (", ".join(wrong), True) if wrong else None


def _shown(entry: dict[str, str | None], key: str) -> str:
    found = entry.get(key)
    return repr(found[:_LONGEST_SHOWN]) if found else "no text" if key in entry else "missing"
