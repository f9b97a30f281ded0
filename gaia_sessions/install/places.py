"""Where the settings files of hosts and our own files are, for one user and one project."""

from __future__ import annotations

import os

from gaia_sessions import hosts
from gaia_sessions.errors import BadSetting
from gaia_sessions.hosts.host_files import folder_of
from gaia_sessions.hosts.settings import USER
from gaia_sessions.system.project_root import SESSIONS_PATH, claude_folder, find_root, target_outside, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.hosts.settings import HostSettings

HOSTS = {name: hosts.settings_of(name) for name in hosts.HOSTS}

UNKNOWN_HOME = "is not set, and the system knows no home folder for you"


class Places:
    """The folders and files for one user and one project. ``beside``: the folder with the project's settings."""

    __slots__ = ("here", "project", "root", "variables")

    def __init__(self, root: str, variables: Mapping[str, str], beside: str | None = None) -> None:
        self.variables = variables
        self.root = root
        # The folder in which a client would be started now.
        self.here = beside or _start_folder(variables)
        self.project = beside or _project_of(root, variables, self.here)

    def knows(self, host: HostSettings, scope: str) -> bool:
        """Returns whether the place of these settings is known: some users have no home folder."""
        return scope != USER or bool(folder_of(host.name, self.variables))

    def folder_of(self, host: HostSettings, scope: str) -> str:
        """Returns the folder of ``host`` in ``scope``, which need not exist."""
        if not self.knows(host, scope):
            raise BadSetting("HOME", UNKNOWN_HOME, "set it to your home folder")
        if scope == USER:
            return folder_of(host.name, self.variables)
        name, _, _ = hosts.FOLDERS[host.name]
        return os.path.join(self.project, name)

    @property
    def hooks_root(self) -> str:
        """The root that hooks in the project's settings use, if the host has the same environment as this process."""
        fixed = self.variables.get("GAIA_SESSIONS_ROOT", "")
        return os.path.normpath(fixed) if os.path.isabs(fixed) else _sessions_of(self.project)

    @property
    def is_hooks_root(self) -> bool:
        """Whether ``hooks_root`` is ``root``. Hooks follow no link that leads out of the project."""
        is_same = os.path.realpath(self.root) == os.path.realpath(self.hooks_root)
        return is_same and not target_outside(self.hooks_root)

    def file_of(self, host: HostSettings, scope: str) -> str:
        """Returns the settings file of ``host`` in ``scope``, which need not exist."""
        return os.path.join(self.folder_of(host, scope), host.files[scope])


def _project_of(root: str, variables: Mapping[str, str], here: str) -> str:
    """Returns the project that contains ``root``; if no project contains it, the project around this folder."""
    folder = claude_folder(root)
    if folder is None:
        elsewhere = {name: value for name, value in variables.items() if name != "GAIA_SESSIONS_ROOT"}
        folder = os.path.dirname(find_root(None, elsewhere, working_directory()))
    # A client that is started in a linked worktree reads the settings there.
    return _worktree_of(os.path.dirname(folder), here) or os.path.dirname(folder)


def _worktree_of(project: str, here: str) -> str | None:
    """Returns the linked worktree of ``project`` that contains ``here``; None if there is none."""
    sessions = os.path.realpath(os.path.join(project, SESSIONS_PATH))
    while here not in (project, os.path.dirname(here)):
        if os.path.isfile(os.path.join(here, ".git")):
            return here if os.path.realpath(_sessions_of(here)) == sessions else None
        here = os.path.dirname(here)
    return None


def _start_folder(variables: Mapping[str, str]) -> str:
    project_folder = variables.get("CLAUDE_PROJECT_DIR", "")
    return os.path.normpath(project_folder) if os.path.isabs(project_folder) else working_directory()


def _sessions_of(project: str) -> str:
    """Returns the root that hooks use for a client that was started in ``project``."""
    return find_root(None, {"CLAUDE_PROJECT_DIR": project}, "")
