"""Whose files are: how users are named, and how a person is told that a project of another user was passed over.

Owns the words only; ``project`` decides. Loaded when there is something to say.
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
    """What is said of a ``project`` whose ``path`` belongs to ``uid``, where the search ended at ``root``.

    The message, what may be wanted, and the command for that.
    """
    own_uid = os.geteuid()
    message = (
        f"the project {project} was passed over: {path} belongs to {user_name(uid)}, and you are {user_name(own_uid)};"
        f" the sessions are in {root}"
    )
    if own_uid:
        return message, "to keep them there without this notice", export_root_command(root)
    return (
        message,
        f"as root you may use {user_name(uid)}'s sessions instead",
        export_root_command(os.path.join(project, ".claude", "session")),
    )


def export_root_command(root: str) -> str:
    """The shell command that makes everything here use ``root``."""
    import shlex

    return f"export GAIA_SESSIONS_ROOT={shlex.quote(root)}"
