"""Checks of what runs here: interpreter, packages, the clock, and whether the system tells of processes."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from importlib.util import find_spec

import gaia_sessions
from gaia_sessions.session.clock import FUTURE_TOLERANCE, write_time
from gaia_sessions.store.reading import STATE
from gaia_sessions.system import processes

from .findings import ailing, fine, shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .case import Case
    from .findings import Finding

SET_THE_CLOCK = "sudo timedatectl set-ntp true"

_PACKAGES = {
    "click": "click",
    "rich": "rich",
    "pydantic": "pydantic",
    "dateutil": "python-dateutil",
    "filelock": "filelock>=4.2.1,<5",
}
_FILELOCK = (4, 2, 1), (5,)


def interpreter(_case: Case) -> Finding:
    return fine("interpreter", f"Python {platform.python_version()}, {sys.executable}")


def version(_case: Case) -> Finding:
    return fine("version", f"gaia_sessions {gaia_sessions.__version__}, {os.path.dirname(gaia_sessions.__file__)}")


def packages(_case: Case) -> Finding:
    """Hooks need none of them; commands and the API do."""
    wanted = [given for name, given in _PACKAGES.items() if find_spec(name) is None or _is_unfit(name)]
    if not wanted:
        return fine("packages", ", ".join(_PACKAGES))
    return ailing(
        "packages", f"missing or too old: {', '.join(wanted)}", shell(sys.executable, "-m", "pip", "install", *wanted)
    )


def _is_unfit(name: str) -> bool:
    """An older ``filelock`` locks other files than we do, in another way."""
    if name != "filelock":
        return False
    try:
        given = tuple(int(part) for part in version_of(name).split(".")[:3] if part.isdecimal())
    except PackageNotFoundError:
        return False
    least, beyond = _FILELOCK
    return not least <= given < beyond


def clock(case: Case) -> Finding:
    """Whether the system's time is behind that of the newest record, which the system itself stamped."""
    stamps = [entry.changed for entry in case.entries if os.path.basename(entry.path) == STATE]
    newest = datetime.fromtimestamp(max(stamps), UTC) if stamps else case.now
    if newest - case.now <= FUTURE_TOLERANCE:
        return fine("clock", write_time(case.now))
    told = f"it is {write_time(case.now)}, and the newest record was written at {write_time(newest)}"
    return ailing("clock", told, SET_THE_CLOCK)


def process_table(_case: Case) -> Finding:
    """Where nothing is known of processes, a killed host is never proved to be gone."""
    if processes.describe(os.getpid()) is None:
        return fine("processes", "the system does not list processes: killed hosts look like silent ones")
    return fine("processes", "killed hosts can be recognised, within this pid namespace")
