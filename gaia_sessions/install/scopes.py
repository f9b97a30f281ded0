"""Which scope of a host's settings is the default, which scopes have the hooks, and which scopes a client reads.

The default is the scope that is not shared, unless another file of this project has the hooks: if two files had
different options, each event would arrive twice.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import HooksElsewhere
from gaia_sessions.hosts import CODEX
from gaia_sessions.hosts.settings import LOCAL, PROJECT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.settings import HostSettings

    from .installed_file import InstalledFile
    from .places import Places

_PROJECT_SCOPES = (LOCAL, PROJECT)
# Codex 0.169.0 reads the settings of the surrounding repository. Claude Code 2.1.197, Qwen Code 0.15.10 and Gemini CLI
# 0.61.0 read no folder above; Claude Code 2.1.330 reads only settings.local.json of the main checkout.
_HOSTS_READING_ABOVE = frozenset([CODEX])


def default_scope(host: HostSettings, files: list[InstalledFile]) -> str:
    """Returns the scope of this project that has the hooks, else the scope that is not shared."""
    present = files_with_hooks(files)
    if present:
        return present[0].scope
    return LOCAL if LOCAL in host.files else PROJECT


def refuse_second(files: list[InstalledFile], scope: str) -> None:
    """Raises ``HooksElsewhere`` if another scope of this project has the hooks, and ``scope`` does not."""
    present = files_with_hooks(files)
    if scope in _PROJECT_SCOPES and present and scope not in [file.scope for file in present]:
        raise HooksElsewhere(present[0].host.name, present[0].path, present[0].scope)


def files_with_hooks(files: list[InstalledFile]) -> list[InstalledFile]:
    """Returns the files of this project that have the hooks, the default one first."""
    of_project = [file for scope in _PROJECT_SCOPES for file in files if file.scope == scope]
    return [file for file in of_project if file.own]


def is_unread_from_here(places: Places, host: HostSettings) -> bool:
    """Returns whether this folder is below the project's settings, and a client that starts here does not read them."""
    if host.name in _HOSTS_READING_ABOVE:
        return False
    here, project = os.path.realpath(places.here), os.path.realpath(places.project)
    return bool(places.here) and here.startswith(project.rstrip(os.sep) + os.sep)
