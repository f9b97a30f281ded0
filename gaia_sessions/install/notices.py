"""Notices about an installation or an uninstall, as codes that never change.

Owns when each is due.
"""

from __future__ import annotations

from gaia_sessions.hosts import CODEX
from gaia_sessions.hosts.settings import LOCAL, PROJECT, USER

from . import git, permission
from .entries import all_entries, allowed_rules, own_entries
from .hook_command import is_mixed_entry
from .scopes import is_unread_from_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.settings import HostSettings

    from .git import Exclusion
    from .json_text import JsonText
    from .places import Places

TRUST_HOOKS, TRUST_FOLDER, MACHINE_PATHS, ROOT_ELSEWHERE, START_THERE, NOT_IGNORED, TRACKED = _INSTALL_NOTICES = (
    "trust_hooks",
    "trust_folder",
    "machine_paths",
    "root_elsewhere",
    "start_there",
    "not_ignored",
    "tracked",
)
MIXED_ENTRY, ENTRIES_BACK, RULE_STAYS = _UNINSTALL_NOTICES = ("mixed_entry", "entries_back", "rule_stays")
NOTICES = (*_INSTALL_NOTICES, *_UNINSTALL_NOTICES)


def install_notices(
    places: Places, host: HostSettings, scope: str, text: JsonText, *, report: bool
) -> tuple[list[str], Exclusion | None]:
    """The notices once ``text`` is in the settings of ``scope``, and the line that would make git ignore them."""
    path = places.file_of(host, scope)
    in_git = git.git_status(path, places.variables) if scope == LOCAL else git.UNKNOWN_STATUS
    due = {
        TRUST_HOOKS: host.name == CODEX,
        TRUST_FOLDER: report and scope != USER,
        MACHINE_PATHS: scope == PROJECT,
        ROOT_ELSEWHERE: not places.is_hooks_root,
        START_THERE: scope != USER and is_unread_from_here(places, host),
        NOT_IGNORED: in_git.exclusion is not None,
        TRACKED: in_git.is_tracked,
        MIXED_ENTRY: _has_mixed_entry(text),
    }
    return [code for code, is_due in due.items() if is_due], in_git.exclusion


def uninstall_notices(text: JsonText) -> list[str]:
    """The notices once ``text`` is what an uninstall leaves."""
    due = {
        ENTRIES_BACK: bool(own_entries(text)),
        MIXED_ENTRY: _has_mixed_entry(text),
        RULE_STAYS: any(permission.is_report_rule(rule) for rule in allowed_rules(text)),
    }
    return [code for code, is_due in due.items() if is_due]


def _has_mixed_entry(text: JsonText) -> bool:
    return any(is_mixed_entry(entry.handler) for entry in all_entries(text))
