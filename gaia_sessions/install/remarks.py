"""What to know about an installation or its removal, as codes that stay the same.

Owns when each of them is due. The words for people are those of ``views``.
"""

from __future__ import annotations

from gaia_sessions.hosts.registry import CODEX

from . import permission, versioned
from .entries import entries, grants, of_ours
from .hook_command import mentions_us
from .places import LOCAL, PROJECT, USER
from .scopes import is_out_of_sight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .json_text import Text
    from .places import Host, Places
    from .versioned import Exclusion

TRUST_HOOKS, TRUST_FOLDER, MACHINE_PATHS, ROOT_ELSEWHERE, START_THERE, NOT_IGNORED, TRACKED = _ON_INSTALLING = (
    "trust_hooks",
    "trust_folder",
    "machine_paths",
    "root_elsewhere",
    "start_there",
    "not_ignored",
    "tracked",
)
MIXED_ENTRY, ENTRIES_BACK, RULE_STAYS = _ON_LEAVING = ("mixed_entry", "entries_back", "rule_stays")
REMARKS = (*_ON_INSTALLING, *_ON_LEAVING)


def on_installing(
    places: Places, host: Host, scope: str, text: Text, *, report: bool
) -> tuple[list[str], Exclusion | None]:
    """What is due once ``text`` is in the settings of ``scope``, and the line that would make git ignore them."""
    path = places.file_of(host, scope)
    seen = versioned.seen_by_git(path, places.variables) if scope == LOCAL else versioned.UNSEEN
    due = {
        TRUST_HOOKS: host.name == CODEX,
        TRUST_FOLDER: report and scope != USER,
        MACHINE_PATHS: scope == PROJECT,
        ROOT_ELSEWHERE: not places.is_hooks_root,
        START_THERE: scope != USER and is_out_of_sight(places, host),
        NOT_IGNORED: seen.exclusion is not None,
        TRACKED: seen.is_tracked,
        MIXED_ENTRY: _has_mixed(text),
    }
    return [remark for remark, is_due in due.items() if is_due], seen.exclusion


def on_leaving(text: Text) -> list[str]:
    """What is due once ``text`` is what is left."""
    due = {
        ENTRIES_BACK: bool(of_ours(text)),
        MIXED_ENTRY: _has_mixed(text),
        RULE_STAYS: any(permission.is_like_ours(rule) for rule in grants(text)),
    }
    return [remark for remark, is_due in due.items() if is_due]


def _has_mixed(text: Text) -> bool:
    return any(mentions_us(entry.handler) for entry in entries(text))
