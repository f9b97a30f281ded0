"""The names of users, and the notice about a project of another user."""

from __future__ import annotations

import os


def user_name(uid: int) -> str:
    """Returns the system's name for ``uid``, or its number."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def skipped_project_notice(project: str, path: str, uid: int, root: str) -> tuple[str, str, str]:
    """Returns a notice that the search skipped ``project``: the message, the purpose of a command, the command."""
    own_uid = os.geteuid()
    message = (
        f"the project {project} was skipped: {path} belongs to {user_name(uid)}, and you are {user_name(own_uid)};"
        f" the sessions are in {root}"
    )
    if own_uid:
        return message, "to store the sessions there without this notice", _export_root_command(root)
    return (
        message,
        f"as root, you can use {user_name(uid)}'s sessions instead",
        _export_root_command(os.path.join(project, ".claude", "session")),
    )


def _export_root_command(root: str) -> str:
    import shlex

    return f"export GAIA_SESSIONS_ROOT={shlex.quote(root)}"
