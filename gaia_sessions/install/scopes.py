"""Which of a host's settings files is meant where nobody says which, and who reads it.

Owns that it is the one that is not shared, unless this project has our hooks in another: there they are updated, since
each event would be told twice by two files with different options (Claude Code 2.1.197 and 2.1.330 start equal commands
of several files once). And that a project's settings are for clients started in its folder. Both versions read the two
files there, also of a linked worktree, and none of a folder above; 2.1.330, started anywhere in a repository or in one
of its linked worktrees, reads ``settings.local.json`` of the main checkout's top folder as well, 2.1.197 does not. Qwen
Code 0.15.10 and Gemini CLI 0.61.0 read none of a folder above; Codex 0.169.0 reads those of the repository around it.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import HooksElsewhere
from gaia_sessions.hosts.registry import CODEX

from .places import LOCAL, PROJECT
from .uninstall import has_our_hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .places import Host, Places

_PROJECT_SCOPES = (LOCAL, PROJECT)
_HOSTS_READING_ABOVE = frozenset([CODEX])


def default_scope(host: Host) -> str:
    """The settings of a project that are one person's, where ``host`` has such; else those that it has."""
    return LOCAL if LOCAL in host.files else PROJECT


def installed_scope(places: Places, host: Host) -> str:
    """The scope of this project that has our hooks, else the usual one."""
    return next(iter(scopes_with_our_hooks(places, host)), default_scope(host))


def refuse_second(places: Places, host: Host, scope: str) -> None:
    """Raises ``HooksElsewhere`` if this project has our hooks in a file other than that of ``scope``, and not in it."""
    present = scopes_with_our_hooks(places, host)
    if scope in _PROJECT_SCOPES and present and scope not in present:
        raise HooksElsewhere(host.name, places.file_of(host, present[0]), present[0])


def is_unread_from_here(places: Places, host: Host) -> bool:
    """Whether ``host``, started here, stands below the folder of the project's settings and does not look up there."""
    if host.name in _HOSTS_READING_ABOVE:
        return False
    here, project = os.path.realpath(places.here), os.path.realpath(places.project)
    return bool(places.here) and here.startswith(project.rstrip(os.sep) + os.sep)


def scopes_with_our_hooks(places: Places, host: Host) -> list[str]:
    """The scopes of this project that have our hooks, the usual one first."""
    project_scopes = [scope for scope in _PROJECT_SCOPES if scope in host.files]
    return [scope for scope in project_scopes if has_our_hooks(places.file_of(host, scope), host)]
