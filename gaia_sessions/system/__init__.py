"""Facts about the machine: processes, users, project folders, mounts, streams; in this file, time and home folders."""

from __future__ import annotations

import os

from gaia_sessions.session.clock import UTC, datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.session.schema import HostProcess, Record


_PROGRAM = "gaia-sessions"


def utc_now() -> datetime:
    """Returns the wall clock as an aware UTC time; a call reads it once and passes it on as ``now``."""
    return datetime.now(UTC)


def gone_runs(record: Record) -> frozenset[int]:
    """Returns the numbers of the runs without an end whose host is proved to be gone."""
    from gaia_sessions.session.runs import runs_of_gone_hosts

    return runs_of_gone_hosts(record, _is_gone)


def _is_gone(process: HostProcess) -> bool:
    from .processes import is_gone  # only a run without an end needs it

    return is_gone(process)


def program_path(name: str, environ: Mapping[str, str]) -> str:
    """Returns the path of the program ``name`` in an absolute folder of ``PATH``; raises ``FileNotFoundError``."""
    import shutil  # no hook needs it

    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    found = shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, folders)))
    if found is None:
        raise FileNotFoundError(name)
    return found


def home_folder(environ: Mapping[str, str]) -> str:
    """Returns the user's home as shells find it: ``HOME``, or the system's user database; empty if no path is found."""
    variable = environ.get("HOME", "")
    if os.path.isabs(variable):
        return variable
    import pwd  # nearly every user has HOME

    try:
        system_home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
    return system_home if os.path.isabs(system_home) else ""


def config_folder(environ: Mapping[str, str]) -> str:
    """Returns the folder of the user's own settings file; empty if the user has no home."""
    return _xdg_folder(environ, "XDG_CONFIG_HOME", ".config")


def state_folder(environ: Mapping[str, str]) -> str:
    """Returns the folder for what this program stores outside any project; empty if the user has no home."""
    return _xdg_folder(environ, "XDG_STATE_HOME", os.path.join(".local", "state"))


def _xdg_folder(environ: Mapping[str, str], variable: str, default: str) -> str:
    """Returns this program's folder in the folder that ``variable`` names; by the XDG rule, ignores a relative path."""
    base = environ.get(variable, "")
    if not os.path.isabs(base):
        home = home_folder(environ)
        if not home:
            return ""
        base = os.path.join(home, default)
    return os.path.join(base, _PROGRAM)
