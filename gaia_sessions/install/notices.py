"""Notices about an installation or an uninstall, as codes that never change; ``cli.render.hooks`` has their text."""

from __future__ import annotations

from gaia_sessions.hosts import CODEX
from gaia_sessions.hosts.settings import PROJECT, USER

from .scopes import is_unread_from_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .installed_file import InstalledFile
    from .places import Places

TRUST_HOOKS = "trust_hooks"
TRUST_FOLDER = "trust_folder"
MACHINE_PATHS = "machine_paths"
ROOT_ELSEWHERE = "root_elsewhere"
START_THERE = "start_there"
MIXED_ENTRY = "mixed_entry"
NO_HOME = "no_home"


def install_notices(places: Places, file: InstalledFile, *, report: bool) -> list[str]:
    """The notices once the hooks are in ``file``."""
    due = {
        TRUST_HOOKS: file.host.name == CODEX,
        TRUST_FOLDER: report and file.scope != USER,
        MACHINE_PATHS: file.scope == PROJECT,
        ROOT_ELSEWHERE: not places.is_hooks_root,
        START_THERE: file.scope != USER and is_unread_from_here(places, file.host),
    }
    return [code for code, is_due in due.items() if is_due] + common_notices(places, file)


def common_notices(places: Places, file: InstalledFile) -> list[str]:
    """The notices that are due after an installation and after an uninstall: what neither changes, or looks at."""
    due = {MIXED_ENTRY: bool(file.mixed), NO_HOME: not places.knows(file.host, USER)}
    return [code for code, is_due in due.items() if is_due]
