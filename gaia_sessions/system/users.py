"""The users of this machine: their names, and the notice about a project of another user.

Owns every question about a user that is neither the owner of a file nor where the user's folders are.
"""

from __future__ import annotations

import os


def user_name(uid: int) -> str:
    """The name that the system has for ``uid``, else its number."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


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
