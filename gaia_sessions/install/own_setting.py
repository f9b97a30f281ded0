"""Our own setting that sub-agents are told the command to report with: when it comes, and when it goes.

Owns that it is on as long as any settings file that shares it has our permission rule, and off after the last.
"""

from __future__ import annotations

from gaia_sessions import config
from gaia_sessions.errors import SessionsError
from gaia_sessions.store import external_file

from . import backups, permission
from .backups import LIMIT, Backup
from .changes import CREATED_FOLDERS, Change, created_folders
from .entries import has_rule
from .places import USER
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .places import Host, Places

RULES, SETTING = "rules", "setting"
"""What the note of a backup has: the rules we granted, the file of the setting we turned on."""


def plan_turning_on(places: Places, host: Host, scope: str) -> tuple[str | None, list[Change]]:
    """The file in which the setting is on by us, None if it is somebody else's word, and what it takes.

    Raises ``BadSetting`` if it says otherwise, or has no place for a line.
    """
    path = config.user_file(places.variables) if scope == USER else config.project_file(places.root)
    data = external_file.read(path, LIMIT)
    after = permission.with_report_setting(path, data)
    if after == data:
        return (path if backups.find(places.state, path) else None), []
    folders = created_folders(path, places.files_of(host), places.state)
    return path, [Change(path, data, after, Backup.of(data, data, after, {CREATED_FOLDERS: list(folders)}))]


def plan_turning_off(places: Places, host: Host, scope: str, path: str | None) -> list[Change]:
    """What it takes to have the setting in ``path`` off when ``scope`` no longer needs it: nothing if another does."""
    others = (other for other in host.files if other != scope)
    if path is None or any(_needs_setting(places, host, other, path) for other in others):
        return []
    data, backup = external_file.read(path, LIMIT), backups.find(places.state, path)
    if data is None or backup is None:
        return []
    after = backup.after_uninstall if backup.is_untouched(data) else permission.without_report_setting(path, data)
    return [Change(path, data, after, made=backup.texts(CREATED_FOLDERS))]


def _needs_setting(places: Places, host: Host, scope: str, path: str) -> bool:
    """Whether the settings of ``scope`` have our rule, and rely on the setting in ``path``."""
    file = places.file_of(host, scope)
    backup = backups.find(places.state, file)
    if backup is None or backup.text(SETTING) != path:
        return False
    try:
        text = load(file, host).text
    except SessionsError:  # it may well be in there
        return True
    rules = backup.texts(RULES)
    return not rules or any(has_rule(text, rule) for rule in rules)
