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
import json, resource, sys, yaml
from gaia_sessions.adk import GaiaSessionService
seconds, memory, longest, most, *keys = sys.argv[1:]
seconds = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + 1 + int(seconds)
memory = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + int(memory)
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
print("loaded", flush=True)
def text_of(value):
    return value[:int(longest)] if isinstance(value, str) else None
def entries_of(content):
    document = yaml.safe_load(content.encode("latin-1"))
    services = document.get("services") if isinstance(document, dict) else None
    entries = [one for one in services if isinstance(one, dict)] if isinstance(services, list) else []
    ours = [one for one in entries if one.get("scheme") == "gaia"][:int(most)]
    return [{key: text_of(one[key]) for key in keys if key in one} for one in ours]
for content in json.load(sys.stdin):
    try:
        answer = entries_of(content)
    except Exception as error:
        lines = str(error).encode(errors="replace").decode().splitlines()
        kind = f"{type(error).__module__}.{type(error).__name__}".removeprefix("builtins.")
        answer = " ".join([f"{kind}:", *lines[:1], *lines[1:][-1:]])[:300]
    print(json.dumps(answer), flush=True)
"""
"""Loads the service, and reads the files with what ADK reads them with, which is installed with it.

Only a few texts of each are passed on, and what all may cost is limited once the service is loaded: some lines of YAML
may stand for gigabytes and hours of anything else.
"""
_SECONDS = 60
_SECONDS_FOR_FILES, _MEMORY_FOR_FILES = 5, 1 << 30
_LONGEST_SHOWN = 80
_MOST_ENTRIES = 10
_MOST_BYTES = 1 << 16
_MOST_FILES = 10


def services(_inspection: Inspection) -> list[Finding]:
    """The files, here or in a folder right below, that name us, and why ADK would not load the service by them."""
    named = [*islice(_naming_us(working_directory()), _MOST_FILES)]
    reasons = _why_not_loaded([content for _, content in named]) if named else []
    found = [_problem(file, *why) for (file, _), why in zip(named, reasons, strict=False) if why]
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


def _why_not_loaded(contents: list[bytes]) -> list[tuple[str, bool] | None]:
    """For each file why ADK would not load the service by it, and whether that is the file's fault; None if it would.

    What stands behind a file that takes too much is not looked at.
    """
    limits = map(str, (_SECONDS_FOR_FILES, _MEMORY_FOR_FILES, _LONGEST_SHOWN, _MOST_ENTRIES))
    try:
        ended = subprocess.run(  # noqa: S603  # this interpreter; -P: with no module of the folder that is looked at
            [sys.executable, "-P", "-c", _READ, *limits, *_ENTRY],
            input=json.dumps([content.decode("latin-1") for content in contents]).encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [(f"it is not loaded after {_SECONDS} seconds", False)] * len(contents)
    except OSError as error:
        return [(str(error), False)] * len(contents)
    loaded, *answers = [*ended.stdout.split(b"\n")[:-1]] or [b""]
    if not loaded:
        said = (ended.stderr.decode(errors="replace").strip() or "it failed").splitlines()
        return [(said[-1].strip(), False)] * len(contents)
    reasons = [_why_not_by(json.loads(answer)) for answer in answers]
    if len(reasons) < len(contents):
        reasons.append((f"it takes more than {_SECONDS_FOR_FILES} seconds to read", True))
    return reasons


def _why_not_by(answer: str | list[dict[str, str | None]]) -> tuple[str, bool] | None:
    """What is wrong with the entries of a file; ``answer`` is a text where it cannot be read."""
    if isinstance(answer, str):
        return answer, True
    wrong = [f"{key} is {_shown(entry, key)}" for entry in answer for key in _ENTRY if entry.get(key) != _ENTRY[key]]
    if not answer:
        return "none of its services has the scheme gaia", True
    return (", ".join(wrong), True) if wrong else None


def _shown(entry: dict[str, str | None], key: str) -> str:
    found = entry.get(key)
    return repr(found) if found else "no text" if key in entry else "missing"
