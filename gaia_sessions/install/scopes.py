"""Which scope of a host's settings is the default, which of them have the hooks, and which a client reads.

The default are the settings that are not shared, unless another file of this project has the hooks. That file is then
updated, because two files with different options would send each event twice (Claude Code 2.1.197 and 2.1.330 start
equal commands of several files once). A project's settings are for clients started in its folder: both versions read
the two files there, also in a linked worktree, and none of a folder above. Claude Code 2.1.330, started anywhere in a
repository or in one of its linked worktrees, also reads ``settings.local.json`` in the top folder of the main checkout;
2.1.197 does not. Qwen Code 0.15.10 and Gemini CLI 0.61.0 read no folder above; Codex 0.169.0 reads the settings of the
surrounding repository.
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
_HOSTS_READING_ABOVE = frozenset([CODEX])


def default_scope(host: HostSettings, files: list[InstalledFile]) -> str:
    """The scope of this project that has the hooks, else the one that is not shared, where ``host`` has it."""
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
    """Those of ``files`` that are of this project and have the hooks, the default one first."""
    of_project = [file for scope in _PROJECT_SCOPES for file in files if file.scope == scope]
    return [file for file in of_project if file.own]


def is_unread_from_here(places: Places, host: HostSettings) -> bool:
    """Whether a client started here is below the folder of the project's settings and does not read those above."""
    if host.name in _HOSTS_READING_ABOVE:
        return False
    here, project = os.path.realpath(places.here), os.path.realpath(places.project)
    return bool(places.here) and here.startswith(project.rstrip(os.sep) + os.sep)
