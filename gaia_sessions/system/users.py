"""The users of this machine: their names, their folders, and the notice about a project of another user.

Owns every question about a user that is not the owner of a file. Must never know what is kept in a folder, nor create
one.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAM = "gaia-sessions"


def user_name(uid: int) -> str:
    """The name that the system has for ``uid``, else its number."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


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


def skipped_project_notice(project: str, path: str, uid: int, root: str) -> tuple[str, str, str]:
    """The notice that the search skipped ``project``, because ``path`` belongs to ``uid``, and ended at ``root``.

    Returns the message, the purpose of a command, and that command.
    """
    own_uid = os.geteuid()
    message = (
        f"the project {project} was passed over: {path} belongs to {user_name(uid)}, and you are {user_name(own_uid)};"
        f" the sessions are in {root}"
    )
    if own_uid:
        return message, "to keep them there without this notice", _export_root_command(root)
    return (
        message,
        f"as root you may use {user_name(uid)}'s sessions instead",
        _export_root_command(os.path.join(project, ".claude", "session")),
    )


def _export_root_command(root: str) -> str:
    import shlex

    return f"export GAIA_SESSIONS_ROOT={shlex.quote(root)}"
