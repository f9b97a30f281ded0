"""Checks of the machine: interpreter, packages, clock, the list of processes, containment."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from importlib.util import find_spec

import gaia_sessions
from gaia_sessions.runner.contain import why_impossible
from gaia_sessions.session.clock import format_time, is_ahead
from gaia_sessions.store.reading import RECORD
from gaia_sessions.system import processes

from .findings import not_checked, ok, problem, shell_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .findings import Finding
    from .inspection import Inspection

_PACKAGES = {
    "click": "click",
    "rich": "rich",
    "pydantic": "pydantic",
    "dateutil": "python-dateutil",
    "filelock": "filelock>=4.2.1,<5",
    "psutil": "psutil",
}
_FILELOCK = (4, 2, 1), (5,)


def packages(_inspection: Inspection) -> Finding:
    """Checks the packages that commands and the API need. Hooks need none."""
    wanted = [requirement for name, requirement in _PACKAGES.items() if find_spec(name) is None or _is_unfit(name)]
    if not wanted:
        package = f"gaia_sessions {gaia_sessions.__version__} in {os.path.dirname(gaia_sessions.__file__)}"
        used_by = f"Python {platform.python_version()} in {sys.executable}"
        return ok("packages", f"{', '.join(_PACKAGES)}; {package}; {used_by}")
    return problem(
        "packages",
        f"packages are missing or have an unsuitable version: {', '.join(wanted)}",
        shell_command(sys.executable, "-P", "-m", "pip", "install", *wanted),
    )


def _is_unfit(name: str) -> bool:
    """Returns whether this version of ``filelock`` locks other files than the hooks, or locks in another way."""
    if name != "filelock":
        return False
    try:
        installed = tuple(int(part) for part in version_of(name).split(".")[:3] if part.isdecimal())
    except PackageNotFoundError:
        return False
    least, beyond = _FILELOCK
    return not least <= installed < beyond


def clock(inspection: Inspection) -> Finding:
    """Checks whether the clock is behind the modification time of the newest record."""
    stamps = {entry.path: entry.changed for entry in inspection.entries if os.path.basename(entry.path) == RECORD}
    if not stamps:
        return not_checked("clock", "the clock, because there is no session to compare it with")
    path = max(stamps, key=stamps.__getitem__)
    newest = datetime.fromtimestamp(stamps[path], UTC)
    if not is_ahead(newest, inspection.now):
        return ok("clock", format_time(inspection.now))
    message = f"it is {format_time(inspection.now)}, and {path} was written at {format_time(newest)}"
    # Unpacking an archive also sets times of files, so only a person can tell whether the clock or the time is wrong.
    return problem("clock", f"the clock or the time of a file is wrong: {message}", None)


def process_table(_inspection: Inspection) -> Finding:
    """Checks whether processes are listed. Without that, nothing proves that a host was killed."""
    if processes.describe(os.getpid()) is None:
        return not_checked("processes", "whether a client was killed, because this system does not list processes")
    return ok("processes", "killed clients are recognized within this pid namespace")


def containment(_inspection: Inspection) -> Finding:
    """Checks whether ``run --contain`` can start here. Nothing else needs that, so a failure is not a problem."""
    why = why_impossible()
    if why is not None:
        return not_checked("containment", f"run --contain, because it cannot start here: {why}")
    return ok("containment", "run --contain can start here")
