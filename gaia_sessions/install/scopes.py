"""Scopes of a host's settings: which contain the hooks, which one is the default, and which a client reads.

Owns the default: the settings that are not shared, unless another file of this project has the hooks. That file is then
updated, because two files with different options would send each event twice (Claude Code 2.1.197 and 2.1.330 start
equal commands of several files once). A project's settings are for clients started in its folder: both versions read
the two files there, also in a linked worktree, and none of a folder above. Claude Code 2.1.330, started anywhere in a
repository or in one of its linked worktrees, also reads ``settings.local.json`` in the top folder of the main checkout;
2.1.197 does not. Qwen Code 0.15.10 and Gemini CLI 0.61.0 read no folder above; Codex 0.169.0 reads the settings of the
surrounding repository.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import HooksElsewhere, SessionsError
from gaia_sessions.hosts import CODEX
from gaia_sessions.hosts.settings import LOCAL, PROJECT

from .entries import own_entries
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.settings import HostSettings

    from .places import Places

_PROJECT_SCOPES = (LOCAL, PROJECT)
_HOSTS_READING_ABOVE = frozenset([CODEX])


def default_scope(host: HostSettings) -> str:
    """The personal settings of a project, where ``host`` has them; else the shared ones."""
    return LOCAL if LOCAL in host.files else PROJECT


def installed_scope(places: Places, host: HostSettings) -> str:
    """The scope of this project that has the hooks, else the default."""
    return next(iter(scopes_with_hooks(places, host)), default_scope(host))


def refuse_second(places: Places, host: HostSettings, scope: str) -> None:
    """Raises ``HooksElsewhere`` if another scope of this project has the hooks, and ``scope`` does not."""
    present = scopes_with_hooks(places, host)
    if scope in _PROJECT_SCOPES and present and scope not in present:
        raise HooksElsewhere(host.name, places.file_of(host, present[0]), present[0])


def is_unread_from_here(places: Places, host: HostSettings) -> bool:
    """Whether a client started here is below the folder of the project's settings and does not read those above."""
    if host.name in _HOSTS_READING_ABOVE:
        return False
    here, project = os.path.realpath(places.here), os.path.realpath(places.project)
    return bool(places.here) and here.startswith(project.rstrip(os.sep) + os.sep)


def scopes_with_hooks(places: Places, host: HostSettings) -> list[str]:
    """The scopes of this project that have the hooks, the default one first."""
    project_scopes = [scope for scope in _PROJECT_SCOPES if scope in host.files]
    return [scope for scope in project_scopes if _has_hooks(places.file_of(host, scope), host)]


def other_installed_scopes(places: Places, host: HostSettings, scope: str) -> list[str]:
    """The scopes of ``host`` other than ``scope`` that have the hooks; unreadable files are left out."""
    return [other for other in host.files if other != scope and _has_hooks(places.file_of(host, other), host)]


def _has_hooks(path: str, host: HostSettings) -> bool:
    try:
        return bool(own_entries(load(path, host).text))
    except SessionsError:
        return False
