"""What the machine says: the time, processes, users, the project's folders, mounts, streams.

Owns every question to the operating system that is not about a store; here, what time it is, and where the current
user's own folders are, which every search for sessions and settings asks. Of records it knows only how times are
written, and how the process of a host is described.
"""

from __future__ import annotations

import os

from gaia_sessions.session.clock import UTC, datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.session.schema import HostProcess, Record


_PROGRAM = "gaia-sessions"


def utc_now() -> datetime:
    """The wall clock, as an aware UTC time; whoever answers a call reads it here, and passes it on as ``now``."""
    return datetime.now(UTC)


def gone_runs(record: Record) -> frozenset[int]:
    """The numbers of the runs without an end whose host is proved to be gone."""
    from gaia_sessions.session.runs import runs_of_gone_hosts

    return runs_of_gone_hosts(record, _is_gone)


def _is_gone(process: HostProcess) -> bool:
    from .processes import is_gone  # only a run without an end needs this

    return is_gone(process)


def program_path(name: str, environ: Mapping[str, str]) -> str:
    """The program ``name`` on the path, but for folders of it that depend on where the user stands.

    Raises ``FileNotFoundError``.
    """
    import shutil  # no hook needs this

    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    found = shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, folders)))
    if found is None:
        raise FileNotFoundError(name)
    return found


def home_folder(environ: Mapping[str, str]) -> str:
    """The user's home, as shells find it: ``HOME``, else the system's user database; empty if neither is a path."""
    variable = environ.get("HOME", "")
    if os.path.isabs(variable):
        return variable
    import pwd  # hardly anybody has no HOME

    try:
        system_home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
    return system_home if os.path.isabs(system_home) else ""


def config_folder(environ: Mapping[str, str]) -> str:
    """The folder of the user's own settings file; empty where the user has no home."""
    return _xdg_folder(environ, "XDG_CONFIG_HOME", ".config")


def state_folder(environ: Mapping[str, str]) -> str:
    """The folder of what this program keeps for the user outside any project; empty where the user has no home."""
    return _xdg_folder(environ, "XDG_STATE_HOME", os.path.join(".local", "state"))


def _xdg_folder(environ: Mapping[str, str], variable: str, default: str) -> str:
    """The folder of this program in that of ``variable``; by the XDG rule a relative path counts as unset."""
    base = environ.get(variable, "")
    if not os.path.isabs(base):
        home = home_folder(environ)
        if not home:
            return ""
        base = os.path.join(home, default)
    return os.path.join(base, _PROGRAM)
