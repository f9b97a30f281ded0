"""The program that hosts start for every event: where the program is, and whether it starts.

Each candidate is started once, as a host would start it: if the path of a virtual environment has a blank, pip writes
a script whose first line no system can start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from functools import lru_cache

from gaia_sessions.errors import SessionsError, StoreFailure
from gaia_sessions.store import external_file
from gaia_sessions.system import program_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOOK_PROGRAM_NAME = "gaia-sessions-hook"

_INSTALL_WITH = (
    "install gaia-sessions with pip in a virtual environment, with pipx or with uv tool, and use that installation"
)

_WITHOUT_OUR_VARIABLES = (
    "/usr/bin/env",
    *(word for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR") for word in ("-u", name)),
)
"""Python finds packages through these variables, but the environment of a host perhaps lacks them."""

_SCRIPT = os.path.join("hooks", "every_event.py")
_TIMEOUT = 10
_LARGEST_SCRIPT = 1 << 16


def hook_program() -> list[str]:
    """Returns the command that starts a hook of gaia-sessions."""
    # No candidate passes a script to an interpreter: for a script that does not exist, Python exits with 2, which hosts
    # treat as a refusal. A program that does not exist does no harm: hosts show an error and continue.
    for words in _candidates():
        if _starts_hook(words):
            return list(words)
    raise StoreFailure(
        "install the hook", HOOK_PROGRAM_NAME, "a client cannot start a hook from this installation", _INSTALL_WITH
    )


def interpreter_of(program: str) -> str | None:
    """Returns the interpreter that the first line of the script ``program`` names; None if the line names none."""
    try:
        first = (external_file.read(program, _LARGEST_SCRIPT) or b"").partition(b"\n")[0]
    except (SessionsError, ValueError):  # a name that no file can have
        return None
    words = os.fsdecode(first.removeprefix(b"#!")).split() if first.startswith(b"#!") else []
    return words[0] if words else None


def unfit_python(environ: Mapping[str, str]) -> str | None:
    """Returns what is wrong with the ``python3`` on this PATH: its version and path; None if it can run the plugin."""
    try:
        python = program_path("python3", environ)
        command = [python, "-S", "-c", "import sys; print(*sys.version_info[:3], sep='.')"]
        told = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=True, cwd=os.sep).stdout  # noqa: S603  # what the client starts
        version = told.strip()
        return None if tuple(map(int, version.split("."))) >= (3, 11) else f"{version} at {python}"
    except FileNotFoundError:
        return "none on the PATH"
    except (OSError, ValueError, subprocess.SubprocessError):
        return f"a Python at {python} that does not start"


def _candidates() -> Iterator[tuple[str, ...]]:
    user_folder = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    interpreter_folder = os.path.dirname(os.path.abspath(sys.executable)) if sys.executable else user_folder
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = [interpreter_folder, sysconfig.get_path("scripts")]
    if checkout == sysconfig.get_path("purelib", sysconfig.get_preferred_scheme("user")):
        folders.append(user_folder)  # otherwise Python could have another version
    for folder in dict.fromkeys(folders):
        yield (os.path.join(folder, HOOK_PROGRAM_NAME),)
    yield (os.path.join(checkout, _SCRIPT),)
    if sys.executable:
        yield (os.path.abspath(sys.executable), "-P", "-m", "gaia_sessions", "hook")


@lru_cache
def _starts_hook(words: tuple[str, ...]) -> bool:
    """Returns whether ``words`` start a hook, which prints its help only if it can import the package."""
    if not os.access(words[0], os.X_OK):
        return False
    command = [*_WITHOUT_OUR_VARIABLES, *words, "--help"]
    try:
        completed = subprocess.run(  # noqa: S603  # the hook program
            command, cwd=os.sep, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
    return completed.returncode == 0 and b"JSON" in completed.stdout
